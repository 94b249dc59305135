"""Pods on nodes: each predicate by hand, scores, and the invariants of placement."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import scheduler
from leadtime.mechanics.scheduler import (
    CPU,
    GPU,
    MEMORY,
    AffinityTerm,
    Effect,
    NodeShape,
    Operator,
    PodShape,
    Predicate,
    Requirement,
    Scoring,
    Strategy,
    Taint,
    Toleration,
    TolerationOperator,
    Weight,
)

GIB = 1024**3
GPU_TAINT = Taint(key="nvidia.com/gpu", value="present", effect=Effect.NO_SCHEDULE)


def node(name: str = "a", *, gpus: int = 8, used: int = 0, **changes: Any) -> NodeShape:
    values: dict[str, Any] = {
        "allocatable": {CPU: 32_000, MEMORY: 256 * GIB, GPU: gpus},
        "requested": {GPU: used},
    }
    return NodeShape(name=name, **(values | changes))


def pod(gpus: int = 1, **changes: Any) -> PodShape:
    values: dict[str, Any] = {"requests": {GPU: gpus}}
    return PodShape(**(values | changes))


def refused_by(one: PodShape, on: NodeShape) -> list[str]:
    return [failure.predicate for failure in scheduler.failures(one, on)]


@pytest.mark.parametrize(
    ("one", "on", "expected"),
    [
        pytest.param(pod(8), node(), [], id="exactly fits"),
        pytest.param(pod(4), node(used=5), [Predicate.INSUFFICIENT_RESOURCE], id="three free of eight"),
        pytest.param(pod(1), node(gpus=0), [Predicate.INSUFFICIENT_RESOURCE], id="GPUs not allocatable"),
        pytest.param(
            PodShape(requests={CPU: 33_000, MEMORY: 300 * GIB}),
            node(),
            [Predicate.INSUFFICIENT_RESOURCE] * 2,
            id="each short resource speaks",
        ),
        pytest.param(PodShape(), node(used=9), [], id="a pod without requests fits an overcommitted node"),
        pytest.param(pod(0), node(gpus=0), [], id="asking for none of a resource is no request"),
        pytest.param(pod(), node(pods=110), [Predicate.TOO_MANY_PODS], id="the 111th pod"),
        pytest.param(pod(), node(pods=109), [], id="the 110th pod"),
        pytest.param(pod(), node(unschedulable=True), [Predicate.NODE_UNSCHEDULABLE], id="cordoned"),
        pytest.param(pod(), node(taints=(GPU_TAINT,)), [Predicate.TAINT_TOLERATION], id="tainted"),
        pytest.param(
            pod(), node(taints=(Taint(key="slow", effect=Effect.PREFER_NO_SCHEDULE),)), [], id="only preferred"
        ),
        pytest.param(
            pod(),
            node(taints=(Taint(key="dying", effect=Effect.NO_EXECUTE),)),
            [Predicate.TAINT_TOLERATION],
            id="NoExecute",
        ),
        pytest.param(pod(node_selector={"pool": "h200"}), node(), [Predicate.NODE_AFFINITY], id="selector"),
        pytest.param(pod(node_selector={"pool": "h200"}), node(labels={"pool": "h200"}), [], id="selector matches"),
        pytest.param(
            pod(9, node_selector={"pool": "h200"}),
            node(unschedulable=True, taints=(GPU_TAINT,), pods=110),
            [
                Predicate.NODE_UNSCHEDULABLE,
                Predicate.TAINT_TOLERATION,
                Predicate.NODE_AFFINITY,
                Predicate.TOO_MANY_PODS,
                Predicate.INSUFFICIENT_RESOURCE,
            ],
            id="all of them, in the scheduler's order",
        ),
    ],
)  # fmt: skip
def test_predicates(one: PodShape, on: NodeShape, expected: list[str]) -> None:
    assert refused_by(one, on) == expected


EQUAL, EXISTS = TolerationOperator.EQUAL, TolerationOperator.EXISTS


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration(key="nvidia.com/gpu", value="present"), True, id="equal"),
        pytest.param(Toleration(key="nvidia.com/gpu", value="absent"), False, id="another value"),
        pytest.param(Toleration(key="nvidia.com/gpu"), False, id="no value is the empty value"),
        pytest.param(Toleration(key="nvidia.com/gpu", operator=EXISTS), True, id="exists"),
        pytest.param(Toleration(key="other", operator=EXISTS), False, id="another key"),
        pytest.param(Toleration(operator=EXISTS), True, id="no key: everything"),
        pytest.param(Toleration(operator=EXISTS, effect=Effect.NO_EXECUTE), False, id="another effect"),
        pytest.param(Toleration(operator=EXISTS, effect=Effect.NO_SCHEDULE), True, id="its effect"),
    ],
)
def test_tolerations(toleration: Toleration, tolerated: bool) -> None:
    found = refused_by(pod(tolerations=(toleration,)), node(taints=(GPU_TAINT,)))
    assert found == ([] if tolerated else [Predicate.TAINT_TOLERATION])


def test_the_cordon_is_tolerated_by_its_own_taint() -> None:
    cordon = Toleration(key="node.kubernetes.io/unschedulable", operator=EXISTS)
    assert refused_by(pod(tolerations=(cordon,)), node(unschedulable=True)) == []


LABELS = {
    "zone": "b",
    "gpu-memory": "141",
    "generation": "nine",
    "big": "9223372036854775807",
    "huge": "9223372036854775808",
}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", Operator.IN, ("a", "b"), True),
        ("zone", Operator.IN, ("a",), False),
        ("rack", Operator.IN, ("a",), False),
        ("zone", Operator.NOT_IN, ("a",), True),
        ("zone", Operator.NOT_IN, ("b",), False),
        pytest.param("rack", Operator.NOT_IN, ("b",), True, id="NotIn holds where the label is absent"),
        ("zone", Operator.EXISTS, (), True),
        ("rack", Operator.EXISTS, (), False),
        ("zone", Operator.DOES_NOT_EXIST, (), False),
        ("rack", Operator.DOES_NOT_EXIST, (), True),
        ("gpu-memory", Operator.GT, ("80",), True),
        ("gpu-memory", Operator.GT, ("141",), False),
        ("gpu-memory", Operator.LT, ("142",), True),
        ("gpu-memory", Operator.LT, ("141",), False),
        pytest.param("rack", Operator.LT, ("9",), False, id="Lt does not hold where the label is absent"),
        pytest.param("generation", Operator.GT, ("1",), False, id="a label that is no number"),
        pytest.param("gpu-memory", Operator.GT, ("80", "90"), False, id="Gt with two values"),
        pytest.param("gpu-memory", Operator.LT, ("1_000",), False, id="a number only Python would read"),
        pytest.param("gpu-memory", Operator.GT, ("-1",), False, id="a negative number is no label value"),
        pytest.param("big", Operator.GT, ("9223372036854775806",), True, id="the largest int64"),
        pytest.param(
            "gpu-memory", Operator.LT, ("9223372036854775808",), False, id="a number beyond int64 is not read"
        ),
        pytest.param("huge", Operator.GT, ("1",), False, id="nor is a label beyond int64"),
        pytest.param("zone", Operator.NOT_IN, ("-a",), False, id="nor is a leading dash"),
        pytest.param("zone", Operator.NOT_IN, ("a" * 64,), False, id="nor are 64 characters"),
        pytest.param("zone", Operator.NOT_IN, (), False, id="NotIn nothing cannot be read"),
        pytest.param("zone", Operator.EXISTS, ("b",), False, id="Exists with a value cannot be read"),
    ],
)
def test_affinity_operators(key: str, operator: Operator, values: tuple[str, ...], expected: bool) -> None:
    term = AffinityTerm(requirements=(Requirement(key=key, operator=operator, values=values),))
    assert (refused_by(pod(affinity=(term,)), node(labels=LABELS)) == []) is expected


def test_affinity_terms_are_alternatives_requirements_are_not() -> None:
    in_a = Requirement(key="zone", operator=Operator.IN, values=("a",))
    in_b = Requirement(key="zone", operator=Operator.IN, values=("b",))
    on = node(labels=LABELS)
    assert refused_by(pod(affinity=(AffinityTerm(requirements=(in_a,)), AffinityTerm(requirements=(in_b,)))), on) == []
    assert refused_by(pod(affinity=(AffinityTerm(requirements=(in_a, in_b)),)), on) == [Predicate.NODE_AFFINITY]


def test_an_empty_term_and_no_term_match_no_node() -> None:
    assert refused_by(pod(affinity=(AffinityTerm(requirements=()),)), node()) == [Predicate.NODE_AFFINITY]
    assert refused_by(pod(affinity=()), node()) == [Predicate.NODE_AFFINITY]


def test_selector_and_affinity_must_both_hold() -> None:
    in_b = AffinityTerm(requirements=(Requirement(key="zone", operator=Operator.IN, values=("b",)),))
    assert refused_by(pod(affinity=(in_b,), node_selector={"rack": "1"}), node(labels=LABELS)) == [
        Predicate.NODE_AFFINITY
    ]


def test_a_failure_carries_its_numbers() -> None:
    (failure,) = scheduler.failures(pod(4), node(used=5))
    assert (failure.resource, failure.wanted, failure.free, failure.allocatable) == (GPU, 4, 3, 8)
    assert not failure.unresolvable
    (too_large,) = scheduler.failures(pod(9), node())
    assert too_large.unresolvable


# Shares of one GPU


def share(milli: int) -> PodShape:
    return PodShape(gpu_milli=milli)


def test_a_share_opens_a_gpu_and_the_next_share_joins_it() -> None:
    on = node(gpus=2).with_pod(share(600))
    assert (on.shared_gpu_free_milli, on.free(GPU)) == ((400,), 1)
    on = on.with_pod(share(400))
    assert (on.shared_gpu_free_milli, on.free(GPU)) == ((0,), 1)


def test_shares_do_not_add_up_across_devices() -> None:
    on = node(gpus=2).with_pod(share(600)).with_pod(share(600))
    assert on.shared_gpu_free_milli == (400, 400)
    (failure,) = scheduler.failures(share(500), on)
    assert (failure.resource, failure.wanted, failure.free) == (GPU, 500, 400)
    assert not failure.unresolvable
    assert scheduler.failures(share(400), on) == ()


def test_a_share_joins_the_fullest_device_that_holds_it() -> None:
    on = node(gpus=3).with_pod(share(300)).with_pod(share(900)).with_pod(share(100))
    assert on.shared_gpu_free_milli == (700, 0)


def test_a_device_all_of_whose_shares_left_is_a_whole_gpu_again() -> None:
    on = node(gpus=1).with_pod(share(600))
    assert refused_by(pod(1), on) == [Predicate.INSUFFICIENT_RESOURCE]
    on = on.without_pod(share(600), 0)
    assert on.free(GPU) == 1
    assert refused_by(pod(1), on) == []
    assert refused_by(share(100), on.with_pod(pod(1))) == [Predicate.INSUFFICIENT_RESOURCE]
    assert on.with_pod(share(100)).shared_gpu_free_milli == (900,)


def test_a_share_on_a_node_without_gpus_can_never_fit() -> None:
    (failure,) = scheduler.failures(share(100), node(gpus=0))
    assert failure.unresolvable


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"gpu_milli": 1000}, "gpu_milli is 1000"),
        ({"gpu_milli": -1}, "gpu_milli is -1"),
        ({"gpu_milli": 500, "requests": {GPU: 1}}, "whole GPUs and for a share"),
        ({"requests": {CPU: -5}}, "requests -5 of cpu"),
    ],
)
def test_impossible_pods_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PodShape(**wrong)


def test_a_share_and_its_device_belong_together() -> None:
    with pytest.raises(ValueError, match="500 milli-GPU, its device is None"):
        node().without_pod(share(500), None)


# Scores

GPUS_ONLY = (Weight(resource=GPU),)


def test_least_allocated_takes_the_emptier_node_and_the_first_of_equals() -> None:
    nodes = [node("a", used=4), node("b", used=1), node("c", used=1)]
    assert scheduler.place(pod(), nodes, Scoring(weights=GPUS_ONLY)) == 1


def test_most_allocated_takes_the_fullest_node_that_holds_the_pod() -> None:
    nodes = [node("a", used=4), node("b", used=7), node("c", used=1)]
    fill = Scoring(strategy=Strategy.MOST_ALLOCATED, weights=GPUS_ONLY)
    assert scheduler.place(pod(2), nodes, fill) == 0
    assert scheduler.place(pod(1), nodes, fill) == 1


def test_default_scoring_looks_at_cpu_and_memory_only() -> None:
    full_of_gpu_pods = node("a", used=7, requested={CPU: 1000, MEMORY: GIB, GPU: 7})
    full_of_cpu_pods = node("b", requested={CPU: 30_000, MEMORY: GIB})
    assert scheduler.place(pod(), [full_of_cpu_pods, full_of_gpu_pods], Scoring()) == 1


def test_scores_are_whole_numbers_as_in_the_original() -> None:
    # Free after placing: 32,000 − 16,100 = 15,900 of 32,000 = 49.7 → 49, and 15,800 → 49.4 → 49: equal, the first wins.
    nodes = [node("a", requested={CPU: 16_100}), node("b", requested={CPU: 16_000})]
    cpu_only = Scoring(weights=(Weight(resource=CPU),))
    assert scheduler.place(PodShape(requests={CPU: 100}), nodes, cpu_only) == 0


def test_a_pod_without_a_cpu_request_is_scored_as_a_tenth_of_a_core() -> None:
    # 15,999 + 100 = 16,099 → 49; 15,900 + 100 = 16,000 → 50. With 0 instead of 100 both were 50 and "a" would win.
    nodes = [node("a", requested={CPU: 15_999}), node("b", requested={CPU: 15_900})]
    assert scheduler.place(PodShape(), nodes, Scoring(weights=(Weight(resource=CPU),))) == 1


def test_asking_for_no_cpu_is_not_the_same_as_not_asking_in_scores() -> None:
    # Asked for 0: 15,999 → 50 and 15,900 → 50, equal. Not asked: as above.
    nodes = [node("a", requested={CPU: 15_999}), node("b", requested={CPU: 15_900})]
    assert scheduler.place(PodShape(requests={CPU: 0}), nodes, Scoring(weights=(Weight(resource=CPU),))) == 0


def test_pods_that_stand_without_a_request_count_in_scores_too() -> None:
    crowded = node("a", requested={})
    for _ in range(20):
        crowded = crowded.with_pod(PodShape(requests={MEMORY: 0}))
    cpu_only = Scoring(weights=(Weight(resource=CPU),))
    # 20 × 100 + 100 = 2,100 of 32,000 → 93; 1,500 + 100 = 1,600 → 95.
    assert scheduler.place(PodShape(), [crowded, node("b", requested={CPU: 1500})], cpu_only) == 1
    assert crowded.free(CPU) == 32_000
    for _ in range(20):
        crowded = crowded.without_pod(PodShape(requests={MEMORY: 0}), None)
    assert scheduler.place(PodShape(), [crowded, node("b", requested={CPU: 1500})], cpu_only) == 0


def test_weights_count() -> None:
    nodes = [
        node("a", requested={CPU: 0, MEMORY: 200 * GIB}),
        node("b", requested={CPU: 30_000, MEMORY: 0}),
    ]
    one = PodShape(requests={CPU: 1000, MEMORY: GIB})
    heavy_cpu = Scoring(weights=(Weight(resource=CPU, weight=3), Weight(resource=MEMORY)))
    heavy_memory = Scoring(weights=(Weight(resource=CPU), Weight(resource=MEMORY, weight=3)))
    assert scheduler.place(one, nodes, heavy_cpu) == 0
    assert scheduler.place(one, nodes, heavy_memory) == 1


def test_no_node_no_place() -> None:
    assert scheduler.place(pod(), [], Scoring()) is None
    assert scheduler.place(pod(), [node(used=8)], Scoring()) is None


# Invariants

amounts = st.integers(0, 4)
some_pods = st.builds(
    lambda gpus, cpu, milli, tolerant, zone: PodShape(
        requests={GPU: 0 if milli else gpus, CPU: cpu * 1000},
        gpu_milli=milli,
        tolerations=(Toleration(operator=EXISTS),) if tolerant else (),
        node_selector={"zone": zone} if zone else {},
    ),
    amounts,
    amounts,
    st.sampled_from([0, 0, 300, 700]),
    st.booleans(),
    st.sampled_from(["", "a", "b"]),
)
some_nodes = st.builds(
    lambda gpus, cpu, tainted, cordoned, zone, most: NodeShape(
        name=zone,
        allocatable={GPU: gpus, CPU: cpu * 1000},
        labels={"zone": zone},
        taints=(GPU_TAINT,) if tainted else (),
        unschedulable=cordoned,
        max_pods=most,
    ),
    amounts,
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["a", "b"]),
    st.integers(1, 4),
)
scorings = st.builds(lambda strategy, by: Scoring(strategy=strategy, weights=by), st.sampled_from(list(Strategy)),
                     st.sampled_from([GPUS_ONLY, Scoring().weights]))  # fmt: skip


@given(st.lists(some_pods, max_size=12), st.lists(some_nodes, max_size=4), scorings)
def test_placing_never_overcommits_and_waits_only_where_nothing_fits(
    pods: list[PodShape], nodes: list[NodeShape], scoring: Scoring
) -> None:
    for one in pods:
        row = scheduler.feasibility([one], nodes).rows[0]
        chosen = scheduler.place(one, nodes, scoring)
        if chosen is None:
            assert all(row)
            continue
        assert row[chosen] == ()
        nodes[chosen] = nodes[chosen].with_pod(one)
    for each in nodes:
        assert each.pods <= each.max_pods
        assert each.free(GPU) >= 0
        assert each.free(CPU) >= 0
        assert all(0 <= free <= 1000 for free in each.shared_gpu_free_milli)
        assert len(each.shared_gpu_free_milli) <= each.allocatable[GPU]


@given(some_pods, some_nodes)
def test_what_came_can_go_and_leaves_the_room_it_took(one: PodShape, on: NodeShape) -> None:
    if scheduler.failures(one, on):
        return
    before = on.free(GPU)
    there = on.with_pod(one)
    back = there.without_pod(one, 0 if one.gpu_milli else None)
    assert (back.free(GPU), back.free(CPU), back.pods) == (before, on.free(CPU), on.pods)
