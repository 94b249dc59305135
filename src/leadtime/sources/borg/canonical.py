"""Values as a file has them → a canonical frame; every row that cannot be read so is taken out and counted by rule.

Casts are strict: what is there and cannot be cast rejects its row, and only what is missing is filled
(``domain.borg.Omitted``). Nothing becomes null in silence.
"""

from dataclasses import dataclass

import polars as pl

from leadtime.domain.borg import TABLES, Column, Omitted
from leadtime.sources.borg import rejects
from leadtime.sources.borg.batch import FAULT, Reject
from leadtime.sources.borg.codes import Codes
from leadtime.sources.borg.rejects import VECTOR_LENGTHS

EXACT_FLOAT = 2**53  # from here on a float may stand for another integer than was meant
NOT_NEGATIVE = frozenset({"time_us", "start_time_us", "end_time_us", "instance_index"})
KEYS = {"machine_events": "machine_id"}  # of the other tables: collection_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """``frame``: the table's columns in order; ``keyed_rows``: rows in whose key something stood."""

    frame: pl.DataFrame
    rejects: tuple[Reject, ...]
    keyed_rows: int


def polars_type(column: Column) -> pl.DataType:
    """The Polars type of a canonical column."""
    if column.dtype.startswith("List"):
        return pl.List(pl.Float32)
    return getattr(pl, column.dtype)()  # type: ignore[no-any-return]


def schema_of(table: str) -> dict[str, pl.DataType]:
    """Canonical names → Polars types, in order."""
    return {column.name: polars_type(column) for column in TABLES[table]}


def key_of(table: str) -> str:
    """The column without which a row belongs to nothing."""
    return KEYS.get(table, "collection_id")


def canonicalise(raw: pl.DataFrame, table: str, codes: Codes, first_row: int) -> Canonical:
    """``raw`` (canonical names, any types, absent columns left out) → ``Canonical``; further columns are kept last.

    Rules: not-an-integer, out-of-range, not-exact (a float of 2**53 or more), not-a-number, not-finite (in Float32),
    unknown-event-type, vector-length, vector-value, not-text, missing-key; not-split for a line without values.
    """
    raw = raw.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    columns = [column for column in TABLES[table] if column.name in raw.columns and raw[column.name].dtype != pl.Null]
    cast = raw.select(_cast(column, raw.schema[column.name], codes).alias(column.name) for column in columns)
    key = key_of(table)
    keyed = cast[key].is_not_null() & (cast[key] != 0) if key in cast.columns else pl.Series([False] * raw.height)
    failed = [column for column in columns if cast[column.name].null_count() > raw[column.name].null_count()]
    kept: pl.Series | None = None
    found: tuple[Reject, ...] = ()
    if failed or not keyed.all():
        kept, found = rejects.explain(raw, cast, failed=failed, keyed=keyed, key=key, first_row=first_row)
    extra = [name for name in raw.columns if name not in schema_of(table) and name != FAULT]
    whole = cast.hstack(raw.select(extra))
    whole = whole if kept is None else whole.filter(kept)
    filled = [_filled(column, column.name in cast.columns, codes) for column in TABLES[table]]
    return Canonical(frame=whole.select(*filled, *extra), rejects=found, keyed_rows=int(keyed.sum()))


def _cast(column: Column, dtype: pl.DataType, codes: Codes) -> pl.Expr:
    """The column in its canonical type, null where a value cannot be read (or is missing)."""
    value = pl.col(column.name)
    target = polars_type(column)
    if column.name == "type":
        return _type_code(value, dtype, codes)
    if isinstance(target, pl.List):
        return _vector(value, dtype, VECTOR_LENGTHS[column.name])
    if isinstance(target, pl.String):
        return value.cast(pl.String) if dtype == pl.String or dtype.is_integer() else pl.lit(None, dtype=pl.String)
    if isinstance(target, pl.Float32):
        return _real(value, dtype)
    whole = _integer(value, dtype)
    if column.name == "priority" and codes.priorities is not None:
        whole = whole.replace_strict(dict(codes.priorities), default=None, return_dtype=pl.Int64)
    if column.name in NOT_NEGATIVE:
        whole = pl.when(whole >= 0).then(whole)
    return whole.cast(target, strict=False)


def _integer(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Int64 from integers, decimal text, or floats that are whole and exact."""
    if dtype.is_float():
        exact = value.is_finite() & (value.abs() < EXACT_FLOAT) & (value == value.floor())
        return pl.when(exact).then(value).cast(pl.Int64, strict=False)
    if dtype.is_integer() or dtype == pl.String:
        return value.cast(pl.Int64, strict=False)
    return pl.lit(None, dtype=pl.Int64)


def _type_code(value: pl.Expr, dtype: pl.DataType, codes: Codes) -> pl.Expr:
    """The event's code of 2019 by number, text or name."""
    text = value if dtype == pl.String else _integer(value, dtype).cast(pl.String)
    return text.replace_strict(dict(codes.types), default=None, return_dtype=pl.Int8)


def _real(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Float32, null unless finite; −0 becomes 0."""
    if not (dtype.is_numeric() or dtype == pl.String):
        return pl.lit(None, dtype=pl.Float32)
    number = value.cast(pl.Float32, strict=False) + pl.lit(0.0, dtype=pl.Float32)
    return pl.when(number.is_finite()).then(number)


def _vector(value: pl.Expr, dtype: pl.DataType, length: int) -> pl.Expr:
    """A list of ``length`` finite Float32, or an empty list; null otherwise."""
    if not isinstance(dtype, pl.List | pl.Array):
        return pl.lit(None, dtype=pl.List(pl.Float32))
    numbers = value.cast(pl.List(pl.Float32), strict=False)
    good = numbers.list.eval(pl.element().is_finite().fill_null(value=False)).list.all()
    return pl.when(numbers.list.len().is_in([0, length]) & good).then(numbers)


def _filled(column: Column, is_there: bool, codes: Codes) -> pl.Expr:  # noqa: FBT001 - called in one place
    """What missing and zero mean in this column."""
    target = polars_type(column)
    value = pl.col(column.name) if is_there else pl.lit(None, dtype=target).alias(column.name)
    if isinstance(target, pl.List):
        return pl.when(value.list.len() > 0).then(value).alias(column.name)
    if isinstance(target, pl.String):
        return pl.when(value != "").then(value).alias(column.name)
    if column.omitted is Omitted.ZERO:
        missing = codes.types["0"] if column.name == "type" else 0
        return value.fill_null(pl.lit(missing, dtype=target)).alias(column.name)
    if column.omitted is Omitted.NULL:
        return pl.when(value != 0).then(value).alias(column.name)
    return value
