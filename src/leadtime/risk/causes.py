"""Terminal events → why the run ended, as far as collection and machine events of the whole cell show it.

KILL within 60 s after the parent collection's end is the parent's doing; EVICT within 1 s around the REMOVE of the
machine it ran on is the machine's. Neither is a fault of the workload (Google's trace documentation: KILL is a user
or a dependency; REMOVE is mostly failure or repair).
"""

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, Cause, EventType, MachineEventType
from leadtime.risk.runs import is_terminal
from leadtime.risk.windows import KEY

PARENT_WITHIN_US = 60_000_000
MACHINE_WITHIN_US = 1_000_000
_type = pl.col("type")


def with_causes(
    events: pl.LazyFrame, collection_events: pl.LazyFrame, machine_events: pl.LazyFrame
) -> pl.LazyFrame:  # fmt: skip
    """Ordered instance events [n] → the same rows and order with ``cause`` (domain.borg.Cause; null for no end).

    ``collection_events`` and ``machine_events`` are the whole cell's: a parent lies in any partition. An EVICT without
    a machine ran on the newest machine its instance had.
    """
    numbered = events.with_columns(
        _machine=pl.col("machine_id").forward_fill().over(KEY, mapping_strategy="group_to_rows")
    ).with_row_index("_row")
    by_machine = _evicted_with_machine(numbered, machine_events)
    by_parent = _killed_with_parent(numbered, collection_events)
    found = pl.concat([by_machine, by_parent])
    plain = pl.when(is_terminal()).then(
        _type.replace_strict(
            {
                EventType.EVICT: Cause.PREEMPTION.value,
                EventType.FAIL: Cause.SELF.value,
                EventType.FINISH: Cause.DONE.value,
                EventType.KILL: Cause.USER.value,
                EventType.LOST: Cause.UNKNOWN.value,
            },
            default=None,
            return_dtype=pl.String,
        )
    )
    joined = numbered.join(found, on="_row", how="left", maintain_order="left")
    return joined.with_columns(cause=pl.coalesce("_cause", plain)).drop("_row", "_machine", "_cause")


def _evicted_with_machine(events: pl.LazyFrame, machine_events: pl.LazyFrame) -> pl.LazyFrame:
    """Rows (``_row``, ``_cause``) of EVICTs around the REMOVE of a real machine."""
    removed = machine_events.filter(
        (_type == MachineEventType.REMOVE) & (pl.col("machine_id") > 0) & _inside_trace("time_us")
    ).select("machine_id", "time_us", pl.col("time_us").alias("_at"))
    evicted = events.filter((_type == EventType.EVICT) & (pl.col("_machine") > 0) & _inside_trace("time_us"))
    joined = evicted.select("_row", "time_us", machine_id="_machine").sort("time_us").join_asof(
        removed.sort("time_us"), on="time_us", by="machine_id", strategy="nearest",
        tolerance=MACHINE_WITHIN_US, check_sortedness=False,
    )  # fmt: skip
    return joined.filter(pl.col("_at").is_not_null()).select("_row", _cause=pl.lit(Cause.MACHINE.value))


def _killed_with_parent(events: pl.LazyFrame, collection_events: pl.LazyFrame) -> pl.LazyFrame:
    """Rows (``_row``, ``_cause``) of KILLs soon after the end of the collection's parent."""
    parents = (
        collection_events.filter(pl.col("parent_collection_id") > 0)
        .group_by("collection_id")
        .agg(pl.col("parent_collection_id").max().alias("_parent"))
    )
    ended = collection_events.filter(is_terminal() & _inside_trace("time_us")).select(
        "time_us", _parent="collection_id", _at="time_us"
    )
    killed = events.filter((_type == EventType.KILL) & _inside_trace("time_us")).select(
        "_row", "collection_id", "time_us"
    )
    joined = killed.join(parents, on="collection_id").sort("time_us").join_asof(
        ended.sort("time_us"), on="time_us", by="_parent", strategy="backward",
        tolerance=PARENT_WITHIN_US, check_sortedness=False,
    )  # fmt: skip
    return joined.filter(pl.col("_at").is_not_null()).select("_row", _cause=pl.lit(Cause.PARENT.value))


def _inside_trace(column: str) -> pl.Expr:
    """Neither of the sentinels: 0 is before the trace, 2^63−1 after it; neither is an instant."""
    return (pl.col(column) > 0) & (pl.col(column) < AFTER_TRACE_US)
