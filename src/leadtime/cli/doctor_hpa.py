"""A demand series, a lead and the capacity of a pod → minutes the HPA alone is short, and what headroom would cost.

The HPA is the one of mechanics with default behaviour and the policy's target; every pod comes one whole lead after it
was wanted, as if each needed a new node: the worst case, and the one leadtime is for.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Unit
from leadtime.domain.snapshot import WorkloadState
from leadtime.forecast.fits_here import HpaAlone
from leadtime.forecast.foresight import Recorded, Served
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.worth import PlanScore, ShadowRecord, judge_worth
from leadtime.loop.hpa_shadow import follow
from leadtime.loop.memory import HpaShadow
from leadtime.loop.record import highest_of_last
from leadtime.policy.schema import Policy
from leadtime.propose.plan import HEADROOM_PLANS, HEADROOM_RATIOS, headrooms, pods_for

DAY_S = 86_400
SYNCS_A_MINUTE = 1  # the HPA looks every 15 s, but the demand of a minute is one number: more looks see the same
MOST_PODS = 1_000_000
FORECAST_PLAN = "forecast"
HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Capacity of a pod at full use, and where that number comes from."""

    per_pod: float
    told_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The HPA alone, and every plan tried beside it, ``hpa`` first; over minutes [from_s, until_s)."""

    alone: HpaAlone
    scores: tuple[PlanScore, ...]
    from_s: int
    until_s: int


def hpa_alone(series: Recorded, served: Served | None, sized: Sized, lead_s: float, policy: Policy) -> Plans | None:
    """Minutes short over the span the forecast was served in (the whole series without one); None below a day.

    Plans: steady headrooms of 5 to 20 % above the HPA's wish, and the served forecast's upper bound up to the lead.
    """
    demand = np.repeat(series.values, series.per_bucket)
    first = 0 if served is None or not len(served.newest) else int(served.newest[0] + 1) * series.per_bucket
    if (len(demand) - first) * MINUTE_S < DAY_S:
        return None
    wanted = _wanted(demand, sized.per_pod, policy)
    hold = policy.scaling.floor_hold_s // MINUTE_S
    held = highest_of_last(wanted, hold)
    floors = {
        name: headrooms(held, 1, MOST_PODS, ratio)[first:]
        for name, ratio in zip(HEADROOM_PLANS, HEADROOM_RATIOS, strict=True)
    }
    if served is not None and len(served.newest):
        floors[FORECAST_PLAN] = highest_of_last(_forecast(series, served, sized.per_pod, lead_s, policy), hold)[first:]
    record = ShadowRecord(demand=demand[first:], hpa_wanted=wanted[first:], plans=floors, step_s=MINUTE_S)
    worth = judge_worth(record, capacity_per_pod=sized.per_pod, pod_lead_s=lead_s, max_extra_ratio=float("inf"))
    alone = worth.per_plan[0].shortfall_minutes
    halving = [plan for plan in worth.per_plan[1:] if plan.shortfall_minutes <= HALF * alone]
    cheapest = min(halving, key=lambda plan: plan.pod_hours_ratio_to_hpa, default=None) if alone else None
    told = HpaAlone(
        short_minutes=alone, days=len(record.demand) * MINUTE_S / DAY_S, lead_s=lead_s,
        capacity_per_pod=sized.per_pod, capacity_told_by=sized.told_by,
        extra_ratio=None if cheapest is None else cheapest.pod_hours_ratio_to_hpa - 1.0,
        extra_by="" if cheapest is None else f"plan {cheapest.name}",
    )  # fmt: skip
    from_s = series.start_s + first * MINUTE_S
    until_s = series.start_s + len(demand) * MINUTE_S
    return Plans(alone=told, scores=worth.per_plan, from_s=from_s, until_s=until_s)


def _wanted(demand: FloatColumn, per_pod: float, policy: Policy) -> FloatColumn:
    """Pods the HPA asks for at the end of each minute; a minute without a value is a failed metric to it."""
    target = policy.scaling.target_utilisation_ratio
    work = WorkloadState(
        ref=WorkloadRef(namespace="any", name="series"), pool="any", queue="any", unit=Unit.REQUESTS_PER_S,
        gpus_per_pod=1, capacity_per_pod=per_pod, hpa_target_ratio=target, owner_min_replicas=1,
        max_replicas=MOST_PODS, floor=None, buffer=None, wanted_replicas=1, ready_pods=1, starting_pods=0,
        pending_pods=0, oldest_pending_s=0.0,
    )  # fmt: skip
    known = demand[~np.isnan(demand)]
    shadow = HpaShadow(replicas=max(1, pods_for(float(known[0]) if len(known) else 0.0, per_pod * target, MOST_PODS)))
    found = np.empty(len(demand))
    for i, value in enumerate(demand.tolist()):
        seen = None if value != value else value  # noqa: PLR0124 -- NaN
        shadow = follow(shadow, work, seen, end_s=(i + 1) * 60.0, span_s=60.0, syncs=SYNCS_A_MINUTE)
        found[i] = shadow.replicas
    return found


def _forecast(series: Recorded, served: Served, per_pod: float, lead_s: float, policy: Policy) -> FloatColumn:
    """Pods for the highest upper bound up to the lead, from each origin until the next; 0 before the first."""
    until = next((j for j, horizon in enumerate(served.horizons_s) if horizon >= lead_s), len(served.horizons_s) - 1)
    highest = served.upper[:, : until + 1].max(axis=1)
    pods = np.ceil(highest / (per_pod * policy.scaling.target_utilisation_ratio) - 1e-9)
    floors = np.zeros(len(series.values) * series.per_bucket)
    starts = (served.newest + 1) * series.per_bucket
    for i, start in enumerate(starts.tolist()):
        floors[start : starts[i + 1] if i + 1 < len(starts) else None] = pods[i]
    return floors
