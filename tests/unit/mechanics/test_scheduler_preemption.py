"""Who would have to go, and the scheduler's sentence: by hand, and against sentences seen in real clusters."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import scheduler, scheduler_preemption
from leadtime.mechanics.scheduler import GPU, Effect, NodeShape, OccupiedNode, PlacedPod, PodShape, Taint
from leadtime.mechanics.scheduler_preemption import Preemption, preemption_victims


def placed(gpus: int, priority: int = 0, started_s: float = 0.0) -> PlacedPod:
    return PlacedPod(shape=PodShape(requests={GPU: gpus}, priority=priority), started_s=started_s)


def occupied(*pods: PlacedPod, gpus: int = 8, **changes: object) -> OccupiedNode:
    node = NodeShape(name="n", allocatable={GPU: gpus}, **changes)  # type: ignore[arg-type]
    for each in pods:
        node = node.with_pod(each.shape)
    return OccupiedNode(node=node, pods=pods)


def asking(gpus: int, priority: int = 100, *, may_preempt: bool = True) -> PodShape:
    return PodShape(requests={GPU: gpus}, priority=priority, may_preempt=may_preempt, name="big")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([occupied(placed(4), placed(4))], Preemption(node=0, victims=(1,)), id="one of two is enough"),
        pytest.param(
            [occupied(placed(4, 10), placed(4, 5))],
            Preemption(node=0, victims=(1,)),
            id="the less important one goes",
        ),
        pytest.param(
            [occupied(placed(4, 0, 50.0), placed(4, 0, 10.0))],
            Preemption(node=0, victims=(0,)),
            id="of equals the one that started later goes",
        ),
        pytest.param(
            [occupied(placed(2, 1), placed(2, 1), placed(4, 90))],
            Preemption(node=0, victims=(0, 1)),
            id="two unimportant ones rather than the important one",
        ),
        pytest.param(
            [occupied(placed(8, 50)), occupied(placed(4, 10), placed(4, 20))],
            Preemption(node=1, victims=(0,)),
            id="the node whose highest victim is lowest",
        ),
        pytest.param(
            [occupied(placed(2, 10), placed(2, 10), placed(4, 200)), occupied(placed(4, 10), placed(4, 200))],
            Preemption(node=1, victims=(0,)),
            id="same highest: the smaller sum, which fewer pods have",
        ),
        pytest.param(
            [occupied(placed(8, 10, 5.0)), occupied(placed(8, 10, 9.0))],
            Preemption(node=1, victims=(0,)),
            id="all equal: the victim that started latest",
        ),
        pytest.param(
            [occupied(placed(8, 10, 5.0)), occupied(placed(8, 10, 5.0))],
            Preemption(node=0, victims=(0,)),
            id="all equal: the first node",
        ),
        pytest.param([occupied(placed(8, 100))], None, id="equal priority is never a victim"),
        pytest.param([occupied(placed(2), placed(5, 100))], None, id="not enough even without them"),
        pytest.param([occupied(placed(2), gpus=2)], None, id="the node is too small"),
        pytest.param([occupied(placed(8), unschedulable=True)], None, id="cordoned"),
        pytest.param([occupied(placed(8)), occupied()], None, id="it fits elsewhere as it is"),
        pytest.param([], None, id="no nodes"),
    ],
)
def test_victims_for_a_pod_of_four_gpus(nodes: list[OccupiedNode], expected: Preemption | None) -> None:
    assert preemption_victims(asking(4), nodes) == expected


def test_a_pod_that_may_not_preempt_has_no_victims() -> None:
    assert preemption_victims(asking(4, may_preempt=False), [occupied(placed(8))]) is None


def test_a_share_of_a_gpu_is_freed_on_its_own_device() -> None:
    small = PodShape(gpu_milli=600)
    on = NodeShape(name="n", allocatable={GPU: 2}).with_pod(small).with_pod(small)
    pods = tuple(PlacedPod(shape=small, started_s=float(n), gpu_device=n) for n in range(2))
    nodes = [OccupiedNode(node=on, pods=pods)]
    assert preemption_victims(PodShape(gpu_milli=700, priority=1), nodes) == Preemption(node=0, victims=(1,))
    assert preemption_victims(PodShape(requests={GPU: 2}, priority=1), nodes) == Preemption(node=0, victims=(0, 1))


occupants = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)), max_size=5)


@given(st.lists(occupants, max_size=3), st.integers(1, 8), st.integers(0, 4))
def test_victims_are_lower_enough_and_none_too_many(
    cluster: list[list[tuple[int, int, int]]], gpus: int, priority: int
) -> None:
    nodes = [occupied(*(placed(g, p, float(s)) for g, p, s in pods), gpus=8) for pods in cluster]
    nodes = [each for each in nodes if each.node.free(GPU) >= 0]
    pod = asking(gpus, priority)
    found = preemption_victims(pod, nodes)
    if found is None:
        return
    on = nodes[found.node]
    gone = [on.pods[index].shape for index in found.victims]
    assert all(each.priority < priority for each in gone)
    room = on.node.free(GPU) + sum(each.requests[GPU] for each in gone)
    assert room >= gpus
    assert all(room - each.requests[GPU] < gpus for each in gone)


# Sentences


def test_sentence_counts_each_node_at_its_first_filter_and_sorts_as_text() -> None:
    taint = Taint(key="maintenance", effect=Effect.NO_SCHEDULE)
    nodes = [occupied(placed(8, 100)) for _ in range(10)]
    nodes += [occupied(placed(8, 100), taints=(taint, Taint(key="second", effect=Effect.NO_EXECUTE)))] * 2
    nodes += [occupied(unschedulable=True, taints=(taint,))]
    shapes = [each.node for each in nodes]
    row = scheduler.feasibility([asking(1)], shapes).rows[0]
    assert scheduler.sentence(row, shapes) == (
        "0/13 nodes are available: 1 node(s) were unschedulable, 10 Insufficient nvidia.com/gpu, "
        "2 node(s) had untolerated taint(s)."
    )


def test_sentence_of_the_story() -> None:
    taint = Taint(key="maintenance", effect=Effect.NO_SCHEDULE)
    nodes = [occupied(taints=(taint,)), occupied(placed(8, 100)), occupied(placed(8, 100))]
    assert scheduler_preemption.full_sentence(asking(1), nodes) == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu. "
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


def test_preemption_half_tells_too_small_from_full_and_from_not_enough() -> None:
    nodes = [
        occupied(gpus=4),  # too small for ever
        occupied(placed(8, 100)),  # large enough, nobody lower
        occupied(placed(2), placed(6, 100)),  # somebody lower, but not enough
    ]
    assert scheduler_preemption.preemption_sentence(asking(8), nodes) == (
        "preemption: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_all_short_resources_of_a_node_are_named() -> None:
    node = NodeShape(name="n", allocatable={"cpu": 1000, GPU: 1}, pods=110)
    pod = PodShape(requests={"cpu": 2000, GPU: 2})
    row = scheduler.feasibility([pod], [node]).rows[0]
    assert scheduler.sentence(row, [node]) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu, 1 Too many pods."
    )


def test_a_pod_that_may_not_preempt_says_so() -> None:
    assert scheduler_preemption.preemption_sentence(asking(1, may_preempt=False), [occupied(placed(8))]) == (
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_no_nodes_at_all_has_its_own_sentence() -> None:
    assert scheduler.sentence((), []) == "no nodes available to schedule pods"


def test_there_is_no_sentence_for_a_pod_that_fits_or_can_be_helped() -> None:
    shapes = [occupied().node]
    with pytest.raises(ValueError, match="no sentence"):
        scheduler.sentence(scheduler.feasibility([asking(1)], shapes).rows[0], shapes)
    with pytest.raises(ValueError, match="no sentence"):
        scheduler_preemption.preemption_sentence(asking(8), [occupied(placed(8))])
    with pytest.raises(ValueError, match="1 nodes, the cluster 0"):
        scheduler.sentence(((),), [])


# Real sentences. A cluster is built from the counts and must give the same words back; older versions' wording of the
# taint and their stray full stops are brought to 1.37 first.

DATA = Path(os.environ.get("LEADTIME_DATA_DIR") or Path(__file__).parents[4] / "shared" / "data")
MESSAGES = DATA / "kubernetes-samples" / "messages" / "scheduling_messages.jsonl"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"


def to_1_37(message: str) -> str:
    message = re.sub(r"node\(s\) had untolerated taint( \{[^}]*\}|(?!\())", TAINTED, message)
    return " preemption:".join(half.rstrip(".") + "." for half in message.split(" preemption:"))


def cluster_for(first_half: str) -> tuple[PodShape, list[OccupiedNode]] | None:
    """A pod and nodes for which the scheduler would say this; None when a reason is not one of our predicates."""
    head = re.match(r"0/(\d+) nodes are available: (.*)\.$", first_half)
    if head is None:
        return None
    counts = dict(reversed(part.split(" ", 1)) for part in head[2].split(", "))
    short = {reason.removeprefix("Insufficient "): int(n) for reason, n in counts.items() if reason.startswith("Insuf")}
    if set(counts) - {SELECTOR, TAINTED, CORDONED} - {f"Insufficient {resource}" for resource in short}:
        return None
    everything = dict.fromkeys(short, 1)
    good = {"labels": {"pool": "h200"}, "allocatable": everything}
    nodes = [NodeShape(name="s", allocatable=everything) for _ in range(int(counts.get(SELECTOR, "0")))]
    taint = Taint(key="t", effect=Effect.NO_SCHEDULE)
    nodes += [NodeShape(name="t", taints=(taint,), **good) for _ in range(int(counts.get(TAINTED, "0")))]  # type: ignore[arg-type]
    nodes += [NodeShape(name="c", unschedulable=True, **good) for _ in range(int(counts.get(CORDONED, "0")))]  # type: ignore[arg-type]
    for position in range(int(head[1]) - len(nodes)):
        used = {resource: 1 for resource, count in short.items() if position < count}
        nodes.append(NodeShape(name="f", requested=used, **good))  # type: ignore[arg-type]
    return PodShape(requests=everything, node_selector={"pool": "h200"}), [OccupiedNode(node=each) for each in nodes]


@pytest.mark.data
def test_real_sentences_come_back_word_for_word() -> None:
    if not MESSAGES.is_file():
        pytest.skip(f"{MESSAGES} is absent; set LEADTIME_DATA_DIR")
    covered = 0
    for line in MESSAGES.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["component"] != "kube-scheduler":
            continue
        message = to_1_37(entry["message"])
        first_half = message.split(" preemption:")[0]
        built = cluster_for(first_half)
        if built is None:
            continue
        pod, nodes = built
        covered += 1
        if " preemption:" in message:
            assert scheduler_preemption.full_sentence(pod, nodes) == message, entry["source"]
        else:
            shapes = [each.node for each in nodes]
            row = scheduler.feasibility([pod], shapes).rows[0]
            assert scheduler.sentence(row, shapes) == first_half, entry["source"]
    assert covered >= 8  # of ten: one speaks of pod affinity, one was shortened by its author
