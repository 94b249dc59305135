"""Cluster Autoscaler's clockwork: back-off after a failed scale-up, which nodes are unneeded, when they go.

State in, state out; the caller scans every 10 s. Source: the FAQ and code of kubernetes/autoscaler (August 2026):
utils/backoff, simulator/utilization, core/scaledown, expander/waste. How many nodes a scan asks for is
``node_autoscaler.nodes_wanted``. Left out: node-group balancing, ProvisioningRequest, local storage and other blockers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAutoscalerCadence:
    """Cluster Autoscaler's flags at their defaults. Facts of that program, so they stand here, not in the policy."""

    scan_s: float = 10.0  # --scan-interval
    max_node_provision_s: float = 900.0  # --max-node-provision-time: then the scale-up has failed
    backoff_initial_s: float = 300.0  # --initial-node-group-backoff-duration
    backoff_max_s: float = 1800.0  # --max-node-group-backoff-duration
    backoff_reset_s: float = 10_800.0  # --node-group-backoff-reset-timeout
    unneeded_s: float = 600.0  # --scale-down-unneeded-time
    unready_s: float = 1200.0  # --scale-down-unready-time
    after_add_s: float = 600.0  # --scale-down-delay-after-add
    after_delete_s: float = 0.0  # --scale-down-delay-after-delete
    after_failure_s: float = 180.0  # --scale-down-delay-after-failure
    utilisation_ratio: float = 0.5  # --scale-down-utilization-threshold, and …-gpu-utilization-threshold
    max_deletions: int = 10  # --max-scale-down-parallelism
    max_drains: int = 1  # --max-drain-parallelism
    priority_cutoff: int = -10  # --expendable-pods-priority-cutoff: lower ones neither ask for nodes nor keep them


CLUSTER_AUTOSCALER = ClusterAutoscalerCadence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """A node group that is not asked for nodes until ``until_s``."""

    duration_s: float
    until_s: float
    failed_at_s: float


def backoff_after_failure(
    backoff: Backoff | None, *, now_s: float, cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER
) -> Backoff:
    """The back-off after a scale-up failed at ``now_s``: 5 min, doubled for each failure after it ran out, up to 30.

    A failure while it still runs starts again at 5 min: several scale-ups failing together do not add up.
    """
    duration_s = cadence.backoff_initial_s
    if backoff is not None and backoff.until_s < now_s:
        duration_s = min(2 * backoff.duration_s, cadence.backoff_max_s)
    return Backoff(duration_s=duration_s, until_s=now_s + duration_s, failed_at_s=now_s)


def backoff_at(
    backoff: Backoff | None, *, now_s: float, cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER
) -> Backoff | None:
    """What is left of it at ``now_s``: forgotten 3 h after the last failure."""
    if backoff is not None and backoff.failed_at_s + cadence.backoff_reset_s < now_s:
        return None
    return backoff


def is_backed_off(backoff: Backoff | None, *, now_s: float) -> bool:
    """True while the group is not asked; at ``until_s`` itself it is asked again."""
    return backoff is not None and backoff.until_s > now_s


def provisioning_failed(
    requested_at_s: float, *, now_s: float, cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER
) -> bool:
    """True when a node that has not registered by ``now_s`` counts as a failed scale-up (more than 15 min)."""
    return now_s - requested_at_s > cadence.max_node_provision_s


def asks_for_nodes(priority: int, cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER) -> bool:
    """True when a pending pod of this priority may cause a scale-up."""
    return priority >= cadence.priority_cutoff


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOption:
    """One node group that would take the pending pods. CPU in millicores, memory in bytes, all of one new node."""

    group: str
    nodes: int
    node_cpu: int
    node_memory: int
    pods_cpu: int
    pods_memory: int


def least_waste(options: Sequence[ScaleUpOption]) -> int | None:
    """Index of the option that leaves the smallest share of CPU plus memory idle; None without options.

    GPUs are not looked at. The original draws among equals; here the first one wins, so that worlds stay comparable.
    """
    if not options:
        return None
    return min(range(len(options)), key=lambda index: _wasted(options[index]))


def utilisation_ratio(
    *, gpu: bool, requested_gpus: int, allocatable_gpus: int, cpu_ratio: float, memory_ratio: float
) -> float:
    """What scale-down compares with its threshold: on a GPU node its GPUs only, else the larger of CPU and memory.

    A GPU node whose GPUs are not allocatable counts as 0: it may be taken away.
    """
    if not gpu:
        return max(cpu_ratio, memory_ratio)
    return requested_gpus / allocatable_gpus if allocatable_gpus > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovableNode:
    """What scale-down looks at of one node. ``pod_gpus``: GPUs of each pod that would have to move.

    ``held``: it carries scale-down-disabled, keeps a buffer's room, or holds a pod that may not move.
    """

    key: int
    utilisation_ratio: float
    free_gpus: int
    pod_gpus: tuple[int, ...] = ()
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """What scale-down remembers: since when each node is unneeded (by key), and the last events of the cluster."""

    unneeded_since_s: Mapping[int, float]
    added_at_s: float | None = None
    deleted_at_s: float | None = None
    failed_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownStep:
    """One scan. ``deleted``: keys of empty nodes; ``drained``: keys of nodes whose pods are evicted first."""

    state: ScaleDown
    deleted: tuple[int, ...] = ()
    drained: tuple[int, ...] = ()


def unneeded(nodes: Sequence[RemovableNode], cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER) -> tuple[int, ...]:
    """Positions of the nodes that could go together: below the threshold, their pods fit on nodes that stay.

    Empty ones first, then in the order given. A node that takes in moved pods stays.
    """
    free = [node.free_gpus for node in nodes]
    gone: list[int] = []
    hosts: set[int] = set()
    for position in sorted(range(len(nodes)), key=lambda index: bool(nodes[index].pod_gpus)):
        node = nodes[position]
        if node.held or node.utilisation_ratio >= cadence.utilisation_ratio or position in hosts:
            continue
        moved = _moved(node.pod_gpus, free, {position, *gone})
        if moved is None:
            continue
        for host, gpus in moved:
            free[host] -= gpus
            hosts.add(host)
        gone.append(position)
    return tuple(gone)


def in_cooldown(state: ScaleDown, *, now_s: float, cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER) -> bool:
    """True while nothing is taken away after an addition, a deletion or a failed deletion. Timers run on meanwhile."""
    recent = (
        (state.added_at_s, cadence.after_add_s),
        (state.deleted_at_s, cadence.after_delete_s),
        (state.failed_at_s, cadence.after_failure_s),
    )
    return any(at_s is not None and at_s + delay_s > now_s for at_s, delay_s in recent)


def step_scale_down(
    state: ScaleDown,
    nodes: Sequence[RemovableNode],
    *,
    now_s: float,
    min_nodes: int = 0,
    deleting: int = 0,
    cadence: ClusterAutoscalerCadence = CLUSTER_AUTOSCALER,
) -> ScaleDownStep:
    """One scan at ``now_s``. ``nodes``: those of one group that stand; ``deleting``: how many more are on their way.

    A node that was not unneeded at one scan starts its 10 min anew. At most 10 nodes are in deletion at once, one of
    them with pods; the group keeps ``min_nodes``.
    """
    positions = unneeded(nodes, cadence)
    since = {nodes[p].key: state.unneeded_since_s.get(nodes[p].key, now_s) for p in positions}
    waiting = replace(state, unneeded_since_s=since)
    if in_cooldown(state, now_s=now_s, cadence=cadence):
        return ScaleDownStep(state=waiting)
    due = [nodes[p] for p in positions if now_s - since[nodes[p].key] >= cadence.unneeded_s]
    room = max(0, min(cadence.max_deletions - deleting, len(nodes) - min_nodes))
    empty = tuple(node.key for node in due if not node.pod_gpus)[:room]
    full = tuple(node.key for node in due if node.pod_gpus)[: min(cadence.max_drains, room - len(empty))]
    if not empty and not full:
        return ScaleDownStep(state=waiting)
    gone = {*empty, *full}
    left = {key: at_s for key, at_s in since.items() if key not in gone}
    after = replace(state, unneeded_since_s=left, deleted_at_s=now_s)
    return ScaleDownStep(state=after, deleted=empty, drained=full)


def _moved(pod_gpus: Sequence[int], free: Sequence[int], excluded: set[int]) -> list[tuple[int, int]] | None:
    """Where each pod would go, first fit; None when one finds no place."""
    left = list(free)
    moved = []
    for gpus in pod_gpus:
        host = next((index for index, room in enumerate(left) if index not in excluded and room >= gpus), None)
        if host is None:
            return None
        left[host] -= gpus
        moved.append((host, gpus))
    return moved


def _wasted(option: ScaleUpOption) -> float:
    cpu, memory = option.nodes * option.node_cpu, option.nodes * option.node_memory
    return (cpu - option.pods_cpu) / cpu + (memory - option.pods_memory) / memory
