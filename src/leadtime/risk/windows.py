"""Canonical usage rows → the usage columns of a window, and the schema of a whole window (docs/designs/0015).

The two CPU vectors become four quantiles of the window's one-second samples; alloc instances are left out, because
they and the tasks inside them count the same resource twice.
"""

from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import INSTANCE_USAGE

Integers = np.ndarray[Any, np.dtype[np.int64]]

TASK = 0  # collection_type of a task; 1 is an alloc instance
KEY = ("collection_id", "instance_index")
ORDER = (*KEY, "end_time_us", "start_time_us")
VECTORS = ("cpu_usage_distribution", "tail_cpu_usage_distribution")
DISTRIBUTION_AT = {"cpu_p50": 5, "cpu_p90": 9}  # 11 values: 0, 10, …, 100 %
TAIL_AT = {"cpu_p95": 4, "cpu_p99": 8}  # 9 values: 91, 92, …, 99 %
MACHINE_SHAPE = ("capacity_cpu", "capacity_memory", "platform_id")
MOST_BITS = 63  # of an Int64 that is not negative
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

    Columns are made one piece before rows are picked from them: that costs a fifth of picking from many pieces.
    """
    schema = windows.collect_schema()
    order = pl.struct(ORDER).map_batches(lambda rows: _order(rows.struct.unnest()), return_dtype=pl.UInt32)
    whole = (pl.col(name).map_batches(_in_one_piece, return_dtype=dtype) for name, dtype in schema.items())
    return windows.with_columns(_order=order).select(column.gather(pl.col("_order")) for column in whole)


def _in_one_piece(column: pl.Series) -> pl.Series:
    return column.rechunk()


def _order(rows: pl.DataFrame) -> pl.Series:
    """Row numbers [n] that put ``rows`` (columns ORDER, no nulls) in order: stably by the last column, then before it.

    A column that is in order already costs one look; shards are in order of time, so most of the time two are.
    """
    order: Integers | None = None
    for name in reversed(ORDER):
        column = rows[name].to_numpy()
        values = column if order is None else column.take(order)
        if (values[1:] < values[:-1]).any():
            step = _stable_order(values.astype(np.int64, copy=False))
            order = step if order is None else order.take(step)
    return pl.Series(np.arange(rows.height) if order is None else order, dtype=pl.UInt32)


def _stable_order(values: Integers) -> Integers:
    """Row numbers [n] that sort Int64 values, equal ones as they came.

    Value and row number in one integer are sorted by the processor's wide instructions (``numpy.sort``), several times
    faster than row numbers by value; where both do not fit 63 bits it is the latter.
    """
    bits = len(values).bit_length()
    least = int(values.min())
    if (int(values.max()) - least).bit_length() + bits > MOST_BITS:
        return np.argsort(values, kind="stable")
    both = ((values - least) << bits) | np.arange(len(values))
    both.sort()
    return both & ((1 << bits) - 1)
