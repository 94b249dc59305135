"""A joined CSV of the Kaggle kind → its usage part or its event part under canonical names.

A row holds a usage window and some event of the same instance. The event part keeps the slice's own word for the
event as ``event_text``, so that it can be held against the code; labels from a slice are refused elsewhere.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES, Column, Omitted
from leadtime.sources.borg import gz_lines
from leadtime.sources.borg.batch import FAULT, Note, RawFrame
from leadtime.sources.borg.trace_errors import bad_shard, unreadable
from leadtime.sources.borg.v3_columns import REQUIRED

CHUNK_ROWS = 50_000
EVENT_TEXT = "event_text"
RENAMED = {"type": "instance_events_type"}
READ = frozenset({"", "constraint", "collections_events_type", "user", "collection_name", "collection_logical_name",
                  "start_after_collection_ids", "vertical_scaling", "scheduler", "cluster", "event", "failed",
                  "instance_events_type"})  # fmt: skip
LAST = "failed"  # never empty in a whole row
NUMBER = r"[^,}\s]+"
LONG_ID = 10**11  # a spreadsheet keeps six digits of a number this long
ROUNDED_TO = 100_000
ROUNDED_RATIO = 0.5  # of the long ids; by chance one in a hundred thousand ends in five zeros


def raw_frames(path: Path, table: str, batch_rows: int) -> Iterator[RawFrame]:
    """The part of ``table`` (instance_usage or instance_events) as text; a broken row is kept as a fault.

    Raises BadTrace where the CSV cannot be split into rows (it breaks off inside a quoted vector, say).
    """
    rows = min(batch_rows, CHUNK_ROWS)
    first_row = 1
    try:
        scan = pl.scan_csv(path, infer_schema=False, raise_if_empty=False)
        names = scan.collect_schema().names()
        notes = _notes(names)
        expressions = _expressions(names, table, path)
        for piece in scan.collect_batches(chunk_size=rows, maintain_order=True):
            for part in piece.iter_slices(rows):
                raw = part.select(expressions)
                raw = raw.drop(FAULT) if raw[FAULT].null_count() == raw.height else raw
                yield RawFrame(frame=raw, first_row=first_row, notes=(*notes, *_rounded(raw)))
                first_row += part.height
                notes = ()
    except OSError as error:
        raise gz_lines.broken(path, error, "gzip") from None
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, f"a slice CSV after row {first_row - 1:,}", error) from None
    if first_row == 1:
        note = Note(code="no-rows", column="", text="the file holds no rows")
        empty = pl.DataFrame(schema=dict.fromkeys(names, pl.String)).select(expressions).drop(FAULT)
        yield RawFrame(frame=empty, first_row=1, notes=(*notes, note))


def _notes(names: list[str]) -> tuple[Note, ...]:
    known = READ | {column.path.partition(".")[0] for name in ("instance_usage", "instance_events")
                    for column in TABLES[name]}  # fmt: skip
    return tuple(
        Note(code="column-ignored", column=name, text=f"column {name} is not in the slice's layout: not read")
        for name in names
        if name not in known
    )


def _expressions(names: list[str], table: str, path: Path) -> list[pl.Expr]:
    """How each canonical column is read; alloc_instance_index and the like are not in a slice."""
    found = []
    for column in TABLES[table]:
        outer, _, field = column.path.partition(".")
        source = RENAMED.get(column.name, outer)
        if source in names:
            found.append(_value(column, pl.col(source), field).alias(column.name))
        elif column.name in REQUIRED[table]:
            raise bad_shard("borg-column-absent", path, f"a slice without a column {source}", "fetch it again")
    if table == "instance_events" and "event" in names:
        found.append(pl.col("event").alias(EVENT_TEXT))
    last = LAST if LAST in names else names[-1]
    fault = pl.when(pl.col(last).is_null()).then(pl.concat_str(names[:4], separator=",", ignore_nulls=True))
    return [*found, fault.alias(FAULT)]


def _value(column: Column, text: pl.Expr, field: str) -> pl.Expr:
    """Numbers without a spreadsheet's ``.0``; a dict's field; a numpy print as a list."""
    if field:
        is_dict = text.str.contains(r"^\{.*\}$")
        inside = text.str.extract(rf"'{field}': ({NUMBER})")
        value = pl.when(is_dict).then(pl.when(inside != "None").then(inside)).otherwise(text)
        gap = pl.lit("0") if column.omitted is Omitted.KEPT else pl.lit(None, dtype=pl.String)
        return pl.when(value.is_null() & is_dict).then(gap).otherwise(value)
    if column.dtype.startswith("List"):
        inner = text.str.strip_chars("[] \n").str.replace_all(r"[\s,]+", " ")
        return pl.when(inner != "").then(inner.str.split(" "))
    return text.str.replace(r"\.0+$", "") if column.dtype.startswith("Int") else text


def _rounded(raw: pl.DataFrame) -> tuple[Note, ...]:
    """Says of ids that went through a spreadsheet that they no longer join."""
    notes = []
    for name in ("collection_id", "machine_id"):
        ids = raw[name].cast(pl.Int64, strict=False).drop_nulls()
        long = ids.filter(ids >= LONG_ID)
        ratio = ((long % ROUNDED_TO) == 0).sum() / max(len(long), 1)
        if ratio > ROUNDED_RATIO:
            text = f"{ratio:.0%} of the long {name}s are rounded to six digits: they join with nothing"
            notes.append(Note(code="rounded-ids", column=name, text=text))
    return tuple(notes)
