"""A Parquet shard (structs, dotted or underscored) → raw frames, a bounded number of rows at a time."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from leadtime.sources.borg.batch import Note, RawFrame
from leadtime.sources.borg.trace_errors import unreadable
from leadtime.sources.borg.v3_columns import Columns, columns_of, demand_required

BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
WHAT = "Parquet"


def schema_at(path: Path) -> dict[str, pl.DataType]:
    """Top-level columns of the file. Raises BadTrace where it has no readable footer (a cut file has none)."""
    try:
        return dict(pl.read_parquet_schema(path))
    except BROKEN as error:
        raise unreadable(path, WHAT, error) from None


def rows_at(path: Path) -> int:
    """Rows by the file's own footer; nothing else is read."""
    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except BROKEN as error:
        raise unreadable(path, WHAT, error) from None


def raw_frames(path: Path, table: str, batch_rows: int) -> Iterator[RawFrame]:
    """``table``'s columns of the file under canonical names, in file order; one empty frame where it has no rows."""
    columns = columns_of(schema_at(path), table)
    demand_required(columns, table, path)
    notes = column_notes(columns)
    first_row = 1
    try:
        scan = pl.scan_parquet(path).select(columns.expressions)
        for piece in scan.collect_batches(chunk_size=batch_rows, maintain_order=True):
            for frame in piece.iter_slices(batch_rows):
                yield RawFrame(frame=frame, first_row=first_row, notes=notes)
                first_row += frame.height
                notes = ()
    except BROKEN as error:
        raise unreadable(path, f"{WHAT} after row {first_row - 1:,}", error) from None
    if first_row == 1:
        empty = pl.scan_parquet(path).select(columns.expressions).head(0).collect()
        yield RawFrame(frame=empty, first_row=1, notes=notes)


def column_notes(columns: Columns) -> tuple[Note, ...]:
    """What the file has and we don't read, and what we would read and it doesn't have."""
    ignored = [
        Note(code="column-ignored", column=name, text=f"column {name} is not in the v3 schema: not read")
        for name in columns.ignored
    ]
    absent = [
        Note(code="column-absent", column=name, text=f"the file has no column for {name}: read as missing")
        for name in columns.absent
    ]
    return (*ignored, *absent)
