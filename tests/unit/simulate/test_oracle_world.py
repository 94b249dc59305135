"""The oracle's run: never short where physics allows, cheapest at full use, same start as every other world."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.refs import WorkloadRef
from leadtime.scorecard.measures import score
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.oracle import needed_pods
from leadtime.simulate.oracle_world import OracleWorld, run_oracle
from leadtime.simulate.scenario import Scenario

KEY = "serving/chat"
CHAT = WorkloadRef(namespace="serving", name="chat")
NODE_S = 100.0  # boot 60 s and device plugin 40 s, in every draw
POD_S = 30.0  # image 20 s and weights 10 s
HOUR_STEPS = 240

SCENARIO = Scenario.model_validate(
    {
        "name": "small", "slo_s": 5, "service_time_s": 1,
        "workloads": [{
            "name": "chat", "queue": "serving", "pool": "gpu", "capacity_per_pod_rps": 10, "min_replicas": 4,
            "max_replicas": 40, "image": {"name": "image", "p50_s": 20}, "weights": {"name": "weights", "p50_s": 10},
        }],
        "pools": [{
            "name": "gpu", "gpus_per_node": 4, "static_nodes": 2, "max_nodes": 12, "consolidate_after_s": 120,
            "stages": [{"name": "boot", "p50_s": 60}, {"name": "device-plugin", "p50_s": 40}],
        }],
    }
)  # fmt: skip

Build = Callable[..., SimulatedCluster]
Cluster = Callable[..., Scenario]


def oracle_of(cluster: SimulatedCluster, steps: int) -> OracleWorld:
    return run_oracle(cluster, end_s=cluster.now_s + steps * 15)


def column(world: OracleWorld, name: str) -> np.ndarray:
    return np.asarray(getattr(world.run.workloads[KEY], name))


def need_of(rps: np.ndarray, **bounds: Any) -> np.ndarray:
    """Pods of 10 requests/s at 70 %, within minReplicas 4 and maxReplicas 40."""
    return needed_pods(rps, capacity_per_pod_rps=10.0, target_ratio=0.70, min_replicas=4, max_replicas=40)


DEMANDS = st.lists(st.tuples(st.integers(1, 40), st.floats(0, 270)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(pieces=DEMANDS, seed=st.integers(0, 50))
def test_it_never_has_fewer_ready_pods_than_needed_where_physics_allows(
    pieces: list[tuple[int, float]], seed: int
) -> None:
    """From one node's and one pod's start-up on, everything could have been ordered in time; before it, what stood."""
    rps = np.concatenate([np.full(HOUR_STEPS // 4, 28.0), *[np.full(steps, value) for steps, value in pieces]])
    trace = DemandTrace(start_s=0, rps=rps)
    cluster = SimulatedCluster(SCENARIO, {KEY: trace}, seed=seed, start_s=0)
    run = run_oracle(cluster, end_s=trace.end_s)
    ready, need = column(run, "ready"), need_of(rps)
    last_second_s = np.arange(len(rps)) * 15 + 14  # the instant the column is about
    possible = last_second_s >= NODE_S + POD_S
    assert (ready[possible] >= need[possible]).all()
    assert (ready >= np.minimum(need, 4)).all()
    on_free_slots = last_second_s >= POD_S
    assert (ready[on_free_slots] >= np.minimum(need, 8)[on_free_slots]).all()


def test_with_time_to_order_a_jump_leaves_nobody_unserved(small_cluster: Build) -> None:
    cluster = small_cluster([28.0] * 40 + [250.0] * 40 + [28.0] * 40)
    world = oracle_of(cluster, 120)
    assert score(world.run, KEY).unserved_requests == 0
    assert list(column(world, "ready")[39:41]) == [4, 36]  # ceil(250 / 7), Ready at the second the jump comes
    assert column(world, "pending").max() == 0


def test_a_jump_nobody_had_time_for_is_met_as_soon_as_a_node_and_a_pod_can_be(
    small_cluster: Build, start_s: int
) -> None:
    cluster = small_cluster([70.0] * 60)
    world = oracle_of(cluster, 40)
    ready = column(world, "ready")
    assert ready[0] == 4
    assert ready[2] == 8  # two static nodes: four more pods fit, Ready after 30 s
    assert ready[7] == 8
    assert ready[9] == 10  # 100 s for the node and 30 s for the pod: within the step that ends at 135 s … 150 s


@pytest.mark.parametrize("rps", [[28.0] * 60, [28.0] * 30 + [140.0] * 30, [0.0] * 60])
def test_it_costs_at_least_the_lower_bound_at_full_utilisation(small_cluster: Build, rps: list[float]) -> None:
    world = oracle_of(small_cluster(rps), 60)
    assert world.pod_hours_at_full_utilisation <= score(world.run, KEY).pod_hours
    # The bound counts the pods that serve the demand at 100 %, never fewer than minReplicas.
    bound = np.maximum(4, np.ceil(np.asarray(rps) / 10.0)).sum() * 15 / 3600
    assert world.pod_hours_at_full_utilisation >= bound - 1e-9


def test_no_other_world_that_serves_everybody_at_the_target_has_fewer_pod_hours(small_cluster: Build) -> None:
    rps = [28.0] * 60 + [140.0] * 60 + [28.0] * 60
    by_hand = small_cluster(rps)
    by_hand.set_owner_min(CHAT, 20)  # as many as the peak needs, all the time
    oracle = oracle_of(small_cluster(rps), 180)
    by_hand.advance(by_hand.now_s + 180 * 15)
    steady = score(by_hand.collect("steady"), KEY)
    assert steady.unserved_requests == 0
    assert score(oracle.run, KEY).pod_hours < steady.pod_hours


def test_what_is_on_its_way_at_the_start_comes_in_the_oracles_world_too(small_cluster: Build, start_s: int) -> None:
    """Nodes ordered and pods bound before the span are part of the same start state."""
    slow = {"name": "image", "p50_s": 60}
    cluster = small_cluster([28.0] * 4 + [140.0] * 100, workload={"image": slow})
    cluster.advance(start_s + 120)  # the HPA has seen the jump: pods start on the free slots, nodes were ordered
    pool, work = cluster.pools["gpu"], cluster.works[KEY]
    assert pool.arriving
    assert work.group.starting
    hpa = cluster.fork()
    world = oracle_of(cluster, 60)
    hpa.start_recording()
    hpa.advance(hpa.now_s + 60 * 15)
    theirs = hpa.collect("hpa")
    ours, alone = column(world, "ready"), np.asarray(theirs.workloads[KEY].ready)
    assert (ours >= np.minimum(alone, 20)).all()
    first = int(np.flatnonzero(alone > 8)[0])
    assert ours[first] >= alone[first]
    stages = world.run.pools["gpu"].nodes_by_stage
    assert sum(int(stages[name][0]) for name in ("boot", "device-plugin")) >= len(pool.arriving)


def test_asking_the_oracle_changes_nothing_of_the_cluster(small_cluster: Build) -> None:
    asked, other = (small_cluster([28.0] * 20 + [140.0] * 40) for _ in range(2))
    one, two = oracle_of(asked, 60), oracle_of(asked, 60)
    np.testing.assert_array_equal(column(one, "ready"), column(two, "ready"))
    assert one.run.events == two.run.events
    for cluster in (asked, other):
        cluster.advance(cluster.now_s + 60 * 15)
    np.testing.assert_array_equal(
        asked.collect("a").workloads[KEY].ready, other.collect("b").workloads[KEY].ready
    )  # fmt: skip


def test_draws_are_those_of_every_other_world(small_cluster: Build, start_s: int) -> None:
    """The k-th pod and the k-th node take as long as in any world of the same seed."""
    spread = {"name": "boot", "p50_s": 60, "item_p90_over_p50": 2.0}
    cluster = small_cluster([28.0] * 60 + [140.0] * 60, pool={"stages": [spread]})
    world = oracle_of(cluster, 120)
    took = sorted(cluster.node_startup_s("gpu", k, start_s) for k in range(3))
    ready = [event.at_s * event.count for event in world.run.events if event.kind == "node_ready"]
    asked = [event.at_s * event.count for event in world.run.events if event.kind == "node_requested"]
    assert len(set(took)) == 3
    assert sum(ready) - sum(asked) == pytest.approx(sum(took), abs=2 * len(took))  # events are told by whole seconds


def test_a_cluster_of_several_workloads_has_no_oracle(small_cluster: Build, small_scenario: Cluster) -> None:
    body = small_scenario().model_dump()
    body["workloads"] = [body["workloads"][0], body["workloads"][0] | {"name": "other"}]
    scenario = Scenario.model_validate(body)
    trace = DemandTrace(start_s=0, rps=np.full(240, 28.0))
    cluster = SimulatedCluster(scenario, {work.key: trace for work in scenario.workloads}, seed=0, start_s=0)
    with pytest.raises(ValueError, match="defined for one workload"):
        run_oracle(cluster, end_s=600)
