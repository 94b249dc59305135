"""Admission: while a queue is unhealthy no new low-priority pods there, and no power saving on its pool.

Speaks about queues and pools only, never about a workload's replicas. What it paused it gives back itself once the
queue rule is clear (policy.queue.clean_ticks_to_clear clean ticks); efficiency may then offer empty nodes again.
"""

from leadtime.domain.decision import Agent, Proposal, SetConsolidation, SetLowPriorityAdmission
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind
from leadtime.propose import wishes
from leadtime.propose.context import PoolView, QueueView, TickContext


def propose(context: TickContext) -> tuple[Proposal, ...]:
    """One proposal per unhealthy (or recovered) queue, one per pool that such a queue uses."""
    if context.killed:
        return ()
    spoken = [p for queue in context.queues if (p := _queue(queue)) is not None]
    for name, pool in context.pools.items():
        ill = [queue for queue in context.queues if queue.pool == name and not queue.health.healthy]
        if ill:
            spoken.append(_withdraw(pool, ill))
    return tuple(spoken)


def _queue(queue: QueueView) -> Proposal | None:
    scope = Scope(kind=ScopeKind.QUEUE, name=queue.name)
    if not queue.health.healthy:
        if queue.low_priority_paused:
            return None
        text = f"{queue.name}: no new low-priority pods: {_causes(queue)}"
        why = Explanation(reason=Reason.QUEUE_UNHEALTHY, sentence=text, because=(queue.evidence,))
        action = SetLowPriorityAdmission(queue=queue.name, paused=True)
        return wishes.proposal(Agent.ADMISSION, scope, action, why)
    if queue.paused_by_us and queue.low_priority_paused:
        text = f"{queue.name}: clean for {queue.health.clean_ticks} ticks; low-priority pods are admitted again"
        why = Explanation(reason=Reason.QUEUE_RECOVERED, sentence=text, because=(queue.evidence,))
        action = SetLowPriorityAdmission(queue=queue.name, paused=False)
        return wishes.proposal(Agent.ADMISSION, scope, action, why)
    return None


def _withdraw(pool: PoolView, ill: list[QueueView]) -> Proposal:
    name = pool.state.name
    causes = "; ".join(f"queue {queue.name}: {_causes(queue)}" for queue in ill)
    why = Explanation(
        reason=Reason.QUEUE_UNHEALTHY,
        sentence=f"{name}: no power saving while pods wait: {causes}",
        because=(pool.evidence, *(queue.evidence for queue in ill)),
    )
    action = SetConsolidation(pool=name, offered=False)
    return wishes.proposal(Agent.ADMISSION, Scope(kind=ScopeKind.POOL, name=name), action, why)


def _causes(queue: QueueView) -> str:
    return "; ".join(cause.sentence for cause in queue.health.because) or (
        f"{queue.health.clean_ticks} clean ticks so far, not yet enough to clear"
    )
