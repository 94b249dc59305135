"""Rows of one partition → what the simplest scores know of them: the floors a model must beat (borg-trace §2.3).

A floor is no straw man: "failed in the last hour in this collection" is what an on-call person would guess by.
"""

from collections.abc import Sequence

import polars as pl

from leadtime.domain.borg import Cause

HOUR_US = 3_600_000_000
BASE_RATE = "base rate"
STATIC = "static only"
CRASH_LOOP = "failed in the last hour in this collection"
LAST_WINDOW = "last window only"
STATIC_FEATURES = (
    "tier_rank", "tier_free", "tier_best_effort", "tier_mid", "tier_production", "tier_monitoring", "priority_in_tier",
    "latency_class", "requested_cpu", "requested_memory", "requested_memory_per_cpu",
)  # fmt: skip
LAST_WINDOW_FEATURES = (
    "ratio", "cpu_ratio", "cpu_peak_ratio", "cpu_sample_ratio", "cpu_burst_ratio", "memory_ratio", "memory_peak_ratio",
    "memory_limit_ratio", "page_cache_ratio", "cpu_p50_ratio", "cpu_p90_ratio", "cpu_p99_ratio", "cpu_tail_ratio",
)  # fmt: skip


def present(names: Sequence[str], features: Sequence[str]) -> tuple[str, ...]:
    """Those of ``names`` that are among ``features``, in the features' order."""
    return tuple(name for name in features if name in set(names))


def failed_in_last_hour(rows: pl.DataFrame) -> pl.Series:
    """1 where a task of the row's collection failed in (p - 1 h, p], else 0; Float32, rows in the order given.

    rows: cell, collection_id, instance_index, end_time_us, next_terminal_time_us, next_terminal_cause: all rows of the
    collections (a partition holds whole ones). A failure is known by the rows before it: each names its run's end. One
    at exactly p is known at p.
    """
    of = ["cell", "collection_id"]
    failed = (
        rows.filter(pl.col("next_terminal_cause").cast(pl.String) == Cause.SELF.value)
        .select(*of, failed_us="next_terminal_time_us")
        .unique()
        .sort("failed_us")
    )
    asked = rows.select(*of, "end_time_us").with_row_index("row").sort("end_time_us")
    joined = asked.join_asof(
        failed, left_on="end_time_us", right_on="failed_us", by=of, strategy="backward", check_sortedness=False
    ).sort("row")
    recent = (joined["end_time_us"] - joined["failed_us"]) < HOUR_US
    return recent.fill_null(value=False).cast(pl.Float32)
