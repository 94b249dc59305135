"""A canonical frame → the same table as the 2011 trace had it: CSV without a header, its codes and its priorities.

What 2011 could not say is lost: QUEUE and ENABLE, alloc sets (and what ran as one), parents, histograms, vertical
scaling, switches. ``to_v2`` is that loss by itself, so that a reader can be held against it.
"""

from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES, V2_TO_V3, EventType
from leadtime.domain.borg_v2 import NO_ALLOC_INDEX, V2_COLUMNS, V2_PRIORITIES, V2_TO_V3_MACHINE
from leadtime.simulate.borg.dialects.gz import gzip_file
from leadtime.simulate.borg.dialects.layout import EventTypeForm

SLICE_ROWS = 200_000
NEVER_IN_V2 = (EventType.QUEUE, EventType.ENABLE)
CODES = {int(new): old for old, new in V2_TO_V3.items()}
MACHINE_CODES = {int(new): old for old, new in V2_TO_V3_MACHINE.items()}
FILLED = frozenset({"_disk_io", "_disk_space", "_max_disk_io", "_aggregation_type", "_unmapped_page_cache",
                    "_different_machines"})  # fmt: skip


def write_v2(frame: pl.DataFrame, table: str, _form: EventTypeForm, path: Path) -> None:
    """``frame`` without what v2 lacks, as a gzip CSV of ``V2_COLUMNS[table]``; codes are numbers whatever the form.

    Columns that are not of the table are left out: without a header nobody could name them.
    """
    kept = _kept(frame, table).select(_written(name, table) for name in V2_COLUMNS[table])
    with gzip_file(path) as file:
        for part in kept.iter_slices(SLICE_ROWS):
            part.write_csv(file, include_header=False)


def to_v2(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """What is left of ``frame`` once it went through v2: the rows it can hold, the columns it has, its priorities."""
    there = set(V2_COLUMNS[table])
    kept = _kept(frame, table)
    lost = [
        pl.lit(_absent(column.name, column.dtype), dtype=frame.schema[column.name]).alias(column.name)
        for column in TABLES[table]
        if column.name not in there
    ]
    kept = kept.with_columns(lost).select(column.name for column in TABLES[table])
    if "priority" in there:
        kept = kept.with_columns(_priority().replace_strict(dict(V2_PRIORITIES)).cast(pl.Int32).alias("priority"))
    return kept


def _absent(name: str, dtype: str) -> int | None:
    if name == "alloc_instance_index":
        return NO_ALLOC_INDEX
    is_unknown = name == "machine_id" or dtype == "String" or dtype.startswith("List")
    return None if is_unknown else 0


def _kept(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """Rows that v2 has a code for, of jobs and their tasks."""
    if table == "machine_events":
        return frame.filter(pl.col("type").is_in(list(MACHINE_CODES)))
    tasks = frame.filter(pl.col("collection_type") == 0)
    return tasks if table == "instance_usage" else tasks.filter(~pl.col("type").is_in([int(t) for t in NEVER_IN_V2]))


def _priority() -> pl.Expr:
    """0–450 → the highest 2011 priority whose value of 2019 is not above it, 0–11."""
    steps = sorted(V2_PRIORITIES.items(), key=lambda item: item[1])
    return pl.sum_horizontal((pl.col("priority") >= value).cast(pl.Int64) for _, value in steps) - 1


def _written(name: str, table: str) -> pl.Expr:
    """One column of the file; empty where v2 has a column and the canonical tables have nothing for it."""
    if name == "type":
        codes = MACHINE_CODES if table == "machine_events" else CODES
        return pl.col(name).cast(pl.Int64).replace(codes).alias(name)
    if name == "priority":
        return _priority().alias(name)
    if name == "missing_type":
        return pl.when(pl.col(name) > 0).then(pl.col(name) - 1).alias(name)
    if name.startswith("_"):
        return pl.lit(0 if name in FILLED else None, dtype=pl.Int64).alias(name)
    return pl.col(name)
