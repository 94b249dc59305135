"""The columns a v3 file has (structs, dotted, underscored) → expressions that give them their canonical names.

A name that is nested in the trace document (``average_usage.cpus``) is met in three spellings; where a file has
several, the first that holds a value is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES, Column, Omitted
from leadtime.sources.borg.trace_errors import bad_shard

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "instance_usage": ("start_time_us", "end_time_us", "collection_id", "instance_index", "avg_cpu", "avg_memory"),
    "instance_events": ("time_us", "type", "collection_id", "instance_index"),
    "collection_events": ("time_us", "type", "collection_id"),
    "machine_events": ("time_us", "machine_id", "type"),
}  # without these a table says nothing; the others may be missing, which is noted
KNOWN_BUT_UNREAD = frozenset({"constraint", "start_after_collection_ids", "random_sample_usage.memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """How to read a file: ``expressions`` in table order; names of columns it lacks, and of those nobody knows."""

    expressions: tuple[pl.Expr, ...]
    absent: tuple[str, ...]
    ignored: tuple[str, ...]


def spellings(path: str) -> tuple[str, ...]:
    """A trace path in the flat spellings.

    >>> spellings("average_usage.cpus")
    ('average_usage.cpus', 'average_usage_cpus')
    """
    return (path, path.replace(".", "_")) if "." in path else (path,)


def _found(path: str, schema: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    """Every place where ``schema`` keeps ``path``."""
    outer, _, field = path.partition(".")
    nested = schema.get(outer)
    places = [pl.col(name) for name in spellings(path) if name in schema]
    if field and isinstance(nested, pl.Struct) and field in {one.name for one in nested.fields}:
        places.insert(0, pl.col(outer).struct.field(field))
    return places


def _present(column: Column, table: str, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Whether a row has the struct that ``column`` is part of; flat: whether any of its fields is there."""
    outer = column.path.partition(".")[0]
    siblings = [one.path for one in TABLES[table] if one.path.startswith(f"{outer}.")]
    parts = [place.is_not_null() for path in siblings for place in _found(path, schema)]
    if isinstance(schema.get(outer), pl.Struct):
        parts.append(pl.col(outer).is_not_null())
    return pl.any_horizontal(parts)


def _value(column: Column, table: str, schema: Mapping[str, pl.DataType]) -> pl.Expr | None:
    places = _found(column.path, schema)
    if not places:
        return None
    value = places[0] if len(places) == 1 else pl.coalesce(places)
    if column.omitted is Omitted.KEPT and "." in column.path:
        # the struct is there, so a missing field is a zero that was left out
        gap = value.is_null() & _present(column, table, schema)
        zero = pl.when(gap).then(pl.lit(0)).otherwise(None)
        value = pl.coalesce(value, zero.cast(pl.String) if _is_text(column, schema) else zero.cast(pl.Float32))
    return value.alias(column.name)


def _is_text(column: Column, schema: Mapping[str, pl.DataType]) -> bool:
    outer, _, field = column.path.partition(".")
    nested = schema.get(outer)
    if isinstance(nested, pl.Struct):
        return any(one.name == field and one.dtype == pl.String for one in nested.fields)
    return any(schema.get(name) == pl.String for name in spellings(column.path))


def columns_of(schema: Mapping[str, pl.DataType], table: str) -> Columns:
    """How ``table`` is read from a file with the top-level columns ``schema``."""
    expressions, absent = [], []
    for column in TABLES[table]:
        value = _value(column, table, schema)
        if value is None:
            absent.append(column.name)
        else:
            expressions.append(value)
    paths = {column.path for column in TABLES[table]} | KNOWN_BUT_UNREAD
    known = {name for path in paths for name in (*spellings(path), path.partition(".")[0])}
    ignored = tuple(name for name in schema if name not in known)
    return Columns(expressions=tuple(expressions), absent=tuple(absent), ignored=ignored)


def demand_required(columns: Columns, table: str, path: Path) -> None:
    """Raise BadTrace where a file lacks a column without which ``table`` says nothing."""
    trace_path = {column.name: column.path for column in TABLES[table]}
    lacking = [trace_path[name] for name in REQUIRED[table] if name in columns.absent]
    if lacking:
        raise bad_shard(
            "borg-column-absent", path, f"a shard of {table} without a column {lacking[0]}",
            "export the table again with all columns of the v3 schema (nested, dotted or underscored names)",
        )  # fmt: skip
