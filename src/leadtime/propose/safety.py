"""Safety: surges no forecast knew, pods at risk, data that is missing, the kill switch. Ranks above every other agent.

Missing data only ever holds: what stands is renewed for at most policy.missing_data.hold_max_s after the first missing
value and then left to run out. Under the kill switch, safety is the only agent that speaks, and only to give back.
"""

from leadtime.domain.decision import Agent, Proposal, SetConsolidation, SetLowPriorityAdmission
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind
from leadtime.propose import safety_risk, wishes
from leadtime.propose import wording as say
from leadtime.propose.context import DataStanding, TickContext, WorkloadView


def propose(context: TickContext) -> tuple[Proposal, ...]:
    """Hold on missing data, raise on surges, spare pods at risk, give everything back when killed."""
    if context.killed:
        return (*_give_back(context), *safety_risk.give_back(context))
    spoken: list[Proposal] = []
    for view in context.workloads:
        if view.reading.standing in {DataStanding.HOLD, DataStanding.GAP}:
            spoken.extend(_hold(context, view))
        if view.reading.standing in {DataStanding.COMPLETE, DataStanding.GAP}:
            taken = {p.scope for p in spoken}
            spoken.extend(p for p in _surge(context, view) if p.scope not in taken)
    spoken.extend(safety_risk.propose(context, {p.scope for p in spoken}))
    return tuple(spoken)


def _hold(context: TickContext, view: WorkloadView) -> list[Proposal]:
    """Renew what stands, but not past the end of the hold: then it lapses, which is not a decision to lower."""
    since, until = view.reading.missing_since, view.reading.hold_until
    if since is None or until is None:
        return []
    held: list[Proposal] = []
    floor, buffer = view.state.floor, view.state.buffer
    why = wishes.explain(
        view, Reason.MISSING_DATA_HOLD,
        f"demand is missing since {say.clock(since)}; what stands (floor {floor.replicas if floor else 0:,}, room for "
        f"{say.pods(buffer.pods if buffer else 0)}) is held until {say.clock(until)} at the latest",
        view.evidence.demand, view.evidence.pods,
    )  # fmt: skip
    if floor is not None:
        held.append(wishes.floor(Agent.SAFETY, view, floor.replicas, wishes.floor_expiry(context, view), why))
    if buffer is not None and buffer.pods > 0:
        held.append(wishes.buffer(Agent.SAFETY, view, buffer.pods, wishes.buffer_expiry(context, view), why))
    return held


def _surge(context: TickContext, view: WorkloadView) -> list[Proposal]:
    """Floor and room for a surge while it runs, and for as long after it as a floor is held."""
    targets, wish = view.targets, view.targets.surge
    if wish.held <= 0:
        return []
    why = _surge_words(context, view)
    wanted: list[Proposal] = []
    if wish.required > targets.effective_floor + wishes.raise_tolerance(context, view):
        wanted.append(wishes.floor(Agent.SAFETY, view, wish.required, wishes.floor_expiry(context, view), why))
    elif targets.standing_floor and targets.lower_to is None:
        wanted.append(wishes.floor(Agent.SAFETY, view, targets.standing_floor, wishes.floor_expiry(context, view), why))
    if targets.surge_buffer_pods > 0:
        expiry = wishes.buffer_expiry(context, view)
        wanted.append(wishes.buffer(Agent.SAFETY, view, targets.surge_buffer_pods, expiry, why))
    return wanted


def _surge_words(context: TickContext, view: WorkloadView) -> Explanation:
    surge, unit = view.assessment.surge, view.state.unit
    if surge is None:
        hold = say.span(context.policy.scaling.floor_hold_s)
        text = f"the surge is over; the {say.pods(view.targets.surge.held)} it needed are held for {hold} after it"
        return wishes.explain(view, Reason.RENEWED, text, view.evidence.demand)
    text = (
        f"demand {say.demand(surge.actual, unit)} is {say.share(surge.excess_ratio)} above the forecast "
        f"{say.demand(surge.forecast, unit)} (alarm from {say.share(surge.threshold_ratio)}) and rises by "
        f"{say.demand(surge.rise_per_min, unit)} a minute; {say.demand(surge.extrapolated, unit)} one pod lead ahead "
        f"needs {say.pods(view.targets.surge.required)}"
    )
    return wishes.explain(view, Reason.SURGE_ABOVE_FORECAST, text, view.evidence.surge, view.evidence.demand)


def _give_back(context: TickContext) -> tuple[Proposal, ...]:
    """Everything leadtime wrote and that still stands, given back as policy.actuation.floor_release says."""
    spoken: list[Proposal] = []
    for view in context.workloads:
        why = wishes.explain(view, Reason.KILL_SWITCH, "the kill switch is on: what leadtime wrote is given back")
        if view.state.floor is not None:
            spoken.append(wishes.lowered(Agent.SAFETY, view, context, view.state.owner_min_replicas, why))
        if view.state.buffer is not None and view.state.buffer.pods > 0:
            spoken.append(wishes.buffer(Agent.SAFETY, view, 0, wishes.buffer_expiry(context, view), why))
    for queue in context.queues:
        if queue.paused_by_us and queue.low_priority_paused:
            text = f"{queue.name}: the kill switch is on: low-priority pods are admitted again"
            spoken.append(
                wishes.proposal(
                    Agent.SAFETY, Scope(kind=ScopeKind.QUEUE, name=queue.name),
                    SetLowPriorityAdmission(queue=queue.name, paused=False),
                    Explanation(reason=Reason.KILL_SWITCH, sentence=text, because=(queue.evidence,)),
                )
            )  # fmt: skip
    for name, pool in context.pools.items():
        if pool.state.consolidation_offered:
            text = f"{name}: the kill switch is on: empty nodes are left to the node autoscaler's own time again"
            spoken.append(
                wishes.proposal(
                    Agent.SAFETY, Scope(kind=ScopeKind.POOL, name=name), SetConsolidation(pool=name, offered=False),
                    Explanation(reason=Reason.KILL_SWITCH, sentence=text, because=(pool.evidence,)),
                )
            )  # fmt: skip
    return tuple(spoken)
