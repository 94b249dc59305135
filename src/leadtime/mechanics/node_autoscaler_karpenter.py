"""Karpenter's clockwork: when a batch of pending pods is looked at, which empty nodes are taken away and when.

State in, state out; the caller keeps the clock and calls at the instants that these functions name. Sources: Karpenter
1.14, pkg/controllers/provisioning/batcher.go, disruption/{controller,emptiness,validation,helpers}.go,
nodeclaim/disruption/consolidation.go, nodeclaim/lifecycle/{initialization,liveness}.go. How many nodes a batch asks for
is ``node_autoscaler.nodes_wanted``. Left out: drift, expiry, and consolidation of nodes that still hold pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterCadence:
    """Karpenter's constants. They are facts of Karpenter, so they stand here and not in the policy."""

    batch_idle_s: float = 1.0  # options.go BATCH_IDLE_DURATION: closes this long after the last new pod …
    batch_max_s: float = 10.0  # … BATCH_MAX_DURATION: and no later than this after the first
    pod_retry_s: float = 10.0  # provisioning/controller.go: a pod still without a place triggers again
    disruption_poll_s: float = 10.0  # disruption/controller.go pollingPeriod: pause after a pass that did nothing
    validation_s: float = 15.0  # disruption/consolidation.go consolidationTTL: wait before looking again
    budget_percent: int = 10  # nodepool.go: default disruption budget "10%"
    launch_timeout_s: float = 300.0  # lifecycle/liveness.go: the cloud has not created the machine
    registration_timeout_s: float = 900.0  # lifecycle/liveness.go: the node has not joined; the claim is deleted


KARPENTER = KarpenterCadence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """An open batching window."""

    opened_at_s: float
    last_pod_at_s: float

    def closes_at_s(self, cadence: KarpenterCadence = KARPENTER) -> float:
        """When the window closes if no further pod comes; nodes are asked for at that instant."""
        return min(self.last_pod_at_s + cadence.batch_idle_s, self.opened_at_s + cadence.batch_max_s)


def with_new_pod(batch: Batch | None, *, now_s: float) -> Batch:
    """The window after a pod without a place appeared (or triggered again) at ``now_s``: opened, or drawn out.

    The same pod does not draw out a window twice; the caller passes each pod once a window.
    """
    if batch is None:
        return Batch(opened_at_s=now_s, last_pod_at_s=now_s)
    return replace(batch, last_pod_at_s=now_s)


def initialised(
    *, ready: bool, startup_taints_left: int, wanted: Mapping[str, int], allocatable: Mapping[str, int]
) -> bool:
    """True when Karpenter counts the node as initialised: Ready, start-up taints gone, extended resources registered.

    ``wanted``: resources the node was created for. One that is absent from ``allocatable`` or 0 there is not registered
    yet: the kubelet zeroes extended resources at its start, before the device plugin has spoken.
    """
    registered = all(allocatable.get(resource, 0) > 0 for resource, amount in wanted.items() if amount > 0)
    return ready and startup_taints_left == 0 and registered


def gives_up_at_s(
    requested_at_s: float, *, launched: bool, registered: bool, cadence: KarpenterCadence = KARPENTER
) -> float | None:
    """When Karpenter deletes a claim that came to nothing; None once the node has joined (it then waits for ever)."""
    if registered:
        return None
    return requested_at_s + (cadence.registration_timeout_s if launched else cadence.launch_timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLife:
    """What consolidation looks at of one node.

    ``initialised_at_s`` None = not initialised. ``last_pod_event_s``: the last time a pod was bound to it or went; None
    when none ever was. ``held``: a pod in waiting is nominated to it, it keeps a buffer's room, or it carries
    do-not-disrupt. ``managed`` False = a static node, not Karpenter's. ``disrupting``: NotReady or being deleted.
    """

    key: int
    pods: int
    initialised_at_s: float | None
    last_pod_event_s: float | None = None
    held: bool = False
    managed: bool = True
    disrupting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """Where the disruption loop stands: waiting for its next poll, or (``proposed``) for the second look."""

    next_at_s: float
    proposed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionStep:
    """What one pass did. ``deleted``: keys of the nodes it takes away."""

    state: Disruption
    deleted: tuple[int, ...] = ()


def consolidatable_at_s(node: NodeLife, consolidate_after_s: float | None) -> float | None:
    """From when on the node may be taken as empty; None when it may not (``consolidate_after_s`` None = Never)."""
    if consolidate_after_s is None or node.initialised_at_s is None:
        return None
    if node.pods or node.held or not node.managed or node.disrupting:
        return None
    since_s = node.initialised_at_s if node.last_pod_event_s is None else node.last_pod_event_s
    return since_s + consolidate_after_s


def disruption_budget(nodes: Sequence[NodeLife], cadence: KarpenterCadence = KARPENTER) -> int:
    """Nodes that may be disrupted now: the budget's share of initialised nodes, rounded up, less those disrupting."""
    counted = [node for node in nodes if node.managed and node.initialised_at_s is not None]
    allowed = -(-len(counted) * cadence.budget_percent // 100)
    return max(0, allowed - sum(node.disrupting for node in counted))


def step_disruption(
    state: Disruption,
    nodes: Sequence[NodeLife],
    *,
    now_s: float,
    consolidate_after_s: float | None,
    cadence: KarpenterCadence = KARPENTER,
) -> DisruptionStep:
    """One pass of policy WhenEmpty at ``now_s``; nothing happens before ``state.next_at_s``.

    First look: up to the budget's number of empty nodes is proposed, in the order given. Second look 15 s later: those
    still empty, and within the budget of that moment, are deleted; then the loop looks again at once, and 10 s later
    after a pass without a deletion. While it waits for the second look it proposes nothing else.
    """
    if now_s < state.next_at_s:
        return DisruptionStep(state=state)
    empty = _empty(nodes, now_s, consolidate_after_s)
    budget = disruption_budget(nodes, cadence)
    if state.proposed:
        still = tuple(key for key in state.proposed if key in set(empty))[:budget]
        pause_s = 0.0 if still else cadence.disruption_poll_s
        return DisruptionStep(state=Disruption(next_at_s=now_s + pause_s), deleted=still)
    proposed = empty[:budget]
    if proposed:
        return DisruptionStep(state=Disruption(next_at_s=now_s + cadence.validation_s, proposed=proposed))
    return DisruptionStep(state=Disruption(next_at_s=now_s + cadence.disruption_poll_s))


def next_useful_pass(state: Disruption, *, not_before_s: float, cadence: KarpenterCadence = KARPENTER) -> Disruption:
    """The state at the first poll at or after ``not_before_s``, for callers that know that no earlier one finds any."""
    if state.proposed or not_before_s <= state.next_at_s:
        return state
    polls = ceil((not_before_s - state.next_at_s) / cadence.disruption_poll_s)
    return replace(state, next_at_s=state.next_at_s + polls * cadence.disruption_poll_s)


def _empty(nodes: Sequence[NodeLife], now_s: float, consolidate_after_s: float | None) -> tuple[int, ...]:
    found = []
    for node in nodes:
        at_s = consolidatable_at_s(node, consolidate_after_s)
        if at_s is not None and at_s <= now_s:
            found.append(node.key)
    return tuple(found)
