"""The cluster at one instant, as the loop may know it. Immutable, taken once a tick."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A self-expiring minReplicas that leadtime wrote. At ``expires_at`` it lapses to the owner's value by itself."""

    replicas: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A capacity buffer leadtime wrote: room for ``pods`` pods of a workload that do not exist yet."""

    pods: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadState:
    """One scaled workload. ``wanted_replicas`` is spec.replicas; pods are split by where they stand on their way."""

    ref: WorkloadRef
    pool: str
    queue: str
    unit: Unit
    gpus_per_pod: int
    capacity_per_pod: float  # demand units per s one ready pod serves at 100 % utilisation
    hpa_target_ratio: float  # what the owner's HPA aims at, share of capacity_per_pod
    owner_min_replicas: int
    max_replicas: int
    floor: Floor | None
    buffer: Buffer | None
    wanted_replicas: int
    ready_pods: int
    starting_pods: int  # bound to a node, not Ready yet
    pending_pods: int  # created, not bound
    oldest_pending_s: float  # 0.0 when nothing is pending


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """One node pool. GPUs count only when the node's allocatable says so."""

    name: str
    gpus_per_node: int
    max_nodes: int
    nodes_by_stage: Mapping[str, int]  # every stage of the pool, 0 included; the last is "ready"
    allocatable_gpus: int
    used_gpus: int  # requested by bound pods
    arriving_gpus: int  # on nodes requested and not allocatable yet
    empty_nodes: int  # ready nodes without any pod of a workload
    consolidation_offered: bool
    drain_below_ratio: float | None = None  # nodes used less than this are drained; None: only empty ones go


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One admission queue (Kueue ClusterQueue, namespace, project)."""

    name: str
    pool: str
    pending_pods: int
    covered_pending_pods: int  # pending, but capacity already ordered will take them
    oldest_uncovered_pending_s: float  # oldest pending pod that no ordered capacity covers; 0.0 when none
    low_priority_paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """Everything at ``as_of``. ``missing`` names inputs that could not be read (source → Missing)."""

    as_of: datetime
    workloads: tuple[WorkloadState, ...]
    pools: tuple[PoolState, ...]
    queues: tuple[QueueState, ...]
    missing: tuple[Missing, ...] = ()

    def workload(self, ref: WorkloadRef) -> WorkloadState:
        """The state of ``ref``. Raises KeyError when the workload is not in the snapshot."""
        for state in self.workloads:
            if state.ref == ref:
                return state
        raise KeyError(ref.key)

    def pool(self, name: str) -> PoolState:
        """The state of pool ``name``. Raises KeyError when it is not in the snapshot."""
        for state in self.pools:
            if state.name == name:
                return state
        raise KeyError(name)
