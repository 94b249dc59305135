"""Features of the window itself and of what is fixed while it lasts: requests, tier, class, machine size."""

import numpy as np

from leadtime.domain.borg import TIER_FROM, Tier
from leadtime.risk.features.block import Block
from leadtime.risk.features.declare import ADVANCED, BOTH, Builder, Feature, Profile
from leadtime.risk.features.steps import Values, ratio

USAGE = "usage columns of the window that ends at p"
NEWEST = "request, priority and class in the newest event with time ≤ p"
MACHINE = "capacity in the machine's newest event with time ≤ p, request as of p"


def _of(above: str, below: str) -> Builder:
    return lambda block: ratio(block.number(above), block.number(below))


def _gap(high: str, low: str, below: str) -> Builder:
    return lambda block: ratio(block.number(high) - block.number(low), block.number(below))


def _missing(name: str) -> Builder:
    return lambda block: np.isnan(block.number(name)).astype(np.float64)


def _own(name: str) -> Builder:
    return lambda block: block.number(name)


def _flag(name: str) -> Builder:
    return lambda block: block.flag(name).astype(np.float64)


def _is(name: str, value: int) -> Builder:
    def build(block: Block) -> Values:
        column = block.number(name)
        return np.where(np.isnan(column), np.nan, column == value)

    return build


def _priority_in_tier(block: Block) -> Values:
    lowest = np.array([TIER_FROM[tier] for tier in Tier], dtype=np.float64)
    tier = block.whole("tier", -1)
    return np.where(tier >= 0, block.number("priority") - lowest[np.clip(tier, 0, len(lowest) - 1)], np.nan)


def _usage(name: str, unit: str, formula: str, build: Builder, profiles: tuple[Profile, ...] = ADVANCED) -> Feature:
    return Feature(name=name, unit=unit, formula=formula, known=USAGE, build=build, profiles=profiles)


def _fixed(
    name: str, unit: str, formula: str, build: Builder, profiles: tuple[Profile, ...] = ADVANCED, *, known: str = NEWEST
) -> Feature:
    return Feature(name=name, unit=unit, formula=formula, known=known, build=build, profiles=profiles)


USAGE_FEATURES = (
    _usage("cpu_ratio", "ratio", "average CPU / requested CPU", lambda block: block.series("cpu"), BOTH),
    _usage("cpu_peak_ratio", "ratio", "maximum CPU / requested CPU", lambda block: block.series("cpu_peak"), BOTH),
    _usage("cpu_sample_ratio", "ratio", "CPU in a random second / requested CPU", _of("sample_cpu", "request_cpu")),
    _usage(
        "cpu_burst_ratio",
        "ratio",
        "(maximum − average CPU) / requested",
        _gap("max_cpu", "avg_cpu", "request_cpu"),
        BOTH,
    ),
    _usage("memory_ratio", "ratio", "average memory / requested", lambda block: block.series("memory"), BOTH),
    _usage("memory_peak_ratio", "ratio", "maximum memory / requested", _of("max_memory", "request_memory")),
    _usage(
        "memory_burst_ratio",
        "ratio",
        "(maximum − average memory) / requested",
        _gap("max_memory", "avg_memory", "request_memory"),
    ),
    _usage(
        "memory_limit_ratio",
        "ratio",
        "average memory / limit (assigned memory)",
        _of("avg_memory", "assigned_memory"),
        BOTH,
    ),
    _usage(
        "memory_headroom_ratio",
        "ratio",
        "(limit − maximum memory) / limit",
        _gap("assigned_memory", "max_memory", "assigned_memory"),
    ),
    _usage("limit_request_ratio", "ratio", "memory limit / requested memory", _of("assigned_memory", "request_memory")),
    _usage("page_cache_ratio", "ratio", "page cache / memory limit", _of("page_cache_memory", "assigned_memory"), BOTH),
    _usage(
        "page_cache_request_ratio", "ratio", "page cache / requested memory", _of("page_cache_memory", "request_memory")
    ),
    _usage("cpu_p50_ratio", "ratio", "median CPU / requested CPU", _of("cpu_p50", "request_cpu")),
    _usage("cpu_p90_ratio", "ratio", "90th percentile of CPU / requested CPU", _of("cpu_p90", "request_cpu")),
    _usage("cpu_p99_ratio", "ratio", "99th percentile of CPU / requested CPU", _of("cpu_p99", "request_cpu")),
    _usage(
        "cpu_shoulder_ratio",
        "ratio",
        "(90th − 50th percentile of CPU) / requested",
        _gap("cpu_p90", "cpu_p50", "request_cpu"),
    ),
    _usage(
        "cpu_tail_ratio",
        "ratio",
        "(99th − 90th percentile of CPU) / requested",
        _gap("cpu_p99", "cpu_p90", "request_cpu"),
    ),
    _usage(
        "cpu_tail_end_ratio",
        "ratio",
        "(99th − 95th percentile of CPU) / requested",
        _gap("cpu_p99", "cpu_p95", "request_cpu"),
    ),
    _usage("cycles_per_instruction", "cycles", "cycles per instruction", _own("cycles_per_instruction")),
    _usage(
        "memory_accesses_per_instruction",
        "accesses",
        "memory accesses per instruction",
        _own("memory_accesses_per_instruction"),
    ),
    _usage("cycles_missing", "0 or 1", "cycles per instruction is missing", _missing("cycles_per_instruction")),
    _usage("histogram_missing", "0 or 1", "the CPU histogram is missing", _missing("cpu_p50")),
    _usage("memory_peak_missing", "0 or 1", "maximum memory is missing", _missing("max_memory")),
)
FIXED_FEATURES = (
    _fixed("requested_cpu", "NCU", "requested CPU, in shares of the largest machine", _own("request_cpu"), BOTH),
    _fixed(
        "requested_memory", "share", "requested memory, in shares of the largest machine", _own("request_memory"), BOTH
    ),
    _fixed(
        "requested_memory_per_cpu", "ratio", "requested memory / requested CPU", _of("request_memory", "request_cpu")
    ),
    _fixed(
        "tier_rank",
        "0–4",
        "priority tier: free, best effort, mid, production, monitoring",
        _own("tier"),
        (Profile.BASELINE,),
    ),
    _fixed("tier_free", "0 or 1", "priority 0–99", _is("tier", Tier.FREE)),
    _fixed("tier_best_effort", "0 or 1", "priority 100–115", _is("tier", Tier.BEST_EFFORT)),
    _fixed("tier_mid", "0 or 1", "priority 116–119", _is("tier", Tier.MID)),
    _fixed("tier_production", "0 or 1", "priority 120–359", _is("tier", Tier.PRODUCTION)),
    _fixed("tier_monitoring", "0 or 1", "priority ≥ 360", _is("tier", Tier.MONITORING)),
    _fixed("priority_in_tier", "steps", "priority − lowest priority of its tier", _priority_in_tier),
    _fixed("latency_class", "0–3", "scheduling class: 3 is the most latency-sensitive", _own("scheduling_class"), BOTH),
    _fixed("scaled_automatically", "0 or 1", "vertical scaling is fully automated", _is("vertical_scaling", 3)),
    _fixed("scaled_within_bounds", "0 or 1", "vertical scaling is automated within bounds", _is("vertical_scaling", 2)),
    _fixed("in_alloc", "0 or 1", "the task runs inside an alloc instance", _flag("in_alloc")),
    _fixed(
        "request_changes",
        "changes",
        "UPDATE_RUNNING events in this run",
        _own("request_changes"),
        known="events with time ≤ p",
    ),
    _fixed("capacity_cpu", "NCU", "CPU of the machine", _own("capacity_cpu"), known=MACHINE),
    _fixed("capacity_memory", "share", "memory of the machine", _own("capacity_memory"), known=MACHINE),
    _fixed(
        "cpu_share_of_machine",
        "ratio",
        "requested CPU / CPU of the machine",
        _of("request_cpu", "capacity_cpu"),
        known=MACHINE,
    ),
    _fixed(
        "memory_share_of_machine",
        "ratio",
        "requested memory / memory of the machine",
        _of("request_memory", "capacity_memory"),
        known=MACHINE,
    ),
)
FEATURES = USAGE_FEATURES + FIXED_FEATURES
