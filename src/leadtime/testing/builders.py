"""Clusters in the field's words → ClusterSnapshot.

>>> snapshot = cluster().pool("gpu", nodes=65, gpus_per_node=8).workload("serving/chat", ready=480).snapshot()
>>> snapshot.pools[0].allocatable_gpus, snapshot.pools[0].used_gpus
(520, 480)
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor, PoolState, QueueState, WorkloadState

DEFAULT_AT = datetime(2026, 3, 2, 5, 10, tzinfo=UTC)


def ref(key: str) -> WorkloadRef:
    """``serving/chat`` → WorkloadRef."""
    namespace, _, name = key.partition("/")
    return WorkloadRef(namespace=namespace, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBuilder:
    """A cluster under construction; every call returns a new one."""

    pools: tuple[PoolState, ...] = ()
    workloads: tuple[WorkloadState, ...] = ()
    queues: tuple[QueueState, ...] = ()
    absent: tuple[Missing, ...] = field(default_factory=tuple)

    def pool(
        self,
        name: str,
        *,
        nodes: int,
        gpus_per_node: int = 8,
        max_nodes: int = 250,
        arriving_nodes: int = 0,
        empty_nodes: int = 0,
        offered: bool = False,
    ) -> "ClusterBuilder":
        """A pool of ``nodes`` ready nodes; used GPUs follow from the workloads put on it."""
        stages = {"requested": arriving_nodes, "ready": nodes}
        state = PoolState(
            name=name, gpus_per_node=gpus_per_node, max_nodes=max_nodes, nodes_by_stage=stages,
            allocatable_gpus=nodes * gpus_per_node, used_gpus=0, arriving_gpus=arriving_nodes * gpus_per_node,
            empty_nodes=empty_nodes, consolidation_offered=offered,
        )  # fmt: skip
        return replace(self, pools=(*self.pools, state))

    def workload(
        self,
        key: str,
        *,
        pool: str = "gpu",
        queue: str = "default",
        ready: int = 0,
        starting: int = 0,
        pending: int = 0,
        oldest_pending_s: float = 0.0,
        wanted: int | None = None,
        capacity: float = 5.0,
        target: float = 0.70,
        gpus: int = 1,
        minimum: int = 1,
        maximum: int = 2000,
        floor: Floor | None = None,
        buffer: Buffer | None = None,
        unit: Unit = Unit.REQUESTS_PER_S,
    ) -> "ClusterBuilder":
        """A workload with its pods; ``wanted`` is their sum unless given. Its queue appears by itself."""
        state = WorkloadState(
            ref=ref(key), pool=pool, queue=queue, unit=unit, gpus_per_pod=gpus, capacity_per_pod=capacity,
            hpa_target_ratio=target, owner_min_replicas=minimum, max_replicas=maximum, floor=floor, buffer=buffer,
            wanted_replicas=ready + starting + pending if wanted is None else wanted,
            ready_pods=ready, starting_pods=starting, pending_pods=pending, oldest_pending_s=oldest_pending_s,
        )  # fmt: skip
        known = {q.name for q in self.queues}
        queues = self.queues if queue in known else (*self.queues, _queue(queue, pool))
        queues = tuple(replace(q, pending_pods=q.pending_pods + pending) if q.name == queue else q for q in queues)
        return replace(self, workloads=(*self.workloads, state), queues=queues)

    def pending(
        self, queue: str, *, pods: int, covered: int = 0, oldest_uncovered_s: float = 0.0, paused: bool = False
    ) -> "ClusterBuilder":
        """Set what waits in ``queue``: ``covered`` of the ``pods`` have ordered capacity coming."""
        pool = self.pools[0].name if self.pools else "gpu"
        before = next((q for q in self.queues if q.name == queue), _queue(queue, pool))
        after = replace(
            before, pending_pods=pods, covered_pending_pods=covered, oldest_uncovered_pending_s=oldest_uncovered_s,
            low_priority_paused=paused,
        )  # fmt: skip
        return replace(self, queues=(*(q for q in self.queues if q.name != queue), after))

    def missing(self, source: str, reason: str = "no answer", since: datetime | None = None) -> "ClusterBuilder":
        """An input that could not be read."""
        return replace(self, absent=(*self.absent, Missing(source=source, reason=reason, since=since)))

    def snapshot(self, as_of: datetime = DEFAULT_AT) -> ClusterSnapshot:
        """The cluster at ``as_of``; used GPUs are those of bound pods."""
        pools = tuple(replace(pool, used_gpus=self._used(pool.name)) for pool in self.pools)
        return ClusterSnapshot(
            as_of=as_of, workloads=self.workloads, pools=pools, queues=self.queues, missing=self.absent
        )

    def _used(self, pool: str) -> int:
        return sum((w.ready_pods + w.starting_pods) * w.gpus_per_pod for w in self.workloads if w.pool == pool)


def _queue(name: str, pool: str) -> QueueState:
    return QueueState(
        name=name, pool=pool, pending_pods=0, covered_pending_pods=0, oldest_uncovered_pending_s=0.0,
        low_priority_paused=False,
    )  # fmt: skip


def cluster() -> ClusterBuilder:
    """An empty cluster to build on."""
    return ClusterBuilder()
