"""Canonical usage rows → the usage columns of a window, and the schema of a whole window (docs/designs/0015).

The two CPU vectors become four quantiles of the window's one-second samples; alloc instances are left out, because
they and the tasks inside them count the same resource twice.
"""

import polars as pl

from leadtime.domain.borg import INSTANCE_USAGE

TASK = 0  # collection_type of a task; 1 is an alloc instance
KEY = ("collection_id", "instance_index")
ORDER = (*KEY, "end_time_us", "start_time_us")
VECTORS = ("cpu_usage_distribution", "tail_cpu_usage_distribution")
DISTRIBUTION_AT = {"cpu_p50": 5, "cpu_p90": 9}  # 11 values: 0, 10, …, 100 %
TAIL_AT = {"cpu_p95": 4, "cpu_p99": 8}  # 9 values: 91, 92, …, 99 %
MACHINE_SHAPE = ("capacity_cpu", "capacity_memory", "platform_id")
QUANTILES = (*DISTRIBUTION_AT, *TAIL_AT)
_DTYPES: dict[str, type[pl.DataType]] = {
    "Int8": pl.Int8,
    "Int32": pl.Int32,
    "Int64": pl.Int64,
    "Float32": pl.Float32,
    "String": pl.String,
}

USAGE_SCHEMA = pl.Schema(
    {c.name: _DTYPES[c.dtype] for c in INSTANCE_USAGE if c.name not in VECTORS} | dict.fromkeys(QUANTILES, pl.Float32)
)
STATE_SCHEMA = pl.Schema(
    {
        "is_running": pl.Boolean,
        "run_number": pl.Int32,
        "run_start_us": pl.Int64,
        "submitted_us": pl.Int64,
        "last_terminal_us": pl.Int64,
        "last_terminal_type": pl.Int8,
        "request_cpu": pl.Float32,
        "request_memory": pl.Float32,
        "request_changes": pl.Int32,
        "priority": pl.Int32,
        "tier": pl.Int8,
        "scheduling_class": pl.Int8,
        "vertical_scaling": pl.Int8,
        "in_alloc": pl.Boolean,
        "parent_collection_id": pl.Int64,
        "capacity_cpu": pl.Float32,
        "capacity_memory": pl.Float32,
        "platform_id": pl.String,
    }
)
OUTCOME_SCHEMA = pl.Schema(
    {"next_terminal_time_us": pl.Int64, "next_terminal_type": pl.Int8, "next_terminal_cause": pl.String}
)
WINDOW_SCHEMA = pl.Schema({**USAGE_SCHEMA, **STATE_SCHEMA, **OUTCOME_SCHEMA})


def usage_windows(usage: pl.LazyFrame) -> pl.LazyFrame:
    """Canonical usage [n rows] → windows of tasks with the columns of USAGE_SCHEMA, in the order given.

    A window without vectors has null quantiles. Rows already reduced pass unchanged.
    """
    columns = usage.collect_schema().names()
    if all(vector in columns for vector in VECTORS):
        distribution, tail = (pl.col(vector) for vector in VECTORS)
        usage = usage.with_columns(
            *(distribution.list.get(at, null_on_oob=True).alias(name) for name, at in DISTRIBUTION_AT.items()),
            *(tail.list.get(at, null_on_oob=True).alias(name) for name, at in TAIL_AT.items()),
        )
    return usage.filter(pl.col("collection_type") == TASK).select(USAGE_SCHEMA.names())


def in_order(windows: pl.LazyFrame) -> pl.LazyFrame:
    """The same windows in ORDER; rows equal in all of it stay as they came.

    Sorting one packed int64 takes a fifth of the time of sorting four columns; where it does not fit, four it is.
    """
    names = windows.collect_schema().names()
    order = pl.struct(ORDER).map_batches(lambda rows: _order(rows.struct.unnest()), return_dtype=pl.UInt32)
    return windows.with_columns(_order=order).select(pl.col(*names).gather(pl.col("_order")))


def _order(rows: pl.DataFrame) -> pl.Series:
    """Row numbers [n] that put ``rows`` (columns ORDER) in order."""
    instance = _packed(rows["collection_id"], rows["instance_index"].cast(pl.Int64))
    packed = None if instance is None else _packed(_dense(instance), rows["end_time_us"])
    if packed is None:
        return rows.select(pl.arg_sort_by(*ORDER, pl.int_range(pl.len()))).to_series().cast(pl.UInt32)
    order = packed.arg_sort()
    keys = packed.gather(order)
    again = keys == keys.shift()
    if not again.any():
        return order
    tied = again.fill_null(value=False) | (keys == keys.shift(-1)).fill_null(value=False)
    rows_tied = order.filter(tied)  # windows of one instance with one end: by start, then as they came
    starts = rows["start_time_us"].gather(rows_tied)
    sorted_ties = pl.DataFrame({"key": keys.filter(tied), "start": starts, "row": rows_tied}).sort(pl.all())["row"]
    return order.scatter(tied.arg_true(), sorted_ties)


def _dense(values: pl.Series) -> pl.Series:
    """The place of each value among the different ones, from 0: by a join, which is cheaper than ranking all rows."""
    places = values.unique().sort().to_frame("value").with_row_index("place")
    return values.to_frame("value").join(places, on="value", how="left", maintain_order="left")["place"].cast(pl.Int64)


def _packed(high: pl.Series, low: pl.Series) -> pl.Series | None:
    """One int64 a row that sorts as (high, low) does; None where it does not fit. Neither has nulls."""
    if high.is_empty():
        return high
    (least_high, most_high), (least, most) = ((int(one.min()), int(one.max())) for one in (high, low))  # type: ignore[arg-type]
    span = most - least + 1
    if (most_high - least_high + 1) * span >= 2**63:
        return None
    return (high - least_high) * span + (low - least)
