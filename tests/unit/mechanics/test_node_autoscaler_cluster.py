"""Cluster Autoscaler's clockwork, with the instants worked out by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import node_autoscaler_cluster as cluster
from leadtime.mechanics.node_autoscaler_cluster import Backoff, RemovableNode, ScaleDown, ScaleUpOption


def test_backoff_doubles_from_five_to_thirty_minutes() -> None:
    backoff, now_s, waits = None, 0.0, []
    for _ in range(5):
        backoff = cluster.backoff_after_failure(backoff, now_s=now_s)
        waits.append(backoff.duration_s)
        now_s = backoff.until_s + 1.0
    assert waits == [300.0, 600.0, 1200.0, 1800.0, 1800.0]


def test_failures_at_the_same_time_do_not_add_up() -> None:
    first = cluster.backoff_after_failure(None, now_s=0.0)
    second = cluster.backoff_after_failure(first, now_s=100.0)
    assert (second.duration_s, second.until_s) == (300.0, 400.0)


def test_a_group_is_asked_again_when_its_backoff_ends() -> None:
    backoff = Backoff(duration_s=300.0, until_s=300.0, failed_at_s=0.0)
    assert cluster.is_backed_off(backoff, now_s=299.9)
    assert not cluster.is_backed_off(backoff, now_s=300.0)
    assert not cluster.is_backed_off(None, now_s=0.0)


def test_backoff_is_forgotten_three_hours_after_the_last_failure() -> None:
    backoff = Backoff(duration_s=1800.0, until_s=1800.0, failed_at_s=0.0)
    assert cluster.backoff_at(backoff, now_s=10_800.0) is backoff
    assert cluster.backoff_at(backoff, now_s=10_800.1) is None
    assert cluster.backoff_at(None, now_s=0.0) is None


def test_a_node_that_takes_more_than_fifteen_minutes_is_a_failure() -> None:
    assert not cluster.provisioning_failed(100.0, now_s=1000.0)
    assert cluster.provisioning_failed(100.0, now_s=1000.1)


def test_placeholders_ask_for_nodes_down_to_priority_minus_ten() -> None:
    assert [cluster.asks_for_nodes(priority) for priority in (0, -10, -11)] == [True, True, False]


def option(group: str, nodes: int, cpu: int, memory: int) -> ScaleUpOption:
    return ScaleUpOption(group=group, nodes=nodes, node_cpu=cpu, node_memory=memory, pods_cpu=8000, pods_memory=16)


def test_least_waste_takes_the_tightest_group_and_the_first_of_equals() -> None:
    # CPU 8 of 16 and memory 16 of 64 used: 0.50 + 0.75 wasted; two small nodes: 0.20 + 0.50.
    large, small = option("large", 1, 16_000, 64), option("small", 2, 5_000, 16)
    assert cluster.least_waste([large, small]) == 1
    assert cluster.least_waste([small, large, small]) == 0
    assert cluster.least_waste([]) is None


@pytest.mark.parametrize(
    ("gpu", "requested", "allocatable", "expected"),
    [
        pytest.param(True, 3, 8, 0.375, id="GPU node: GPUs only, busy CPUs or not"),
        pytest.param(True, 0, 0, 0.0, id="GPUs not allocatable: may go"),
        pytest.param(False, 0, 0, 0.9, id="CPU node: the larger of CPU and memory"),
    ],
)
def test_utilisation(gpu: bool, requested: int, allocatable: int, expected: float) -> None:
    answer = cluster.utilisation_ratio(
        gpu=gpu, requested_gpus=requested, allocatable_gpus=allocatable, cpu_ratio=0.9, memory_ratio=0.2
    )
    assert answer == pytest.approx(expected)


def node(key: int, *pod_gpus: int, gpus: int = 8, **changes: Any) -> RemovableNode:
    used = sum(pod_gpus)
    return RemovableNode(key=key, utilisation_ratio=used / gpus, free_gpus=gpus - used, pod_gpus=pod_gpus, **changes)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node(0), node(1, 4, 4)], (0,), id="an empty one"),
        pytest.param([node(0, 4), node(1, 8)], (), id="exactly half used is needed"),
        pytest.param([node(0, 2), node(1, 4)], (0,), id="its pod fits elsewhere"),
        pytest.param([node(0, 2), node(1, 7)], (), id="its pod fits nowhere"),
        pytest.param([node(0, 2), node(1, 2)], (0,), id="the node that takes the pod in stays"),
        pytest.param([node(0, held=True)], (), id="held"),
        pytest.param([node(0, 2), node(1), node(2, 8)], (1,), id="empty first; then there is no room for the other"),
    ],
)
def test_which_nodes_are_unneeded(nodes: list[RemovableNode], expected: tuple[int, ...]) -> None:
    assert cluster.unneeded(nodes) == expected


def scan(state: ScaleDown, nodes: list[RemovableNode], now_s: float, **more: int) -> cluster.ScaleDownStep:
    return cluster.step_scale_down(state, nodes, now_s=now_s, **more)


FRESH = ScaleDown(unneeded_since_s={})


def test_an_empty_node_goes_after_ten_minutes_unneeded() -> None:
    fleet = [node(0), node(1, 8)]
    state = scan(FRESH, fleet, 0.0).state
    assert scan(state, fleet, 590.0).deleted == ()
    gone = scan(state, fleet, 600.0)
    assert gone.deleted == (0,)
    assert gone.state == ScaleDown(unneeded_since_s={}, deleted_at_s=600.0)


def test_a_node_in_use_at_one_scan_starts_anew() -> None:
    state = scan(FRESH, [node(0), node(1, 8)], 0.0).state
    state = scan(state, [node(0, 8), node(1, 8)], 300.0).state
    assert state.unneeded_since_s == {}
    state = scan(state, [node(0), node(1, 8)], 310.0).state
    assert scan(state, [node(0), node(1, 8)], 600.0).deleted == ()
    assert scan(state, [node(0), node(1, 8)], 910.0).deleted == (0,)


def test_nothing_goes_within_ten_minutes_of_an_addition_but_timers_run() -> None:
    fleet = [node(0), node(1, 8)]
    state = scan(ScaleDown(unneeded_since_s={}, added_at_s=550.0), fleet, 0.0).state
    assert scan(state, fleet, 1140.0).deleted == ()
    assert scan(state, fleet, 1150.0).deleted == (0,)  # at once: unneeded since 0 s


def test_three_minutes_pause_after_a_failed_deletion() -> None:
    state = ScaleDown(unneeded_since_s={0: 0.0}, failed_at_s=600.0)
    assert scan(state, [node(0)], 770.0).deleted == ()
    assert scan(state, [node(0)], 780.0).deleted == (0,)


def test_at_most_ten_empty_nodes_at_once_and_never_below_the_minimum() -> None:
    fleet = [node(key) for key in range(20)]
    state = ScaleDown(unneeded_since_s=dict.fromkeys(range(20), 0.0))
    assert scan(state, fleet, 600.0).deleted == tuple(range(10))
    assert scan(state, fleet, 600.0, deleting=7).deleted == (0, 1, 2)
    assert scan(state, fleet, 600.0, min_nodes=16).deleted == (0, 1, 2, 3)
    assert scan(state, fleet, 600.0, min_nodes=25).deleted == ()


def test_one_node_with_pods_is_drained_at_a_time() -> None:
    fleet = [node(0, 1), node(1, 1), node(2, 4), node(3, 4)]
    state = ScaleDown(unneeded_since_s=dict.fromkeys(range(2), 0.0))
    result = scan(state, fleet, 600.0)
    assert (result.deleted, result.drained) == ((), (0,))


@given(st.lists(st.lists(st.integers(1, 4), max_size=2), max_size=8))
def test_pods_of_unneeded_nodes_fit_on_the_nodes_that_stay(pods: list[list[int]]) -> None:
    fleet = [node(key, *each) for key, each in enumerate(pods)]
    gone = set(cluster.unneeded(fleet))
    moving = sum(sum(fleet[p].pod_gpus) for p in gone)
    assert moving <= sum(each.free_gpus for p, each in enumerate(fleet) if p not in gone)
    assert all(fleet[p].utilisation_ratio < 0.5 for p in gone)
    assert all(p in gone for p, each in enumerate(fleet) if not each.pod_gpus)
