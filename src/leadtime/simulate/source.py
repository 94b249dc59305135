"""A simulated cluster → what the loop may know of it at ``as_of`` (domain.ports.Source).

Demand is given only in buckets that are visible: end + lag not after ``as_of``. The cluster itself cannot be asked
about another instant than its own now.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime

from leadtime.domain.lead_time import StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor, PoolState, QueueState, WorkloadState
from leadtime.domain.time_window import TimeWindow, from_epoch
from leadtime.mechanics.node_autoscaler_cluster import CLUSTER_AUTOSCALER
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.cluster_events import Passage
from leadtime.simulate.cluster_nodes import Cover, NodePool
from leadtime.simulate.cluster_workload import Workload
from leadtime.simulate.pods import Pod

MINUTE_S = 60


class SimulatedSource:
    """Reads of one cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._refs = {work.key: work.ref for work in cluster.scenario.workloads}

    def snapshot(self, as_of: datetime) -> ClusterSnapshot:
        """The cluster at ``as_of``, which must be its now. Raises ValueError for any other instant."""
        cluster = self._cluster
        if as_of != from_epoch(cluster.now_s):
            raise ValueError(f"reading the simulated cluster at {as_of}: it stands at {from_epoch(cluster.now_s)}")
        queues = dict.fromkeys(work.queue for work in cluster.scenario.workloads)
        covers = {name: pool.covered() for name, pool in cluster.pools.items()}
        return ClusterSnapshot(
            as_of=as_of,
            workloads=tuple(_workload_state(work, cluster) for work in cluster.works.values()),
            pools=tuple(_pool_state(pool) for pool in cluster.pools.values()),
            queues=tuple(_queue_state(queue, cluster, covers) for queue in queues),
        )

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """One-minute means within ``window`` that are visible at ``as_of``, perhaps none; None: a minute with a gap."""
        series = self._cluster.demand.get(ref.key)
        if series is None:
            return Missing(source=f"simulated demand of {ref.key}", reason="no such workload")
        lag_s = self._cluster.scenario.metric_lag_s
        visible_s = min(as_of.timestamp(), float(self._cluster.now_s)) - lag_s
        first_s = series.first_minute_s
        begin = max(0, -int(-(window.start.timestamp() - first_s) // MINUTE_S))
        end = int((min(window.end.timestamp(), visible_s) - first_s) // MINUTE_S)
        if visible_s < first_s + MINUTE_S:
            return Missing(source=f"simulated demand of {ref.key}", reason="no bucket is visible yet")
        end = max(begin, end)  # no bucket of the window yet: an empty series, because nothing that is due is missing
        return Series(
            name=f"demand of {ref.key}",
            start=from_epoch(first_s + begin * MINUTE_S),
            step_s=MINUTE_S,
            values=series.minutes[begin:end],
            unit=Unit.REQUESTS_PER_S,
            lag_s=lag_s,
        )

    def stage_samples(self, since: datetime | None, as_of: datetime) -> Sequence[StageSample]:
        """Stage passages that ended, or were cut short, in (since, as_of]."""
        passages = self._cluster.bench.passages
        first = 0 if since is None else bisect_right(passages, since.timestamp(), key=_ended_s)
        last = bisect_right(passages, as_of.timestamp(), key=_ended_s)
        return [self._sample(passage) for passage in passages[first:last]]

    def _sample(self, passage: Passage) -> StageSample:
        return StageSample(
            pool=passage.pool,
            workload=None if passage.workload is None else self._refs[passage.workload],
            stage=passage.stage,
            duration_s=passage.duration_s,
            censored=passage.censored,
            episode=passage.episode,
            ended_at=from_epoch(passage.ended_s),
        )


def _ended_s(passage: Passage) -> float:
    return passage.ended_s


def _workload_state(work: Workload, cluster: SimulatedCluster) -> WorkloadState:
    group, mine = work.group, work.scenario
    room = cluster.pools[mine.pool].buffers.get(work.key)
    live = work.floor is not None and work.floor_expires_s > cluster.now_s
    held = room is not None and room.expires_s > cluster.now_s
    return WorkloadState(
        ref=mine.ref,
        pool=mine.pool,
        queue=mine.queue,
        unit=Unit.REQUESTS_PER_S,
        gpus_per_pod=mine.gpus_per_pod,
        capacity_per_pod=work.capacity_rps,
        hpa_target_ratio=work.target_ratio,
        owner_min_replicas=work.owner_min,
        max_replicas=mine.max_replicas,
        floor=Floor(replicas=work.floor or 0, expires_at=from_epoch(work.floor_expires_s)) if live else None,
        buffer=Buffer(pods=room.pods, expires_at=from_epoch(room.expires_s)) if room is not None and held else None,
        wanted_replicas=work.wanted,
        ready_pods=len(group.ready),
        starting_pods=len(group.starting),
        pending_pods=len(group.pending),
        oldest_pending_s=_oldest_s(list(group.pending.values()), cluster.now_s),
    )


def _pool_state(pool: NodePool) -> PoolState:
    gpus = pool.scenario.gpus_per_node
    drains = pool.scenario.consolidation == "underutilised"
    return PoolState(
        drain_below_ratio=CLUSTER_AUTOSCALER.utilisation_ratio if drains else None,
        name=pool.name,
        gpus_per_node=gpus,
        max_nodes=pool.scenario.max_nodes,
        nodes_by_stage=dict(zip(pool.stage_names(), pool.stage_counts, strict=True)),
        allocatable_gpus=pool.allocatable_gpus,
        used_gpus=pool.used_gpus,
        arriving_gpus=len(pool.arriving) * gpus,
        empty_nodes=len(pool.empties),
        consolidation_offered=pool.consolidation_offered,
    )


def _queue_state(queue: str, cluster: SimulatedCluster, covers: Mapping[str, Cover]) -> QueueState:
    works = [work for work in cluster.works.values() if work.scenario.queue == queue]
    pool = works[0].scenario.pool
    mine = {id(work.group) for work in works} | {id(work.low.group) for work in works if work.low is not None}
    covered = [pod for pod in covers[pool].covered if id(pod.group) in mine]
    uncovered = [pod for pod in covers[pool].uncovered if id(pod.group) in mine]
    return QueueState(
        name=queue,
        pool=pool,
        pending_pods=len(covered) + len(uncovered),
        covered_pending_pods=len(covered),
        oldest_uncovered_pending_s=_oldest_s(uncovered, cluster.now_s),
        low_priority_paused=queue in cluster.paused_queues,
    )


def _oldest_s(pods: Sequence[Pod], now_s: float) -> float:
    """Age of the oldest, 0.0 when there is none."""
    return max((now_s - pod.created_s for pod in pods), default=0.0)
