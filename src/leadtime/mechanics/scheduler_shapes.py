"""The nouns of placement: what a pod asks for, what a node has, and what a pod leaves when it is put on a node.

Amounts are whole numbers, as in kube-scheduler: ``cpu`` in millicores, ``memory`` and ``ephemeral-storage`` in bytes,
every other resource in pieces. A share of one GPU is not a resource of Kubernetes; it is counted per device in
milli-GPU, as schedulers that share GPUs (KAI) do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
GPU = "nvidia.com/gpu"
WHOLE_GPU_MILLI = 1000
CORDON_TAINT = "node.kubernetes.io/unschedulable"

_LABEL_CHARACTERS = 63
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class Effect(StrEnum):
    """What a taint does. PreferNoSchedule never forbids a node."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """Equal compares the value, Exists does not. (Gt and Lt are behind a gate that is off in 1.37: left out.)"""

    EQUAL = "Equal"
    EXISTS = "Exists"


class Operator(StrEnum):
    """How a node-affinity requirement reads a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A mark on a node that keeps pods away unless they tolerate it."""

    key: str
    effect: Effect
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """An empty ``key`` (with Exists) tolerates every key; ``effect`` None tolerates every effect."""

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: Effect | None = None

    def tolerates(self, taint: Taint) -> bool:
        """True when this toleration alone covers ``taint``."""
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator is TolerationOperator.EXISTS or self.value == taint.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression about one label. Gt and Lt take one integer in ``values``, Exists and DoesNotExist none."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As Kubernetes' label selector: NotIn holds for an absent label, Gt and Lt do not.

        An expression that Kubernetes cannot read matches nothing. Surprising: a negative number is such, as it is no
        valid label value (``Gt -1`` never matches).
        """
        if not self._readable():
            return False
        value = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.GT | Operator.LT:
                return self._compares(_integer(value))

    def _readable(self) -> bool:
        if not all(len(value) <= _LABEL_CHARACTERS and _LABEL_VALUE.fullmatch(value) for value in self.values):
            return False
        if self.operator in {Operator.GT, Operator.LT}:
            return len(self.values) == 1 and _integer(self.values[0]) is not None
        return bool(self.values) == (self.operator in {Operator.IN, Operator.NOT_IN})

    def _compares(self, left: int | None) -> bool:
        if left is None:
            return False
        return left > int(self.values[0]) if self.operator is Operator.GT else left < int(self.values[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class AffinityTerm:
    """All ``requirements`` must hold. A term without any matches no node."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True when every requirement holds for a node with these labels."""
        return bool(self.requirements) and all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """What one pod asks of a node.

    ``gpu_milli``: a share of one GPU, 1–999 milli-GPU on a single device, 0 for none; a pod asks for whole GPUs
    (``requests[GPU]``) or for a share, not for both. ``affinity`` None = no required node affinity; else one of the
    terms must match (an empty tuple matches no node). Raises ValueError for amounts below 0 or a share out of range.
    """

    requests: Mapping[str, int] = field(default_factory=dict)
    gpu_milli: int = 0
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[AffinityTerm, ...] | None = None
    priority: int = 0
    may_preempt: bool = True  # False = preemptionPolicy: Never
    name: str = ""

    def __post_init__(self) -> None:
        for resource, amount in self.requests.items():
            if amount < 0:
                raise ValueError(f"pod {self.name}: requests {amount} of {resource}, must be 0 or more")
        if not 0 <= self.gpu_milli < WHOLE_GPU_MILLI:
            raise ValueError(f"pod {self.name}: gpu_milli is {self.gpu_milli}, must be 0–999 (whole GPUs are requests)")
        if self.gpu_milli and self.requests.get(GPU, 0):
            raise ValueError(f"pod {self.name}: asks for whole GPUs and for a share of one, must be one of both")

    def tolerates(self, taint: Taint) -> bool:
        """True when one of the pod's tolerations covers ``taint``."""
        return any(toleration.tolerates(taint) for toleration in self.tolerations)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """True when the node selector and the required node affinity both accept a node with these labels."""
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        return self.affinity is None or any(term.matches(labels) for term in self.affinity)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """What one node has and what pods on it have requested.

    ``requested[GPU]`` counts whole GPUs in use, a shared device as one. ``shared_gpu_free_milli``: what is free on each
    shared device; a device with all 1,000 free is a whole GPU again. An absent resource is 0: the node does not
    advertise it (a GPU node before its device plugin registered). ``pods_without_cpu``, ``pods_without_memory``: pods
    on it that ask for none (asking for 0 is asking); they count in scores, not in what is free.
    """

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int] = field(default_factory=dict)
    shared_gpu_free_milli: tuple[int, ...] = ()
    max_pods: int = 110  # kubelet's default
    pods: int = 0
    pods_without_cpu: int = 0
    pods_without_memory: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False

    def free(self, resource: str) -> int:
        """Pieces of ``resource`` not requested; below 0 on an overcommitted node."""
        free = self.allocatable.get(resource, 0) - self.requested.get(resource, 0)
        if resource == GPU:
            free += self.shared_gpu_free_milli.count(WHOLE_GPU_MILLI)
        return free

    def shared_device_for(self, gpu_milli: int) -> int | None:
        """Index of the fullest shared device with ``gpu_milli`` free; None when a whole GPU must be opened."""
        fitting = [
            (free, device)
            for device, free in enumerate(self.shared_gpu_free_milli)
            if gpu_milli <= free < WHOLE_GPU_MILLI
        ]
        return min(fitting)[1] if fitting else None

    def with_pod(self, pod: PodShape) -> "NodeShape":
        """A copy with ``pod`` on it; a share goes to the fullest shared GPU that holds it. Does not ask for fit."""
        if not pod.gpu_milli:
            return self.with_pod_on(pod, None)
        device = self.shared_device_for(pod.gpu_milli)
        if device is None and WHOLE_GPU_MILLI in self.shared_gpu_free_milli:
            device = self.shared_gpu_free_milli.index(WHOLE_GPU_MILLI)
        if device is not None:
            return self.with_pod_on(pod, device)
        opened = replace(
            self,
            requested=_sum(self.requested, {GPU: 1}, 1),
            shared_gpu_free_milli=(*self.shared_gpu_free_milli, WHOLE_GPU_MILLI),
        )
        return opened.with_pod_on(pod, len(self.shared_gpu_free_milli))

    def with_pod_on(self, pod: PodShape, device: int | None) -> "NodeShape":
        """A copy with ``pod`` on it. ``device``: index of its shared GPU; None for a pod without a share."""
        return self._changed(pod, device, 1)

    def without_pod(self, pod: PodShape, device: int | None) -> "NodeShape":
        """A copy without ``pod``. ``device``: index of its shared GPU; None for a pod without a share."""
        return self._changed(pod, device, -1)

    def _changed(self, pod: PodShape, device: int | None, sign: int) -> "NodeShape":
        if bool(pod.gpu_milli) != (device is not None):
            raise ValueError(f"node {self.name}: pod {pod.name} has {pod.gpu_milli} milli-GPU, its device is {device}")
        shared = list(self.shared_gpu_free_milli)
        if device is not None:
            shared[device] -= sign * pod.gpu_milli
        return replace(
            self,
            requested=_sum(self.requested, pod.requests, sign),
            pods=self.pods + sign,
            pods_without_cpu=self.pods_without_cpu + sign * (CPU not in pod.requests),
            pods_without_memory=self.pods_without_memory + sign * (MEMORY not in pod.requests),
            shared_gpu_free_milli=tuple(shared),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPod:
    """A pod that stands on a node. ``gpu_device``: index of its shared device; None for a pod without a share."""

    shape: PodShape
    started_s: float
    gpu_device: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupiedNode:
    """A node and the pods on it; ``node.requested`` already contains them."""

    node: NodeShape
    pods: tuple[PlacedPod, ...] = ()


def _sum(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> dict[str, int]:
    total = dict(left)
    for resource, amount in right.items():
        total[resource] = total.get(resource, 0) + sign * amount
    return total


def _integer(text: str | None) -> int | None:
    """As Go reads an int64; None for what it does not. Python alone also reads " 5 ", "1_000" and larger numbers."""
    number = int(text) if text is not None and _INTEGER.fullmatch(text) else None
    return number if number is not None and _INT64_MIN <= number <= _INT64_MAX else None
