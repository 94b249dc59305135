"""A cluster in virtual time: scenario + demand + seed → what stands at each second, driven by Kubernetes' own rules.

One step [t, t + step): at t floors and buffers expire, HPAs sync, Deployments create and delete, pods are bound, the
node autoscaler gets its look; then everything due until the step's end happens at its exact second; then the step's
requests are served. The loop therefore sees the state *at* t before the step is played; what it writes counts from t
on.

Draws are keyed by (seed, pool or workload, stage, k-th request), so worlds differ only by what they decide.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop

import numpy as np
import numpy.typing as npt

from leadtime.domain.errors import BadScenario
from leadtime.domain.refs import WorkloadRef
from leadtime.scorecard.run import WorldRun
from leadtime.simulate.cluster_autoscaler import NodeAutoscaler
from leadtime.simulate.cluster_events import Bench, Due, Entry
from leadtime.simulate.cluster_fork import Fork
from leadtime.simulate.cluster_nodes import NodePool, Room
from leadtime.simulate.cluster_workload import Workload
from leadtime.simulate.demand_trace import DemandTrace, arrivals_rps, at_step, minute_means
from leadtime.simulate.pod_failures import PodFailures
from leadtime.simulate.pods import Pod
from leadtime.simulate.recorder import PoolColumns, WorkloadColumns
from leadtime.simulate.scenario import Scenario


class Demand:
    """One workload's demand in the cluster's steps. Shared by all forks, never changed."""

    __slots__ = ("arrivals_rps", "first_minute_s", "metric_rps", "minutes", "rps", "start_s")

    def __init__(self, trace: DemandTrace, step_s: int) -> None:
        self.start_s = trace.start_s
        self.rps: npt.NDArray[np.float64] = at_step(trace, step_s)
        self.metric_rps: list[float] = self.rps.tolist()
        self.arrivals_rps: list[float] = arrivals_rps(self.rps).tolist()
        self.first_minute_s, self.minutes = minute_means(self.rps, trace.start_s, step_s)


class SimulatedCluster:
    """The cluster. ``demand`` by workload key (``namespace/name``); ``start_s``: first instant played, epoch seconds.

    ``hpa_target_ratio`` by workload key replaces the scenario's HPA targets. Raises ValueError where a workload has no
    demand, or demand and start do not fit the scenario's steps.
    """

    def __init__(
        self,
        scenario: Scenario,
        demand: Mapping[str, DemandTrace],
        *,
        seed: int,
        start_s: int,
        hpa_target_ratio: Mapping[str, float] | None = None,
    ) -> None:
        self.scenario = scenario
        self.start_s = start_s
        self.now_s = start_s
        self.recording_from_s: int | None = None
        self.bench = Bench(seed=seed)
        self.demand = {work.key: self._fitting(work.key, demand) for work in scenario.workloads}
        self.pools = {pool.name: NodePool(pool, self.bench, start_s) for pool in scenario.pools}
        self.autoscalers = {name: NodeAutoscaler(pool, self.bench, start_s) for name, pool in self.pools.items()}
        for name, autoscaler in self.autoscalers.items():
            self.pools[name].autoscaler = autoscaler
        self.works: dict[str, Workload] = {}
        self.paused_queues: frozenset[str] = frozenset()
        self.failures: PodFailures | None = None
        targets = hpa_target_ratio or {}
        for mine in scenario.workloads:
            series = self.demand[mine.key]
            work = Workload(
                scenario, mine, self.pools[mine.pool], self.bench, start_s=start_s,
                step=self._step_of(mine.key, start_s), metric_rps=series.metric_rps, arrivals_rps=series.arrivals_rps,
                target_ratio=targets.get(mine.key, mine.hpa.target_ratio),
            )  # fmt: skip
            self.works[mine.key] = work
            self._stand(work, work.wanted)

    def _fitting(self, key: str, demand: Mapping[str, DemandTrace]) -> Demand:
        if key not in demand:
            raise ValueError(f"building a SimulatedCluster: workload {key} has no demand; give a DemandTrace for it")
        trace, step_s = demand[key], self.scenario.step_s
        if (self.start_s - trace.start_s) % step_s or not trace.start_s <= self.start_s < trace.end_s:
            raise ValueError(
                f"building a SimulatedCluster: start {self.start_s} must lie in the demand of {key}, "
                f"[{trace.start_s}, {trace.end_s}), a multiple of {step_s} s after its start"
            )
        return Demand(trace, step_s)

    def _stand(self, work: Workload, pods: int) -> None:
        """Let the workload's pods stand, Ready, up to ``pods``; nodes that are missing for them stand too."""
        pool = self.pools[work.scenario.pool]
        pool.touch(self.now_s)
        work.group.touch(self.now_s)
        for _ in range(pods - work.group.total):
            node = pool.place_for(work.group.gpus)
            if node is None and len(pool.nodes) >= pool.scenario.max_nodes:
                raise BadScenario(
                    "pool-too-small",
                    f"placing {pods} pods of {work.key}",
                    f"pool {pool.name} is full with {pool.scenario.max_nodes} nodes",
                    "raise its max_nodes, or let fewer pods stand",
                )
            node = node or pool.stand(self.now_s, static=False)
            pool.take(work.group.stand(node, self.now_s), node)

    # --- time ------------------------------------------------------------------------------------------------------

    def advance(self, until_s: int) -> None:
        """Play steps until ``now_s`` is ``until_s``. Raises ValueError between steps, backwards, beyond the demand."""
        step_s = self.scenario.step_s
        if until_s < self.now_s or (until_s - self.start_s) % step_s:
            raise ValueError(
                f"advancing to {until_s}: it must lie at or after {self.now_s}, whole steps of {step_s} s from "
                f"{self.start_s}"
            )
        ends = {key: series.start_s + step_s * len(series.metric_rps) for key, series in self.demand.items()}
        if until_s > min(ends.values()):
            raise ValueError(f"advancing to {until_s}: demand ends at {min(ends.values())}; give longer demand")
        works, pools = list(self.works.values()), list(self.pools.values())
        while self.now_s < until_s:
            self._step(works, pools)

    def _step(self, works: Sequence[Workload], pools: Sequence[NodePool]) -> None:
        start_s, end_s = self.now_s, self.now_s + self.scenario.step_s
        for work in works:
            work.control(start_s)
        for pool in pools:
            if pool.buffers:
                pool.expire_buffers(start_s)
            if pool.avoided:
                pool.expire_avoided(start_s)
            if pool.changed:
                pool.settle(start_s)
        agenda = self.bench.agenda
        while agenda and agenda[0].at_s <= end_s:
            self._happen(heappop(agenda))
        for work in works:
            work.end_step(start_s, end_s)
        for pool in pools:
            pool.end_step(end_s)
        self.now_s = end_s

    def _happen(self, entry: Entry) -> None:
        """One agenda entry at its second; entries of pods and nodes that are gone mean nothing."""
        at_s, due, subject = entry.at_s, entry.due, entry.subject
        if due is Due.POD_STAGE:
            if subject.alive:
                subject.group.stage_ended(subject, at_s)
            return
        pool: NodePool = subject.group.pool if due >= Due.BATCH_ARRIVAL else subject.pool
        if due is Due.AUTOSCALE:
            subject.look(at_s)
        elif due is Due.CONSOLIDATE:
            subject.consolidate(at_s)
        elif due is Due.BATCH_ARRIVAL:
            subject.arrive(at_s)
        elif subject.alive:
            if due is Due.NODE_STAGE:
                pool.stage_ended(subject, at_s)
            elif due is Due.POD_FAILS:
                self._fail(subject, at_s)
            else:
                subject.group.delete(subject, at_s)
        if pool.changed:
            pool.settle(at_s)

    def start_failing(self, seed: int, until_s: int) -> None:
        """From now on pods fail as the scenario says, if it does; lives are drawn up to ``until_s``."""
        if self.scenario.failures is None:
            return
        self.failures = PodFailures(self.scenario.failures, self.bench, seed=seed, from_s=self.now_s, until_s=until_s)
        for work in self.works.values():
            work.group.lives = self.failures
            for pod in work.group.ready.values():
                self.failures.begin(pod, self.now_s)

    def _fail(self, pod: Pod, at_s: float) -> None:
        work, failures = self.works[pod.group.key], self.failures
        lost = work.fail(pod, at_s)
        self.bench.log.add(at_s, "pod_failed", workload=work.key, pool=pod.group.pool.name, count=1)
        if failures is not None:
            failures.in_flight_lost += lost

    def fork(self) -> "SimulatedCluster":
        """An independent copy: same future for same inputs."""
        series = self.demand.values()
        walk = Fork((*(one.metric_rps for one in series), *(one.arrivals_rps for one in series)))
        twin = SimulatedCluster.__new__(SimulatedCluster)
        for name, value in vars(self).items():
            setattr(twin, name, walk.copy(value))
        walk.finish()
        return twin

    # --- records ---------------------------------------------------------------------------------------------------

    def start_recording(self) -> None:
        """Forget what was recorded and record from ``now_s`` on."""
        self.recording_from_s = self.now_s
        self.bench.log.events.clear()
        self.bench.log.recording = True
        for work in self.works.values():
            work.columns = WorkloadColumns(self._step_of(work.key, self.now_s))
        for pool in self.pools.values():
            pool.columns = PoolColumns(len(pool.stages) + 1)

    def _step_of(self, key: str, at_s: int) -> int:
        return (at_s - self.demand[key].start_s) // self.scenario.step_s

    def collect(self, world: str) -> WorldRun:
        """Everything recorded so far, as ``world``. Raises ValueError before start_recording.

        Requests that still wait are neither served nor unserved yet.
        """
        start_s, step_s = self.recording_from_s, self.scenario.step_s
        if start_s is None:
            raise ValueError(f"collecting world {world}: nothing was recorded; call start_recording first")
        workloads = {}
        for key, work in self.works.items():
            if work.columns is not None:
                first, last = self._step_of(key, start_s), self._step_of(key, self.now_s)
                workloads[key] = work.columns.collect(
                    workload=key, start_s=start_s, step_s=step_s, capacity_per_pod_rps=work.capacity_rps,
                    gpus_per_pod=work.scenario.gpus_per_pod, slo_s=self.scenario.slo_s,
                    demand_rps=self.demand[key].rps[first:last].copy(),
                )  # fmt: skip
        pools = {
            name: pool.columns.collect(
                pool=name, start_s=start_s, step_s=step_s, gpus_per_node=pool.scenario.gpus_per_node,
                stage_names=pool.stage_names(),
            )
            for name, pool in self.pools.items()
            if pool.columns is not None
        }  # fmt: skip
        return WorldRun(world=world, workloads=workloads, pools=pools, events=tuple(self.bench.log.events))

    # --- writes (SimulatedWriter is the loop's door to them) -------------------------------------------------------

    def work(self, ref: WorkloadRef) -> Workload:
        """The live workload. Raises KeyError when there is none."""
        return self.works[ref.key]

    def set_floor(self, ref: WorkloadRef, replicas: int, expires_s: float) -> None:
        """minReplicas := max(owner's, ``replicas``) until ``expires_s``."""
        self.work(ref).set_floor(replicas, expires_s, self.now_s)

    def release_floor(self, ref: WorkloadRef) -> None:
        """minReplicas := the owner's."""
        self.work(ref).set_floor(None, 0.0, self.now_s)

    def set_buffer(self, ref: WorkloadRef, pool: str, pods: int, expires_s: float) -> None:
        """Room for ``pods`` further pods of ``ref`` on ``pool`` until ``expires_s``; 0 removes the buffer."""
        room = Room(pods=pods, gpus=self.work(ref).scenario.gpus_per_pod, expires_s=expires_s) if pods > 0 else None
        self.pools[pool].set_buffer(ref.key, room, self.now_s)

    def set_low_priority_admission(self, queue: str, *, paused: bool) -> None:
        """Hold back, or admit, new low-priority pods of ``queue``. Raises KeyError when there is no such queue."""
        mine = [work for work in self.works.values() if work.scenario.queue == queue]
        if not mine:
            raise KeyError(queue)
        for work in mine:
            if work.low is not None:
                work.low.pause(self.now_s, paused=paused)
        self.paused_queues = (self.paused_queues - {queue}) | ({queue} if paused else frozenset())

    def set_consolidation(self, pool: str, *, offered: bool) -> None:
        """Offer empty nodes of ``pool`` for removal at once, or leave them to the autoscaler's waiting time."""
        self.pools[pool].offer_consolidation(offered=offered)

    def protect_pod(self, pod: str, ref: WorkloadRef, until_s: float | None) -> None:
        """Hold scale-downs of ``ref`` while its ``pod`` stands, until ``until_s``; None: no longer."""
        work, serial = self.work(ref), int(pod.rpartition("-")[2])
        if serial in work.group.ready or until_s is None:
            work.protect(serial, until_s)

    def avoid_node(self, node: str, pool: str, until_s: float | None) -> None:
        """Keep new pods from ``node`` while others of ``pool`` have room, until ``until_s``; None: no longer."""
        self.pools[pool].avoid(int(node.rpartition("-")[2]), until_s)

    def set_owner_min(self, ref: WorkloadRef, replicas: int) -> None:
        """The owner's minReplicas. Before the first step the pods, and the nodes they need, stand at once.

        Raises BadScenario above maxReplicas, or when the pool may not hold the nodes they need.
        """
        work = self.work(ref)
        if replicas > work.scenario.max_replicas:
            raise BadScenario(
                "min-above-max",
                f"raising minReplicas of {work.key} to {replicas}",
                f"maxReplicas is {work.scenario.max_replicas}",
                "raise max_replicas, or let fewer pods stand",
            )
        work.set_owner_min(replicas)
        if self.now_s == self.start_s:
            work.wanted = max(work.wanted, replicas)
            self._stand(work, work.wanted)

    def stand_warm(self, ref: WorkloadRef, extra_pods: int) -> None:
        """Add ``extra_pods`` to the owner's minReplicas; they and the nodes they need stand, Ready, from now on.

        Raises BadScenario as set_owner_min does.
        """
        work = self.work(ref)
        self.set_owner_min(ref, work.owner_min + extra_pods)
        work.wanted = max(work.wanted, work.owner_min)
        self._stand(work, work.wanted)

    # --- direct controls, for a world without an HPA ---------------------------------------------------------------

    def set_hpa(self, ref: WorkloadRef, *, on: bool) -> None:
        """Let the workload's HPA sync, or silence it: ``wanted`` then follows the pods made by hand."""
        self.work(ref).hpa_on = on

    def set_autoscaling(self, pool: str, *, on: bool) -> None:
        """Let the pool's node autoscaler request nodes, or silence it; it gives empty nodes back all the same."""
        self.autoscalers[pool].on = on
        self.pools[pool].changed = True

    def create_pods(self, ref: WorkloadRef, draws: Sequence[int]) -> tuple[int, ...]:
        """Create one pending pod per draw index, bound in the next step. Returns their serial numbers."""
        work = self.work(ref)
        work.wanted += len(draws)
        return tuple(work.group.create(self.now_s, draw).serial for draw in draws)

    def delete_pods(self, ref: WorkloadRef, serials: Sequence[int]) -> None:
        """Delete these pods now. Raises KeyError where one does not exist."""
        work = self.work(ref)
        standing = {**work.group.pending, **work.group.starting, **work.group.ready}
        work.wanted -= len(serials)
        work.delete([standing[serial] for serial in serials], self.now_s)

    def pod_serials(self, ref: WorkloadRef) -> tuple[int, ...]:
        """Serial numbers of the workload's pods, oldest first."""
        group = self.work(ref).group
        return tuple(sorted((*group.pending, *group.starting, *group.ready)))

    def order_nodes(self, pool: str, draws: Sequence[int]) -> None:
        """Request one node per draw index now."""
        for draw in draws:
            self.pools[pool].order(self.now_s, draw)

    def next_pod_draw(self, ref: WorkloadRef) -> int:
        """Index of the next pod the workload will create."""
        return self.work(ref).group.next_draw

    def next_node_draw(self, pool: str) -> int:
        """Index of the next node the pool will request."""
        return self.pools[pool].next_draw

    def pod_startup_s(self, ref: WorkloadRef, draw: int, at_s: float) -> float:
        """Bound → Ready of pod ``draw`` bound at ``at_s``, its image pulled anew."""
        group = self.work(ref).group
        spent_s = 0.0
        for stage in range(len(group.stages)):
            spent_s += group.stage_s(stage, draw, at_s + spent_s)
        return spent_s

    def node_startup_s(self, pool: str, draw: int, at_s: float) -> float:
        """Request → allocatable of node ``draw`` requested at ``at_s``."""
        mine = self.pools[pool]
        return sum(mine.stage_s(stage, draw, at_s) for stage in range(len(mine.stages)))
