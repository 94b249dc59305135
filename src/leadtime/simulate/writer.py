"""The loop's writes → a simulated cluster (domain.ports.ClusterWriter). Every one counts from the cluster's now on."""

from datetime import datetime

from leadtime.domain.refs import WorkloadRef
from leadtime.simulate.cluster import SimulatedCluster


class SimulatedWriter:
    """Writes to one cluster. Unknown workloads, pools and queues raise KeyError, as a real API server answers 404."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def set_floor(self, ref: WorkloadRef, replicas: int, expires_at: datetime) -> None:
        """minReplicas := max(owner's, replicas) until ``expires_at``; never above maxReplicas."""
        self._cluster.set_floor(ref, replicas, expires_at.timestamp())

    def release_floor(self, ref: WorkloadRef) -> None:
        """minReplicas := the owner's value."""
        self._cluster.release_floor(ref)

    def set_buffer(self, ref: WorkloadRef, pool: str, pods: int, expires_at: datetime) -> None:
        """Room for ``pods`` further pods until ``expires_at``; 0 removes the buffer."""
        self._cluster.set_buffer(ref, pool, pods, expires_at.timestamp())

    def set_low_priority_admission(self, queue: str, *, paused: bool) -> None:
        """Hold back or admit new low-priority pods of a queue."""
        self._cluster.set_low_priority_admission(queue, paused=paused)

    def set_consolidation(self, pool: str, *, offered: bool) -> None:
        """Offer empty nodes of a pool to the node autoscaler at once, or leave them to its own waiting time."""
        self._cluster.set_consolidation(pool, offered=offered)

    def protect_pod(self, pod: str, ref: WorkloadRef, expires_at: datetime | None) -> None:
        """Hold scale-downs of the pod's workload until ``expires_at``; None ends it."""
        self._cluster.protect_pod(pod, ref, None if expires_at is None else expires_at.timestamp())

    def avoid_node(self, node: str, pool: str, expires_at: datetime | None) -> None:
        """Keep new pods from ``node`` while others have room, until ``expires_at``; None ends it."""
        self._cluster.avoid_node(node, pool, None if expires_at is None else expires_at.timestamp())
