"""The shadow record → which plan is followed, or why leadtime stands back. Judged once a day, as values.

With less than a day of record in which the model might act, the upper path is followed if it may act now. A model that
may not act takes its three path plans out of the race; the steady headrooms stay in it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from leadtime.domain.demand import DemandPath
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import WorkloadState
from leadtime.forecast import worth
from leadtime.loop.memory import Judged, WorkloadMemory
from leadtime.loop.record import comparable
from leadtime.policy.schema import Policy
from leadtime.propose.plan import HEADROOM_PLANS
from leadtime.propose.targets import PlanChoice

JUDGE_EVERY = timedelta(days=1)
JUDGE_AGAIN_AFTER = timedelta(hours=1)  # when the model may act that might not before, or the other way round
DAY_S = 86_400


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
) -> Chosen:
    """Follow the standing verdict, or judge again when it is due."""
    if isinstance(path, Missing):
        why = Explanation(
            reason=Reason.HISTORY_TOO_SHORT, sentence=f"there is no forecast: {path.source}: {path.reason}"
        )
        return Chosen(choice=PlanChoice(plan=None, why=why), memory=memory)
    recorded = memory.log.path_steps if path.may_act else memory.log.steps()
    if recorded * policy.loop.tick_s < DAY_S:
        return Chosen(choice=PlanChoice(plan="upper" if path.may_act else None, why=path.standing), memory=memory)
    if _due(memory.judged, as_of, may_act=path.may_act):
        judged = judge(workload, memory, lead, as_of, policy, may_act=path.may_act)
        memory = replace(memory, judged=judged)
    return Chosen(choice=_standing(memory, path), memory=memory)


def judge(
    workload: WorkloadState, memory: WorkloadMemory, lead: LeadTime, as_of: datetime, policy: Policy, *, may_act: bool
) -> Judged:
    """Let every plan that may run compete on the record; see forecast.worth."""
    verdict = worth.judge_worth(
        comparable(memory.log, workload, lead, policy, paths_may_act=may_act),
        capacity_per_pod=workload.capacity_per_pod,
        pod_lead_s=lead.pod_p90_s,
        max_extra_ratio=policy.scaling.max_extra_pod_hours_ratio,
    )
    reason = Reason.PREDICTION_DOES_NOT_PAY
    if verdict.act:
        reason = Reason.STEADY_HEADROOM if verdict.plan in HEADROOM_PLANS else Reason.FORECAST_ABOVE_READY
    why = Explanation(reason=reason, sentence=verdict.sentence)
    return Judged(plan=verdict.plan if verdict.act else None, why=why, at=as_of, model_might_act=may_act)


def _due(judged: Judged | None, as_of: datetime, *, may_act: bool) -> bool:
    if judged is None or as_of - judged.at >= JUDGE_EVERY:
        return True
    return judged.model_might_act != may_act and as_of - judged.at >= JUDGE_AGAIN_AFTER


def _standing(memory: WorkloadMemory, path: DemandPath) -> PlanChoice:
    judged = memory.judged
    if judged is None or (judged.plan is not None and judged.plan not in HEADROOM_PLANS and not path.may_act):
        return PlanChoice(plan=None, why=path.standing)
    return PlanChoice(plan=judged.plan, why=judged.why)
