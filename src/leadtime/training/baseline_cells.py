"""A data set's partitions → one Parquet file a cell, sorted by key, for whoever wants the cell's rows in one piece."""

from pathlib import Path

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.training.manifest import staged_beside
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import FeatureSet

ORDER = ("collection_id", "instance_index", "end_time_us", "start_time_us")


def forecaster_file(cell: str) -> str:
    """``b_forecaster.parquet``."""
    return f"{cell}_forecaster.parquet"


def write_cells(data: FeatureSet, folder: Path, progress: Progress = silent) -> dict[str, int]:
    """Write every cell of ``data``; returns file → rows.

    A partition is sorted and holds whole collections, so partitions are merged by collection_id, streaming: memory does
    not grow with the cell. Raises BadTrace when the rows are not those of forecaster.json.
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
        _merged(parts).sink_parquet(staged, maintain_order=True)
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


def _merged(parts: list[pl.LazyFrame]) -> pl.LazyFrame:
    """Two by two, so that n partitions are log n merges deep."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [pair[0] if len(pair) == 1 else pair[0].merge_sorted(pair[1], key="collection_id") for pair in pairs]
    return parts[0]
