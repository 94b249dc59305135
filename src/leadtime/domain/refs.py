"""Names of things in the cluster, and the scopes a decision can be about."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class WorkloadRef:
    """A scalable object: ``Deployment`` serving/chat."""

    namespace: str
    name: str
    kind: str = "Deployment"

    @property
    def key(self) -> str:
        """``namespace/name``, the form used in reports and as a scope's name."""
        return f"{self.namespace}/{self.name}"


class ScopeKind(StrEnum):
    """What a decision is about. At most one decision per scope and tick."""

    WORKLOAD = "workload"
    QUEUE = "queue"
    POOL = "pool"
    NODE = "node"
    POD = "pod"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scope:
    """One workload, one queue, one node pool, one node or one pod."""

    kind: ScopeKind
    name: str

    @property
    def key(self) -> str:
        """``workload:serving/chat``."""
        return f"{self.kind.value}:{self.name}"


def workload_scope(ref: WorkloadRef) -> Scope:
    """The scope of one workload."""
    return Scope(kind=ScopeKind.WORKLOAD, name=ref.key)


def buffer_scope(pool: str, ref: WorkloadRef) -> Scope:
    """One workload's share of a pool, ``pool:gpu/serving/chat``: buffers of two workloads never compete for a win."""
    return Scope(kind=ScopeKind.POOL, name=f"{pool}/{ref.key}")


def pod_scope(pod: str) -> Scope:
    """The scope of one pod, ``pod:serving/chat-7``."""
    return Scope(kind=ScopeKind.POD, name=pod)


def node_scope(node: str) -> Scope:
    """The scope of one node, ``node:gpu-3``."""
    return Scope(kind=ScopeKind.NODE, name=node)
