"""Karpenter's clockwork, with the instants worked out by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import node_autoscaler_karpenter as karpenter
from leadtime.mechanics.node_autoscaler_karpenter import Batch, Disruption, NodeLife


def batch_of(*pods_at_s: float) -> Batch:
    batch: Batch | None = None
    for at_s in pods_at_s:
        batch = karpenter.with_new_pod(batch, now_s=at_s)
    assert batch is not None
    return batch


@pytest.mark.parametrize(
    ("pods_at_s", "closes_at_s"),
    [
        pytest.param([100.0], 101.0, id="one pod: idle for 1 s"),
        pytest.param([100.0, 100.9], 101.9, id="a second pod draws the window out"),
        pytest.param([100.0 + 0.5 * n for n in range(40)], 110.0, id="a stream of pods: closed 10 s after the first"),
        pytest.param([100.0, 109.8], 110.0, id="the maximum comes before the idle second"),
    ],
)
def test_a_batch_closes_when_idle_or_full(pods_at_s: list[float], closes_at_s: float) -> None:
    assert batch_of(*pods_at_s).closes_at_s() == pytest.approx(closes_at_s)


@pytest.mark.parametrize(
    ("ready", "taints", "allocatable", "expected"),
    [
        pytest.param(True, 0, {"nvidia.com/gpu": 8}, True, id="all there"),
        pytest.param(True, 0, {"nvidia.com/gpu": 0}, False, id="the kubelet has zeroed the GPUs"),
        pytest.param(True, 0, {}, False, id="the device plugin has not registered"),
        pytest.param(True, 1, {"nvidia.com/gpu": 8}, False, id="a start-up taint is left"),
        pytest.param(False, 0, {"nvidia.com/gpu": 8}, False, id="not Ready"),
        pytest.param(True, 0, {"nvidia.com/gpu": 7}, True, id="one GPU of eight lost: it counts all the same"),
    ],
)
def test_initialised_only_with_extended_resources(
    ready: bool, taints: int, allocatable: dict[str, int], expected: bool
) -> None:
    answer = karpenter.initialised(
        ready=ready, startup_taints_left=taints, wanted={"nvidia.com/gpu": 8, "cpu": 0}, allocatable=allocatable
    )
    assert answer is expected


def test_a_claim_is_given_up_before_the_node_joins_and_never_after() -> None:
    assert karpenter.gives_up_at_s(1000.0, launched=False, registered=False) == 1300.0
    assert karpenter.gives_up_at_s(1000.0, launched=True, registered=False) == 1900.0
    assert karpenter.gives_up_at_s(1000.0, launched=True, registered=True) is None


def node(key: int, **changes: Any) -> NodeLife:
    values: dict[str, Any] = {"pods": 0, "initialised_at_s": 0.0, "last_pod_event_s": 100.0}
    return NodeLife(key=key, **(values | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, 160.0, id="60 s after the last pod went"),
        pytest.param({"last_pod_event_s": None, "initialised_at_s": 50.0}, 110.0, id="never used: since initialised"),
        pytest.param({"pods": 1}, None, id="holds a pod"),
        pytest.param({"held": True}, None, id="holds a buffer's room"),
        pytest.param({"managed": False}, None, id="static"),
        pytest.param({"disrupting": True}, None, id="already going"),
        pytest.param({"initialised_at_s": None}, None, id="GPUs not registered yet"),
    ],
)
def test_when_a_node_may_be_taken_as_empty(changes: dict[str, Any], expected: float | None) -> None:
    assert karpenter.consolidatable_at_s(node(1, **changes), 60.0) == expected


def test_consolidate_after_never_takes_nothing() -> None:
    assert karpenter.consolidatable_at_s(node(1), None) is None


@pytest.mark.parametrize(("nodes", "expected"), [(1, 1), (10, 1), (11, 2), (65, 7), (0, 0)])
def test_budget_is_ten_percent_rounded_up(nodes: int, expected: int) -> None:
    assert karpenter.disruption_budget([node(key) for key in range(nodes)]) == expected


def test_budget_counts_neither_static_nor_uninitialised_nodes_and_subtracts_those_going() -> None:
    fleet = [node(key) for key in range(20)]
    assert karpenter.disruption_budget(fleet) == 2
    assert karpenter.disruption_budget([*fleet, *(node(100 + n, managed=False) for n in range(65))]) == 2
    assert karpenter.disruption_budget([*fleet, *(node(200 + n, initialised_at_s=None) for n in range(10))]) == 2
    assert karpenter.disruption_budget([*fleet[1:], node(0, disrupting=True)]) == 1


def step(state: Disruption, nodes: list[NodeLife], now_s: float) -> karpenter.DisruptionStep:
    return karpenter.step_disruption(state, nodes, now_s=now_s, consolidate_after_s=60.0)


def test_two_looks_fifteen_seconds_apart_then_again_at_once() -> None:
    fleet = [node(key) for key in range(10)]  # the budget is one
    before = step(Disruption(next_at_s=150.0), fleet, 150.0)
    assert (before.state, before.deleted) == (Disruption(next_at_s=160.0), ())  # 50 s empty: too early
    first = step(before.state, fleet, 160.0)
    assert (first.state, first.deleted) == (Disruption(next_at_s=175.0, proposed=(0,)), ())
    assert step(first.state, fleet, 174.9) == karpenter.DisruptionStep(state=first.state)  # nothing in between
    second = step(first.state, fleet, 175.0)
    assert (second.state, second.deleted) == (Disruption(next_at_s=175.0), (0,))
    going = [node(0, disrupting=True), *fleet[1:]]
    assert step(second.state, going, 175.0).state == Disruption(next_at_s=185.0)  # the budget is used up


def test_a_node_that_gets_a_pod_during_validation_is_spared_and_the_others_go() -> None:
    fleet = [node(key) for key in range(20)]
    first = step(Disruption(next_at_s=200.0), fleet, 200.0)
    assert first.state.proposed == (0, 1)
    used = [node(0, pods=1), *fleet[1:]]
    assert step(first.state, used, 215.0).deleted == (1,)


def test_a_validation_without_a_survivor_waits_for_the_next_poll() -> None:
    fleet = [node(key) for key in range(10)]
    first = step(Disruption(next_at_s=200.0), fleet, 200.0)
    again = step(first.state, [node(0, held=True), *fleet[1:]], 215.0)
    assert (again.deleted, again.state) == ((), Disruption(next_at_s=225.0))


def test_sixty_five_empty_nodes_leave_by_sevens_and_fewer() -> None:
    fleet, state, now_s, left = [node(key) for key in range(65)], Disruption(next_at_s=200.0), 200.0, []
    while fleet:
        result = step(state, fleet, now_s)
        fleet = [each for each in fleet if each.key not in result.deleted]  # gone at once
        if result.deleted:
            left.append((now_s, len(result.deleted)))
        state, now_s = result.state, max(now_s, result.state.next_at_s)
    assert left[:3] == [(215.0, 7), (230.0, 6), (245.0, 6)]  # 10 % of 65, of 58, of 52, rounded up
    assert sum(count for _, count in left) == 65


def test_skipping_polls_lands_on_the_grid() -> None:
    state = Disruption(next_at_s=103.0)
    assert karpenter.next_useful_pass(state, not_before_s=160.0).next_at_s == 163.0
    assert karpenter.next_useful_pass(state, not_before_s=163.0).next_at_s == 163.0
    assert karpenter.next_useful_pass(state, not_before_s=50.0) is state
    waiting = Disruption(next_at_s=103.0, proposed=(1,))
    assert karpenter.next_useful_pass(waiting, not_before_s=500.0) is waiting


whole_seconds = st.integers(0, 600).map(float)


@given(st.lists(whole_seconds, min_size=1, max_size=12), whole_seconds)
def test_skipping_polls_deletes_the_same_nodes_at_the_same_instants(went_s: list[float], first_poll_s: float) -> None:
    fleet = [node(key, last_pod_event_s=at_s) for key, at_s in enumerate(went_s)]

    def run(*, skip: bool) -> list[tuple[float, tuple[int, ...]]]:
        nodes, state, seen = list(fleet), Disruption(next_at_s=first_poll_s), []
        while nodes:
            if skip:
                due = [karpenter.consolidatable_at_s(each, 60.0) or 0.0 for each in nodes]
                state = karpenter.next_useful_pass(state, not_before_s=min(due))
            now_s = state.next_at_s
            result = step(state, nodes, now_s)
            if result.deleted:
                seen.append((round(now_s, 6), result.deleted))
            nodes = [each for each in nodes if each.key not in result.deleted]
            state = result.state
        return seen

    assert run(skip=True) == run(skip=False)
