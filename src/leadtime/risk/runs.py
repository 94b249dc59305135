"""Instance events → their one order, and the state of each instance after each event (runs, requests, next end).

A run starts at SCHEDULE and ends at the first of EVICT, FAIL, FINISH, KILL, LOST. At equal times the terminal event
comes first, then SUBMIT, QUEUE, ENABLE, SCHEDULE, then updates (label contract, docs/designs/0013): a task that fails
and is resubmitted within the same microsecond is running again. Events at 2^63−1 lie after the trace: they are no
state and no end. Made-up records (missing_type ≠ 0) are state like any other unless they contradict what is known: a
made-up SCHEDULE of an instance that runs, a made-up end of one that has ended; those are passed over.
"""

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, INSTANCE_EVENTS, TERMINAL, EventType
from leadtime.risk.windows import KEY, MACHINE_SHAPE, OUTCOME_SCHEMA, STATE_SCHEMA, TASK

BEFORE_ALL_US = -(2**63)  # of the blank state each instance has before its first event
_EVENT_COLUMNS = tuple(column.name for column in INSTANCE_EVENTS)
_SAME = tuple(name for name in _EVENT_COLUMNS if name != "missing_type")
_TERMINAL_CODES = sorted(int(event) for event in TERMINAL)
_FROM_ELSEWHERE = ("tier", "vertical_scaling", "in_alloc", "parent_collection_id")  # see risk/asof.py
STATES_SCHEMA = pl.Schema(
    {"collection_id": pl.Int64, "instance_index": pl.Int32, "time_us": pl.Int64}
    | {name: dtype for name, dtype in STATE_SCHEMA.items() if name not in (*_FROM_ELSEWHERE, *MACHINE_SHAPE)}
    | {"placed_in_alloc": pl.Boolean}
    | dict(OUTCOME_SCHEMA)
)
_type = pl.col("type")
_ROW = pl.int_range(pl.len(), dtype=pl.UInt32)


def is_terminal() -> pl.Expr:
    """True where the event ends a run."""
    return _type.is_in(_TERMINAL_CODES)


def ordered(events: pl.LazyFrame) -> pl.LazyFrame:
    """Canonical instance events [n] → tasks' events in their one order, duplicates dropped [≤ n].

    Total order: instance, time, terminal before the rest, type, then every other column, so that the order of shards
    does not show. Records equal in everything, or in everything but missing_type, are one: the least made-up stays.
    """
    place = pl.when(is_terminal()).then(pl.lit(0, pl.Int8)).otherwise(_type + 1)
    rest = [name for name in _SAME if name not in (*KEY, "time_us", "type")]
    by = [*(pl.col(name) for name in KEY), pl.col("time_us"), place, _type, *(pl.col(name) for name in rest)]
    again = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in _SAME) & (_ROW > 0)
    tasks = events.filter(pl.col("collection_type") == TASK).select(_EVENT_COLUMNS)
    return tasks.sort(*by, pl.col("missing_type")).filter(~again)


def run_states(events: pl.LazyFrame) -> pl.LazyFrame:
    """Ordered events with ``cause`` [n] → one state after each event, one blank before each instance's first.

    Columns: STATES_SCHEMA: the instance, ``time_us`` from which the state holds (closed), the state columns of a
    window, and the next terminal event strictly later in the order. Sorted by instance and order; the last state at a
    time is the one that holds.
    """
    return events.map_batches(
        _states, schema=STATES_SCHEMA, predicate_pushdown=False, projection_pushdown=False, slice_pushdown=False
    )


def _states(events: pl.DataFrame) -> pl.DataFrame:
    """The whole frame at once: what a row becomes depends on its neighbours (so not lazily, chunk by chunk)."""
    known = _without_contradictions(events.filter(pl.col("time_us") < AFTER_TRACE_US))
    blank = known.select(KEY).unique().with_columns(pl.lit(BEFORE_ALL_US, pl.Int64).alias("time_us"))
    rows = pl.concat([blank, known], how="diagonal").sort(*KEY, "time_us", maintain_order=True)
    states = rows.with_columns(_start=_key_start()).with_columns(*_state(), *_next_terminal())
    return states.select(pl.col(name).cast(dtype) for name, dtype in STATES_SCHEMA.items())


def _key_start() -> pl.Expr:
    """Number of the row where this row's instance begins."""
    first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in KEY) | (_ROW == 0)
    return pl.when(first).then(_ROW).forward_fill()


def _newest(where: pl.Expr) -> pl.Expr:
    """Number of the newest row of the same instance, this one included, at which ``where`` is true; else null."""
    row = pl.when(where).then(_ROW).forward_fill()
    return pl.when(row >= pl.col("_start")).then(row)


def _at(value: str, where: pl.Expr) -> pl.Expr:
    """``value`` at the newest row at which ``where`` is true; null where there is none."""
    return pl.col(value).gather(_newest(where))


def _state() -> list[pl.Expr]:
    schedule = (_type == EventType.SCHEDULE).fill_null(value=False)
    update = (_type == EventType.UPDATE_RUNNING).fill_null(value=False)
    end = is_terminal().fill_null(value=False)
    updates = update.cum_sum().cast(pl.Int32)
    runs = schedule.cum_sum().cast(pl.Int32)
    request = pl.col("request_cpu").is_not_null() | pl.col("request_memory").is_not_null()
    known = _type.is_not_null()
    return [
        (_at("type", schedule | end) == EventType.SCHEDULE).fill_null(value=False).alias("is_running"),
        (runs - runs.gather(pl.col("_start"))).alias("run_number"),
        _at("time_us", schedule).alias("run_start_us"),
        _at("time_us", _type == EventType.SUBMIT).alias("submitted_us"),
        _at("time_us", end).alias("last_terminal_us"),
        _at("type", end).alias("last_terminal_type"),
        _at("request_cpu", request).alias("request_cpu"),
        _at("request_memory", request).alias("request_memory"),
        (updates - updates.gather(pl.coalesce(_newest(schedule), pl.col("_start")))).alias("request_changes"),
        _at("priority", known).alias("priority"),
        _at("scheduling_class", known).alias("scheduling_class"),
        (_at("alloc_collection_id", known) > 0).alias("placed_in_alloc"),
    ]


def _next_terminal() -> list[pl.Expr]:
    later = pl.when(is_terminal()).then(_ROW).backward_fill().shift(-1)
    mine = pl.when(pl.col("_start").gather(later) == pl.col("_start")).then(later)
    return [
        pl.col("time_us").gather(mine).alias("next_terminal_time_us"),
        _type.gather(mine).alias("next_terminal_type"),
        pl.col("cause").gather(mine).alias("next_terminal_cause"),
    ]


def _without_contradictions(events: pl.DataFrame) -> pl.DataFrame:
    """Drop made-up SCHEDULEs of instances that run and made-up ends of instances that have ended."""
    schedule, end = _type == EventType.SCHEDULE, is_terminal()
    before = _at_before("type", schedule | end)
    contradiction = (
        (pl.col("missing_type") != 0)
        & ((schedule & (before == EventType.SCHEDULE)) | (end & before.is_in(_TERMINAL_CODES)))
    ).fill_null(value=False)  # fmt: skip
    return events.with_columns(_start=_key_start()).filter(~contradiction).drop("_start")


def _at_before(value: str, where: pl.Expr) -> pl.Expr:
    """``value`` at the newest earlier row of the same instance at which ``where`` is true; else null."""
    row = pl.when(where).then(_ROW).forward_fill().shift(1)
    return pl.col(value).gather(pl.when(row >= pl.col("_start")).then(row))
