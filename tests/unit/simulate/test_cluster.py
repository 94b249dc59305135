"""The cluster's invariants: nothing appears, vanishes or is promised twice; equal inputs, equal futures."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadtime.domain.refs import WorkloadRef
from leadtime.scorecard.run import WorldRun
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace

Build = Callable[..., SimulatedCluster]
CHAT = WorkloadRef(namespace="serving", name="chat")
KEY = "serving/chat"


def check(cluster: SimulatedCluster) -> None:
    """Raise AssertionError where the books do not balance."""
    groups = [work.group for work in cluster.works.values()]
    groups += [work.low.group for work in cluster.works.values() if work.low is not None]
    alive = sum(group.total for group in groups)
    assert cluster.bench.pods_created == alive + cluster.bench.pods_deleted
    for pool in cluster.pools.values():
        gpus = pool.scenario.gpus_per_node
        standing = [node for node in pool.nodes.values() if node.stage == len(pool.stages)]
        assert sum(pool.stage_counts) == len(pool.nodes) <= pool.scenario.max_nodes
        assert pool.allocatable_gpus == gpus * len(standing)
        assert pool.used_gpus == sum(pod.group.gpus for node in standing for pod in node.pods.values())
        for node in pool.nodes.values():
            used = sum(pod.group.gpus for pod in node.pods.values())
            assert node.free_gpus == gpus - used >= 0
            assert not node.pods or node in standing
            assert (node.serial in pool.empties) == (node in standing and not node.pods and not node.static)
        mine = [group for group in groups if group.pool is pool]
        assert len(pool.waiting()) == sum(len(group.pending) for group in mine)
        assert sum(len(node.pods) for node in standing) == sum(len(g.starting) + len(g.ready) for g in mine)


def content(run: WorldRun) -> bytes:
    """All columns and events as bytes."""
    parts = [repr(run.events).encode()]
    for work in run.workloads.values():
        parts += [getattr(work, name).tobytes() for name in ("unserved", "latency_s", "wanted", "ready", "pod_seconds")]
    for pool in run.pools.values():
        parts += [pool.node_seconds.tobytes(), *(column.tobytes() for column in pool.nodes_by_stage.values())]
    return b"|".join(parts)


actions = st.one_of(
    st.tuples(st.just("floor"), st.integers(0, 60), st.integers(15, 900)),
    st.tuples(st.just("buffer"), st.integers(0, 30), st.integers(15, 900)),
    st.tuples(st.just("release")),
    st.tuples(st.just("offer"), st.booleans()),
    st.tuples(st.just("pause"), st.booleans()),
)


def act(cluster: SimulatedCluster, action: tuple[Any, ...]) -> None:
    match action:
        case ("floor", replicas, lasts_s):
            cluster.set_floor(CHAT, replicas, cluster.now_s + lasts_s)
        case ("buffer", pods, lasts_s):
            cluster.set_buffer(CHAT, "gpu", pods, cluster.now_s + lasts_s)
        case ("release",):
            cluster.release_floor(CHAT)
        case ("offer", offered):
            cluster.set_consolidation("gpu", offered=offered)
        case ("pause", paused):
            cluster.set_low_priority_admission("serving", paused=paused)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    demand=st.lists(st.one_of(st.floats(0, 500), st.just(math.nan)), min_size=10, max_size=80),
    todo=st.lists(st.tuples(st.integers(0, 80), actions), max_size=12),
    autoscaler=st.sampled_from(["karpenter", "cluster-autoscaler"]),
    scheduling=st.sampled_from(["most_allocated", "least_allocated"]),
    gpus_per_pod=st.sampled_from([1, 3]),
)
def test_the_books_balance_after_every_step(
    small_cluster: Build, *, demand: list[float], todo: list[Any], autoscaler: str, scheduling: str, gpus_per_pod: int
) -> None:
    batch = {"every_s": 50, "run_s": 200, "gpus_per_pod": 2}
    cluster = small_cluster(
        demand,
        workload={"gpus_per_pod": gpus_per_pod, "low_priority_pods": batch},
        pool={"autoscaler": autoscaler, "scheduling": scheduling},
    )
    for i in range(len(demand) + 20):
        for at, action in todo:
            if at == i:
                act(cluster, action)
        cluster.advance(cluster.now_s + 15)
        check(cluster)
    work = cluster.collect("hpa").workloads[KEY]
    served = cluster.works[KEY].columns
    assert served is not None
    accounted = sum(served.served) + work.unserved.sum() + cluster.works[KEY].queue.waiting
    assert accounted == pytest.approx(work.arrived.sum(), rel=1e-6, abs=1e-3)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(small_cluster: Build, start_s: int) -> None:
    wide = {"name": "weights", "p50_s": 30, "item_p90_over_p50": 2.0}
    demand = [20.0] * 10 + [300.0] * 40 + [20.0] * 60
    runs = []
    for seed in (1, 1, 2):
        cluster = small_cluster(demand, seed=seed, workload={"weights": wide})
        cluster.advance(start_s + 1800)
        runs.append(content(cluster.collect("hpa")))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_advancing_in_one_go_or_in_steps_is_the_same(small_cluster: Build, start_s: int) -> None:
    demand = [20.0] * 10 + [300.0] * 40 + [20.0] * 60
    one, many = small_cluster(demand), small_cluster(demand)
    one.advance(start_s + 1800)
    for at_s in range(start_s + 60, start_s + 1801, 60):
        many.advance(at_s)
    assert content(one.collect("hpa")) == content(many.collect("hpa"))


def test_a_fork_has_the_same_future_and_does_not_touch_its_origin(small_cluster: Build, start_s: int) -> None:
    demand = [20.0] * 10 + [300.0] * 40 + [20.0] * 60
    cluster, untouched = small_cluster(demand), small_cluster(demand)
    cluster.advance(start_s + 300)
    twin, other = cluster.fork(), cluster.fork()
    other.set_floor(CHAT, 40, start_s + 900)
    other.set_buffer(CHAT, "gpu", 8, start_s + 900)
    other.advance(start_s + 1800)
    cluster.advance(start_s + 1800)
    twin.advance(start_s + 1800)
    untouched.advance(start_s + 1800)
    assert content(cluster.collect("hpa")) == content(twin.collect("hpa")) == content(untouched.collect("hpa"))
    assert content(other.collect("hpa")) != content(cluster.collect("hpa"))
    check(twin)
    check(other)


def test_a_cluster_of_many_workloads_can_be_forked(small_scenario: Any, start_s: int) -> None:
    # Pods of all workloads share nodes: a chain of references longer than Python likes to follow.
    one = small_scenario()
    works = tuple(one.workloads[0].model_copy(update={"name": f"w{i}"}) for i in range(60))
    pool = one.pools[0].model_copy(update={"static_nodes": 100, "max_nodes": 200, "scheduling": "least_allocated"})
    scenario = one.model_copy(update={"workloads": works, "pools": (pool,)})
    trace = DemandTrace(start_s=start_s, rps=np.asarray([28.0, *([70.0] * 40)]))
    cluster = SimulatedCluster(scenario, {work.key: trace for work in works}, seed=1, start_s=start_s)
    cluster.start_recording()
    cluster.advance(start_s + 60)
    twin = cluster.fork()
    cluster.advance(start_s + 600)
    twin.advance(start_s + 600)
    check(twin)
    assert content(twin.collect("hpa")) == content(cluster.collect("hpa"))


def test_advance_refuses_what_lies_between_steps_behind_or_beyond_the_demand(
    small_cluster: Build, start_s: int
) -> None:
    cluster = small_cluster([20.0])
    cluster.advance(start_s + 60)
    for until_s in (start_s + 61, start_s + 45, start_s + 15 * 242):
        with pytest.raises(ValueError, match="advancing to"):
            cluster.advance(until_s)


def test_a_cluster_without_demand_for_a_workload_is_refused(small_scenario: Any, start_s: int) -> None:
    with pytest.raises(ValueError, match="serving/chat has no demand"):
        SimulatedCluster(small_scenario(), {}, seed=1, start_s=start_s)
