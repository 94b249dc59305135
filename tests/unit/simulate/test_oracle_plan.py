"""The oracle's plan, with the numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.simulate import oracle
from leadtime.simulate.oracle import OracleStart

START = OracleStart(
    start_s=0,
    end_s=6000,
    step_s=15,
    ready_pods=2,
    next_pod_draw=0,
    next_node_draw=0,
    standing_nodes=1,
    static_nodes=1,
    max_nodes=10,
    pods_per_node=2,
    release_after_s=600.0,
)


def plan_for(need: list[tuple[int, int]], start: OracleStart = START) -> oracle.OraclePlan:
    """Plan for (seconds, pods) pieces; every pod starts in 300 s, every node in 1,200 s."""
    column = np.concatenate([np.full(seconds // 15, pods) for seconds, pods in need])
    return oracle.plan(column, start, pod_startup_s=lambda _k: 300.0, node_startup_s=lambda _k: 1200.0)


def test_a_pod_on_a_new_node_is_bound_one_startup_ahead_and_its_node_one_provisioning_ahead() -> None:
    # Needed from 3000 to 4500: bound at 3000 - 300 = 2700; node ordered at 2700 - 1200 = 1500, gone 600 s after 4500.
    plan = plan_for([(3000, 2), (1500, 3), (1500, 2)])
    third = next(pod for pod in plan.pods if pod.level == 3)
    assert (third.bound_s, third.ready_s, third.deleted_s) == (2700.0, 3000.0, 4500.0)
    node = next(node for node in plan.nodes if node.slot == 1)
    assert (node.ordered_s, node.ready_s, node.deleted_s) == (1500.0, 2700.0, 5100.0)


def test_a_gap_shorter_than_a_startup_is_bridged_and_a_longer_one_is_not() -> None:
    short = plan_for([(2400, 3), (285, 2), (3315, 3)], replace(START, ready_pods=3, standing_nodes=2))
    assert len([pod for pod in short.pods if pod.level == 3]) == 1
    long = plan_for([(2400, 3), (600, 2), (3000, 3)], replace(START, ready_pods=3, standing_nodes=2))
    assert [(p.bound_s, p.ready_s) for p in long.pods if p.level == 3] == [(0.0, 0.0), (2700.0, 3000.0)]


def test_what_physics_forbids_comes_as_early_as_it_can() -> None:
    # A third pod is needed at once: its node cannot be there before 1,200 s, the pod not before 1,500 s.
    plan = plan_for([(6000, 3)])
    third = next(pod for pod in plan.pods if pod.level == 3)
    assert (third.bound_s, third.ready_s) == (1200.0, 1500.0)


def test_a_standing_pod_that_is_not_needed_goes_at_once() -> None:
    plan = plan_for([(6000, 1)])
    assert [pod.level for pod in plan.pods] == [1]


def test_missing_demand_needs_what_the_last_value_needed() -> None:
    need = oracle.needed_pods(
        np.array([np.nan, 7.0, np.nan, 71.0]), capacity_per_pod_rps=10, target_ratio=0.7, min_replicas=1, max_replicas=9
    )
    # 7 / (10 · 0.7) = 1 pod; 71 / 7 = 10.14 -> 11, capped at 9.
    assert need.tolist() == [1, 1, 1, 9]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_ready_pods_cover_the_need_wherever_physics_allows(levels: list[int]) -> None:
    start = replace(START, end_s=150 * len(levels) + 6000)
    column = np.concatenate([np.full(400, 2), *(np.full(10, level) for level in levels)])
    plan = oracle.plan(column, start, pod_startup_s=lambda _k: 300.0, node_startup_s=lambda _k: 1200.0)
    ready = oracle.counts_per_second([(pod.ready_s, pod.deleted_s) for pod in plan.pods], start)
    needed = np.repeat(column, 15)
    assert (ready[:6000] >= needed[:6000]).all()
    assert (ready[6000:] >= needed[6000:]).all()


@pytest.mark.parametrize("level", [1, 2])
def test_a_need_within_what_stands_orders_nothing(level: int) -> None:
    plan = plan_for([(6000, level)])
    assert [node.draw for node in plan.nodes] == [None]
