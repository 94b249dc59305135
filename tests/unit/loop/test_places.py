"""The small pool behind the shadow record: nodes come a lead later, and a falling load leaves them half full."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leadtime.loop.places import PoolShape, placed


def run(
    wanted: list[int],
    ordered: list[int] | None = None,
    *,
    lead: int = 2,
    size: int = 4,
    fixed: int = 1,
    drain: float | None = None,
) -> list[int]:
    room = wanted if ordered is None else ordered
    found = placed(
        np.array(wanted, dtype=float),
        np.array(room, dtype=float),
        node_steps=lead,
        shape=PoolShape(pods_per_node=size, drain_below_ratio=drain),
        fixed_nodes=fixed,
    )
    return [int(pods) for pods in found.bound]


def test_pods_wait_for_a_node_that_comes_one_lead_after_they_were_wanted() -> None:
    assert run([4, 9, 9, 9, 9]) == [4, 4, 4, 9, 9]


def test_room_ordered_ahead_is_there_in_time() -> None:
    assert run([4, 4, 4, 9, 9], [4, 9, 9, 9, 9]) == [4, 4, 4, 9, 9]


def test_whole_nodes_have_room_to_grow_into() -> None:
    assert run([5, 8, 8]) == [5, 8, 8]  # two nodes of four from the start


def test_empty_nodes_stay_ten_minutes_and_then_have_to_come_again() -> None:
    assert run([8] + [4] * 8 + [8])[-1] == 8
    assert run([8] + [4] * 20 + [8, 8, 8])[-3:] == [4, 4, 8]


def test_a_slowly_falling_load_leaves_nodes_half_full_and_so_a_place_for_later() -> None:
    slowly = list(range(40, 20, -1)) + [21] * 60 + [30]
    at_once = [40] + [21] * 79 + [30]
    assert run(slowly)[-1] == 30
    assert run(at_once)[-1] < 30


def test_fixed_nodes_are_never_removed() -> None:
    assert run([1] * 60 + [8], fixed=2)[-1] == 8


@given(wanted=st.lists(st.integers(0, 60), min_size=1, max_size=80), size=st.integers(1, 8), lead=st.integers(1, 20))
def test_never_more_than_wanted_and_ordering_more_room_never_places_fewer(
    wanted: list[int], size: int, lead: int
) -> None:
    alone = run(wanted, lead=lead, size=size)
    ahead = run(wanted, [max(wanted)] * len(wanted), lead=lead, size=size)
    assert all(bound <= want for bound, want in zip(alone, wanted, strict=True))
    assert all(more >= less for more, less in zip(ahead, alone, strict=True))


def test_half_used_nodes_are_drained_after_ten_minutes_where_the_autoscaler_drains() -> None:
    # 8 + 1 pods on three nodes of four; one pod goes from each full node: 3 + 3 + 1. The third node is a quarter used
    # and its pod fits elsewhere. Twenty minutes later nine pods find eight places; without draining they find nine.
    wanted = [9] + [7] * 20 + [9]
    assert run(wanted, drain=0.5)[-1] == 8
    assert run(wanted)[-1] == 9
