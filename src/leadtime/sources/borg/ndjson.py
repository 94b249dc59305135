"""JSON lines (gzip or plain) → raw frames. Integers are read as text, so that quoted and bare ones meet the same cast.

The library's own streaming reader does the work. It is strict: a value of another type stops it, and the rows from
there on are read by ``ndjson_rows``, which is slower and says what is wrong with which row.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES
from leadtime.sources.borg import gz_lines, ndjson_rows
from leadtime.sources.borg.batch import FAULT, Note, RawFrame
from leadtime.sources.borg.parquet import column_notes
from leadtime.sources.borg.trace_errors import bad_shard
from leadtime.sources.borg.v3_columns import Columns, columns_of, spellings

CHUNK_ROWS = 50_000  # rows of text held at once
SAMPLE_ROWS = 1_000
FOREIGN: Mapping[str, tuple[str, ...]] = {
    "instance_usage": ("time", "platform_id"),
    "instance_events": ("start_time", "collection_name", "platform_id"),
    "collection_events": ("start_time", "resource_request", "platform_id"),
    "machine_events": ("collection_id",),
}  # keys that only another table has; a value there means that two tables are mixed
NEVER_ALL_ZERO = {"instance_usage": "end_time_us"}  # left out everywhere can only mean: called otherwise


def raw_frames(path: Path, table: str, batch_rows: int) -> Iterator[RawFrame]:
    """``table``'s values under canonical names, in file order, up to ``CHUNK_ROWS`` rows at a time.

    Raises BadTrace where the gzip breaks off or is damaged (with the number of whole rows before), where a row of
    another table stands among the others, and where no row of the first chunk has an end time.
    """
    sample = sample_keys(path)
    schema = _schema(table, sample)
    unknown = tuple(name for name in sample if name not in schema)
    notes = column_notes(Columns(expressions=(), absent=(), ignored=unknown))
    first_row = 1
    for frame in _frames(path, schema, min(batch_rows, CHUNK_ROWS)):
        _demand_one_table(frame, table, path, first_row)
        fault = [FAULT] if FAULT in frame.columns else []
        read = frame.select(*columns_of(frame.schema, table).expressions, *fault)
        if first_row == 1:
            _demand_times(read, table, path)
        yield RawFrame(frame=read, first_row=first_row, notes=notes)
        first_row += frame.height
        notes = ()
    if first_row == 1:
        note = Note(code="no-rows", column="", text="the file holds no rows")
        empty = pl.DataFrame(schema=schema).select(columns_of(schema, table).expressions)
        yield RawFrame(frame=empty, first_row=1, notes=(note,))


def _frames(path: Path, schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
    """The file's rows with ``schema``'s columns; from the first fault on read patiently, maybe all as text."""
    done = 0
    try:
        for piece in pl.scan_ndjson(path, schema=dict(schema)).collect_batches(chunk_size=rows, maintain_order=True):
            for frame in piece.iter_slices(rows):
                yield frame
                done += frame.height
    except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
        pass
    except OSError as error:
        raise gz_lines.broken(path, error, "gzip") from None
    else:
        return
    for piece in ndjson_rows.frames_from(path, schema, done):
        yield from piece.iter_slices(rows)


def sample_keys(path: Path) -> tuple[str, ...]:
    """Keys of the objects in the first whole lines, in the order met; a key that comes later only is not seen."""
    keys: dict[str, None] = {}
    for line in gz_lines.head(path).split(b"\n")[:SAMPLE_ROWS]:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line is cut; a damaged one is counted when the file is read
        keys |= dict.fromkeys(row if isinstance(row, dict) else ())
    return tuple(keys)


def _schema(table: str, sample: tuple[str, ...]) -> dict[str, pl.DataType]:
    """Types to read ``table`` with: structs, besides them the flat spellings that the sample shows."""
    schema: dict[str, pl.DataType] = {}
    fields: dict[str, list[pl.Field]] = {}
    for column in TABLES[table]:
        dtype = {"Float32": pl.Float32(), "List(Float32)": pl.List(pl.Float32)}.get(column.dtype, pl.String())
        outer, _, field = column.path.partition(".")
        if not field:
            schema[outer] = dtype
            continue
        fields.setdefault(outer, []).append(pl.Field(field, dtype))
        schema[outer] = pl.Struct(fields[outer])
        schema |= {name: dtype for name in spellings(column.path) if name in sample}
    return schema | {name: pl.String() for name in FOREIGN[table]}


def _demand_one_table(frame: pl.DataFrame, table: str, path: Path, first_row: int) -> None:
    """Raise BadTrace where a row has a key that only another table's rows have."""
    for name in FOREIGN[table]:
        if frame[name].null_count() < frame.height:
            at = first_row + int(frame[name].is_not_null().arg_max() or 0)
            raise bad_shard(
                "borg-shard-mixed", path, f"row {at:,} has {name}, which {table} does not have",
                "keep one table in a file",
            )  # fmt: skip


def _demand_times(read: pl.DataFrame, table: str, path: Path) -> None:
    name = NEVER_ALL_ZERO.get(table)
    if name is not None and read.height and read[name].null_count() == read.height:
        raise bad_shard(
            "borg-column-absent", path, f"no row of a shard of {table} has end_time",
            "export the table again with all columns of the v3 schema (nested, dotted or underscored names)",
        )  # fmt: skip
