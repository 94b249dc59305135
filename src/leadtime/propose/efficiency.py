"""Efficiency: gives back what nobody needs: floors, room, and empty nodes offered to the node autoscaler.

Ranks last. Speaks only on complete data: with a value missing nothing is lowered, ever.
"""

from leadtime.domain.decision import Agent, Proposal, SetConsolidation
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind
from leadtime.propose import wishes
from leadtime.propose import wording as say
from leadtime.propose.context import DataStanding, PoolView, TickContext, WorkloadView


def propose(context: TickContext) -> tuple[Proposal, ...]:
    """Lower floors and room that outlived their need; offer nodes that stay empty."""
    if context.killed:
        return ()
    spoken: list[Proposal] = []
    for view in context.workloads:
        if view.reading.standing is DataStanding.COMPLETE:
            spoken.extend(p for p in (_floor(context, view), _buffer(context, view)) if p is not None)
    by_pool: dict[str, list[WorkloadView]] = {}
    for view in context.workloads:
        by_pool.setdefault(view.state.pool, []).append(view)
    for name, pool in context.pools.items():
        said = _empty_nodes(context, pool, by_pool.get(name, []))
        if said is not None:
            spoken.append(said)
    return tuple(spoken)


def _floor(context: TickContext, view: WorkloadView) -> Proposal | None:
    """Lower to what is kept, when the targets say so; see propose/targets.py for when that is."""
    targets = view.targets
    if targets.lower_to is None:
        return None
    why = wishes.explain(
        view, Reason.FORECAST_BELOW_FLOOR,
        f"the floor of {targets.standing_floor:,} is no longer needed: {wishes.forecast_words(view, far=False)}, and "
        f"at most {targets.keep:,} were needed within the last {say.span(context.policy.scaling.floor_hold_s)}",
        view.evidence.forecast_pod, view.evidence.pods,
    )  # fmt: skip
    return wishes.lowered(Agent.EFFICIENCY, view, context, targets.lower_to, why)


def _buffer(context: TickContext, view: WorkloadView) -> Proposal | None:
    buffer = view.state.buffer
    if buffer is None or buffer.pods <= 0 or view.targets.buffer_pods > 0 or view.targets.surge_buffer_pods > 0:
        return None
    why = wishes.explain(
        view, Reason.BUFFER_NO_LONGER_NEEDED,
        f"room for {say.pods(buffer.pods)} is no longer needed: {wishes.forecast_words(view, far=True)} and "
        f"{view.targets.floor_next:,} have a place",
        view.evidence.forecast_node, view.evidence.pods,
    )  # fmt: skip
    return wishes.buffer(Agent.EFFICIENCY, view, 0, wishes.buffer_expiry(context, view), why)


def _empty_nodes(context: TickContext, pool: PoolView, users: list[WorkloadView]) -> Proposal | None:
    """Offer empty nodes when no workload of the pool needs more than stands and none waits."""
    state = pool.state
    if state.consolidation_offered:
        return _take_back(pool, users)
    if state.empty_nodes <= 0:
        return None
    if pool.empty_for_s < context.policy.efficiency.offer_empty_nodes_after_s:
        return None
    # A model that may not act knows too little of what is coming to hurry the autoscaler.
    if any(_wants_more(view) or not view.assessment.may_act for view in users):
        return None
    text = (
        f"{state.name}: {state.empty_nodes} nodes have stood empty for {say.span(pool.empty_for_s)} and no workload "
        f"needs more than stands within its lead; they are offered for removal"
    )
    why = Explanation(reason=Reason.EMPTY_NODES, sentence=text, because=(pool.evidence,))
    action = SetConsolidation(pool=state.name, offered=True)
    return wishes.proposal(Agent.EFFICIENCY, Scope(kind=ScopeKind.POOL, name=state.name), action, why)


def _take_back(pool: PoolView, users: list[WorkloadView]) -> Proposal | None:
    """An offer ends when a workload needs more than stands: the autoscaler's own waiting time counts again."""
    wanting = [view for view in users if view.reading.standing is DataStanding.COMPLETE and _wants_more(view)]
    if not wanting:
        return None
    name = pool.state.name
    text = f"{name}: {wanting[0].state.ref.key} needs more than stands; empty nodes are offered no longer"
    why = Explanation(reason=Reason.NODES_NEEDED_AHEAD, sentence=text, because=(pool.evidence,))
    action = SetConsolidation(pool=name, offered=False)
    return wishes.proposal(Agent.EFFICIENCY, Scope(kind=ScopeKind.POOL, name=name), action, why)


def _wants_more(view: WorkloadView) -> bool:
    targets = view.targets
    return (
        view.reading.standing is not DataStanding.COMPLETE
        or targets.buffer_pods > 0
        or targets.surge_buffer_pods > 0
        or max(targets.plan.required, targets.surge.required) > view.state.wanted_replicas
        or view.state.pending_pods > 0
    )
