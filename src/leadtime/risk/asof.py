"""Usage windows, instance events, collection events, machine events → windows with all that is known at their end.

What is known at p = end_time_us: events with time ≤ p (docs/designs/0015). The next terminal event stands beside it
as the outcome; no feature may read it.
"""

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, TIER_FROM, MachineEventType
from leadtime.risk.causes import with_causes
from leadtime.risk.runs import ordered, run_states
from leadtime.risk.windows import KEY, MACHINE_SHAPE, WINDOW_SCHEMA, in_order, usage_windows


def join_partition(
    usage: pl.LazyFrame,
    instance_events: pl.LazyFrame,
    collection_events: pl.LazyFrame,
    machine_events: pl.LazyFrame,
) -> pl.LazyFrame:
    """Canonical frames of one cell → windows with exactly the columns of WINDOW_SCHEMA, in ORDER; rows in = rows out.

    ``usage`` (canonical, or reduced by ``usage_windows``) and ``instance_events`` hold the same collections;
    ``collection_events`` and ``machine_events`` are the whole cell's. Alloc instances are left out. Times in µs.
    """
    events = with_causes(ordered(instance_events), collection_events, machine_events)
    return join_events(usage, events, collection_events, machine_events)


def join_events(
    usage: pl.LazyFrame, events: pl.LazyFrame, collection_events: pl.LazyFrame, machine_events: pl.LazyFrame
) -> pl.LazyFrame:
    """As ``join_partition``, with events that are already ordered and have their ``cause``."""
    windows = in_order(usage_windows(usage))
    with_state = with_runs(windows, events)
    around = _surroundings(windows, collection_events, machine_events)
    joined = pl.concat([with_state, around], how="horizontal")
    return (
        joined.with_columns(
            pl.col("is_running").fill_null(value=False),
            pl.col("run_number", "request_changes").fill_null(0),
            pl.coalesce("priority", "collection_priority").alias("priority"),
            pl.coalesce("scheduling_class", "collection_class").alias("scheduling_class"),
            ((pl.col("alloc_collection_id") > 0) | pl.col("placed_in_alloc").fill_null(value=False)).alias("in_alloc"),
        )
        .with_columns(tier=tier("priority"))
        .select(pl.col(name).cast(dtype) for name, dtype in WINDOW_SCHEMA.items())
    )


def with_runs(windows: pl.LazyFrame, events: pl.LazyFrame) -> pl.LazyFrame:
    """Windows in ORDER [n] → the same rows with the run, the request and the next end (risk/runs.py) as of their end.

    ``events``: ordered, with ``cause``. The part of the join that labels need.
    """
    joined = windows.join_asof(
        run_states(events), left_on="end_time_us", right_on="time_us", by=list(KEY), strategy="backward",
        check_sortedness=False, coalesce=False,
    )  # fmt: skip
    return joined.with_columns(
        pl.col("is_running").fill_null(value=False), pl.col("run_number", "request_changes").fill_null(0)
    )


def tier(priority: str) -> pl.Expr:
    """Int8 code of domain.borg.Tier; null where the priority is not known."""
    found = pl.lit(0, pl.Int8)
    for code, lowest in sorted(TIER_FROM.items()):
        found = pl.when(pl.col(priority) >= lowest).then(pl.lit(int(code), pl.Int8)).otherwise(found)
    return pl.when(pl.col(priority).is_not_null()).then(found)


def _surroundings(
    windows: pl.LazyFrame, collection_events: pl.LazyFrame, machine_events: pl.LazyFrame
) -> pl.LazyFrame:  # fmt: skip
    """What collection and machine events say as of each window's end; rows and order of ``windows``."""
    narrow = windows.select("collection_id", "machine_id", "end_time_us").with_row_index("_row").sort("end_time_us")
    joined = narrow.join_asof(
        _collections(collection_events), left_on="end_time_us", right_on="time_us", by="collection_id",
        strategy="backward", check_sortedness=False, coalesce=False,
    ).drop("time_us").join_asof(
        _machines(machine_events), left_on="end_time_us", right_on="time_us", by="machine_id",
        strategy="backward", check_sortedness=False, coalesce=False,
    )  # fmt: skip
    return joined.sort("_row").drop("_row", "time_us", "collection_id", "machine_id", "end_time_us")


def _collections(events: pl.LazyFrame) -> pl.LazyFrame:
    """Collection events in order, with what a window may know of its collection."""
    kept = events.filter(pl.col("time_us") < AFTER_TRACE_US)
    return kept.select(
        "collection_id", "time_us", "vertical_scaling", "parent_collection_id",
        collection_priority="priority", collection_class="scheduling_class", _type="type",
    ).sort("collection_id", "time_us", "_type", maintain_order=True).drop("_type")  # fmt: skip


def _machines(events: pl.LazyFrame) -> pl.LazyFrame:
    """Shape of each real machine from each of its events on; null after a REMOVE. 0, −1 and null are no machines."""
    here = pl.col("type") != MachineEventType.REMOVE
    place = here.cast(pl.Int8)  # at equal times it goes before it comes back
    shape = [pl.when(here).then(pl.col(name).forward_fill().over("machine_id")).alias(name) for name in MACHINE_SHAPE]
    kept = events.filter((pl.col("machine_id") > 0) & (pl.col("time_us") < AFTER_TRACE_US))
    return kept.sort("machine_id", "time_us", place, "type", maintain_order=True).select(
        "machine_id", "time_us", *shape
    )
