"""How many nodes are asked for: room that stands or is coming counts, and not one node more than needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics.node_autoscaler import buffer_nodes, buffer_size, nodes_wanted


@pytest.mark.parametrize(
    ("pending", "free", "expected"),
    [
        pytest.param([1] * 8, [], 1, id="eight pods of one GPU fill a node"),
        pytest.param([1] * 9, [], 2, id="the ninth needs a second"),
        pytest.param([1] * 9, [1], 1, id="one finds room on a ready or arriving node"),
        pytest.param([1] * 9, [8, 8], 0, id="nodes in flight take them all"),
        pytest.param([3] * 4, [], 2, id="two pods of three GPUs a node, two GPUs left over on each"),
        pytest.param([8, 1], [7], 1, id="a whole-node pod does not fit seven free GPUs, the small one does"),
        pytest.param([4, 4, 2, 2, 2, 2], [], 2, id="mixed sizes, largest first"),
        pytest.param([2, 2, 2, 2, 4, 4], [], 2, id="whatever the order they came in"),
        pytest.param([9], [], 0, id="larger than any node: nothing is asked for"),
        pytest.param([0, 0], [], 0, id="pods without GPUs ask for none"),
        pytest.param([], [], 0, id="nobody waits"),
        pytest.param([4], [2, 2], 1, id="two free halves are not one pod's room"),
    ],
)
def test_nodes_wanted_on_nodes_of_eight(pending: list[int], free: list[int], expected: int) -> None:
    assert nodes_wanted(pending, free, 8, 100, len(free)) == expected


def test_the_pool_limit_caps_the_request() -> None:
    assert nodes_wanted([1] * 80, [], 8, 70, 65) == 5
    assert nodes_wanted([1] * 80, [], 8, 65, 65) == 0
    assert nodes_wanted([1] * 80, [], 8, 60, 65) == 0


def test_a_pool_without_gpus_per_node_is_asked_for_nothing() -> None:
    assert nodes_wanted([1], [], 0, 10, 0) == 0


def test_buffer_pods_take_only_what_real_pods_leave() -> None:
    # 4 free: the 4 real pods take them, the 2 virtual ones need a node.
    assert nodes_wanted([1] * 4, [4], 8, 10, 1, buffer_gpu_requests=[1, 1]) == 1
    # The real pods' new node has 7 GPUs left for them.
    assert nodes_wanted([1], [], 8, 10, 0, buffer_gpu_requests=[1] * 7) == 1
    # A large virtual pod never goes before a small real one.
    assert nodes_wanted([1], [8], 8, 10, 1, buffer_gpu_requests=[8]) == 1


def test_buffer_room_lies_on_the_first_nodes_that_hold_it() -> None:
    assert buffer_nodes([1] * 9, [0, 8, 8, 8]) == {1, 2}
    assert buffer_nodes([], [8]) == frozenset()
    assert buffer_nodes([8], [7, 8]) == {1}


@pytest.mark.parametrize(
    ("replicas", "percentage", "limits", "standing", "expected"),
    [
        pytest.param(5, None, None, 0, 5, id="replicas alone"),
        pytest.param(None, 10, None, 45, 5, id="10 % of 45 is 4.5, rounded up"),
        pytest.param(3, 10, None, 45, 5, id="the larger of both: the share"),
        pytest.param(8, 10, None, 45, 8, id="the larger of both: replicas"),
        pytest.param(8, 10, 6, 45, 6, id="limits cut it"),
        pytest.param(None, None, 6, 45, 0, id="limits alone ask for nothing"),
        pytest.param(8, None, 0, 45, 0, id="limits of none leave no room"),
    ],
)
def test_buffer_size(
    replicas: int | None, percentage: int | None, limits: int | None, standing: int, expected: int
) -> None:
    assert buffer_size(replicas, percentage, limits, scalable_replicas=standing) == expected


equal_pods = st.tuples(st.integers(0, 60), st.integers(1, 8), st.lists(st.integers(0, 8), max_size=8))


@given(equal_pods)
def test_for_equal_pods_the_nodes_are_enough_and_not_one_too_many(case: tuple[int, int, list[int]]) -> None:
    pods, gpus, free = case
    wanted = nodes_wanted([gpus] * pods, free, 8, 1000, len(free))
    left = max(0, pods - sum(each // gpus for each in free))
    per_node = 8 // gpus
    assert wanted * per_node >= left
    assert wanted == 0 or (wanted - 1) * per_node < left


@given(st.lists(st.integers(1, 8), max_size=30), st.lists(st.integers(0, 8), max_size=5))
def test_asking_again_with_the_answer_in_flight_asks_for_nothing(pending: list[int], free: list[int]) -> None:
    wanted = nodes_wanted(pending, free, 8, 1000, len(free))
    assert wanted * 8 + sum(free) >= sum(pending)
    standing = free + [8] * wanted
    assert nodes_wanted(pending, standing, 8, 1000, len(standing)) <= wanted
    if len(set(pending)) <= 1:
        assert nodes_wanted(pending, standing, 8, 1000, len(standing)) == 0
