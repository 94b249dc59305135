"""Faults put into a trace's files on purpose (§6.4) once its truth is known: the truth is that of a clean trace.

T3, T4, T5, T6, T10, T11, T12, T13, T14, T15 are settings of what is drawn (knobs.py, lives.py, plan.py, usage.py) and
the truth knows them. T7 leaves the shards sorted by task. T9 is a setting of training. Here: T1, T2 and T8.
"""

import numpy as np
import polars as pl

from leadtime.domain.borg import V2_TO_V3, EventType
from leadtime.simulate.borg.knobs import Knobs, Trap

LEAKED = ("event_count", "final_type", "last_event_time", "max_request_cpu")
MILLISECOND_SHARD = 1  # the second shard; every trace has two
TIMES = ("start_time_us", "end_time_us")


def leaked(usage: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """T1: ``usage`` with what only the whole trace knows of each task."""
    key = ["collection_id", "instance_index"]
    ended = pl.col("type").is_in(
        [int(EventType.EVICT), int(EventType.FAIL), int(EventType.FINISH), int(EventType.KILL)]
    )
    whole = events.group_by(key).agg(
        pl.len().cast(pl.Int64).alias("event_count"),
        pl.col("type").filter(ended).sort_by(pl.col("time_us").filter(ended)).last().cast(pl.Int64).alias("final_type"),
        pl.col("time_us").max().alias("last_event_time"),
        pl.col("request_cpu").max().alias("max_request_cpu"),
    )
    return usage.join(whole, on=key, how="left", maintain_order="left")


def in_milliseconds(usage: pl.DataFrame) -> pl.DataFrame:
    """T2: times of a shard in milliseconds."""
    return usage.with_columns(pl.col(name) // 1000 for name in TIMES)


def v2_codes(events: pl.DataFrame) -> pl.DataFrame:
    """T8: event types as the 2011 trace counts them; it has no QUEUE and no ENABLE."""
    codes = {int(new): old for old, new in V2_TO_V3.items()}
    return events.filter(pl.col("type").is_in(list(codes))).with_columns(
        pl.col("type").replace_strict(codes, return_dtype=pl.Int8)
    )


def trapped_usage(knobs: Knobs, shard: int, usage: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The usage shard with T1 and T2 where they are on."""
    if Trap.T1 in knobs.traps:
        usage = leaked(usage, events)
    if Trap.T2 in knobs.traps and shard == MILLISECOND_SHARD:
        usage = in_milliseconds(usage)
    return usage


def trapped_events(knobs: Knobs, events: pl.DataFrame) -> pl.DataFrame:
    """An event shard with T8 where it is on."""
    return v2_codes(events) if Trap.T8 in knobs.traps else events


def score_is_exact(knobs: Knobs) -> bool:
    """False where the score is not the true probability: somebody acts (T15), or a drift comes (T14)."""
    return knobs.prevented == 0 and knobs.drift_mu == 1 and bool(np.isclose(knobs.drift_degrades, 1))
