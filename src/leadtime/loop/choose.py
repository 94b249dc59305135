"""The shadow record → which plan is followed, or why leadtime stands back. Judged once a day, as values.

With less than a day of record in which the model might act, the upper path is followed if it may act now. A model that
may not act takes its three path plans out of the race; the steady headrooms stay in it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf

from leadtime.domain.demand import DemandPath
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import WorkloadState
from leadtime.forecast import worth
from leadtime.forecast.worth import PlanScore, Worth
from leadtime.loop.memory import Judged, WorkloadMemory
from leadtime.loop.places import PoolShape
from leadtime.loop.record import Comparable, comparable
from leadtime.policy.schema import Policy
from leadtime.propose.plan import HEADROOM_PLANS, ROOM_PLAN
from leadtime.propose.targets import PlanChoice

JUDGE_EVERY = timedelta(days=1)
JUDGE_AGAIN_AFTER = timedelta(hours=1)  # when the model may act that might not before, or the other way round
DAY_S = 86_400
ANY_POOL = PoolShape()
# The record estimates a plan's pod-hours no better than this; the guard's account holds what is really spent.
ESTIMATE_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The choice for this tick and the memory of the verdict behind it."""

    choice: PlanChoice
    memory: WorkloadMemory


def choose(
    workload: WorkloadState,
    memory: WorkloadMemory,
    path: DemandPath | Missing,
    lead: LeadTime,
    *,
    as_of: datetime,
    policy: Policy,
    shape: PoolShape = ANY_POOL,
) -> Chosen:
    """Follow the standing verdict, or judge again when it is due. ``shape``: of the pool's nodes."""
    if isinstance(path, Missing):
        why = Explanation(
            reason=Reason.HISTORY_TOO_SHORT, sentence=f"there is no forecast: {path.source}: {path.reason}"
        )
        return Chosen(choice=PlanChoice(plan=None, why=why), memory=memory)
    recorded = memory.log.path_steps if path.may_act else memory.log.steps()
    if recorded * policy.loop.tick_s < DAY_S:
        return Chosen(choice=PlanChoice(plan="upper" if path.may_act else None, why=path.standing), memory=memory)
    if _due(memory.judged, as_of, may_act=path.may_act):
        judged = judge(
            workload, memory, lead,
            as_of=as_of, policy=policy, may_act=path.may_act, shape=shape,
        )  # fmt: skip
        memory = replace(memory, judged=judged)
    return Chosen(choice=_standing(memory, path), memory=memory)


def judge(
    workload: WorkloadState,
    memory: WorkloadMemory,
    lead: LeadTime,
    *,
    as_of: datetime,
    policy: Policy,
    may_act: bool,
    shape: PoolShape,
) -> Judged:
    """Let every plan that may run compete on the record (forecast.worth), and take the one worth most.

    Worth: minutes of shortfall saved a day, less the price of its extra pod-hours
    (policy.scaling.min_minutes_saved_per_percent). At price 1, eight minutes a day for 3 % more are worth 5, ten for
    12 % are worth less than nothing.
    """
    compared = comparable(memory.log, workload, lead, policy, paths_may_act=may_act, shape=shape)
    record = compared.record
    verdict = worth.judge_worth(
        record,
        capacity_per_pod=workload.capacity_per_pod,
        pod_lead_s=lead.pod_p50_s,
        max_extra_ratio=_affordable_ratio(policy),
    )
    days = len(record.demand) * record.step_s / DAY_S
    best = _best(verdict, days, policy) if verdict.act else None
    if best is None:
        told = _no_plan_pays(verdict, days, policy)
        saves = _room_saves(compared, workload, lead)
        return _room_or_nothing(compared, told, as_of, policy, may_act=may_act, saves=saves)
    reason = Reason.STEADY_HEADROOM if best.name in HEADROOM_PLANS else Reason.FORECAST_ABOVE_READY
    text = f"acting pays: plan {best.name} would have left {_numbers(best, verdict.per_plan[0], days)}"
    return Judged(plan=best.name, why=Explanation(reason=reason, sentence=text), at=as_of, model_might_act=may_act)


def _room_or_nothing(
    compared: Comparable, no_plan_pays: str, as_of: datetime, policy: Policy, *, may_act: bool, saves: bool
) -> Judged:
    """When no plan of floors pays: keep nodes ahead if that helps and costs little, since it takes no pods."""
    ratio = compared.room_node_hours_ratio
    if not saves or ratio is None or ratio > 1 + policy.scaling.max_extra_pod_hours_ratio:
        why = Explanation(reason=Reason.PREDICTION_DOES_NOT_PAY, sentence=no_plan_pays)
        return Judged(plan=None, why=why, at=as_of, model_might_act=may_act)
    text = (
        f"{no_plan_pays}; so no floor is set, but nodes are ordered ahead for the upper forecast, which takes no pods "
        f"and {max(0.0, ratio - 1) * 100:.1f} % more node-hours"
    )
    why = Explanation(reason=Reason.PREDICTION_DOES_NOT_PAY, sentence=text)
    return Judged(plan=ROOM_PLAN, why=why, at=as_of, model_might_act=may_act)


def _room_saves(compared: Comparable, workload: WorkloadState, lead: LeadTime) -> bool:
    """True when nodes ahead alone would have saved minutes on the record, on more days than one."""
    if compared.room is None:
        return False
    verdict = worth.judge_worth(
        compared.room, capacity_per_pod=workload.capacity_per_pod, pod_lead_s=lead.pod_p50_s, max_extra_ratio=inf
    )
    return verdict.act


def _affordable_ratio(policy: Policy) -> float:
    """Extra pod-hours a plan may take by the record's estimate, as a share of the HPA's."""
    return policy.scaling.max_extra_pod_hours_ratio + ESTIMATE_RATIO


def _best(verdict: Worth, days: float, policy: Policy) -> PlanScore | None:
    """The affordable plan with the highest worth above zero; the cheaper of equals."""
    hpa, most = verdict.per_plan[0], 1 + _affordable_ratio(policy)
    paying = [
        plan
        for plan in verdict.per_plan[1:]
        if plan.pod_hours_ratio_to_hpa <= most and _net_minutes(plan, hpa, days, policy) > 0
    ]
    return max(
        paying,
        key=lambda plan: (_net_minutes(plan, hpa, days, policy), -plan.pod_hours_ratio_to_hpa, plan.name),
        default=None,
    )


def _net_minutes(plan: PlanScore, hpa: PlanScore, days: float, policy: Policy) -> float:
    """Minutes saved a day less the price of the extra pod-hours; savings too small to be more than luck are none."""
    saved = hpa.shortfall_minutes - plan.shortfall_minutes
    if saved < worth.MIN_FEWER_MINUTES or saved < worth.MIN_FEWER_RATIO * hpa.shortfall_minutes:
        return -1.0
    extra_percent = max(0.0, plan.pod_hours_ratio_to_hpa - 1) * 100
    return saved / days - policy.scaling.min_minutes_saved_per_percent * extra_percent


def _no_plan_pays(verdict: Worth, days: float, policy: Policy) -> str:
    if not verdict.act:
        return verdict.sentence
    hpa, most = verdict.per_plan[0], 1 + _affordable_ratio(policy)
    affordable = [plan for plan in verdict.per_plan[1:] if plan.pod_hours_ratio_to_hpa <= most]
    best = max(affordable, key=lambda plan: (_net_minutes(plan, hpa, days, policy), plan.name))
    return (
        f"prediction does not pay here: the best plan, {best.name}, would have left {_numbers(best, hpa, days)}; "
        f"1 % more must save {policy.scaling.min_minutes_saved_per_percent:g} minutes a day"
    )


def _numbers(plan: PlanScore, hpa: PlanScore, days: float) -> str:
    return (
        f"{plan.shortfall_minutes:,} minutes short in {days:.1f} days instead of {hpa.shortfall_minutes:,} with the "
        f"HPA alone, for {max(0.0, plan.pod_hours_ratio_to_hpa - 1) * 100:.1f} % more pod-hours"
    )


def _due(judged: Judged | None, as_of: datetime, *, may_act: bool) -> bool:
    if judged is None or as_of - judged.at >= JUDGE_EVERY:
        return True
    return judged.model_might_act != may_act and as_of - judged.at >= JUDGE_AGAIN_AFTER


def _standing(memory: WorkloadMemory, path: DemandPath) -> PlanChoice:
    judged = memory.judged
    if judged is None or (judged.plan is not None and judged.plan not in HEADROOM_PLANS and not path.may_act):
        return PlanChoice(plan=None, why=path.standing)
    return PlanChoice(plan=judged.plan, why=judged.why)
