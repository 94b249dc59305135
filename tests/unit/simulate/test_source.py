"""What the loop may know: the state at now, visible minutes only, stage passages as they end."""

import math
from collections.abc import Callable

import pytest

from leadtime.domain.ports import ClusterWriter, Source
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series
from leadtime.domain.time_window import TimeWindow, from_epoch
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.source import SimulatedSource
from leadtime.simulate.writer import SimulatedWriter

Build = Callable[..., SimulatedCluster]
CHAT = WorkloadRef(namespace="serving", name="chat")


def window(start_s: int, end_s: int) -> TimeWindow:
    return TimeWindow(start=from_epoch(start_s), end=from_epoch(end_s))


def test_the_simulated_parts_fit_the_loops_ports(small_cluster: Build) -> None:
    cluster = small_cluster([28.0])
    source: Source = SimulatedSource(cluster)
    writer: ClusterWriter = SimulatedWriter(cluster)
    assert source.snapshot(from_epoch(cluster.now_s)).workload(CHAT).ready_pods == 4
    writer.set_floor(CHAT, 6, from_epoch(cluster.now_s + 300))
    writer.set_buffer(CHAT, "gpu", 3, from_epoch(cluster.now_s + 300))
    writer.set_consolidation("gpu", offered=True)
    writer.set_low_priority_admission("serving", paused=True)
    snapshot = source.snapshot(from_epoch(cluster.now_s))
    state = snapshot.workload(CHAT)
    assert state.floor is not None
    assert (state.floor.replicas, state.floor.expires_at) == (6, from_epoch(cluster.now_s + 300))
    assert state.buffer is not None
    assert (state.buffer.pods, state.buffer.expires_at) == (3, from_epoch(cluster.now_s + 300))
    assert snapshot.pool("gpu").consolidation_offered
    assert snapshot.queues[0].low_priority_paused
    writer.release_floor(CHAT)
    writer.set_buffer(CHAT, "gpu", 0, from_epoch(cluster.now_s + 300))
    state = source.snapshot(from_epoch(cluster.now_s)).workload(CHAT)
    assert (state.floor, state.buffer) == (None, None)


def test_what_has_expired_by_now_is_not_shown(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    cluster.set_floor(CHAT, 6, start_s + 60)
    cluster.set_buffer(CHAT, "gpu", 3, start_s + 60)
    cluster.advance(start_s + 60)  # the next step, not this one, will clear them away
    state = SimulatedSource(cluster).snapshot(from_epoch(cluster.now_s)).workload(CHAT)
    assert (state.floor, state.buffer) == (None, None)


def test_a_snapshot_splits_pods_and_gpus_by_where_they_stand(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6})
    cluster.advance(start_s + 45)
    snapshot = SimulatedSource(cluster).snapshot(from_epoch(start_s + 45))
    state, pool, queue = snapshot.workload(CHAT), snapshot.pool("gpu"), snapshot.queues[0]
    assert (state.wanted_replicas, state.ready_pods, state.starting_pods, state.pending_pods) == (10, 6, 2, 2)
    assert state.oldest_pending_s == 15.0
    assert (state.owner_min_replicas, state.max_replicas, state.capacity_per_pod) == (6, 40, 10.0)
    assert (pool.allocatable_gpus, pool.used_gpus, pool.arriving_gpus, pool.empty_nodes) == (8, 8, 4, 0)
    assert dict(pool.nodes_by_stage) == {"boot": 1, "device-plugin": 0, "ready": 2}
    # The node that was ordered takes both: the queue is not unhealthy because of it.
    assert (queue.pending_pods, queue.covered_pending_pods, queue.oldest_uncovered_pending_s) == (2, 2, 0.0)


def test_pods_that_no_ordered_capacity_takes_are_uncovered(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0, 70.0, 98.0], workload={"min_replicas": 6}, pool={"max_nodes": 3})
    cluster.advance(start_s + 90)
    queue = SimulatedSource(cluster).snapshot(from_epoch(start_s + 90)).queues[0]
    # 14 pods, 8 GPUs stand and 4 arrive: 2 of the pods created at second 60 have no place.
    assert (queue.pending_pods, queue.covered_pending_pods, queue.oldest_uncovered_pending_s) == (6, 4, 30.0)


def test_only_the_present_can_be_looked_at(small_cluster: Build, start_s: int) -> None:
    source = SimulatedSource(small_cluster([28.0]))
    for at_s in (start_s - 15, start_s + 15):
        with pytest.raises(ValueError, match="it stands at"):
            source.snapshot(from_epoch(at_s))


def test_minutes_are_means_and_become_visible_after_their_end_and_the_lag(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([10.0, 20.0, 30.0, 40.0, 50.0, 50.0, 50.0, 50.0])
    source = SimulatedSource(cluster)
    cluster.advance(start_s + 120)
    series = source.demand(CHAT, window(start_s, start_s + 3600), from_epoch(start_s + 120))
    assert isinstance(series, Series)
    assert (series.start, series.step_s, list(series.values)) == (from_epoch(start_s), 60, [25.0])  # lag 15 s
    cluster.advance(start_s + 135)
    series = source.demand(CHAT, window(start_s, start_s + 3600), from_epoch(start_s + 135))
    assert isinstance(series, Series)
    assert list(series.values) == [25.0, 50.0]
    # Only whole minutes of the window.
    later = source.demand(CHAT, window(start_s + 30, start_s + 120), from_epoch(start_s + 135))
    assert isinstance(later, Series)
    assert (later.start, list(later.values)) == (from_epoch(start_s + 60), [50.0])


def test_a_minute_with_a_gap_is_a_gap(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([10.0] * 4 + [10.0, math.nan, 10.0, 10.0] + [10.0] * 4)
    cluster.advance(start_s + 195)
    series = SimulatedSource(cluster).demand(CHAT, window(start_s, start_s + 180), from_epoch(start_s + 195))
    assert isinstance(series, Series)
    assert list(series.values) == [10.0, None, 10.0]


def test_nothing_of_the_future_is_told_whatever_as_of_claims(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([10.0] * 40)
    cluster.advance(start_s + 135)
    series = SimulatedSource(cluster).demand(CHAT, window(start_s, start_s + 600), from_epoch(start_s + 600))
    assert isinstance(series, Series)
    assert len(series.values) == 2


def test_no_visible_minute_and_no_such_workload_are_missing_not_empty(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([10.0])
    source = SimulatedSource(cluster)
    nobody = WorkloadRef(namespace="serving", name="nobody")
    for ref in (CHAT, nobody):
        assert isinstance(source.demand(ref, window(start_s, start_s + 600), from_epoch(start_s)), Missing)


def test_stage_samples_come_once_each_as_they_end(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([42.0, 70.0], workload={"min_replicas": 6})
    source = SimulatedSource(cluster)
    seen = []
    since = None
    for at_s in range(start_s, start_s + 301, 60):
        cluster.advance(at_s)
        samples = source.stage_samples(since, from_epoch(at_s))
        assert all(s.ended_at <= from_epoch(at_s) for s in samples)
        seen += samples
        since = from_epoch(at_s)
    assert seen == list(source.stage_samples(None, from_epoch(cluster.now_s)))
    stages = sorted((s.stage, s.duration_s, s.workload) for s in seen if s.workload is None)
    assert stages == [("boot", 60.0, None), ("device-plugin", 40.0, None)]
    assert [s.duration_s for s in seen if s.stage == "image"] == pytest.approx([20.0] * 4)
    assert [s.duration_s for s in seen if s.stage == "weights"] == pytest.approx([10.0] * 4)
    assert {s.episode for s in seen if s.workload is None} == {f"gpu/{start_s // 86400}/31"}


def test_a_pod_deleted_on_its_way_leaves_a_censored_sample(small_cluster: Build, start_s: int) -> None:
    slow = {"name": "image", "p50_s": 2000}
    cluster = small_cluster([28.0], workload={"image": slow})
    cluster.set_floor(CHAT, 6, start_s + 60)
    cluster.advance(start_s + 600)
    (one, other) = SimulatedSource(cluster).stage_samples(None, from_epoch(start_s + 600))
    assert one.censored
    assert other.censored
    assert one.stage == "image"
    assert one.duration_s == (one.ended_at - from_epoch(start_s)).total_seconds()
    assert one.duration_s == 60  # the floor lapsed, and the HPA's own wishes were never higher than four


def test_requests_half_an_hour_apart_are_one_episode_and_later_ones_another(small_cluster: Build, start_s: int) -> None:
    cluster = small_cluster([28.0])
    for at_s, pods in ((0, 8), (1500, 16), (3450, 24)):
        cluster.advance(start_s + at_s)
        cluster.set_buffer(CHAT, "gpu", pods, start_s + 7200)
    cluster.advance(start_s + 3600)
    episodes = [
        s.episode.rsplit("/", 1)[1] for s in SimulatedSource(cluster).stage_samples(None, from_epoch(cluster.now_s))
    ]
    assert set(episodes) == {"1", "3451"}
