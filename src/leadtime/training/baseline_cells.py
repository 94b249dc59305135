"""A data set's partitions → one Parquet file a cell, sorted by key, for whoever wants the cell's rows in one piece."""

from pathlib import Path

import numpy as np
import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.training.manifest import staged_beside
from leadtime.training.progress import Progress, silent
from leadtime.training.run_folder import join_files
from leadtime.training.sampling import FeatureSet

AT_ONCE = 1_000_000  # rows sorted in memory; 140 columns of them are half a gigabyte
ORDER = ("collection_id", "instance_index", "end_time_us", "start_time_us")


def forecaster_file(cell: str) -> str:
    """``b_forecaster.parquet``."""
    return f"{cell}_forecaster.parquet"


def write_cells(
    data: FeatureSet, folder: Path, progress: Progress = silent, *, at_once: int = AT_ONCE
) -> dict[str, int]:
    """Write every cell of ``data``; returns file → rows.

    A cell is sorted ``at_once`` rows at a time, by ranges of collection_id: memory does not grow with the cell. Raises
    BadTrace when the rows are not those of forecaster.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, int] = {}
    for part in data.manifest.get("partitions", ()):
        cell = Path(str(part["path"])).parent.name.removeprefix("cell=")
        told[cell] = told.get(cell, 0) + int(part["rows"])
    written: dict[str, int] = {}
    for number, cell in enumerate(data.cells):
        progress("writing cells", number, len(data.cells), "cells")
        staged = staged_beside(folder / forecaster_file(cell))
        parts = [data.scan(path) for path in data.partitions if path.parent.name == f"cell={cell}"]
        _write_sorted(parts, staged, at_once=at_once)
        rows = int(pl.scan_parquet(staged).select(pl.len()).collect().item())
        if rows != told.get(cell, rows):
            staged.unlink()
            raise BadTrace(
                "features-broken", f"reading cell {cell} of {data.folder}", f"its partitions hold {rows:,} rows, the "
                f"manifest says {told[cell]:,}", "make the forecaster data set again",
            )  # fmt: skip
        staged.replace(folder / forecaster_file(cell))
        written[forecaster_file(cell)] = rows
    progress("writing cells", len(data.cells), len(data.cells), "cells")
    return written


def _write_sorted(parts: list[pl.LazyFrame], staged: Path, *, at_once: int) -> None:
    """Collections in rising order, ``at_once`` rows or one collection in memory at a time, then all in one file."""
    counted = pl.concat([part.select("collection_id") for part in parts]).group_by("collection_id").len()
    sizes = counted.collect(engine="streaming").sort("collection_id")
    slice_of = ((sizes["len"].cum_sum() - sizes["len"]) // at_once).to_numpy()
    first = sizes["collection_id"].gather(np.flatnonzero(np.diff(slice_of, prepend=-1))).to_list()
    slices = []
    try:
        for number, (low, high) in enumerate(zip(first, [*first[1:], None], strict=True)):
            of = pl.col("collection_id")
            inside = (of >= low) if high is None else (of >= low) & (of < high)
            rows = pl.concat([part.filter(inside).collect() for part in parts])
            slices.append(staged.with_name(f"{staged.name}.{number:04d}"))
            rows.sort(ORDER).write_parquet(slices[-1])
        join_files(slices, staged)
    finally:
        for path in slices:
            path.unlink(missing_ok=True)
