"""Scaling: what the chosen plan needs, one pod lead ahead for floors and one node lead more for room.

Raises and renews; lowering is efficiency's. Stands back, and says so, where the model may not act or does not pay.
"""

from leadtime.domain.decision import Agent, Proposal
from leadtime.domain.reasons import Reason
from leadtime.propose import wishes
from leadtime.propose import wording as say
from leadtime.propose.context import DataStanding, TickContext, WorkloadView
from leadtime.propose.plan import HEADROOM_PLANS


def propose(context: TickContext) -> tuple[Proposal, ...]:
    """Raise or renew floor and room of every workload whose plan asks for it."""
    if context.killed:
        return ()
    spoken: list[Proposal] = []
    for view in context.workloads:
        if view.targets.choice.plan is None or view.reading.standing is DataStanding.EXPIRED:
            continue
        spoken.extend(p for p in (_floor(context, view), _buffer(context, view)) if p is not None)
    return tuple(spoken)


def _floor(context: TickContext, view: WorkloadView) -> Proposal | None:
    targets, ids = view.targets, view.evidence
    required = targets.plan.required
    if required > targets.effective_floor + wishes.raise_tolerance(context, view):
        reason = Reason.STEADY_HEADROOM if targets.choice.plan in HEADROOM_PLANS else Reason.FORECAST_ABOVE_READY
        why = wishes.explain(
            view, reason,
            f"{_need_words(view, far=False)}; a floor of {required:,} must stand now so that pods are Ready in time "
            f"at {context.policy.scaling.normal_pods_added_per_min} pods a minute (plan {targets.choice.plan})",
            ids.forecast_pod, ids.lead, ids.pods,
        )  # fmt: skip
        return wishes.floor(Agent.SCALING, view, required, wishes.floor_expiry(context, view), why)
    standing = targets.standing_floor
    wished = max(targets.plan.held, targets.plan.settled)
    if standing and targets.lower_to is None and wished > view.state.owner_min_replicas:
        why = wishes.explain(
            view, Reason.RENEWED,
            f"the floor of {standing:,} stays: {_need_words(view, far=False)}, and {wished:,} were needed "
            f"within the last {say.span(context.policy.scaling.floor_hold_s)}",
            ids.forecast_pod, ids.pods,
        )  # fmt: skip
        return wishes.floor(Agent.SCALING, view, standing, wishes.floor_expiry(context, view), why)
    return None


def _buffer(context: TickContext, view: WorkloadView) -> Proposal | None:
    pods = view.targets.buffer_pods
    if pods <= 0:
        return None
    stands = view.state.buffer.pods if view.state.buffer is not None else 0
    lead, ids = view.assessment.lead, view.evidence
    reason = Reason.NODES_NEEDED_AHEAD if pods > stands else Reason.RENEWED
    why = wishes.explain(
        view, reason,
        f"{_need_words(view, far=True)}; {view.targets.floor_next:,} have a place, a node takes "
        f"{say.span(lead.node_p90_s)} (P90, {lead.learned_from}): keep room for {say.pods(pods)} "
        f"({stands:,} so far)",
        ids.forecast_node, ids.lead, ids.slots,
    )  # fmt: skip
    return wishes.buffer(Agent.SCALING, view, pods, wishes.buffer_expiry(context, view), why)


def _need_words(view: WorkloadView, *, far: bool) -> str:
    plan = view.targets.choice.plan
    if plan in HEADROOM_PLANS:
        return (
            f"the HPA wants {view.assessment.hpa_would_want:,} and a steady headroom of {int(plan[-2:])} % on top "
            f"makes {view.targets.plan.required:,}"
        )
    peak = view.targets.plan.held_room if far else view.targets.plan.required
    return f"{wishes.forecast_words(view, far=far)}, {peak:,} at the highest point the leads reach"
