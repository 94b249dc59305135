"""Workload, HPA, floor, deletions and low-priority pods in the simulated cluster."""

import math
from collections.abc import Callable

import pytest

from leadtime.domain.errors import BadScenario
from leadtime.domain.refs import WorkloadRef
from leadtime.simulate.cluster import SimulatedCluster

Build = Callable[..., SimulatedCluster]
CHAT = WorkloadRef(namespace="serving", name="chat")
KEY = "serving/chat"


def kinds(cluster: SimulatedCluster, kind: str) -> list[tuple[int, int]]:
    """(seconds after the start, count) of the events of one kind."""
    return [(e.at_s - cluster.start_s, e.count) for e in cluster.collect("hpa").events if e.kind == kind]


def test_the_hpa_reads_the_last_complete_step(small_cluster: Build, start_s: int) -> None:
    # 4 pods at a target of 7 requests/s each. 42 requests/s from second 30 on want 6 pods.
    cluster = small_cluster([28.0, 28.0, 42.0])
    cluster.advance(start_s + 45)
    assert cluster.works[KEY].wanted == 4  # at second 30 the HPA saw [15, 30)
    cluster.advance(start_s + 60)
    assert cluster.works[KEY].wanted == 6  # at second 45 it saw [30, 45)


def test_syncs_keep_their_period_over_steps_that_do_not_divide_it(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0], workload={"hpa": {"sync_s": 20}})
    synced = []
    for _ in range(8):
        before = cluster.works[KEY].hpa_state
        cluster.advance(cluster.now_s + 15)
        if cluster.works[KEY].hpa_state is not before:
            synced.append(cluster.now_s - 15 - start_s)
    assert synced == [0, 30, 45, 60, 90, 105]  # due at 0, 20, 40, 60, 80, 100


def test_the_first_sync_has_no_complete_step_to_read(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([70.0])
    cluster.advance(start_s + 15)
    assert cluster.works[KEY].wanted == 4


def test_a_missing_metric_never_scales_down(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([56.0] * 20 + [math.nan] * 200, workload={"initial_replicas": 8})
    cluster.advance(start_s + 15 * 220)
    run = cluster.collect("hpa").workloads[KEY]
    assert set(run.wanted) == {8}
    assert run.arrived[100] == 56.0 * 15  # the users are still there
    assert math.isnan(run.demand_rps[100])


def test_a_present_metric_scales_down_after_the_window(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([56.0] * 20 + [7.0] * 60, workload={"initial_replicas": 8})
    cluster.advance(start_s + 1200)
    wanted = cluster.collect("hpa").workloads[KEY].wanted
    low_at = int((wanted < 8).argmax()) * 15
    # The last high reading is that of second 300; at 300 s of age it still counts, one sync later no more.
    assert low_at == 615
    assert wanted[-1] == 4


def test_owner_minimum_holds_without_demand(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([0.0])
    cluster.advance(start_s + 1800)
    assert set(cluster.collect("hpa").workloads[KEY].wanted) == {4}


def test_a_floor_counts_at_once_and_lapses_by_itself(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([14.0])
    cluster.advance(start_s + 60)
    cluster.set_floor(CHAT, 7, start_s + 120)
    cluster.advance(start_s + 1200)
    run = cluster.collect("hpa").workloads[KEY]
    assert list(run.floor[3:9]) == [4, 7, 7, 7, 7, 4]  # steps from second 45 on; gone at second 120
    assert list(run.wanted[3:6]) == [4, 7, 7]
    assert run.wanted[-1] == 4
    assert run.floor_added.sum() == 3
    assert list(run.floor_added[3:5]) == [0, 3]
    assert kinds(cluster, "floor_raised") == [(60, 3)]
    assert kinds(cluster, "floor_released") == [(120, 3)]


def test_a_floor_below_the_owners_minimum_changes_nothing(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([14.0])
    cluster.set_floor(CHAT, 2, start_s + 600)
    cluster.advance(start_s + 300)
    run = cluster.collect("hpa").workloads[KEY]
    assert set(run.floor) == {4}
    assert set(run.wanted) == {4}
    assert not kinds(cluster, "floor_raised")


def test_a_floor_never_exceeds_max_replicas(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([14.0])
    cluster.set_floor(CHAT, 500, start_s + 600)
    cluster.advance(start_s + 30)
    assert cluster.works[KEY].wanted == 40


def test_a_rise_is_one_event_however_many_syncs_it_takes(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0] * 4 + [28.0 + 3 * i for i in range(30)])
    cluster.advance(start_s + 900)
    crossed = kinds(cluster, "threshold_crossed")
    # 31 requests/s is 1.107 of 4 · 7; seen at the sync of second 90 (the step [75, 90)).
    assert crossed == [(90, 1)]
    assert cluster.works[KEY].wanted > 10


def test_a_pod_becomes_ready_within_a_step_and_serves_its_part(small_cluster: Build, start_s: int) -> None:
    weights = {"name": "weights", "p50_s": 5}
    cluster = small_cluster([28.0, 42.0], workload={"weights": weights})
    cluster.advance(start_s + 90)
    # Bound at second 30; image 20 s and weights 5 s: Ready at second 55, within the step [45, 60).
    assert kinds(cluster, "pod_bound") == [(30, 2)]
    assert kinds(cluster, "pod_ready") == [(55, 2)]
    run = cluster.collect("hpa").workloads[KEY]
    # 42 · 15 = 630 requests a step. 4 pods serve 600; with 2 more for 5 s, 700.
    assert run.unserved.sum() == 0
    assert run.latency_s[1] > 1.0
    assert run.latency_s[4] == 1.0


def test_pod_seconds_count_from_bound_and_pending_seconds_before(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6})
    cluster.advance(start_s + 300)
    run = cluster.collect("hpa").workloads[KEY]
    # At second 30 four pods are created; 2 find room on the two static nodes, 2 wait for a node (1 s + 100 s).
    assert run.pending[2] == 2
    assert run.pod_seconds[2] == 8 * 15
    assert run.pending_pod_seconds.sum() == pytest.approx(2 * 101)


def test_ready_pods_deleted_under_load_are_busy_and_warm_and_pending_ones_are_neither(
    small_cluster: Build, start_s: int
) -> None:
    # 42 requests/s want 6 pods; then 70 want 10, of which 8 fit, and no node may come; then 35 want 5.
    cluster = small_cluster(
        [42.0] + [70.0] * 8 + [35.0] * 60, workload={"min_replicas": 5, "initial_replicas": 6}, pool={"max_nodes": 2}
    )
    cluster.advance(start_s + 900)
    run = cluster.collect("hpa").workloads[KEY]
    assert run.wanted.max() == 10
    assert run.wanted[-1] == 5
    assert run.deleted.sum() == 3  # the two pending ones were never bound
    assert run.busy_killed.sum() == 3  # 35 requests/s over 8 pods, 1 s each: more than 4 in flight per pod
    assert run.warm_killed.sum() == 3


def test_idle_pods_are_not_busy_and_cold_ones_not_warm(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([56.0] * 4 + [0.0] * 200, workload={"initial_replicas": 8}, warm_hold_s=120)
    cluster.advance(start_s + 1200)
    run = cluster.collect("hpa").workloads[KEY]
    assert run.deleted.sum() == 4
    assert run.busy_killed.sum() == 0
    assert run.warm_killed.sum() == 0


def test_a_trickle_keeps_pods_warm_but_not_busy(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([56.0] * 4 + [3.0] * 200, workload={"initial_replicas": 8})
    cluster.advance(start_s + 1200)
    run = cluster.collect("hpa").workloads[KEY]
    assert (run.deleted.sum(), run.busy_killed.sum(), run.warm_killed.sum()) == (4, 0, 4)  # 3 in flight over 8 pods


@pytest.mark.parametrize(("rps", "busy"), [pytest.param(38.0, 0, id="no queue"), pytest.param(60.0, 1, id="a queue")])
def test_a_pod_deleted_while_requests_wait_is_busy(
    small_cluster: Build, start_s: int, *, rps: float, busy: int
) -> None:
    cluster = small_cluster([rps], service_time_s=0.05)  # at most half a request in flight per pod
    cluster.set_hpa(CHAT, on=False)
    cluster.advance(start_s + 60)
    cluster.delete_pods(CHAT, cluster.pod_serials(CHAT)[:1])
    cluster.advance(start_s + 75)
    assert cluster.collect("hpa").workloads[KEY].busy_killed.sum() == busy


def test_batch_pods_leave_no_events_of_the_workload(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0], workload={"low_priority_pods": {"every_s": 30, "run_s": 60}})
    cluster.advance(start_s + 600)
    assert cluster.bench.pods_deleted > 10
    assert cluster.collect("hpa").events == ()


def test_deletions_while_demand_stayed_are_told_from_those_after_it_fell(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0], workload={"initial_replicas": 8})
    cluster.advance(start_s + 1200)
    stayed = cluster.collect("hpa").workloads[KEY]
    assert stayed.deleted.sum() == stayed.deleted_while_demand_stayed.sum() == 4
    cluster = small_cluster([56.0] * 20 + [28.0], workload={"initial_replicas": 8})
    cluster.advance(start_s + 1200)
    fell = cluster.collect("hpa").workloads[KEY]
    assert (fell.deleted.sum(), fell.deleted_while_demand_stayed.sum()) == (4, 0)


def test_paused_low_priority_pods_are_held_and_then_admitted(small_cluster: Build, start_s: int) -> None:
    batch = {"every_s": 30, "run_s": 60}
    cluster = small_cluster([28.0], workload={"low_priority_pods": batch})
    low = cluster.works[KEY].low
    assert low is not None
    cluster.set_low_priority_admission("serving", paused=True)
    cluster.advance(start_s + 120)
    assert (low.held, low.group.total) == (4, 0)
    cluster.set_low_priority_admission("serving", paused=False)
    cluster.advance(start_s + 135)
    assert (low.held, len(low.group.ready)) == (0, 4)
    with pytest.raises(KeyError):
        cluster.set_low_priority_admission("nobody's", paused=True)


def test_higher_priority_is_bound_first(small_cluster: Build, start_s: int) -> None:
    # The batch fills the four free slots and more; the workload's two new pods still get the next room.
    batch = {"every_s": 5, "run_s": 10_000}
    cluster = small_cluster([28.0] * 3 + [42.0], workload={"low_priority_pods": batch}, pool={"max_nodes": 3})
    cluster.advance(start_s + 120)
    assert len(cluster.works[KEY].group.pending) == 2
    cluster.advance(start_s + 150)
    assert len(cluster.works[KEY].group.pending) == 0
    low = cluster.works[KEY].low
    assert low is not None
    assert low.group.pending


def test_warm_pods_stand_at_the_start_with_their_nodes(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_owner_min(CHAT, 11)
    assert len(cluster.works[KEY].group.ready) == 11
    assert len(cluster.pools["gpu"].nodes) == 3
    cluster.advance(start_s + 1800)
    run = cluster.collect("hpa").workloads[KEY]
    assert set(run.ready) == {11}
    assert run.deleted.sum() == 0


def test_warm_pods_can_stand_in_the_middle_of_a_run(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.advance(start_s + 600)
    cluster.stand_warm(CHAT, 7)
    cluster.advance(start_s + 1200)
    run = cluster.collect("hpa").workloads[KEY]
    assert list(run.ready[38:42]) == [4, 4, 11, 11]
    assert run.ready[-1] == 11
    assert run.pod_seconds[40] == 11 * 15
    assert cluster.collect("hpa").pools["gpu"].node_seconds[40] == 3 * 15


def test_more_warm_pods_than_fit_are_refused(small_cluster: Build) -> None:
    with pytest.raises(BadScenario, match="maxReplicas is 40"):
        small_cluster([28.0]).stand_warm(CHAT, 50)
    with pytest.raises(BadScenario, match="pool gpu is full with 3 nodes"):
        small_cluster([28.0], pool={"max_nodes": 3}).stand_warm(CHAT, 20)


def test_a_lower_target_wants_more_pods_and_keeps_the_floor(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_floor(CHAT, 6, start_s + 3600)
    cluster.works[KEY].set_target_ratio(0.35)
    cluster.advance(start_s + 60)
    assert cluster.works[KEY].wanted == 8
    cluster.works[KEY].set_target_ratio(2.0)
    cluster.advance(start_s + 900)
    assert cluster.works[KEY].wanted == 6


def test_pods_made_by_hand_take_the_given_draws(small_cluster: Build, start_s: int) -> None:
    wide = {"name": "weights", "p50_s": 30, "item_p90_over_p50": 2.0}
    cluster = small_cluster([28.0], workload={"weights": wide})
    cluster.set_hpa(CHAT, on=False)
    made = cluster.create_pods(CHAT, [7, 3])
    cluster.advance(start_s + 300)
    expected = sorted(cluster.pod_startup_s(CHAT, draw, start_s) for draw in (7, 3))
    ready = cluster.works[KEY].group.ready
    assert sorted(ready[serial].ready_s for serial in made) == pytest.approx([start_s + s for s in expected])
    cluster.delete_pods(CHAT, made)
    cluster.advance(start_s + 600)
    assert cluster.pod_serials(CHAT) == (1, 2, 3, 4)
