"""A sudden surge → how many warm pods it would have taken: the fewest with which leadtime's world has no shortfall.

Found by playing leadtime's world again and again with more or fewer pods standing warm at the start of the scored span;
nothing is estimated. Fewer shortfall minutes with more pods is what makes the bisection right.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from leadtime.domain.tick import Tick
from leadtime.scorecard.measures import score
from leadtime.simulate.worlds import Prepared, run_leadtime

MOST_WARM_PODS = 5000


class _Nobody:
    """A sink for ticks that nobody reads."""

    def append(self, tick: Tick) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmNeed:
    """``pods`` more than minReplicas, standing warm all day; None where even the most tried leave a shortfall."""

    pods: int | None
    gpu_hours_per_day: float | None
    runs: int


def warm_pods_needed(prepared: Prepared, *, until_s: int) -> WarmNeed:
    """The fewest further warm pods without a shortfall minute before ``until_s``; 0 when none is needed.

    Raises ValueError when the replay already has warm pods: the question is then answered by its own score.
    """
    if prepared.replay.warm_pods:
        raise ValueError("sizing warm pods: this replay already has some; ask it of a replay without")
    work = prepared.replay.scenario.workloads[0]
    runs = 0

    def short(pods: int) -> bool:
        nonlocal runs
        runs += 1
        return _shortfall_minutes(prepared, pods, until_s) > 0

    if not short(0):
        return WarmNeed(pods=0, gpu_hours_per_day=0.0, runs=runs)
    low, high = 0, max(1, math.ceil(_peak_pods(prepared) - work.min_replicas))
    while short(high):
        low, high = high, high * 2
        if high > MOST_WARM_PODS:
            return WarmNeed(pods=None, gpu_hours_per_day=None, runs=runs)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return WarmNeed(pods=high, gpu_hours_per_day=high * work.gpus_per_pod * 24.0, runs=runs)


def _peak_pods(prepared: Prepared) -> float:
    """Pods that serve the scored span's highest demand at 100 %: where the search begins."""
    replay, work = prepared.replay, prepared.replay.scenario.workloads[0]
    trace = replay.demand[work.key]
    first = (replay.scored_from_s - trace.start_s) // trace.step_s
    return float(np.nanmax(trace.rps[first:])) / work.capacity_per_pod_rps


def _shortfall_minutes(prepared: Prepared, pods: int, until_s: int) -> int:
    work = prepared.replay.scenario.workloads[0]
    cluster = prepared.cluster.fork()
    if pods:
        cluster.stand_warm(work.ref, pods)
    tried = replace(prepared, cluster=cluster)
    run = run_leadtime(tried, _Nobody(), lambda _what, _share: None, until_s=until_s).run
    return score(run, work.key).shortfall_minutes
