"""Nodes: when their GPUs count, who takes the room, what a buffer does, when empty ones go."""

from collections.abc import Callable

import pytest

from leadtime.domain.refs import WorkloadRef
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.scenario import Scenario

Build = Callable[..., SimulatedCluster]
CHAT = WorkloadRef(namespace="serving", name="chat")
KEY = "serving/chat"


def kinds(cluster: SimulatedCluster, kind: str) -> list[tuple[int, int]]:
    """(seconds after the start, count) of the events of one kind."""
    return [(e.at_s - cluster.start_s, e.count) for e in cluster.collect("hpa").events if e.kind == kind]


def test_gpus_count_only_when_the_last_stage_is_passed(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6})
    pool = cluster.pools["gpu"]
    cluster.advance(start_s + 120)  # requested at second 31: booted at 91, device plugin until 131
    assert kinds(cluster, "node_requested") == [(31, 1)]
    assert pool.stage_counts == [0, 1, 2]
    assert pool.allocatable_gpus == 8
    assert len(cluster.works[KEY].group.pending) == 2
    cluster.advance(start_s + 135)
    assert kinds(cluster, "node_ready") == [(131, 1)]
    assert kinds(cluster, "pod_bound")[-1] == (131, 2)  # at the second itself, not at the next step
    assert pool.allocatable_gpus == 12


def test_an_arriving_node_is_not_ordered_twice(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0, 70.0, 84.0], workload={"min_replicas": 6})
    cluster.advance(start_s + 120)
    # 10 pods want one node more; 12 pods fit into the same node.
    assert cluster.works[KEY].wanted == 12
    assert kinds(cluster, "node_requested") == [(31, 1)]


def test_no_more_nodes_than_the_pool_allows(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0, 280.0], pool={"max_nodes": 4})
    cluster.advance(start_s + 600)
    assert len(cluster.pools["gpu"].nodes) == 4
    assert len(cluster.works[KEY].group.pending) == 40 - 16


def test_a_buffer_brings_nodes_without_pods(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_buffer(CHAT, "gpu", 10, start_s + 3600)
    cluster.advance(start_s + 300)
    # Four slots are free on the static nodes; six more pods want two nodes.
    assert kinds(cluster, "node_requested") == [(1, 2)]
    assert cluster.works[KEY].group.total == 4
    assert cluster.pools["gpu"].allocatable_gpus == 16
    cluster.advance(start_s + 1800)
    assert len(cluster.pools["gpu"].nodes) == 4  # held for the buffer, long after consolidate_after_s


def test_real_pods_take_the_buffers_room_first_and_the_buffer_asks_for_it_again(
    small_cluster: Build, start_s: int
) -> None:
    cluster = small_cluster([28.0] * 20 + [70.0])
    cluster.set_buffer(CHAT, "gpu", 6, start_s + 3600)
    cluster.advance(start_s + 300)
    assert len(cluster.pools["gpu"].nodes) == 3
    cluster.advance(start_s + 345)
    run = cluster.collect("hpa").workloads[KEY]
    assert run.wanted[-1] == 10
    assert run.pending.sum() == 0  # the six new pods found the room
    # Room for six *further* pods: two GPUs are left, so one more node.
    assert len(cluster.pools["gpu"].nodes) == 4


def test_a_buffer_stands_over_and_above_pending_pods(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6})
    cluster.set_buffer(CHAT, "gpu", 4, start_s + 3600)
    cluster.advance(start_s + 45)
    # Ten pods and four virtual ones: 14 GPUs, four nodes.
    assert sum(count for _, count in kinds(cluster, "node_requested")) == 2


def test_a_lapsed_buffer_lets_its_nodes_go(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_buffer(CHAT, "gpu", 8, start_s + 300)
    cluster.advance(start_s + 285)
    assert len(cluster.pools["gpu"].nodes) == 3
    cluster.advance(start_s + 345)
    # Empty since second 101, due since 221, free at 300: Karpenter proposes at its next poll, deletes 15 s later.
    assert len(cluster.pools["gpu"].nodes) == 2
    assert kinds(cluster, "buffer_set") == [(0, 8), (300, 0)]


def test_static_nodes_are_never_taken_away(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([0.0], pool={"static_nodes": 6})
    cluster.set_consolidation("gpu", offered=True)
    cluster.advance(start_s + 3600)
    assert len(cluster.pools["gpu"].nodes) == 6


@pytest.mark.parametrize(
    ("autoscaler", "offered", "gone_by_s", "still_there_s"),
    [
        # Allocatable at second 101 (asked for at 1), empty from then on, due at 221.
        pytest.param("karpenter", False, 270, 221, id="karpenter waits its time, then looks twice"),
        pytest.param("karpenter", True, 150, 105, id="offered to karpenter: at its next two looks"),
        # Asked for at the scan of second 10; no scale-down within 600 s of that.
        pytest.param("cluster-autoscaler", False, 630, 600, id="cluster autoscaler cools down first"),
        pytest.param("cluster-autoscaler", True, 135, 105, id="offered to cluster autoscaler: at its next scans"),
    ],
)
def test_an_empty_node_goes_when_its_autoscaler_says_so(
    small_cluster: Build, start_s: int, *, autoscaler: str, offered: bool, gone_by_s: int, still_there_s: int
) -> None:
    cluster = small_cluster([28.0], pool={"autoscaler": autoscaler})
    cluster.set_buffer(CHAT, "gpu", 8, start_s + 60)  # brings one node, then nobody wants it
    cluster.set_consolidation("gpu", offered=offered)
    cluster.advance(start_s + 1200)
    ((deleted_s, count),) = kinds(cluster, "node_deleted")
    assert count == 1
    assert still_there_s < deleted_s <= gone_by_s


def test_node_seconds_run_from_the_request_to_the_deletion(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_buffer(CHAT, "gpu", 8, start_s + 60)
    cluster.advance(start_s + 1200)
    ((requested_s, _),) = kinds(cluster, "node_requested")
    ((deleted_s, _),) = kinds(cluster, "node_deleted")
    pool = cluster.collect("hpa").pools["gpu"]
    assert pool.node_seconds.sum() == pytest.approx(2 * 1200 + (deleted_s - requested_s))
    assert pool.nodes_by_stage["boot"].max() == 1
    assert set(pool.nodes_by_stage) == {"boot", "device-plugin", "ready"}


def test_the_kth_node_takes_equally_long_whatever_was_asked_for_before(small_cluster: Build, start_s: int) -> None:
    stages = [{"name": "boot", "p50_s": 60, "day_p90_over_p50": 1.2, "item_p90_over_p50": 1.5}]
    early, late = (small_cluster([28.0], pool={"stages": stages}) for _ in range(2))
    early.set_buffer(CHAT, "gpu", 8, start_s + 3600)
    early.advance(start_s + 300)
    late.advance(start_s + 300)
    late.set_buffer(CHAT, "gpu", 8, start_s + 3600)
    late.advance(start_s + 600)
    took = [
        next(p.duration_s for p in cluster.bench.passages if p.stage == "boot") for cluster in (early, late)
    ]  # fmt: skip
    assert took[0] == pytest.approx(took[1])
    assert took[0] == pytest.approx(early.node_startup_s("gpu", 0, start_s))
    assert early.next_node_draw("gpu") == 1


def test_nodes_ordered_by_hand_take_the_given_draws(small_cluster: Build, start_s: int) -> None:
    stages = [{"name": "boot", "p50_s": 60, "item_p90_over_p50": 1.5}]
    cluster = small_cluster([28.0], pool={"stages": stages})
    cluster.set_autoscaling("gpu", on=False)
    cluster.order_nodes("gpu", [5, 9])
    cluster.advance(start_s + 300)
    took = sorted(p.duration_s for p in cluster.bench.passages)
    assert took == pytest.approx(sorted(cluster.node_startup_s("gpu", draw, start_s) for draw in (5, 9)))


def test_a_silenced_autoscaler_orders_nothing(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0, 280.0])
    cluster.set_autoscaling("gpu", on=False)
    cluster.advance(start_s + 300)
    assert not kinds(cluster, "node_requested")
    assert cluster.works[KEY].group.pending


def test_a_cached_image_shortens_the_pull_on_that_node_only(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6, "image_cached_ratio": 0.1})
    cluster.advance(start_s + 300)
    images = [p.duration_s for p in cluster.bench.passages if p.stage == "image"]
    # Two pods join standing ones, whose node has the image; two go together to the new node, which has not.
    assert images == pytest.approx([2.0, 2.0, 20.0, 20.0])


def test_most_allocated_fills_a_node_and_least_allocated_spreads(small_cluster: Build) -> None:
    full = small_cluster([28.0], workload={"min_replicas": 3})
    spread = small_cluster([28.0], workload={"min_replicas": 3}, pool={"scheduling": "least_allocated"})
    assert sorted(len(node.pods) for node in full.pools["gpu"].nodes.values()) == [0, 3]
    assert sorted(len(node.pods) for node in spread.pools["gpu"].nodes.values()) == [1, 2]


def test_cluster_autoscaler_drains_a_node_under_half_used_and_its_pod_starts_anew(
    small_cluster: Callable[..., SimulatedCluster], start_s: int
) -> None:
    # 9 pods stand: 4 + 4 on the static nodes, 1 on a third. 49 requests/s want 49 / (10 · 0.7) = 7: after 300 s two go
    # from the full nodes (most siblings first), 3 + 3 + 1. The third node is a quarter used and its pod fits elsewhere:
    # 120 s later it is drained, and the pod starts again on a static node.
    cluster = small_cluster(
        [49.0],
        workload={"initial_replicas": 9},
        pool={"autoscaler": "cluster-autoscaler", "consolidation": "underutilised"},
    )
    pool, group = cluster.pools["gpu"], cluster.works["serving/chat"].group
    assert len(pool.nodes) == 3
    cluster.advance(start_s + 405)
    assert (len(pool.nodes), group.total) == (3, 7)
    cluster.advance(start_s + 465)
    assert (len(pool.nodes), len(group.ready), len(group.starting)) == (2, 6, 1)
    cluster.advance(start_s + 510)
    assert len(group.ready) == 7
    run = cluster.collect("hpa").workloads["serving/chat"]
    assert int(run.deleted.sum()) == 3  # two by the HPA, one by the drain


def test_a_node_that_holds_a_buffers_room_is_not_drained(
    small_cluster: Callable[..., SimulatedCluster], start_s: int
) -> None:
    cluster = small_cluster(
        [49.0],
        workload={"initial_replicas": 9},
        pool={"autoscaler": "cluster-autoscaler", "consolidation": "underutilised"},
    )
    cluster.set_buffer(WorkloadRef(namespace="serving", name="chat"), "gpu", 5, start_s + 3600)
    cluster.advance(start_s + 1200)
    assert len(cluster.pools["gpu"].nodes) == 3


def test_draining_is_refused_for_an_autoscaler_that_does_not_play_it(small_scenario: Callable[..., Scenario]) -> None:
    with pytest.raises(ValueError, match="cluster-autoscaler only"):
        small_scenario(pool={"consolidation": "underutilised"})
