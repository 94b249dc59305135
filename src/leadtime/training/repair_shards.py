"""Canonical frames → v3 Parquet shards with structs, as every reader of the trace knows them, and their declaration."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.borg import DECLARATION, DECLARATION_SCHEMA, TABLES
from leadtime.training.manifest import write_json, written

ROW_GROUP_ROWS = 262_144


def to_v3(frame: pl.DataFrame, table: str, without: frozenset[str] = frozenset()) -> pl.DataFrame:
    """Canonical columns → the trace's own names; a struct whose fields are all missing is missing itself.

    ``without``: canonical columns the source had no column for; they stay out, so that nobody takes them for empty.
    """
    return frame.select(_columns(table, without))


def _columns(table: str, without: frozenset[str]) -> Iterator[pl.Expr]:
    done: set[str] = set()
    columns = [column for column in TABLES[table] if column.name not in without]
    for column in columns:
        outer, _, inner = column.path.partition(".")
        if not inner:
            yield pl.col(column.name).alias(outer)
        elif outer not in done:
            done.add(outer)
            fields = {one.path.partition(".")[2]: one.name for one in columns if one.path.startswith(f"{outer}.")}
            there = pl.any_horizontal(pl.col(name).is_not_null() for name in fields.values())
            struct = pl.struct(pl.col(name).alias(field) for field, name in fields.items())
            yield pl.when(there).then(struct).alias(outer)


def write_shard(path: Path, frame: pl.DataFrame, table: str, *, without: frozenset[str] = frozenset()) -> None:
    """One shard, whole or not at all; equal rows give equal bytes."""
    whole = to_v3(frame, table, without).rechunk()
    written(path, lambda staged: whole.write_parquet(staged, row_group_size=ROW_GROUP_ROWS))


def write_declaration(
    folder: Path, *, cell: str | None, clusterdata: str | None, observed_until_us: int | None
) -> None:
    """``trace.json`` beside the shards; what nobody declared is left out."""
    content: dict[str, Any] = {"schema": DECLARATION_SCHEMA}
    told = {"cell": cell, "clusterdata": clusterdata, "observed_until_us": observed_until_us}
    content |= {key: value for key, value in told.items() if value is not None}
    write_json(folder / DECLARATION, content)


def write_rows_aside(path: Path, rows: pl.DataFrame) -> None:
    """Rows that were set aside, as canonical columns with their ``reason`` and ``file``."""
    written(path, rows.write_parquet)
