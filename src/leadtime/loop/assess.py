"""One workload's new buckets → forecast, surge, lead, the HPA's own wish, and where the workload should stand."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import nan
from typing import Any

import numpy as np

from leadtime.domain.demand import DemandForecast, DemandPath, Surge, SurgeAlarm
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import PoolState, WorkloadState
from leadtime.domain.tick import WorkloadAssessment
from leadtime.forecast import assess as forecast
from leadtime.forecast.surge_alarm import Beside
from leadtime.loop.choose import Chosen, choose
from leadtime.loop.hpa_shadow import follow
from leadtime.loop.memory import LogRows, RecentNeeds, WorkloadMemory
from leadtime.loop.observe import Observed
from leadtime.loop.places import PoolShape
from leadtime.policy.schema import Policy
from leadtime.propose import plan as planning
from leadtime.propose.context import DataStanding, DemandReading
from leadtime.propose.plan import PATH_PLANS, PLANS, ROOM_PLAN, CandidatePlans, Sizing
from leadtime.propose.targets import PlanChoice, PlanWish, Targets, targets

SYNCS_A_TICK = 4  # the HPA's 15 s in a tick of 60 s
LEDGER_STEP_S = 300  # the page and the ledger show the path every five minutes
NOTHING = PlanWish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """What the tick believes about one workload, and what it must remember."""

    assessment: WorkloadAssessment
    targets: Targets
    memory: WorkloadMemory
    forecast_state: Any
    path_peak: float  # highest expected demand within the request → pod Ready lead; NaN without a path


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What lies ahead of one workload: lead, path (or why there is none), surge, and every plan's wish."""

    lead: LeadTime
    path: DemandPath | Missing
    surge: Surge | None
    alarm: SurgeAlarm | None
    plans: CandidatePlans | None
    surge_pods: int


def workload(
    *,
    state: WorkloadState,
    pool: PoolState,
    observed: Observed,
    forecast_state: Any,
    lead: LeadTime,
    added_last_minute: int,
    as_of: datetime,
    policy: Policy,
) -> Assessed:
    """Forecast, plan and size one workload at ``as_of``. Changes nothing it was given."""
    reading = observed.reading
    believed = forecast_state if forecast_state is not None else forecast.start()
    if observed.series is not None:
        believed = forecast.observe(believed, observed.series, policy, beside=_beside(state))
    memory = _with_hpa(observed.memory, state, reading, as_of, policy)
    ahead = _outlook(state, reading, believed, lead, memory.hpa.replicas, as_of=as_of, policy=policy)
    memory = _with_needs(memory, reading, ahead, as_of, policy)
    chosen = _chosen(state, pool, memory, ahead, as_of=as_of, policy=policy)
    memory = chosen.memory
    goal = targets(
        workload=state,
        pool=pool,
        policy=policy,
        choice=chosen.choice,
        plan=_plan_wish(chosen.choice, ahead.plans, memory),
        surge=_surge_wish(ahead.surge_pods, memory),
        added_last_minute=added_last_minute,
        lowered_at=memory.floor_lowered_at,
        as_of=as_of,
    )
    memory = _booked(memory, state, goal, as_of, policy)
    return Assessed(
        assessment=_assessment(state, reading, ahead, chosen.choice, as_of=as_of, hpa_would_want=memory.hpa.replicas),
        targets=goal,
        memory=memory,
        forecast_state=believed,
        path_peak=_peak(ahead.path, lead, as_of),
    )


def _beside(state: WorkloadState) -> Beside:
    """What the snapshot says beside the demand: the ready share of the wanted pods, unknown where none are wanted."""
    return Beside(ready_ratio=state.ready_pods / state.wanted_replicas if state.wanted_replicas > 0 else None)


def _outlook(
    state: WorkloadState,
    reading: DemandReading,
    believed: Any,
    lead: LeadTime,
    hpa_want: int,
    *,
    as_of: datetime,
    policy: Policy,
) -> Outlook:
    size = sizing(state, lead, policy)
    path = forecast.predict(believed, state.ref, as_of, horizon_s(state, lead, policy), state.unit, policy)
    surge = None
    if reading.standing in {DataStanding.COMPLETE, DataStanding.GAP}:
        surge = forecast.surge(believed, state.ref, policy, lead.pod_p90_s)
    return Outlook(
        lead=lead,
        path=path,
        surge=surge,
        alarm=forecast.alarm(believed),
        plans=None if isinstance(path, Missing) else candidates(path, state, hpa_want, size, as_of),
        surge_pods=0 if surge is None else planning.pods_for(surge.extrapolated, size.per_pod, size.lid),
    )


def _chosen(
    state: WorkloadState, pool: PoolState, memory: WorkloadMemory, ahead: Outlook, *, as_of: datetime, policy: Policy
) -> Chosen:
    shape = pool_shape(state, pool)
    return choose(state, memory, ahead.path, ahead.lead, as_of=as_of, policy=policy, shape=shape)


def pool_shape(state: WorkloadState, pool: PoolState) -> PoolShape:
    """What a node of ``pool`` is for pods of this size; one pod a node where GPUs do not tell."""
    fits = max(1, pool.gpus_per_node // state.gpus_per_pod) if state.gpus_per_pod > 0 else 1
    return PoolShape(pods_per_node=fits, drain_below_ratio=pool.drain_below_ratio)


def sizing(state: WorkloadState, lead: LeadTime, policy: Policy) -> Sizing:
    """The workload's demand-to-pods numbers at its learned lead."""
    return planning.sizing(
        capacity_per_pod=state.capacity_per_pod,
        max_replicas=state.max_replicas,
        scaling=policy.scaling,
        step_s=60,
        tick_s=policy.loop.tick_s,
        pod_lead_s=lead.pod_p90_s,
        node_lead_s=lead.node_p90_s,
    )


def candidates(path: DemandPath, state: WorkloadState, hpa_want: int, size: Sizing, as_of: datetime) -> CandidatePlans:
    """Every plan's wish at ``as_of``; minutes of the path that have passed already are left out."""
    skip = max(0, int((as_of - path.issued_at).total_seconds() // path.step_s))
    return planning.candidates(path, hpa_want, size, owner_min=state.owner_min_replicas, skip_steps=skip)


def horizon_s(state: WorkloadState, lead: LeadTime, policy: Policy) -> int:
    """How far the path of this workload must reach, in whole seconds."""
    lid = min(state.max_replicas, policy.scaling.replica_cap)
    return int(
        planning.horizon_s(
            pod_lead_s=lead.pod_p90_s,
            node_lead_s=lead.node_p90_s,
            raise_pods=max(0, lid - state.owner_min_replicas),
            scaling=policy.scaling,
            tick_s=policy.loop.tick_s,
        )
    )


def _with_hpa(
    memory: WorkloadMemory, state: WorkloadState, reading: DemandReading, as_of: datetime, policy: Policy
) -> WorkloadMemory:
    shadow = follow(
        memory.hpa, state, reading.value, end_s=as_of.timestamp(), span_s=policy.loop.tick_s, syncs=SYNCS_A_TICK
    )  # fmt: skip
    return replace(memory, hpa=shadow)


def _with_needs(
    memory: WorkloadMemory, reading: DemandReading, ahead: Outlook, as_of: datetime, policy: Policy
) -> WorkloadMemory:
    """Remember what was needed in this tick and write the shadow record's row: floors as they would be held."""
    at_s, hold_s = int(as_of.timestamp()), policy.scaling.floor_hold_s
    recent = memory.recent.after(at_s, ahead.plans, ahead.surge_pods, hold_s)
    may_act = not isinstance(ahead.path, Missing) and ahead.path.may_act
    row = record_row(reading.value, memory.hpa.replicas, recent, may_act=may_act)
    return replace(memory, recent=recent, log=memory.log.after(row, policy.loop.tick_s, may_act=may_act))


def record_row(value: float | None, hpa_want: int, recent: RecentNeeds, *, may_act: bool) -> LogRows:
    """One row of the shadow record: demand, the HPA's wish, floor and room of the path plans; NaN where unknown."""
    paths = len(PATH_PLANS)
    row = np.full(2 + 2 * paths, nan, dtype=np.float32)
    if value is not None:
        row[0] = value
    row[1] = hpa_want
    if may_act:
        highest = recent.highest()
        row[2 : 2 + paths] = highest[:paths]
        row[2 + paths :] = highest[len(PLANS) : len(PLANS) + paths]
    return row


def _plan_wish(choice: PlanChoice, plans: CandidatePlans | None, memory: WorkloadMemory) -> PlanWish:
    if choice.plan is None or plans is None:
        return NOTHING
    highest = memory.recent.highest()
    if choice.plan == ROOM_PLAN:
        return PlanWish(room=int(plans.room[0]), held_room=int(highest[len(PLANS)]))  # the upper path comes first
    i = PLANS.index(choice.plan)
    return PlanWish(
        required=int(plans.required[i]),
        held=int(highest[i]),
        settled=int(plans.settled[i]),
        later=int(plans.later[i]),
        room=int(plans.room[i]),
        held_room=int(highest[len(PLANS) + i]),
    )


def _surge_wish(surge_pods: int, memory: WorkloadMemory) -> PlanWish:
    held = int(memory.recent.highest()[-1])
    if held == 0:
        return NOTHING
    return PlanWish(required=surge_pods, held=held, settled=0, room=surge_pods, held_room=held)


def _booked(
    memory: WorkloadMemory, state: WorkloadState, goal: Targets, as_of: datetime, policy: Policy
) -> WorkloadMemory:
    """Book the tick on the pod-hour account, and remember when the floor was last needed."""
    ours = min(state.wanted_replicas, goal.standing_floor)
    account = memory.account.after(
        int(as_of.timestamp()),
        hpa_pods=memory.hpa.replicas,
        extra_pods=max(0, ours - memory.hpa.replicas),
        seconds=policy.loop.tick_s,
        window_s=policy.scaling.budget_window_s,
    )
    needed = max(goal.plan.required, goal.surge.required) > state.owner_min_replicas
    return replace(memory, account=account, floor_needed_at=as_of if needed else memory.floor_needed_at)


def _peak(path: DemandPath | Missing, lead: LeadTime, as_of: datetime) -> float:
    if isinstance(path, Missing):
        return nan
    skip = max(0, int((as_of - path.issued_at).total_seconds() // path.step_s))
    ahead = path.expected[skip : skip + int(lead.total_p90_s // path.step_s) + 1]
    return float(max(ahead, default=nan))


def _assessment(
    state: WorkloadState,
    reading: DemandReading,
    ahead: Outlook,
    choice: PlanChoice,
    *,
    as_of: datetime,
    hpa_would_want: int,
) -> WorkloadAssessment:
    absent = Missing(source=f"demand of {state.ref.key}", reason="no fresh value", since=reading.missing_since)
    plans = ahead.plans
    told = _told(ahead.path, ahead.lead, choice, as_of)
    return WorkloadAssessment(
        ref=state.ref,
        demand=absent if reading.value is None else reading.value,
        forecasts=told.forecasts,
        path_step_s=LEDGER_STEP_S,
        path_expected=told.expected,
        path_lower=told.lower,
        path_upper=told.upper,
        model=told.model,
        may_act=told.may_act,
        standing=told.standing,
        surge=ahead.surge,
        lead=ahead.lead,
        needed_pods_at_pod_lead=plans.need_at_pod_lead if plans is not None else 0,
        needed_pods_at_node_lead=plans.need_at_node_lead if plans is not None else 0,
        hpa_would_want=hpa_would_want,
        alarm=ahead.alarm,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PathTold:
    """The path as the ledger keeps it."""

    forecasts: tuple[DemandForecast, ...]
    expected: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    model: str
    may_act: bool
    standing: Explanation


def _told(path: DemandPath | Missing, lead: LeadTime, choice: PlanChoice, as_of: datetime) -> _PathTold:
    """Forecasts at the pod lead and at both leads, counted from ``as_of``; the path thinned to LEDGER_STEP_S."""
    if isinstance(path, Missing):
        why = Explanation(reason=Reason.HISTORY_TOO_SHORT, sentence=f"{path.source}: {path.reason}")
        return _PathTold(
            forecasts=(), expected=(), lower=(), upper=(), model="none", may_act=False, standing=why
        )  # fmt: skip
    passed = max(timedelta(0), as_of - path.issued_at)
    near = path.at(passed + timedelta(seconds=lead.pod_p90_s))
    far = path.at(passed + timedelta(seconds=lead.node_p90_s + lead.pod_p90_s))
    kept = slice(int(passed.total_seconds() // path.step_s), None, max(1, LEDGER_STEP_S // path.step_s))
    return _PathTold(
        # Their horizon counts from as_of, like everything else a tick says.
        forecasts=(
            _from_now(near, timedelta(seconds=lead.pod_p90_s)),
            _from_now(far, timedelta(seconds=lead.node_p90_s + lead.pod_p90_s)),
        ),
        expected=tuple(map(float, path.expected[kept])),
        lower=tuple(map(float, path.lower[kept])),
        upper=tuple(map(float, path.upper[kept])),
        model=path.model,
        may_act=path.may_act,
        standing=path.standing if choice.plan is not None else choice.why,
    )


def _from_now(ahead: DemandForecast, horizon: timedelta) -> DemandForecast:
    return replace(
        ahead, horizon=horizon, expected=float(ahead.expected), lower=float(ahead.lower), upper=float(ahead.upper)
    )
