"""make-dataset's folder → what the gates of each cell need: its windows, its events, and the record of its sources."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.risk.gates_tally import Tally
from leadtime.training.check_reading import Cell, file_name, unreadable
from leadtime.training.manifest import read_json
from leadtime.training.progress import Progress

DATASET = "dataset.json"


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """``dataset.json``, or nothing where it isn't written yet. Raises BadTrace where it is broken."""
    return read_json(folder / DATASET) or {}


def window_cells(folder: Path, manifest: Mapping[str, Any], progress: Progress) -> Iterator[Cell]:
    """cell=<c>/ folders → cells, one after the other, partition after partition.

    Raises BadTrace where there is none, or where a cell has no windows.
    """
    folders = [one for one in sorted(folder.glob("cell=*")) if any(one.glob("windows/*.parquet"))]
    if not folders:
        raise BadTrace(
            "borg-no-windows", f"checking {folder}", "there are no windows below a folder cell=<name> in it",
            "name a folder of shards, or one that `leadtime borg make-dataset` wrote",
        )  # fmt: skip
    for below in folders:
        name = below.name.removeprefix("cell=")
        cell = Cell(name=name, observed_until_us=_of_cell(manifest, "observed_until_us", name))
        cell.sources = _sources(manifest, name)
        cell.dropped = _dropped(manifest, name)
        parts = [("instance_usage", one) for one in sorted(below.glob("windows/*.parquet"))]
        parts += [("instance_events", one) for one in sorted(below.glob("events/*.parquet"))]
        parts += [("collection_events", one) for one in sorted(below.glob("collections.parquet"))]
        parts += [("machine_events", one) for one in sorted(below.glob("machines.parquet"))]
        for at, (table, path) in enumerate(parts):
            _take(cell, table, path, file_name(path, folder))
            progress(f"reading cell {name}", at + 1, len(parts), "files")
        yield cell


def _take(cell: Cell, table: str, path: Path, file: str) -> None:
    """One partition, whole: its size is bounded by make-dataset."""
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        fault = BadTrace(
            "borg-partition-broken", f"reading {path}", f"it is no readable Parquet ({type(error).__name__})",
            "run `leadtime borg make-dataset` again; it builds what is broken anew",
        )  # fmt: skip
        cell.gates.append(unreadable(fault, where=file))
        return
    if frame.height or table != "machine_events":  # make-dataset writes an empty one where there was none
        cell.take(file, table, frame, rows_in=frame.height, rejects={})


def _of_cell(manifest: Mapping[str, Any], field: str, cell: str) -> Any:
    by_cell = manifest.get(field)
    return by_cell.get(cell) if isinstance(by_cell, Mapping) else None


def _sources(manifest: Mapping[str, Any], cell: str) -> dict[str, Tally]:
    """Rows in, out and rejected of each shard the windows were made from, alloc instances set apart."""
    return {
        f"cell {cell} {one['file']}": Tally(
            table=one["table"], rows_in=one["rows_in"] - one.get("alloc_rows", 0), rows_out=one["rows_out"],
            rejects=one.get("rejects") or {},
        )
        for one in _of_cell(manifest, "sources", cell) or ()
    }  # fmt: skip


def _dropped(manifest: Mapping[str, Any], cell: str) -> tuple[int, int] | None:
    parts = _of_cell(manifest, "partitions", cell)
    if not parts:
        return None
    return sum(one["events_in"] for one in parts), sum(one["duplicate_events"] for one in parts)
