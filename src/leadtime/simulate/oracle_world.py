"""The oracle's plan for one workload → the same columns every other world leaves behind, scored by the same queue.

The plan is computed, not negotiated: no HPA, no node autoscaler, no pending pods. Requests, patience, late and killed
pods follow the same code and the same definitions as in the simulated worlds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadtime.scorecard.run import FloatColumn, IntColumn, PoolRun, RunEvent, WorkloadRun, WorldRun
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.cluster_nodes import NodePool
from leadtime.simulate.cluster_workload import STAYED_LOOKBACK_S, STAYED_RATIO, Workload
from leadtime.simulate.oracle import NodeLife, OraclePlan, OracleStart, counts_per_second, needed_pods, plan
from leadtime.simulate.pods import Node, Pod
from leadtime.simulate.queueing import FluidQueue
from leadtime.simulate.recorder import WorkloadColumns

TARGET_RATIO = 0.70  # DESIGN §6: ready(t) ≥ demand / (0.70 c)
SETTLE_S = 25.0  # node autoscaler's look every 10 s and its 15 s validation, on top of consolidate_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleWorld:
    """The oracle's run, and the pod-hours it would need at 100 % utilisation, the lower bound."""

    run: WorldRun
    pod_hours_at_full_utilisation: float


def run_oracle(cluster: SimulatedCluster, *, end_s: int) -> OracleWorld:
    """Play the oracle from the state of ``cluster`` (which is not changed) until ``end_s``.

    Raises ValueError for a cluster with several workloads: the oracle is defined for one workload on its pool.
    """
    if len(cluster.works) != 1:
        raise ValueError(f"running the oracle: it is defined for one workload, this scenario has {len(cluster.works)}")
    key, work = next(iter(cluster.works.items()))
    pool = cluster.pools[work.scenario.pool]
    start = _start(cluster, work, pool, end_s)
    first = (start.start_s - cluster.demand[key].start_s) // start.step_s
    rps = cluster.demand[key].rps[first : first + (end_s - start.start_s) // start.step_s]
    made = _plan_at(cluster, rps, start, TARGET_RATIO)
    bare = _plan_at(cluster, rps, start, 1.0)
    run = WorldRun(
        world="oracle",
        workloads={key: _workload_run(cluster, made, start, rps)},
        pools={pool.name: _pool_run(cluster, made, start)},
        events=_events(cluster, made, start),
    )
    full_s = sum(min(pod.deleted_s, end_s) - pod.bound_s for pod in bare.pods)
    return OracleWorld(run=run, pod_hours_at_full_utilisation=full_s / 3600.0)


def _start(cluster: SimulatedCluster, work: Workload, pool: NodePool, end_s: int) -> OracleStart:
    """What every world begins with: what stands, and what is already on its way."""
    return OracleStart(
        start_s=cluster.now_s,
        end_s=end_s,
        step_s=cluster.scenario.step_s,
        ready_pods=len(work.group.ready),
        next_pod_draw=work.group.next_draw,
        next_node_draw=pool.next_draw,
        standing_nodes=sum(1 for node in pool.nodes.values() if node.stage >= len(pool.stages)),
        static_nodes=pool.scenario.static_nodes,
        max_nodes=pool.scenario.max_nodes,
        pods_per_node=pool.scenario.gpus_per_node // work.scenario.gpus_per_pod,
        release_after_s=pool.scenario.consolidate_after_s + SETTLE_S,
        starting_ready_s=tuple(sorted(_ready_s(pod) for pod in work.group.starting.values())),
        arriving=tuple(sorted((_arriving(cluster, node) for node in pool.arriving.values()), key=_node_ready_s)),
    )


def _ready_s(pod: Pod) -> float:
    """When a starting pod will be Ready: the rest of its stages, as its group will draw them."""
    at_s, cached = pod.stage_began_s, pod.node is not None and pod.group.key in pod.node.images
    for stage in range(pod.stage, len(pod.group.stages)):
        at_s += pod.group.stage_s(stage, pod.draw or 0, at_s, cached=cached)
    return at_s


def _arriving(cluster: SimulatedCluster, node: Node) -> NodeLife:
    """A node on its way, with the instant it will be allocatable."""
    draw = node.draw or 0
    ready_s = node.requested_s + cluster.node_startup_s(node.pool.name, draw, node.requested_s)
    return NodeLife(slot=0, ordered_s=node.requested_s, ready_s=ready_s, deleted_s=ready_s, draw=draw)


def _node_ready_s(node: NodeLife) -> float:
    return node.ready_s


def _plan_at(cluster: SimulatedCluster, rps: FloatColumn, start: OracleStart, target_ratio: float) -> OraclePlan:
    work = next(iter(cluster.works.values()))
    need = needed_pods(
        rps,
        capacity_per_pod_rps=work.capacity_rps,
        target_ratio=target_ratio,
        min_replicas=work.owner_min,
        max_replicas=work.scenario.max_replicas,
    )
    at_s = float(start.start_s)
    return plan(
        need,
        start,
        pod_startup_s=lambda k: cluster.pod_startup_s(work.scenario.ref, k, at_s),
        node_startup_s=lambda k: cluster.node_startup_s(work.scenario.pool, k, at_s),
    )


def _per_step(counts: IntColumn, step_s: int) -> FloatColumn:
    """Sums over each step of per-second counts."""
    return np.asarray(counts.reshape(-1, step_s).sum(axis=1), dtype=np.float64)


def _at_end(counts: IntColumn, step_s: int) -> list[int]:
    """What stands in the last second of each step."""
    return [int(count) for count in counts[step_s - 1 :: step_s]]


def _workload_run(cluster: SimulatedCluster, made: OraclePlan, start: OracleStart, rps: FloatColumn) -> WorkloadRun:
    """The plan's columns: its pods by step, and its requests as the queue served them."""
    key, work = next(iter(cluster.works.items()))
    columns = _served(cluster, made, start, len(rps))
    return columns.collect(
        workload=key,
        start_s=start.start_s,
        step_s=start.step_s,
        capacity_per_pod_rps=work.capacity_rps,
        gpus_per_pod=work.scenario.gpus_per_pod,
        slo_s=cluster.scenario.slo_s,
        demand_rps=rps.copy(),
    )


def _served(cluster: SimulatedCluster, made: OraclePlan, start: OracleStart, steps: int) -> WorkloadColumns:
    """Serve each step's requests with the plan's ready pods."""
    key, work = next(iter(cluster.works.items()))
    step_s, rates = start.step_s, cluster.demand[key].arrivals_rps
    first = (start.start_s - cluster.demand[key].start_s) // step_s
    bound = counts_per_second([(pod.bound_s, pod.deleted_s) for pod in made.pods], start)
    ready = counts_per_second([(pod.ready_s, pod.deleted_s) for pod in made.pods], start)
    stands, serves, pod_s = _at_end(bound, step_s), _at_end(ready, step_s), _per_step(bound, step_s)
    capacity = _per_step(ready, step_s) * work.capacity_rps
    gone = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(gone, [min(steps, int((pod.deleted_s - start.start_s) // step_s)) for pod in made.pods], 1)
    columns, queue = WorkloadColumns(0), _queue(cluster)
    for i in range(steps):
        _count_deleted(columns, queue, int(gone[i]), ready=serves[i], rates=rates, step=first + i, step_s=step_s)
        arrived = rates[first + i] * step_s
        columns.begin_step(arrived)
        queue.step(i, start.start_s + i * step_s, step_s, arrived=arrived, capacity=float(capacity[i]), book=columns)
        columns.end_step(
            wanted=stands[i],
            ready=serves[i],
            starting=stands[i] - serves[i],
            pending=0,
            floor=work.owner_min,
            pod_s=float(pod_s[i]),
            pending_s=0.0,
        )
    return columns


def _queue(cluster: SimulatedCluster) -> FluidQueue:
    """An empty queue by the scenario's rules."""
    return FluidQueue(
        patience_s=cluster.scenario.patience_s,
        service_s=cluster.scenario.service_time_s,
        slo_s=cluster.scenario.slo_s,
        limit=cluster.scenario.queue_limit_requests,
    )


def _count_deleted(
    columns: WorkloadColumns,
    queue: FluidQueue,
    deleted: int,
    *,
    ready: int,
    rates: Sequence[float],
    step: int,
    step_s: int,
) -> None:
    """Busy and warm as the simulated worlds define them (cluster_workload.Workload.delete)."""
    if not deleted:
        return
    rate = rates[max(0, step - 1)]
    before = rates[max(0, step - 1 - STAYED_LOOKBACK_S // step_s)]
    busy = bool(queue.cohorts) or rate * queue.service_s >= ready > 0
    columns.now.deleted += deleted
    columns.now.deleted_stayed += deleted * (rate >= STAYED_RATIO * before)
    columns.now.busy_killed += deleted * busy
    columns.now.warm_killed += deleted * (rate > 0.0)


def _pool_run(cluster: SimulatedCluster, made: OraclePlan, start: OracleStart) -> PoolRun:
    """Nodes by stage and node seconds of the plan."""
    work = next(iter(cluster.works.values()))
    pool = cluster.pools[work.scenario.pool]
    names = pool.stage_names()
    spans: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for node in made.nodes:
        for name, span in zip(names, _stage_spans(cluster, node, pool.name), strict=True):
            spans[name].append(span)
    alive = counts_per_second([(node.ordered_s, node.deleted_s) for node in made.nodes], start)
    return PoolRun(
        pool=pool.name,
        start_s=start.start_s,
        step_s=start.step_s,
        gpus_per_node=pool.scenario.gpus_per_node,
        node_seconds=_per_step(alive, start.step_s),
        nodes_by_stage={
            name: np.asarray(_at_end(counts_per_second(of_stage, start), start.step_s), dtype=np.int64)
            for name, of_stage in spans.items()
        },
    )


def _stage_spans(cluster: SimulatedCluster, node: NodeLife, pool_name: str) -> list[tuple[float, float]]:
    """[from, to) of each provisioning stage and of ``ready``; empty spans for a node that stood."""
    pool = cluster.pools[pool_name]
    at_s, spans = node.ordered_s, []
    for stage in range(len(pool.stages)):
        took_s = pool.stage_s(stage, node.draw, node.ordered_s) if node.draw is not None else 0.0
        spans.append((at_s, min(at_s + took_s, node.deleted_s)))
        at_s += took_s
    return [*spans, (at_s, node.deleted_s)]


def _events(cluster: SimulatedCluster, made: OraclePlan, start: OracleStart) -> tuple[RunEvent, ...]:
    """Requests and readiness of the plan's new nodes and pods, by second."""
    key, work = next(iter(cluster.works.items()))
    found: dict[tuple[int, str], int] = {}
    for node in made.nodes:
        if node.draw is not None:
            for at_s, kind in ((node.ordered_s, "node_requested"), (node.ready_s, "node_ready")):
                found[int(at_s), kind] = found.get((int(at_s), kind), 0) + 1
    for pod in made.pods:
        if pod.ready_s > pod.bound_s:
            for at_s, kind in ((pod.bound_s, "pod_bound"), (pod.ready_s, "pod_ready")):
                found[int(at_s), kind] = found.get((int(at_s), kind), 0) + 1
    return tuple(
        RunEvent(at_s=at_s, kind=kind, workload=key, pool=work.scenario.pool, count=count)
        for (at_s, kind), count in sorted(found.items())
        if start.start_s <= at_s < start.end_s
    )
