"""``mechanics.replicaset`` beside Kubernetes' own ReplicaSet controller: every pair of pods, and who is deleted.

Cases are drawn by one seed each from a small world, so that ties at every rule are frequent. A difference is cut down
and printed; it then becomes a plain test in ``tests/unit/mechanics``.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from oracle_program import Lines, running
from real_cluster import MARKS

from leadtime.mechanics import replicaset
from leadtime.mechanics.replicaset import Phase, RankedPod

pytestmark = MARKS
CASES, BATCH = 6000, 200
NOW_S = 8_640_000.5  # on the oracle's clock a hundred days and half a second: all ages are exact as float64
# Ages in ms, dense around powers of two of nanoseconds, where the age bucket changes (2^40 ns = 1,099.5 s).
AGES_MS = (500, 1_500, 1_072_500, 1_099_500, 1_100_500, 2_198_500, 2_199_500, 3_600_500, 4_398_500, 90_000_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Pods of one ReplicaSet, further pods of its Deployment, how many go."""

    pods: tuple[RankedPod, ...]
    others: tuple[RankedPod, ...]
    delete: int


def drawn(draw: Random) -> Case:
    """One case. ``alike`` makes most fields equal, so that late rules decide."""
    alike = draw.choice((0.0, 0.5, 0.9))
    unknown_times = draw.choice((0.0, 0.0, 0.3))
    count = draw.randint(2, 9)
    uids = [f"{draw.randrange(16**8):08x}" for _ in range(count + 4)]

    def some(usual: Any, *rare: Any) -> Any:
        return usual if draw.random() < alike else draw.choice((usual, *rare))

    def pod(uid: str) -> RankedPod:
        ready = some(True, False)
        age_ms = some(3_600_500, *AGES_MS)
        since_ms = some(1_099_500, *AGES_MS)
        return RankedPod(
            uid=uid,
            node=some("n1", "n2", "n3", None),
            phase=some(Phase.RUNNING, Phase.PENDING, Phase.UNKNOWN),
            ready=ready,
            ready_since_s=None if draw.random() < unknown_times else NOW_S - since_ms / 1000,
            created_s=NOW_S - age_ms / 1000,
            restarts=some(0, 1, 2),
            sidecar_restarts=some(0, 1),
            deletion_cost=some(0, -1, 5),
        )

    pods = tuple(pod(uid) for uid in uids[:count])
    others = tuple(pod(uid) for uid in uids[count : count + draw.choice((0, 0, 4))])
    return Case(pods=pods, others=others, delete=draw.randint(1, count - 1))


PHASES = {Phase.PENDING: "Pending", Phase.UNKNOWN: "Unknown", Phase.RUNNING: "Running"}


def told(pod: RankedPod) -> dict[str, Any]:
    """As the program reads it."""

    def age_ms(at_s: float) -> int:
        return round((NOW_S - at_s) * 1000)

    return {
        "uid": pod.uid,
        "node": pod.node or "",
        "phase": PHASES[pod.phase],
        "ready": pod.ready,
        "ready_since_ms": None if pod.ready_since_s is None else age_ms(pod.ready_since_s),
        "created_ms": age_ms(pod.created_s),
        "restarts": pod.restarts,
        "sidecar_restarts": pod.sidecar_restarts,
        "deletion_cost": pod.deletion_cost,
    }


def question(case: Case) -> dict[str, Any]:
    return {
        "pods": [told(pod) for pod in case.pods],
        "others": [told(pod) for pod in case.others],
        "delete": case.delete,
    }


def ours_before(case: Case) -> list[list[int]]:
    """For each pod, the pods that it is deleted before, pair by pair."""
    siblings = Counter(pod.node for pod in (*case.pods, *case.others))
    return [
        [
            j
            for j, other in enumerate(case.pods)
            if i != j
            and replicaset.first_deleted(
                one, other, rank=siblings[one.node], other_rank=siblings[other.node], now_s=NOW_S
            )
        ]
        for i, one in enumerate(case.pods)
    ]


def one_order(before: list[list[int]]) -> bool:
    """True when the comparison allows exactly one order: no ties, no circle."""
    return sorted(len(some) for some in before) == list(range(len(before)))


def difference(case: Case, answer: dict[str, Any]) -> str | None:
    """What differs, or None."""
    before = ours_before(case)
    if before != answer["before"]:
        return f"pairs: leadtime {before}, kubernetes {answer['before']}"
    order = replicaset.deletion_order(case.pods, now_s=NOW_S, related=(*case.pods, *case.others))
    if one_order(before) and list(order[: case.delete]) != answer["deleted"]:
        return f"deleted: leadtime {list(order[: case.delete])}, kubernetes {answer['deleted']}"
    return None


def reduced(case: Case, lines: Lines) -> Case:
    """Fewer pods that still differ."""
    for kept in ("others", "pods"):
        for index in reversed(range(len(getattr(case, kept)))):
            fewer = tuple(pod for i, pod in enumerate(getattr(case, kept)) if i != index)
            parts = {"pods": case.pods, "others": case.others, kept: fewer}
            if len(parts["pods"]) < 2:
                continue
            smaller = Case(**parts, delete=min(case.delete, len(parts["pods"]) - 1))
            (answer,) = lines.ask([question(smaller)])
            if difference(smaller, answer) is not None:
                case = smaller
    return case


@pytest.fixture(scope="module")
def original(request: pytest.FixtureRequest) -> Iterator[Lines]:
    """The Go program, built if need be."""
    with running(request, "replicaset", test_binary=True) as lines:
        yield lines


def test_every_pair_and_every_deletion_is_the_same_as_kubernetes_own(original: Lines) -> None:
    seen: Counter[str] = Counter()
    for first in range(0, CASES, BATCH):
        cases = [drawn(Random(f"replicaset {seed}")) for seed in range(first, first + BATCH)]
        for case, answer in zip(cases, original.ask([question(case) for case in cases]), strict=True):
            what = difference(case, answer)
            if what is not None:
                small = reduced(case, original)
                (again,) = original.ask([question(small)])
                pytest.fail(f"{difference(small, again)}\n" + "\n".join(map(repr, (*small.pods, *small.others))))
            seen.update(cases=1, one_order=one_order(answer["before"]), pairs=len(case.pods) ** 2)
    assert seen["cases"] == CASES
    assert seen["one_order"] > CASES / 3
