"""An agent's wish for one workload → a Proposal with its id, scope and expiry. Shared by the agents that set floors."""

from datetime import datetime, timedelta

from leadtime.domain.decision import Action, Agent, Proposal, ReleaseFloor, SetBuffer, SetFloor
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, buffer_scope, workload_scope
from leadtime.policy.schema import Policy
from leadtime.propose import wording as say
from leadtime.propose.context import TickContext, WorkloadView


def proposal(agent: Agent, scope: Scope, action: Action, why: Explanation) -> Proposal:
    """A proposal; its id is ``agent/scope``, unique because an agent speaks once per scope."""
    return Proposal(id=f"{agent.value}/{scope.key}", agent=agent, scope=scope, action=action, why=why)


def floor(agent: Agent, view: WorkloadView, replicas: int, expires_at: datetime, why: Explanation) -> Proposal:
    """SetFloor for ``view``'s workload."""
    ref = view.state.ref
    return proposal(agent, workload_scope(ref), SetFloor(workload=ref, replicas=replicas, expires_at=expires_at), why)


def release(agent: Agent, view: WorkloadView, why: Explanation) -> Proposal:
    """ReleaseFloor for ``view``'s workload."""
    return proposal(agent, workload_scope(view.state.ref), ReleaseFloor(workload=view.state.ref), why)


def buffer(agent: Agent, view: WorkloadView, pods: int, expires_at: datetime, why: Explanation) -> Proposal:
    """SetBuffer for ``view``'s workload on its pool; 0 pods gives it back."""
    state = view.state
    action = SetBuffer(workload=state.ref, pool=state.pool, pods=pods, expires_at=expires_at)
    return proposal(agent, buffer_scope(state.pool, state.ref), action, why)


def floor_expiry(context: TickContext, view: WorkloadView) -> datetime:
    """When a floor written now runs out unless it is renewed: policy.actuation.floor_expiry_s from now.

    While data is missing, not past the end of the hold, so that it lapses then; but never sooner than what stands.
    """
    full = context.as_of + timedelta(seconds=context.policy.actuation.floor_expiry_s)
    stands = view.state.floor.expires_at if view.state.floor is not None else context.as_of
    return _within_hold(view, full, stands)


def buffer_expiry(context: TickContext, view: WorkloadView) -> datetime:
    """When a buffer written now runs out unless it is renewed; as for floors."""
    full = context.as_of + timedelta(seconds=context.policy.actuation.buffer_expiry_s)
    stands = view.state.buffer.expires_at if view.state.buffer is not None else context.as_of
    return _within_hold(view, full, stands)


def _within_hold(view: WorkloadView, full: datetime, stands: datetime) -> datetime:
    until = view.reading.hold_until
    return full if until is None else min(full, max(stands, until))


def raise_tolerance(context: TickContext, view: WorkloadView) -> float:
    """Pods a raise must exceed to be worth a write: the tolerance, but no more than half a minute's raise.

    At 480 pods, 2 % and 10 a minute: 5, not 9.6. Waiting longer would start a rate-limited ramp too late to catch up.
    """
    scaling = context.policy.scaling
    return min(view.targets.effective_floor * scaling.floor_tolerance_ratio, scaling.normal_pods_added_per_min / 2)


def step_down(view: WorkloadView, policy: Policy, to: int) -> int:
    """The next lower floor on the way ``to``: at once, or one release step (a tenth of the floor, at least a pod)."""
    standing = view.targets.standing_floor
    if policy.actuation.floor_release == "at_once":
        return to
    return max(to, standing - max(1, int(standing * policy.actuation.release_step_ratio)))


def lowered(agent: Agent, view: WorkloadView, context: TickContext, to: int, why: Explanation) -> Proposal:
    """Take the floor down towards ``to``; below the owner's minimum it is given back."""
    target = step_down(view, context.policy, to)
    if target <= view.state.owner_min_replicas:
        return release(agent, view, why)
    return floor(agent, view, target, floor_expiry(context, view), why)


def forecast_words(view: WorkloadView, *, far: bool) -> str:
    """``forecast 1,440 requests/s (1,390–1,510) in 54 min needs 412 pods`` at the pod lead, or ``far``, both leads."""
    assessment = view.assessment
    if not assessment.forecasts:
        return "no forecast yet"
    ahead = assessment.forecasts[-1 if far else 0]
    need = assessment.needed_pods_at_node_lead if far else assessment.needed_pods_at_pod_lead
    return (
        f"forecast {say.demand(ahead.expected, ahead.unit)} ({say.amount(ahead.lower)}–{say.amount(ahead.upper)}) "
        f"in {say.span(ahead.horizon.total_seconds())} needs {say.pods(need)}"
    )


def explain(view: WorkloadView, reason: Reason, text: str, *because: str | None) -> Explanation:
    """An explanation that begins with the workload's name; absent evidence ids are left out."""
    ids = tuple(i for i in because if i is not None)
    return Explanation(reason=reason, sentence=f"{view.state.ref.key}: {text}", because=ids)
