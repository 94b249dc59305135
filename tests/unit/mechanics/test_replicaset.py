"""The order in which a scale-down deletes pods: each rule by hand, and the sort key against the pairwise comparison."""

from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import replicaset
from leadtime.mechanics.replicaset import Phase, RankedPod

NOW_S = 100_000.0


def pod(uid: str | int = "m", **changes: Any) -> RankedPod:
    values: dict[str, Any] = {
        "node": "n1",
        "phase": Phase.RUNNING,
        "ready": True,
        "ready_since_s": NOW_S - 3600.0,
        "created_s": NOW_S - 4000.0,
    }
    return RankedPod(uid=uid, **(values | changes))


def starting(uid: str | int = "m", **changes: Any) -> RankedPod:
    return pod(uid, ready=False, ready_since_s=None, **changes)


def order(*pods: RankedPod, related: list[RankedPod] | None = None) -> tuple[int, ...]:
    return replicaset.deletion_order(pods, now_s=NOW_S, related=related)


# Each case: the pod that goes first, the pod that stays. All later rules speak for the opposite where they can.
RULES = [
    pytest.param(
        starting("z", node=None, phase=Phase.RUNNING, deletion_cost=9),
        starting("a", phase=Phase.PENDING),
        id="1 not bound before bound, even against the phase",
    ),
    pytest.param(starting("z", phase=Phase.PENDING, deletion_cost=9), starting("a"), id="2 Pending before Running"),
    pytest.param(
        starting("z", phase=Phase.PENDING), starting("a", phase=Phase.UNKNOWN), id="2 Pending before Unknown"
    ),
    pytest.param(starting("z", phase=Phase.UNKNOWN), starting("a"), id="2 Unknown before Running"),
    pytest.param(
        starting("z", deletion_cost=1000),
        pod("a", deletion_cost=-1000),
        id="3 not ready before ready, whatever the deletion cost",
    ),
    pytest.param(pod("z", deletion_cost=-1), pod("a"), id="4 a negative cost before none"),
    pytest.param(
        pod("z", ready_since_s=NOW_S - 90_000.0), pod("a", deletion_cost=1), id="4 lower cost before shorter ready"
    ),
    # 1,000 s = 1e12 ns, 2^39.86; 3,600 s = 3.6e12 ns, 2^41.7
    pytest.param(pod("z", ready_since_s=NOW_S - 1000.0), pod("a"), id="6 ready 1,000 s (2^39) before 3,600 s (2^41)"),
    pytest.param(pod("z", ready_since_s=None), pod("a", ready_since_s=NOW_S), id="6 no ready time before the youngest"),
    pytest.param(pod("z", ready_since_s=NOW_S), pod("a", ready_since_s=NOW_S - 1.0), id="6 ready now before 1 s ago"),
    pytest.param(
        pod("z", ready_since_s=NOW_S - 1000.0),
        pod("a", restarts=5),
        id="6 shorter ready before more restarts",
    ),
    pytest.param(pod("z", restarts=2), pod("a", restarts=1), id="7 more restarts first (ready at one instant)"),
    pytest.param(starting("z", restarts=2), starting("a", created_s=NOW_S), id="7 more restarts before younger"),
    pytest.param(
        starting("z", sidecar_restarts=1), starting("a", created_s=NOW_S), id="7 then more restarts of a sidecar"
    ),
    pytest.param(
        starting("z", restarts=1), starting("a", sidecar_restarts=9), id="7 containers before sidecars"
    ),
    pytest.param(
        pod("z", sidecar_restarts=1), pod("a", created_s=NOW_S - 10.0), id="7 a sidecar's (ready at one instant)"
    ),
    pytest.param(
        starting("z", created_s=NOW_S - 1000.0), starting("a"), id="8 created 1,000 s (2^39) before 4,000 s (2^41)"
    ),
    pytest.param(
        starting("a", created_s=NOW_S - 2500.0),
        starting("b", created_s=NOW_S - 2400.0),
        id="8 one age bucket (2^41 ns = 2,199 s to 4,398 s): the UID decides, the older goes",
    ),
    pytest.param(
        pod("a", ready_since_s=NOW_S - 4000.0),
        pod("b", ready_since_s=NOW_S - 2300.0),
        id="6 one age bucket: the UID decides, restarts are not read",
    ),
    pytest.param(
        pod("z", created_s=NOW_S - 10.0, ready_since_s=NOW_S - 5.0),
        pod("a", created_s=NOW_S - 4000.0, ready_since_s=NOW_S - 8.6),
        id="6 5 s (2^32.2) before 8.6 s (2^33.0)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("goes", "stays"), RULES)
def test_rule_decides_in_either_input_order(goes: RankedPod, stays: RankedPod) -> None:
    # Both stand on n1, so rule 5 ties, or an earlier rule tells them apart.
    assert order(goes, stays) == (0, 1)
    assert order(stays, goes) == (1, 0)


def test_rule_5_more_siblings_on_the_node_go_first_before_shorter_ready() -> None:
    crowded = [pod("y", node="n1"), pod("z", node="n1")]
    alone = pod("a", node="n2", ready_since_s=NOW_S - 1.0)
    assert order(alone, *crowded) == (1, 2, 0)


def test_rule_5_counts_the_siblings_of_other_replicasets_of_the_deployment() -> None:
    here, there = pod("a", node="n1"), pod("z", node="n2")
    older = [pod("o1", node="n2"), pod("o2", node="n2")]
    assert order(here, there) == (0, 1)
    assert order(here, there, related=[here, there, *older]) == (1, 0)


def test_uids_as_numbers_sort_as_numbers() -> None:
    assert order(pod(10, ready_since_s=NOW_S - 2300.0), pod(9, ready_since_s=NOW_S - 2400.0)) == (1, 0)


def test_the_circle_in_kubernetes_comparison_is_real_and_answered_the_same_each_time() -> None:
    a = pod(3, restarts=1, ready_since_s=NOW_S - 3000.0)
    b = pod(1, restarts=0, ready_since_s=NOW_S - 3000.0)
    c = pod(2, restarts=0, ready_since_s=NOW_S - 3001.0)
    pairs = [(a, b), (b, c), (c, a)]
    assert all(replicaset.first_deleted(x, y, rank=1, other_rank=1, now_s=NOW_S) for x, y in pairs)
    orders = {tuple(trio[i].uid for i in order(*trio)) for trio in permutations((a, b, c))}
    assert len(orders) == 1


instants = st.one_of(
    st.integers(min_value=0, max_value=40).map(lambda exponent: NOW_S - 2.0**exponent / 1e6),
    st.floats(min_value=NOW_S - 50_000.0, max_value=NOW_S + 10.0),
)


@st.composite
def pods_with_distinct_ready_times(draw: st.DrawFn) -> list[RankedPod]:
    count = draw(st.integers(min_value=2, max_value=7))
    ready_times = draw(st.lists(instants, min_size=count, max_size=count, unique=True))
    uids = draw(st.permutations(range(count)))
    return [
        RankedPod(
            uid=uids[i],
            node=draw(st.sampled_from([None, "n1", "n2", "n3"])),
            phase=draw(st.sampled_from(list(Phase))),
            ready=draw(st.booleans()),
            ready_since_s=ready_times[i],
            created_s=draw(instants),
            restarts=draw(st.integers(0, 2)),
            deletion_cost=draw(st.integers(-1, 1)),
        )
        for i in range(count)
    ]


def key_of(one: RankedPod, rank: int) -> replicaset.DeletionKey:
    return replicaset.deletion_key(
        one.node is not None,
        one.phase,
        one.ready,
        one.deletion_cost,
        rank,
        one.ready_since_s,
        one.restarts,
        one.created_s,
        NOW_S,
        one.uid,
    )


@given(pods_with_distinct_ready_times())
def test_key_agrees_with_the_pairwise_comparison(pods: list[RankedPod]) -> None:
    ranks = [sum(other.node == one.node for other in pods) for one in pods]
    for i, one in enumerate(pods):
        for j, other in enumerate(pods):
            if replicaset.first_deleted(one, other, rank=ranks[i], other_rank=ranks[j], now_s=NOW_S):
                assert key_of(one, ranks[i]) < key_of(other, ranks[j])
    by_key = sorted(range(len(pods)), key=lambda i: key_of(pods[i], ranks[i]))
    assert list(replicaset.deletion_order(pods, now_s=NOW_S)) == by_key


@given(pods_with_distinct_ready_times(), st.booleans())
def test_pods_ready_at_one_instant_follow_the_pairwise_comparison(pods: list[RankedPod], ready: bool) -> None:
    alike = [
        RankedPod(
            uid=one.uid,
            node="n1",
            phase=Phase.RUNNING,
            ready=ready,
            ready_since_s=NOW_S - 5.0,
            created_s=one.created_s,
            restarts=one.restarts,
        )
        for one in pods
    ]
    chosen = replicaset.deletion_order(alike, now_s=NOW_S)
    assert sorted(chosen) == list(range(len(alike)))
    for before, after in pairwise(chosen):
        assert not replicaset.first_deleted(alike[after], alike[before], rank=1, other_rank=1, now_s=NOW_S)


@given(pods_with_distinct_ready_times(), st.randoms(use_true_random=False))
def test_order_does_not_depend_on_the_order_of_the_input(pods: list[RankedPod], random: Any) -> None:
    shuffled = list(pods)
    random.shuffle(shuffled)
    first = [pods[i].uid for i in replicaset.deletion_order(pods, now_s=NOW_S)]
    assert [shuffled[i].uid for i in replicaset.deletion_order(shuffled, now_s=NOW_S)] == first
