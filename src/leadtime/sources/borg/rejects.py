"""Rows that could not be cast → which rule each broke first, how many, and a few to look at."""

import polars as pl

from leadtime.domain.borg import Column
from leadtime.sources.borg.batch import FAULT, SAMPLES, Reject, Sample
from leadtime.sources.borg.trace_errors import SHOWN

VECTOR_LENGTHS = {"cpu_usage_distribution": 11, "tail_cpu_usage_distribution": 9}  # 0, 10 … 100 %; 91 … 99 %
WHOLE = r"^[+-]?\d+$"


def explain(
    raw: pl.DataFrame, cast: pl.DataFrame, *, failed: list[Column], keyed: pl.Series, key: str, first_row: int
) -> tuple[pl.Series, tuple[Reject, ...]]:
    """→ (which rows are kept, the rejects by rule). ``failed``: columns with a value that did not survive the cast.

    A row counts once, under the first rule it breaks, in the order of the table's columns; missing-key is last.
    """
    rule = pl.Series("rule", [None] * raw.height, dtype=pl.String)
    column = pl.Series("column", [None] * raw.height, dtype=pl.String)
    if FAULT in raw.columns:
        unsplit = raw[FAULT].is_not_null()
        rule = rule.zip_with(~unsplit, pl.Series(["not-split"]).new_from_index(0, raw.height))
        column = column.zip_with(~unsplit, pl.Series([FAULT]).new_from_index(0, raw.height))
    for broken in failed:
        name = broken.name
        lost = cast[name].is_null() & raw[name].is_not_null() & rule.is_null()
        rule = rule.zip_with(~lost, _rules(raw[name], broken))
        column = column.zip_with(~lost, pl.Series([name]).new_from_index(0, raw.height))
    keyless = ~keyed & rule.is_null()
    rule = rule.zip_with(~keyless, pl.Series(["missing-key"]).new_from_index(0, raw.height))
    column = column.zip_with(~keyless, pl.Series([key]).new_from_index(0, raw.height))
    table = pl.DataFrame({"rule": rule, "column": column}).with_row_index("at").drop_nulls("rule")
    found = []
    for (name,), rows in table.group_by("rule", maintain_order=True):
        samples = tuple(
            Sample(row=first_row + at, column="" if where == FAULT else where, value=_shown(raw, where, at))
            for at, where in rows.head(SAMPLES).select("at", "column").iter_rows()
        )
        found.append(Reject(rule=str(name), rows=rows.height, samples=samples))
    return rule.is_null(), tuple(found)


def _shown(raw: pl.DataFrame, column: str, at: int) -> str:
    """The value as it stands in a report."""
    value = raw[column][at] if column in raw.columns else None
    text = str(value.to_list() if isinstance(value, pl.Series) else value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _rules(values: pl.Series, column: Column) -> pl.Series:
    """The rule each value broke, given that it broke one."""
    chosen = values.to_frame("value").select(_rule(pl.col("value"), values.dtype, column).alias("rule"))["rule"]
    return chosen if len(chosen) == len(values) else chosen.new_from_index(0, len(values))


def _rule(value: pl.Expr, dtype: pl.DataType, column: Column) -> pl.Expr:
    if column.name == "type":
        return pl.lit("unknown-event-type")
    if column.dtype == "String":
        return pl.lit("not-text")
    if column.dtype.startswith("List"):
        if not isinstance(dtype, pl.List):
            return pl.lit("vector-value")
        right = value.list.len() == VECTOR_LENGTHS[column.name]
        return pl.when(right).then(pl.lit("vector-value")).otherwise(pl.lit("vector-length"))
    whole = column.dtype.startswith("Int")
    if dtype.is_integer():
        return pl.lit("out-of-range")
    if dtype.is_float() and whole:
        integral = value.is_finite() & (value == value.floor())
        exact = pl.when(value.abs() < 2**53).then(pl.lit("out-of-range")).otherwise(pl.lit("not-exact"))
        return pl.when(integral).then(exact).otherwise(pl.lit("not-an-integer"))
    if dtype.is_float():
        return pl.lit("not-finite")  # or too large for Float32, which is the same to a reader
    if dtype == pl.String and whole:
        return pl.when(value.str.contains(WHOLE)).then(pl.lit("out-of-range")).otherwise(pl.lit("not-an-integer"))
    if dtype == pl.String:
        is_number = value.cast(pl.Float64, strict=False).is_not_null()
        return pl.when(is_number).then(pl.lit("not-finite")).otherwise(pl.lit("not-a-number"))
    return pl.lit("not-an-integer" if whole else "not-a-number")
