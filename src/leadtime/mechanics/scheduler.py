"""Pods × nodes → which predicates fail where, which node is chosen, and the scheduler's own sentence.

Follows kube-scheduler 1.37: filters in its default order, scores of NodeResourcesFit. Every predicate is evaluated on
every node, also those that the scheduler does not reach; ``sentence`` projects the row back to the scheduler's message,
where a node speaks only through the first filter that refuses it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapify, heappop, heapreplace

from leadtime.mechanics.scheduler_shapes import (
    CORDON_TAINT,
    CPU,
    EPHEMERAL_STORAGE,
    GPU,
    MEMORY,
    WHOLE_GPU_MILLI,
    AffinityTerm,
    Effect,
    NodeShape,
    OccupiedNode,
    Operator,
    PlacedPod,
    PodShape,
    Requirement,
    Taint,
    Toleration,
    TolerationOperator,
)

__all__ = [
    "CPU",
    "GPU",
    "MEMORY",
    "AffinityTerm",
    "Effect",
    "Failure",
    "Matrix",
    "NodeShape",
    "OccupiedNode",
    "Operator",
    "PlacedPod",
    "PodShape",
    "Predicate",
    "Requirement",
    "Row",
    "Scoring",
    "Strategy",
    "Taint",
    "Toleration",
    "TolerationOperator",
    "Weight",
    "failures",
    "feasibility",
    "first_refusal",
    "histogram",
    "pack",
    "place",
    "sentence",
    "slots",
]

# What a pod without a request counts as, in scores only (pkg/scheduler/util/pod_resources.go).
_SCORED_WHEN_UNSET = {CPU: 100, MEMORY: 200 * 1024 * 1024}
_MAX_SCORE = 100


class Predicate(StrEnum):
    """The filters covered, in the scheduler's order; the last two belong to one plugin, NodeResourcesFit."""

    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    TOO_MANY_PODS = "TooManyPods"
    INSUFFICIENT_RESOURCE = "InsufficientResource"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One predicate that refuses one pod on one node.

    ``resource``, ``wanted``, ``free``, ``allocatable``: set for INSUFFICIENT_RESOURCE (in the resource's own unit; a
    share of a GPU in milli-GPU, ``free`` then being the best single device). ``taint``: set for TAINT_TOLERATION.
    """

    predicate: Predicate
    resource: str | None = None
    wanted: int | None = None
    free: int | None = None
    allocatable: int | None = None
    taint: Taint | None = None

    @property
    def unresolvable(self) -> bool:
        """True when no eviction can help: the node itself is wrong or too small."""
        if self.predicate is Predicate.INSUFFICIENT_RESOURCE:
            return self.wanted is not None and self.allocatable is not None and self.wanted > self.allocatable
        return self.predicate is not Predicate.TOO_MANY_PODS

    @property
    def reason(self) -> str:
        """The scheduler's words for it (1.37)."""
        if self.predicate is Predicate.INSUFFICIENT_RESOURCE:
            return f"Insufficient {self.resource}"
        return _REASONS[self.predicate]


_REASONS = {
    Predicate.NODE_UNSCHEDULABLE: "node(s) were unschedulable",
    Predicate.TAINT_TOLERATION: "node(s) had untolerated taint(s)",
    Predicate.NODE_AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Predicate.TOO_MANY_PODS: "Too many pods",
}

Row = tuple[tuple[Failure, ...], ...]  # one entry a node; empty = the pod fits there


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """``rows[p][n]``: every predicate that refuses pod ``p`` on node ``n``, in filter order."""

    rows: tuple[Row, ...]


class Strategy(StrEnum):
    """Spread (the default) or fill up."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """How much one resource counts in a node's score."""

    resource: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Scoring strategy of NodeResourcesFit; the default is Kubernetes' own."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: tuple[Weight, ...] = (Weight(resource=CPU), Weight(resource=MEMORY))


def feasibility(pods: Sequence[PodShape], nodes: Sequence[NodeShape]) -> Matrix:
    """Every predicate of every pod on every node. An empty entry means that the pod fits."""
    return Matrix(rows=tuple(tuple(failures(pod, node) for node in nodes) for pod in pods))


def failures(pod: PodShape, node: NodeShape) -> tuple[Failure, ...]:
    """All predicates that refuse ``pod`` on ``node``, in filter order; resources by name."""
    found: list[Failure] = []
    if node.unschedulable and not pod.tolerates(Taint(key=CORDON_TAINT, effect=Effect.NO_SCHEDULE)):
        found.append(Failure(predicate=Predicate.NODE_UNSCHEDULABLE))
    found.extend(
        Failure(predicate=Predicate.TAINT_TOLERATION, taint=taint)
        for taint in node.taints
        if taint.effect is not Effect.PREFER_NO_SCHEDULE and not pod.tolerates(taint)
    )
    if not pod.selects(node.labels):
        found.append(Failure(predicate=Predicate.NODE_AFFINITY))
    if node.pods + 1 > node.max_pods:
        found.append(Failure(predicate=Predicate.TOO_MANY_PODS))
    found.extend(_short_resources(pod, node))
    return tuple(found)


def first_refusal(found: Sequence[Failure]) -> tuple[Failure, ...]:
    """What the scheduler reports of a node: the first failing filter only, but all that NodeResourcesFit found."""
    if not found:
        return ()
    if found[0].predicate in {Predicate.TOO_MANY_PODS, Predicate.INSUFFICIENT_RESOURCE}:
        return tuple(found)
    return (found[0],)


def place(pod: PodShape, nodes: Sequence[NodeShape], scoring: Scoring) -> int | None:
    """Index of the node the pod goes to: the highest score, the lowest index among equals; None when it fits nowhere.

    (The scheduler itself draws among equals; a fixed choice keeps worlds comparable.) Scores only NodeResourcesFit:
    preferred affinity, image locality and spreading are left out.
    """
    best: int | None = None
    best_score = -1
    for index, node in enumerate(nodes):
        if failures(pod, node):
            continue
        score = _score(pod, node, scoring)
        if score > best_score:
            best, best_score = index, score
    return best


def sentence(row: Row, nodes: Sequence[NodeShape]) -> str:
    """The scheduler's FailedScheduling text for one row of the matrix, without the preemption half.

    Raises ValueError when the pod fits somewhere: then the scheduler says nothing.
    """
    if len(row) != len(nodes):
        raise ValueError(f"the row has {len(row)} nodes, the cluster {len(nodes)}")
    if not nodes:
        return "no nodes available to schedule pods"
    if not all(row):
        raise ValueError("the pod fits on a node: there is no sentence")
    return histogram([[failure.reason for failure in first_refusal(found)] for found in row])


def histogram(reasons_by_node: Sequence[Sequence[str]]) -> str:
    """``0/N nodes are available: <count> <reason>, …``, sorted as strings like the original ("10 …" before "2 …")."""
    counts = Counter(reason for reasons in reasons_by_node for reason in reasons)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{len(reasons_by_node)} nodes are available: {', '.join(parts)}."


def slots(node_free_gpus: int, gpus_per_pod: int) -> int:
    """Pods of ``gpus_per_pod`` that ``node_free_gpus`` hold. Raises ValueError for a pod without GPUs."""
    if gpus_per_pod < 1:
        raise ValueError(f"gpus_per_pod is {gpus_per_pod}, must be 1 or more")
    return max(0, node_free_gpus) // gpus_per_pod


def pack(
    pending: int,
    gpus_per_pod: int,
    free_gpus_by_node: Sequence[int],
    scoring: Strategy = Strategy.LEAST_ALLOCATED,
    *,
    gpus_per_node: int = 8,
) -> tuple[int, ...]:
    """Node index of each pod, in order, as calling ``place`` one by one for ``pending`` pods of one shape would choose.

    Shorter than ``pending`` when room runs out: the rest waits. GPUs are the only scored resource and ``gpus_per_node``
    is each node's allocatable (any one unit through all arguments). Raises ValueError for a pod without GPUs.
    """
    if gpus_per_pod < 1:
        raise ValueError(f"gpus_per_pod is {gpus_per_pod}, must be 1 or more")
    most = scoring is Strategy.MOST_ALLOCATED
    if gpus_per_pod > gpus_per_node:
        return ()

    def rank(free: int) -> int:  # the smaller, the earlier: minus the score after placing
        used = gpus_per_node - free + gpus_per_pod
        return -((used if most else gpus_per_node - used) * _MAX_SCORE // gpus_per_node)

    heap = [(rank(free), index, free) for index, free in enumerate(free_gpus_by_node) if free >= gpus_per_pod]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < pending:
        _, index, free = heap[0]
        chosen.append(index)
        free -= gpus_per_pod
        if free >= gpus_per_pod:
            heapreplace(heap, (rank(free), index, free))
        else:
            heappop(heap)
    return tuple(chosen)


def _short_resources(pod: PodShape, node: NodeShape) -> list[Failure]:
    found = []
    for resource in sorted(pod.requests):
        wanted, free = pod.requests[resource], node.free(resource)
        if wanted > 0 and wanted > free:
            found.append(
                Failure(
                    predicate=Predicate.INSUFFICIENT_RESOURCE,
                    resource=resource,
                    wanted=wanted,
                    free=free,
                    allocatable=node.allocatable.get(resource, 0),
                )
            )
    if pod.gpu_milli and node.shared_device_for(pod.gpu_milli) is None and node.free(GPU) < 1:
        found.append(
            Failure(
                predicate=Predicate.INSUFFICIENT_RESOURCE,
                resource=GPU,
                wanted=pod.gpu_milli,
                free=max(node.shared_gpu_free_milli, default=0),
                allocatable=WHOLE_GPU_MILLI if node.allocatable.get(GPU, 0) > 0 else 0,
            )
        )
    return found


def _score(pod: PodShape, node: NodeShape, scoring: Scoring) -> int:
    """0–100, whole-number arithmetic as in leastResourceScorer and mostResourceScorer."""
    total = weights = 0
    for part in scoring.weights:
        asked = pod.requests.get(part.resource, _SCORED_WHEN_UNSET.get(part.resource, 0))
        if asked == 0 and part.resource not in {CPU, MEMORY, EPHEMERAL_STORAGE}:
            continue  # an extended resource the pod does not ask for is not scored
        allocatable = node.allocatable.get(part.resource, 0)
        if allocatable == 0:
            continue
        requested = allocatable - node.free(part.resource) + _standing_unset(node, part.resource) + asked
        if scoring.strategy is Strategy.LEAST_ALLOCATED:
            score = max(0, allocatable - requested) * _MAX_SCORE // allocatable
        else:
            score = min(requested, allocatable) * _MAX_SCORE // allocatable
        total += score * part.weight
        weights += part.weight
    return total // weights if weights else 0


def _standing_unset(node: NodeShape, resource: str) -> int:
    """What the pods that stand on the node without a request count as."""
    pods = {CPU: node.pods_without_cpu, MEMORY: node.pods_without_memory}.get(resource, 0)
    return pods * _SCORED_WHEN_UNSET.get(resource, 0)
