"""Equal pods on nodes: the fast path chooses what placing one by one would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import scheduler
from leadtime.mechanics.scheduler import GPU, NodeShape, PodShape, Scoring, Strategy, Weight


def gpu_scoring(strategy: Strategy) -> Scoring:
    return Scoring(strategy=strategy, weights=(Weight(resource=GPU),))


def one_by_one(pending: int, gpus: int, free: list[int], strategy: Strategy, per_node: int) -> tuple[int, ...]:
    nodes = [
        NodeShape(name=str(i), allocatable={GPU: per_node}, requested={GPU: per_node - each})
        for i, each in enumerate(free)
    ]
    pod = PodShape(requests={GPU: gpus})
    chosen = []
    for _ in range(pending):
        index = scheduler.place(pod, nodes, gpu_scoring(strategy))
        if index is None:
            break
        nodes[index] = nodes[index].with_pod(pod)
        chosen.append(index)
    return tuple(chosen)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, list[int], int]:
    per_node = draw(st.sampled_from([1, 4, 8, 16, 300]))
    free = draw(st.lists(st.integers(0, per_node), max_size=6))
    return draw(st.integers(0, 20)), draw(st.integers(1, min(per_node + 1, 9))), free, per_node


@given(cases(), st.sampled_from(list(Strategy)))
def test_pack_equals_placing_one_by_one(case: tuple[int, int, list[int], int], strategy: Strategy) -> None:
    pending, gpus, free, per_node = case
    assert scheduler.pack(pending, gpus, free, strategy, gpus_per_node=per_node) == one_by_one(
        pending, gpus, free, strategy, per_node
    )


@given(cases(), st.sampled_from(list(Strategy)))
def test_pack_fills_exactly_the_slots_there_are(case: tuple[int, int, list[int], int], strategy: Strategy) -> None:
    pending, gpus, free, per_node = case
    chosen = scheduler.pack(pending, gpus, free, strategy, gpus_per_node=per_node)
    assert len(chosen) == min(pending, sum(scheduler.slots(each, gpus) for each in free))
    assert all(chosen.count(index) * gpus <= each for index, each in enumerate(free))


def test_least_allocated_spreads_and_most_allocated_fills() -> None:
    assert scheduler.pack(4, 2, [4, 8, 6], Strategy.LEAST_ALLOCATED) == (1, 1, 2, 0)
    assert scheduler.pack(4, 2, [4, 8, 6], Strategy.MOST_ALLOCATED) == (0, 0, 2, 2)


@pytest.mark.parametrize(
    ("free", "gpus", "expected"), [(8, 1, 8), (8, 3, 2), (2, 3, 0), (0, 1, 0), pytest.param(-1, 1, 0, id="overcommit")]
)
def test_slots_are_whole_pods(free: int, gpus: int, expected: int) -> None:
    assert scheduler.slots(free, gpus) == expected


def test_a_pod_without_gpus_has_no_slots_to_count() -> None:
    with pytest.raises(ValueError, match="gpus_per_pod is 0"):
        scheduler.slots(8, 0)
    with pytest.raises(ValueError, match="gpus_per_pod is 0"):
        scheduler.pack(1, 0, [8])
