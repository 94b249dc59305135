"""Pods that fail: by the generator's chain, alike in every world, with what it costs and what a monitor sees."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from leadtime.domain.risk import PodEnding
from leadtime.domain.series import Missing
from leadtime.domain.time_window import from_epoch
from leadtime.simulate.borg.chain import fails_within
from leadtime.simulate.pod_failures import Life, chain_of, windows_of
from leadtime.simulate.scenario import FailuresScenario
from leadtime.simulate.usage_source import SimulatedUsage

DAY_S = 86_400
FAILING = {"failures": {"base_rate": 0.05, "mu": 2.0}}
HOUR = [20.0] * 240


@pytest.fixture
def failing(small_cluster):
    """A cluster whose pods fail often, from its start on."""

    def build(rps=tuple(HOUR), *, draw: int = 3, **overrides):
        cluster = small_cluster(rps, **FAILING, **overrides)
        cluster.start_failing(draw, cluster.start_s + 15 * (len(rps) + 240))
        return cluster

    return build


def lives(cluster) -> dict[str, Life]:
    return dict(cluster.failures.lives)


def test_no_pod_fails_where_the_scenario_does_not_say_so(small_cluster):
    cluster = small_cluster(HOUR)
    cluster.start_failing(1, cluster.start_s + DAY_S)
    assert cluster.failures is None
    assert isinstance(SimulatedUsage(cluster).usage(from_epoch(cluster.now_s), from_epoch(cluster.now_s)), Missing)


def test_equal_draws_give_equal_lives_and_other_draws_others(failing):
    one, two, other = failing(), failing(), failing(draw=4)
    for cluster in (one, two, other):
        cluster.advance(cluster.start_s + 3600)
    assert [end.at_s for end in one.failures.ends] == [end.at_s for end in two.failures.ends]
    assert [life.ratios for life in lives(one).values()] == [life.ratios for life in lives(two).values()]
    assert [life.ratios for life in lives(one).values()] != [life.ratios for life in lives(other).values()]


def test_a_fork_has_the_same_future_and_leaves_the_original_alone(failing):
    cluster = failing()
    cluster.advance(cluster.start_s + 900)
    twin, before = cluster.fork(), len(cluster.failures.ends)
    twin.advance(cluster.start_s + 3600)
    assert len(cluster.failures.ends) == before
    cluster.advance(cluster.start_s + 3600)
    assert cluster.failures.ends == twin.failures.ends


def test_the_same_slot_meets_the_same_fate_whatever_else_stands(failing):
    alone, more = failing(), failing(workload={"min_replicas": 7})
    assert len(lives(more)) == len(lives(alone)) + 3
    fates = {life.slot: life.fails_at_s for life in lives(more).values()}
    assert all(life.fails_at_s == fates[life.slot] for life in lives(alone).values())


def test_pods_fail_as_often_as_the_chain_says_and_show_it_before(small_cluster):
    """Of healthy pods, the share that fails within an hour lies within four standard errors of the chain's."""
    scenario = FailuresScenario(base_rate=0.02, mu=1.5)
    cluster = small_cluster(
        HOUR, failures=scenario.model_dump(), workload={"min_replicas": 30}, pool={"static_nodes": 10, "max_nodes": 20}
    )
    fails, shown = [], []
    for draw in range(60):
        cluster.failures = None
        cluster.start_failing(draw, cluster.start_s + 7200)
        for life in lives(cluster).values():
            fails.append(life.fails_at_s is not None and life.fails_at_s <= life.first_end_s + 3600)
            if fails[-1]:
                shown.append(life.ratios[-1])
    expected = fails_within(replace(chain_of(scenario), ends=0.0), 0, 0.0)[0, 12]
    assert len(fails) == 1800
    assert np.mean(fails) == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / len(fails)))
    assert np.mean(shown) > 0.5 + 0.1  # most failed while degrading, which stands one and a half deviations out


def test_a_failure_costs_the_requests_in_flight_and_the_pod_is_made_anew(failing):
    cluster = failing()
    cluster.advance(cluster.start_s + 3600)
    failed = [end for end in cluster.failures.ends if end.how is PodEnding.FAILED]
    assert failed
    run = cluster.collect("hpa")
    work = run.workloads["serving/chat"]
    # 20 requests/s on four pods, a second each: five in flight on one.
    assert work.unserved.sum() >= 5 * len(failed) * 0.9
    assert cluster.failures.in_flight_lost == pytest.approx(5 * len(failed), rel=0.4)
    assert (work.unserved <= work.arrived + 1e-9).all()
    assert sum(event.count for event in run.events if event.kind == "pod_failed") == len(failed)
    assert work.deleted.sum() == 0  # nobody decided it
    assert cluster.work(cluster.scenario.workloads[0].ref).group.total == 4


def test_a_monitor_sees_windows_of_running_pods_only_after_end_and_lag(failing):
    cluster = failing()
    cluster.advance(cluster.start_s + 1800)
    usage, at = SimulatedUsage(cluster), from_epoch(cluster.now_s)
    seen = usage.usage(at - timedelta(hours=1), at)
    gone = {end.pod: end.at for end in seen.ends}
    assert seen.windows
    for window in seen.windows:
        assert window.end <= at - timedelta(seconds=cluster.scenario.metric_lag_s)
        assert window.end <= gone.get(window.pod, at)
        assert window.start < window.end
    assert [w for w in seen.windows if w.end > at - timedelta(minutes=10)] == list(
        usage.usage(at - timedelta(minutes=10), at).windows
    )


def test_pod_ends_are_told_once(failing):
    cluster = failing()
    cluster.advance(cluster.start_s + 3600)
    usage, begin, end = SimulatedUsage(cluster), from_epoch(cluster.start_s), from_epoch(cluster.now_s)
    middle = begin + timedelta(minutes=20)
    parts = [*usage.pod_ends(begin, middle), *usage.pod_ends(middle, end)]
    assert parts == list(usage.pod_ends(begin, end))
    assert len(parts) == len(cluster.failures.ends) > 0


def test_windows_begin_with_the_first_boundary_after_the_pod_was_ready():
    life = Life(
        pod="a-1", workload="s/a", slot=0, node=None, created_s=0, started_s=10, first_end_s=300,
        ratios=(0.5, 0.5, 0.5), fails_at_s=None, noise=np.zeros((4, 3)), chance=np.zeros((4, 3)),
    )  # fmt: skip
    assert [list(windows_of(life, at_s)) for at_s in (299, 300, 899, 1e9)] == [[], [0], [0, 1], [0, 1, 2]]


def test_a_protected_pod_holds_scale_downs_until_it_ends_or_the_time_is_over(small_cluster):
    cluster = small_cluster([60.0] * 40 + [20.0] * 120, workload={"initial_replicas": 9})
    ref = cluster.scenario.workloads[0].ref
    cluster.advance(cluster.start_s + 300)
    stood = cluster.work(ref).wanted
    pod = f"serving/chat-{min(cluster.work(ref).group.ready)}"
    cluster.protect_pod(pod, ref, cluster.start_s + 1800)
    cluster.advance(cluster.start_s + 1785)
    assert cluster.work(ref).wanted == stood
    cluster.advance(cluster.start_s + 2100)
    assert cluster.work(ref).wanted < stood


def test_protection_does_not_hold_what_only_our_floor_added(small_cluster):
    cluster = small_cluster([20.0] * 240)
    ref = cluster.scenario.workloads[0].ref
    cluster.set_floor(ref, 5, cluster.start_s + 600)
    cluster.advance(cluster.start_s + 300)
    assert cluster.work(ref).wanted == 5
    cluster.protect_pod(f"serving/chat-{min(cluster.work(ref).group.ready)}", ref, cluster.start_s + 3000)
    cluster.advance(cluster.start_s + 1500)
    assert cluster.work(ref).wanted == 4


def test_new_pods_avoid_a_node_while_another_has_room_and_only_then(small_cluster):
    cluster = small_cluster([20.0] * 240)  # four pods on the first of two nodes of four places
    ref = cluster.scenario.workloads[0].ref
    first, second = sorted(cluster.pools["gpu"].nodes)
    cluster.delete_pods(ref, [cluster.pod_serials(ref)[0]])
    cluster.set_hpa(ref, on=False)
    cluster.avoid_node(f"gpu-{first}", "gpu", cluster.start_s + 3000)
    (serial,) = cluster.create_pods(ref, [0])
    cluster.advance(cluster.start_s + 30)
    group = cluster.work(ref).group
    where = {pod.serial: pod.node.serial for pod in (*group.starting.values(), *group.ready.values())}
    assert where[serial] == second  # most allocated would have been the first
    cluster.create_pods(ref, [1, 2, 3, 4])
    cluster.advance(cluster.start_s + 60)
    assert not cluster.work(ref).group.pending  # the avoided node is better than waiting


def test_an_avoided_node_is_as_good_as_any_when_its_time_is_over(small_cluster):
    cluster = small_cluster([20.0] * 240)
    cluster.avoid_node("gpu-1", "gpu", cluster.start_s + 60)
    cluster.advance(cluster.start_s + 75)
    assert cluster.pools["gpu"].avoided == {}
