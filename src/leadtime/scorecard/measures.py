"""One world's run → the score of one workload: every field of DESIGN §6 that needs no second world.

A step whose demand is NaN was not measured: nothing in it is scored, neither service nor cost. The one exception is the
pods added in the worst minute: that is a promise about what leadtime writes, and it holds in the dark as well.
A field that cannot be known is None, and ``reasons`` says why under the field's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from leadtime.scorecard import pace, windows
from leadtime.scorecard.forecasts import ForecastScore
from leadtime.scorecard.run import FloatColumn, IntColumn, WorkloadRun, WorldRun
from leadtime.scorecard.tallies import DecisionTally

PEAK_WINDOW_S = 300  # DESIGN §6: worst sliding 300 s …
PEAK_STRIDE_S = 15  # … stepped by 15 s
SHORTFALL_RATIO = 0.001  # a minute falls short when more than 0.1 % of its arrivals went unserved
LATENCY_QUANTILE_RATIO = 0.95
HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadScore:
    """The score card of one workload in one world over its scored steps, [scored_from_s, scored_until_s).

    ``*_ratio`` fields of service are shares of arrived requests, so unserved + late + in time = 1. Counts of pods are
    whole numbers held as float; ``reasons`` has one sentence for each field that is None.
    """

    world: str
    workload: str
    scored_from_s: int
    scored_until_s: int
    scored_hours: float
    unscored_minutes: float
    arrived_requests: float
    unserved_requests: float
    unserved_ratio: float | None
    unserved_ratio_peak: float | None
    late_ratio: float | None
    latency_p95_s: float | None
    shortfall_minutes: int
    pod_hours: float
    gpu_node_hours: float | None
    pending_pod_minutes: float
    churn_pods_per_hour: float | None
    busy_pods_killed: int
    warm_pods_killed: int
    max_pods_added_per_minute: float
    hpa_max_pods_added_per_minute: float
    reversals: float | None  # a day
    forecasts: ForecastScore | None = None
    decisions: Mapping[str, int] | None = None
    rejections: Mapping[str, int] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def score(
    run: WorldRun,
    workload: str,
    *,
    scored_from_s: int | None = None,
    forecasts: ForecastScore | None = None,
    tally: DecisionTally | None = None,
) -> WorkloadScore:
    """Measure ``workload`` (its key) in ``run`` from ``scored_from_s`` (None: from the first step) to the end.

    Raises KeyError for a workload the run does not have, ValueError when a step does not divide a minute.
    """
    columns = run.workloads[workload]
    windows.check_step(columns.step_s)
    weights = scored_weights(columns, scored_from_s)
    part = _counts(run, columns, weights)
    return _with_reasons(
        replace(
            part,
            forecasts=forecasts,
            decisions=None if tally is None else tally.decisions,
            rejections=None if tally is None else tally.rejections,
        )
    )


def scored_weights(columns: WorkloadRun, scored_from_s: int | None = None) -> FloatColumn:
    """1.0 for each step that is scored, 0.0 for warm-up and for steps without a demand value."""
    begins_s = columns.start_s + np.arange(len(columns.demand_rps)) * columns.step_s
    known = ~np.isnan(columns.demand_rps)
    return (known if scored_from_s is None else known & (begins_s >= scored_from_s)).astype(np.float64)


def _counts(run: WorldRun, columns: WorkloadRun, weights: FloatColumn) -> WorkloadScore:
    arrived, unserved, late = (_scored(column, weights) for column in (columns.arrived, columns.unserved, columns.late))
    all_arrived, scored_hours = float(arrived.sum()), float(weights.sum()) * columns.step_s / HOUR_S
    span = _span(weights)
    churn = float(_scored(columns.deleted_while_demand_stayed, weights).sum())
    return WorkloadScore(
        world=run.world,
        workload=columns.workload,
        scored_from_s=columns.start_s + span.start * columns.step_s,
        scored_until_s=columns.start_s + span.stop * columns.step_s,
        scored_hours=scored_hours,
        unscored_minutes=float((weights[span] == 0).sum()) * columns.step_s / 60,
        arrived_requests=all_arrived,
        unserved_requests=float(unserved.sum()),
        unserved_ratio=_ratio(float(unserved.sum()), all_arrived),
        unserved_ratio_peak=_peak(columns, arrived[span], unserved[span]),
        late_ratio=_ratio(float(late.sum()), all_arrived),
        latency_p95_s=_latency_p95_s(columns, np.maximum(arrived - unserved, 0.0)),
        shortfall_minutes=_shortfall_minutes(columns, arrived, unserved),
        pod_hours=float(_scored(columns.pod_seconds, weights).sum()) / HOUR_S,
        gpu_node_hours=_gpu_node_hours(run, columns, weights),
        pending_pod_minutes=float(_scored(columns.pending_pod_seconds, weights).sum()) / 60,
        churn_pods_per_hour=_ratio(churn, scored_hours),
        busy_pods_killed=round(float(_scored(columns.busy_killed, weights).sum())),
        warm_pods_killed=round(float(_scored(columns.warm_killed, weights).sum())),
        max_pods_added_per_minute=pace.floor_pods_added_per_minute(columns),
        hpa_max_pods_added_per_minute=pace.hpa_pods_added_per_minute(columns),
        reversals=pace.reversals_per_day(columns, weights),
    )


def _scored(column: FloatColumn | IntColumn, weights: FloatColumn) -> FloatColumn:
    """``column`` where a step is scored, 0 elsewhere (NaN there must not leak into a sum)."""
    return np.where(weights > 0, column, 0.0).astype(np.float64)


def _span(weights: FloatColumn) -> slice:
    """From the first scored step to one past the last; empty when nothing is scored."""
    scored = np.flatnonzero(weights)
    return slice(int(scored[0]), int(scored[-1]) + 1) if len(scored) else slice(0, 0)


def _ratio(part: float, whole: float) -> float | None:
    return None if whole == 0 else part / whole


def _peak(columns: WorkloadRun, arrived: FloatColumn, unserved: FloatColumn) -> float | None:
    """Worst unserved share of a window; windows with fewer arrivals than one pod serves in 300 s say nothing."""
    window_steps = PEAK_WINDOW_S // columns.step_s
    stride_steps = max(1, PEAK_STRIDE_S // columns.step_s)
    came = windows.sliding_sums(arrived, window_steps=window_steps, stride_steps=stride_steps)
    went = windows.sliding_sums(unserved, window_steps=window_steps, stride_steps=stride_steps)
    kept = (came >= columns.capacity_per_pod_rps * PEAK_WINDOW_S) & (came > 0)
    return float((went[kept] / came[kept]).max()) if kept.any() else None


def _latency_p95_s(columns: WorkloadRun, served: FloatColumn) -> float | None:
    """The smallest latency that 95 % of the served requests did not exceed, each step weighing its served requests."""
    known = (served > 0) & ~np.isnan(columns.latency_s)
    if not known.any():
        return None
    order = np.argsort(columns.latency_s[known], kind="stable")
    cumulated = np.cumsum(served[known][order])
    rank = int(np.searchsorted(cumulated, LATENCY_QUANTILE_RATIO * cumulated[-1] * (1 - 1e-12)))
    return float(columns.latency_s[known][order][rank])


def _shortfall_minutes(columns: WorkloadRun, arrived: FloatColumn, unserved: FloatColumn) -> int:
    came = windows.minute_sums(arrived, start_s=columns.start_s, step_s=columns.step_s)
    went = windows.minute_sums(unserved, start_s=columns.start_s, step_s=columns.step_s)
    return int((went > SHORTFALL_RATIO * came).sum())


def _gpu_node_hours(run: WorldRun, columns: WorkloadRun, weights: FloatColumn) -> float | None:
    """GPU nodes of its pool, launch accepted → deleted, static ones included.

    A pool is paid for as a whole. Workloads that share one split each step by the GPUs of their bound pods; a step in
    which none has a bound pod is split evenly. Alone on a pool a workload pays for all of it, its idle nodes too.
    """
    pools = [pool for name, pool in run.pools.items() if pool.gpus_per_node > 0 and columns.pool in (None, name)]
    if not pools:
        return None
    total_s = 0.0
    for pool in pools:
        sharers = [other for other in run.workloads.values() if other.pool in (None, pool.pool)]
        bound = [np.nan_to_num(other.pod_seconds) * max(other.gpus_per_pod, 1) for other in sharers]
        whole = np.sum(bound, axis=0)
        own = bound[[other.workload for other in sharers].index(columns.workload)]
        share = np.divide(own, whole, out=np.full(len(whole), 1 / len(sharers)), where=whole > 0)
        total_s += float((pool.node_seconds * share * weights).sum())
    return total_s / HOUR_S


_WHY_NONE = {
    "unserved_ratio": "no request arrived in the scored span",
    "late_ratio": "no request arrived in the scored span",
    "unserved_ratio_peak": "no 300 s window of the scored span had as many arrivals as one pod serves in 300 s",
    "latency_p95_s": "no request was served in the scored span",
    "gpu_node_hours": "the workload runs on no GPU pool",
    "churn_pods_per_hour": "no step was scored",
    "reversals": "no step was scored",
    "forecasts": "nobody forecasts in this world",
    "decisions": "leadtime decides nothing in this world",
    "rejections": "leadtime decides nothing in this world",
}


def _with_reasons(part: WorkloadScore) -> WorkloadScore:
    return replace(part, reasons={name: why for name, why in _WHY_NONE.items() if getattr(part, name) is None})
