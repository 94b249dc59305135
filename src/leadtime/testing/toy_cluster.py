"""A small cluster that reacts: HPA, places on nodes, fixed leads. For scenario tests of the loop, not for measuring.

Offers itself as source and as writer. Steps of 15 s: the HPA (mechanics) wants, pods take free places and start, nodes
are requested for pods without a place and for buffers, and arrive one fixed node lead later. Empty nodes above
the static ones go after ten minutes when consolidation is offered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from leadtime.domain.lead_time import StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor, PoolState, QueueState, WorkloadState
from leadtime.domain.time_window import TimeWindow
from leadtime.mechanics import hpa
from leadtime.testing.fakes import FakeSource

STEP_S = 15
EMPTY_NODE_STAYS_S = 600


@dataclass(slots=True, kw_only=True)
class ToyPool:
    """A pool. ``arriving``: when ordered nodes become ready, one entry a node; ``spare_nodes`` stand empty at first."""

    name: str
    nodes: int
    gpus_per_node: int = 8
    max_nodes: int = 250
    node_lead_s: float = 2400.0
    arriving: list[datetime] = field(default_factory=list)
    empty_since: datetime | None = None
    offered: bool = True
    static_nodes: int = 0


@dataclass(slots=True, kw_only=True)
class ToyWorkload:
    """A workload; ``starting``: when each bound pod becomes Ready."""

    ref: WorkloadRef
    pool: str
    queue: str
    series: Series
    capacity: float
    minimum: int
    maximum: int
    target: float = 0.70
    gpus: int = 1
    pod_lead_s: float = 600.0
    wanted: int = 0
    ready: int = 0
    starting: list[datetime] = field(default_factory=list)
    pending: int = 0
    pending_since: datetime | None = None
    floor: Floor | None = None
    buffer: Buffer | None = None
    hpa_state: hpa.HpaState = field(default_factory=hpa.HpaState)

    @property
    def bound(self) -> int:
        """Pods on a node."""
        return self.ready + len(self.starting)


class ToyCluster:
    """The cluster in motion: ``snapshot`` first lets time pass up to ``as_of``."""

    def __init__(self, now: datetime, pools: Sequence[ToyPool], workloads: Sequence[ToyWorkload]) -> None:
        self.now = now
        self.pools = {pool.name: pool for pool in pools}
        self.workloads = {workload.ref: workload for workload in workloads}
        self.paused: set[str] = set()
        self.queued: dict[str, QueueState] = {}  # what a scenario says waits in a queue, beside our own pods
        self.missing_since: dict[WorkloadRef, datetime] = {}
        self.peak_pending = 0
        for pool in pools:
            pool.static_nodes = pool.nodes
        for workload in workloads:
            workload.wanted = workload.ready = max(workload.minimum, self._hpa_start(workload))

    # --- source -----------------------------------------------------------------------------------------------

    def snapshot(self, as_of: datetime) -> ClusterSnapshot:
        """Let time pass up to ``as_of`` and show what stands."""
        while self.now < as_of:
            self.now += timedelta(seconds=STEP_S)
            self._step()
        return ClusterSnapshot(
            as_of=as_of,
            workloads=tuple(self._workload_state(w) for w in self.workloads.values()),
            pools=tuple(self._pool_state(p) for p in self.pools.values()),
            queues=tuple(self._queue_state(name) for name in sorted({w.queue for w in self.workloads.values()})),
        )

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """The literal series, minutes from ``missing_since`` on are gaps."""
        workload = self.workloads[ref]
        series = workload.series
        since = self.missing_since.get(ref)
        source = FakeSource(self.snapshot, {ref: series})
        found = source.demand(ref, window, as_of)
        if since is None or isinstance(found, Missing):
            return found
        known = max(0, int((since - found.start).total_seconds() // found.step_s))
        values = (*found.values[:known], *(None for _ in found.values[known:]))
        return Series(name=found.name, start=found.start, step_s=found.step_s, values=values, unit=found.unit)

    def stage_samples(self, since: datetime | None, as_of: datetime) -> Sequence[StageSample]:
        """Nothing yet: scenarios give the leads through the policy's priors."""
        del since, as_of
        return ()

    # --- writer -----------------------------------------------------------------------------------------------

    def set_floor(self, ref: WorkloadRef, replicas: int, expires_at: datetime) -> None:
        """Our floor."""
        self.workloads[ref].floor = Floor(replicas=replicas, expires_at=expires_at)

    def release_floor(self, ref: WorkloadRef) -> None:
        """The owner's minimum again."""
        self.workloads[ref].floor = None

    def set_buffer(self, ref: WorkloadRef, pool: str, pods: int, expires_at: datetime) -> None:
        """Room for pods."""
        del pool
        self.workloads[ref].buffer = Buffer(pods=pods, expires_at=expires_at) if pods > 0 else None

    def set_low_priority_admission(self, queue: str, *, paused: bool) -> None:
        """Hold back low-priority pods."""
        (self.paused.add if paused else self.paused.discard)(queue)

    def set_consolidation(self, pool: str, *, offered: bool) -> None:
        """Offer empty nodes."""
        self.pools[pool].offered = offered

    def protect_pod(self, pod: str, ref: WorkloadRef, expires_at: datetime | None) -> None:
        """Pods have no names here: nothing to hold."""

    def avoid_node(self, node: str, pool: str, expires_at: datetime | None) -> None:
        """Nodes have no names here: nothing to avoid."""

    # --- mechanics --------------------------------------------------------------------------------------------

    def _hpa_start(self, workload: ToyWorkload) -> int:
        value = self._demand_now(workload)
        return -int(-(value or 0.0) // (workload.target * workload.capacity))

    def _demand_now(self, workload: ToyWorkload) -> float | None:
        series = workload.series
        i = int((self.now - series.start).total_seconds() // series.step_s) - 1
        return series.values[i] if 0 <= i < len(series.values) else None

    def _step(self) -> None:
        for pool in self.pools.values():
            pool.nodes += sum(1 for at in pool.arriving if at <= self.now)
            pool.arriving = [at for at in pool.arriving if at > self.now]
        for workload in self.workloads.values():
            self._expire(workload)
            workload.ready += sum(1 for at in workload.starting if at <= self.now)
            workload.starting = [at for at in workload.starting if at > self.now]
            self._scale(workload)
        for pool in self.pools.values():
            self._order_and_remove_nodes(pool)
        self.peak_pending = max(self.peak_pending, sum(w.pending for w in self.workloads.values()))

    def _expire(self, workload: ToyWorkload) -> None:
        if workload.floor is not None and workload.floor.expires_at <= self.now:
            workload.floor = None
        if workload.buffer is not None and workload.buffer.expires_at <= self.now:
            workload.buffer = None

    def _scale(self, workload: ToyWorkload) -> None:
        """One HPA sync, then place, start or delete pods."""
        floor = workload.floor.replicas if workload.floor is not None else 0
        target = round(workload.target * workload.capacity * 1000)
        spec = hpa.HpaSpec(
            min_replicas=min(workload.maximum, max(workload.minimum, floor)), max_replicas=workload.maximum,
            metrics=(hpa.ExternalMetric(name="demand", target=hpa.AverageValue(milli=target)),),
        )  # fmt: skip
        value = self._demand_now(workload)
        reading: hpa.Reading | hpa.ReadingError = hpa.ReadingError(message="no value")
        if value is not None and workload.ref not in self.missing_since:
            reading = hpa.ExternalReading(values_milli=(round(value * 1000),))
        seen = hpa.HpaObserved(
            now_s=self.now.timestamp(), spec_replicas=workload.wanted, status_replicas=workload.wanted,
            readings=(reading,),
        )  # fmt: skip
        answer = hpa.sync(spec, workload.hpa_state, seen)
        workload.hpa_state, workload.wanted = answer.state, answer.desired
        new = min(max(0, workload.wanted - workload.bound), self._free_gpus(workload.pool) // workload.gpus)
        workload.starting.extend([self.now + timedelta(seconds=workload.pod_lead_s)] * new)
        surplus = max(0, workload.bound - workload.wanted)
        young = min(surplus, len(workload.starting))
        workload.starting = workload.starting[: len(workload.starting) - young]
        workload.ready -= surplus - young
        workload.pending = max(0, workload.wanted - workload.bound)
        workload.pending_since = (workload.pending_since or self.now) if workload.pending else None

    def _free_gpus(self, pool: str) -> int:
        used = sum(w.bound * w.gpus for w in self.workloads.values() if w.pool == pool)
        return self.pools[pool].nodes * self.pools[pool].gpus_per_node - used

    def _order_and_remove_nodes(self, pool: ToyPool) -> None:
        used = sum(w.bound * w.gpus for w in self.workloads.values() if w.pool == pool.name)
        asked = used + sum(
            (w.pending + (w.buffer.pods if w.buffer is not None else 0)) * w.gpus
            for w in self.workloads.values() if w.pool == pool.name
        )  # fmt: skip
        needed = min(pool.max_nodes, -(-asked // pool.gpus_per_node))
        short = needed - pool.nodes - len(pool.arriving)
        pool.arriving.extend([self.now + timedelta(seconds=pool.node_lead_s)] * max(0, short))
        surplus = pool.nodes - max(needed, pool.static_nodes)
        pool.empty_since = (pool.empty_since or self.now) if pool.nodes > needed else None
        stayed = (self.now - pool.empty_since).total_seconds() if pool.empty_since is not None else 0.0
        if surplus > 0 and pool.offered and stayed >= EMPTY_NODE_STAYS_S:
            pool.nodes -= surplus

    # --- what is shown ----------------------------------------------------------------------------------------

    def _workload_state(self, workload: ToyWorkload) -> WorkloadState:
        waited = (self.now - workload.pending_since).total_seconds() if workload.pending_since is not None else 0.0
        return WorkloadState(
            ref=workload.ref, pool=workload.pool, queue=workload.queue, unit=Unit.REQUESTS_PER_S,
            gpus_per_pod=workload.gpus, capacity_per_pod=workload.capacity, hpa_target_ratio=workload.target,
            owner_min_replicas=workload.minimum, max_replicas=workload.maximum, floor=workload.floor,
            buffer=workload.buffer, wanted_replicas=workload.wanted, ready_pods=workload.ready,
            starting_pods=len(workload.starting), pending_pods=workload.pending, oldest_pending_s=waited,
        )  # fmt: skip

    def _pool_state(self, pool: ToyPool) -> PoolState:
        used = pool.nodes * pool.gpus_per_node - self._free_gpus(pool.name)
        stages: Mapping[str, int] = {"requested": len(pool.arriving), "ready": pool.nodes}
        return PoolState(
            name=pool.name, gpus_per_node=pool.gpus_per_node, max_nodes=pool.max_nodes, nodes_by_stage=stages,
            allocatable_gpus=pool.nodes * pool.gpus_per_node, used_gpus=used,
            arriving_gpus=len(pool.arriving) * pool.gpus_per_node,
            empty_nodes=max(0, pool.nodes - -(-used // pool.gpus_per_node)), consolidation_offered=pool.offered,
        )  # fmt: skip

    def _queue_state(self, name: str) -> QueueState:
        ours = [w for w in self.workloads.values() if w.queue == name]
        told = self.queued.get(name)
        pending = sum(w.pending for w in ours) + (told.pending_pods if told else 0)
        arriving = sum(len(self.pools[w.pool].arriving) * self.pools[w.pool].gpus_per_node for w in ours)
        covered = min(sum(w.pending for w in ours), arriving) + (told.covered_pending_pods if told else 0)
        return QueueState(
            name=name, pool=ours[0].pool, pending_pods=pending, covered_pending_pods=covered,
            oldest_uncovered_pending_s=told.oldest_uncovered_pending_s if told else 0.0,
            low_priority_paused=name in self.paused,
        )  # fmt: skip
