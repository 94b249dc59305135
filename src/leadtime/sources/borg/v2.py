"""A table of the 2011 trace (CSV without a header, gzip or plain) → raw frames under canonical names.

Codes and priorities are mapped later, and only where ``trace.json`` declares v2 (``codes``).
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from leadtime.domain.borg_v2 import NO_ALLOC_INDEX, V2_COLUMNS
from leadtime.sources.borg import gz_lines
from leadtime.sources.borg.batch import FAULT, Note, RawFrame
from leadtime.sources.borg.trace_errors import unreadable

CHUNK_ROWS = 100_000
LINE = "line"
NO_SEPARATOR = "\x01"  # a line is read whole, so that one with too few or too many values can be told


def raw_frames(path: Path, table: str, batch_rows: int) -> Iterator[RawFrame]:
    """``table``'s values as text, empty ones missing; a line with another number of values is kept as a fault.

    Raises BadTrace where the gzip breaks off (with the number of whole rows before) or is damaged.
    """
    rows = min(batch_rows, CHUNK_ROWS)
    first_row = 1
    try:
        lines = pl.scan_csv(
            path, separator=NO_SEPARATOR, has_header=False, quote_char=None, schema={LINE: pl.String()},
            raise_if_empty=False,
        )  # fmt: skip
        for piece in lines.collect_batches(chunk_size=rows, maintain_order=True):
            for part in piece.iter_slices(rows):
                yield RawFrame(frame=_split(part, table), first_row=first_row)
                first_row += part.height
    except OSError as error:
        raise gz_lines.broken(path, error, "gzip") from None
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, "CSV", error) from None
    if first_row == 1:
        note = Note(code="no-rows", column="", text="the file holds no rows")
        yield RawFrame(frame=_split(pl.DataFrame(schema={LINE: pl.String}), table), first_row=1, notes=(note,))


def _split(lines: pl.DataFrame, table: str) -> pl.DataFrame:
    """Lines → the table's columns as text."""
    names = V2_COLUMNS[table]
    line = pl.col(LINE).fill_null("").str.strip_suffix("\r")
    if lines.select(pl.col(LINE).str.contains('"', literal=True).any()).item():
        lines = lines.with_columns(line.map_elements(_unquoted, return_dtype=pl.String))
        parts = pl.col(LINE).str.split_exact("\x1f", len(names))
    else:
        parts = line.str.split_exact(",", len(names))
    split = lines.select(pl.col(LINE), parts.alias("parts")).unnest("parts")
    last, beyond = f"field_{len(names) - 1}", f"field_{len(names)}"
    fault = pl.when(pl.col(last).is_null() | pl.col(beyond).is_not_null()).then(pl.col(LINE)).alias(FAULT)
    values = [
        pl.when((pl.col(f"field_{at}") != "") & pl.col(last).is_not_null()).then(pl.col(f"field_{at}")).alias(name)
        for at, name in enumerate(names)
        if not name.startswith("_")
    ]
    raw = split.select(*values, fault)
    raw = raw.drop(FAULT) if raw[FAULT].null_count() == raw.height else raw
    return _completed(raw, table)


def _unquoted(line: str) -> str:
    """A line with quoted values, its separators replaced by one that no value holds."""
    return "\x1f".join(next(csv.reader([line]), []))


def _completed(raw: pl.DataFrame, table: str) -> pl.DataFrame:
    """Made-up records are counted from 0 in 2011 and from 1 in 2019; no task of 2011 is in an alloc set."""
    if "missing_type" in raw.columns:
        code = pl.col("missing_type")
        raw = raw.with_columns(pl.coalesce((code.cast(pl.Int64, strict=False) + 1).cast(pl.String), code))
    if table in {"instance_usage", "instance_events"}:
        raw = raw.with_columns(alloc_instance_index=pl.lit(NO_ALLOC_INDEX, dtype=pl.Int32))
    pair = {"instance_events": "request", "machine_events": "capacity"}.get(table)
    if pair is not None:  # one of the two is there, so the other is a zero that was left out
        cpu, memory = pl.col(f"{pair}_cpu"), pl.col(f"{pair}_memory")
        known = pl.when(cpu.is_not_null() | memory.is_not_null()).then(pl.lit("0"))
        raw = raw.with_columns(pl.coalesce(cpu, known), pl.coalesce(memory, known))
    return raw
