"""Why nothing is done: one full explanation for every workload, queue and pool, kept ready for the referee."""

from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, workload_scope
from leadtime.propose import wishes
from leadtime.propose import wording as say
from leadtime.propose.context import DataStanding, PoolView, QueueView, TickContext, WorkloadView


def explanations(context: TickContext) -> dict[Scope, Explanation]:
    """One entry per workload, queue and pool, in snapshot order."""
    quiet: dict[Scope, Explanation] = {}
    for view in context.workloads:
        quiet[workload_scope(view.state.ref)] = _workload(context, view)
    for queue in context.queues:
        quiet[Scope(kind=ScopeKind.QUEUE, name=queue.name)] = _queue(queue)
    for name, pool in context.pools.items():
        quiet[Scope(kind=ScopeKind.POOL, name=name)] = _pool(context, pool)
    return quiet


def _workload(context: TickContext, view: WorkloadView) -> Explanation:
    if view.lapse is not None:
        return view.lapse
    state, targets = view.state, view.targets
    kept = f"kept at {state.wanted_replicas:,}"
    if context.killed:
        return wishes.explain(view, Reason.KILL_SWITCH, f"{kept}; the kill switch is on and nothing of ours stands")
    if view.reading.standing is DataStanding.EXPIRED and view.reading.missing_since is not None:
        text = (
            f"{kept}; demand is missing since {say.clock(view.reading.missing_since)}, longer than "
            f"{say.span(context.policy.missing_data.hold_max_s)}: what stands is left to lapse, nothing is lowered"
        )
        return wishes.explain(view, Reason.HOLD_EXPIRED, text, view.evidence.demand)
    if view.reading.missing_since is not None:
        text = f"{kept}; demand is missing since {say.clock(view.reading.missing_since)} and nothing of ours stands"
        return wishes.explain(view, Reason.MISSING_DATA_HOLD, text, view.evidence.demand)
    if targets.choice.plan is None:
        why = targets.choice.why
        return wishes.explain(view, why.reason, f"{kept}; {why.sentence}", view.evidence.forecast_pod)
    ids = (view.evidence.forecast_node, view.evidence.pods, view.evidence.lead)
    if targets.plan.required > targets.effective_floor:
        text = (
            f"{kept}; {targets.plan.required:,} are needed, within "
            f"{say.share(context.policy.scaling.floor_tolerance_ratio)} of the {targets.effective_floor:,} that stand"
        )
        return wishes.explain(view, Reason.WITHIN_TOLERANCE, text, *ids)
    text = (
        f"{kept}; {wishes.forecast_words(view, far=True)}; {targets.effective_floor:,} stand and "
        f"{say.pods(targets.free_slots)} more would fit; the HPA alone would want {view.assessment.hpa_would_want:,}"
    )
    return wishes.explain(view, Reason.ENOUGH_CAPACITY, text, *ids)


def _queue(queue: QueueView) -> Explanation:
    state = "low-priority pods stay held back" if queue.low_priority_paused else "low-priority pods are admitted"
    if queue.health.healthy:
        text = f"{queue.name}: {state}; the queue is healthy, {queue.health.clean_ticks} clean ticks in a row"
        return Explanation(reason=Reason.ENOUGH_CAPACITY, sentence=text, because=(queue.evidence,))
    causes = "; ".join(cause.sentence for cause in queue.health.because) or (
        f"{queue.health.clean_ticks} clean ticks so far, not yet enough to clear"
    )
    text = f"{queue.name}: {state}; the queue is unhealthy: {causes}"
    return Explanation(reason=Reason.QUEUE_UNHEALTHY, sentence=text, because=(queue.evidence,))


def _pool(context: TickContext, pool: PoolView) -> Explanation:
    state = pool.state
    free = state.allocatable_gpus - state.used_gpus
    head = f"{state.name}: {free:,} of {state.allocatable_gpus:,} GPUs free, {state.empty_nodes:,} nodes empty"
    if state.consolidation_offered:
        text = f"{head}; empty nodes are offered for removal already"
    elif state.empty_nodes == 0:
        text = f"{head}; there is nothing to offer for removal"
    elif pool.empty_for_s < context.policy.efficiency.offer_empty_nodes_after_s:
        text = f"{head} for {say.span(pool.empty_for_s)}, too short to offer them for removal"
    else:
        text = f"{head}; a workload on it needs, or may need, more than stands: they are kept"
    return Explanation(reason=Reason.ENOUGH_CAPACITY, sentence=text, because=(pool.evidence,))
