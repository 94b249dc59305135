"""Pods of one ReplicaSet → the order in which a scale-down deletes them.

The order is that of ``ActivePodsWithRanks`` in Kubernetes 1.37 (pkg/controller/controller_utils.go). Surprising: a pod
that still pulls its image or loads its model is always deleted before a ready one, whatever its deletion cost; and
"younger first" holds only between powers of two of the age, within one power the UID decides.

When the number to delete is the number of pods, Kubernetes does not sort: all go, the order says nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cmp_to_key
from math import log2

_NS_PER_S = 1e9
Uid = str | int
DeletionKey = tuple[bool, int, bool, int, int, int, int, int, int, Uid]
_ZERO_TIME = -2  # before every rank: a pod without a time counts as the youngest
_FUTURE = -1


class Phase(IntEnum):
    """Pod phase in the order of deletion. A bound pod whose containers have not started yet is PENDING."""

    PENDING = 0
    UNKNOWN = 1
    RUNNING = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPod:
    """One active pod (not Succeeded, not Failed, not being deleted) as the ReplicaSet controller ranks it.

    ``node`` None = not bound. ``ready_since_s`` = last transition to Ready, read only when ``ready``; None there means
    that the time is unknown, which counts as the youngest. Times are seconds on one clock. ``uid`` breaks ties and must
    be of one type within a call.
    """

    uid: Uid
    node: str | None
    phase: Phase
    ready: bool
    ready_since_s: float | None
    created_s: float
    restarts: int = 0  # highest restart count among its containers
    sidecar_restarts: int = 0  # the same among its init containers that restart always
    deletion_cost: int = 0  # annotation controller.kubernetes.io/pod-deletion-cost


def deletion_order(
    pods: Sequence[RankedPod], *, now_s: float, related: Sequence[RankedPod] | None = None
) -> tuple[int, ...]:
    """Indexes into ``pods``, the first to be deleted first.

    ``related``: every active pod of the owner (a Deployment's older ReplicaSets too, ``pods`` included), which count as
    siblings on a node; ``pods`` itself when None.

    Kubernetes' comparison can run in a circle: two pods became ready at the same instant and differ in restarts or
    creation, a third of the same age bucket did not (a by restarts before b, b by UID before c, c by UID before a). Its
    result then depends on the order of its cache; here it is one fixed order out of the possible ones.
    """
    siblings = Counter(pod.node for pod in (pods if related is None else related))
    keys = [_key_of(pod, siblings[pod.node], now_s) for pod in pods]
    order = sorted(range(len(pods)), key=keys.__getitem__)
    tied: list[list[int]] = []
    for index in order:
        if tied and keys[tied[-1][0]][:6] == keys[index][:6]:
            tied[-1].append(index)
        else:
            tied.append([index])
    return tuple(index for group in tied for index in _by_ready_instant(group, pods, now_s))


def deletion_key(  # noqa: PLR0917  plain positional values on purpose: the simulator calls this for each pod
    assigned: bool,  # noqa: FBT001
    phase: Phase | int,
    ready: bool,  # noqa: FBT001
    cost: int,
    rank: int,
    ready_since_s: float | None,
    restarts: int,
    created_s: float,
    now_s: float,
    uid: Uid,
    sidecar_restarts: int = 0,
) -> DeletionKey:
    """A key that sorts pods in the order of deletion (smallest = deleted first), for callers with their own pods.

    ``rank``: active sibling pods on the pod's node, itself included. Equal to Kubernetes' comparison unless two ready
    pods became ready at the same instant and differ in restarts or in the age bucket of their creation; there the key
    lets the UID decide (``deletion_order`` does not).
    """
    if ready:
        return (assigned, phase, True, cost, -rank, _age_rank(ready_since_s, now_s), 0, 0, 0, uid)
    return (assigned, phase, False, cost, -rank, 0, -restarts, -sidecar_restarts, _age_rank(created_s, now_s), uid)


def first_deleted(one: RankedPod, other: RankedPod, *, rank: int, other_rank: int, now_s: float) -> bool:
    """True when ``one`` is deleted before ``other``: Kubernetes' own pairwise comparison, rule by rule."""
    if (one.node is None) != (other.node is None):  # 1. not bound first
        return one.node is None
    if one.phase != other.phase:  # 2. Pending, Unknown, Running
        return one.phase < other.phase
    if one.ready != other.ready:  # 3. not ready first
        return not one.ready
    if one.deletion_cost != other.deletion_cost:  # 4. cheaper first
        return one.deletion_cost < other.deletion_cost
    if rank != other_rank:  # 5. more siblings on the node first
        return rank > other_rank
    if one.ready and one.ready_since_s != other.ready_since_s:  # 6. shorter ready first, by powers of two
        return _younger(one.ready_since_s, other.ready_since_s, one.uid, other.uid, now_s)
    if one.restarts != other.restarts:  # 7. more restarts first, then more of the sidecars
        return one.restarts > other.restarts
    if one.sidecar_restarts != other.sidecar_restarts:
        return one.sidecar_restarts > other.sidecar_restarts
    if one.created_s != other.created_s:  # 8. younger first, by powers of two
        return _younger(one.created_s, other.created_s, one.uid, other.uid, now_s)
    return False


def _younger(time_s: float | None, other_s: float | None, uid: Uid, other_uid: Uid, now_s: float) -> bool:
    rank, other_rank = _age_rank(time_s, now_s), _age_rank(other_s, now_s)
    if rank == other_rank:
        return (uid,) < (other_uid,)
    return rank < other_rank


def _age_rank(time_s: float | None, now_s: float) -> int:
    """Whole power of two of the age in nanoseconds, as the controller counts; −1 for now or later."""
    if time_s is None:
        return _ZERO_TIME
    age_ns = (now_s - time_s) * _NS_PER_S
    return int(log2(age_ns)) if age_ns >= 1.0 else _FUTURE


def _key_of(pod: RankedPod, rank: int, now_s: float) -> DeletionKey:
    return deletion_key(
        pod.node is not None,
        pod.phase,
        pod.ready,
        pod.deletion_cost,
        rank,
        pod.ready_since_s,
        pod.restarts,
        pod.created_s,
        now_s,
        pod.uid,
        pod.sidecar_restarts,
    )


def _by_ready_instant(group: list[int], pods: Sequence[RankedPod], now_s: float) -> list[int]:
    """``group`` (equal up to rule 6) with pods that became ready at one instant ordered by rules 7 and 8."""
    if len(group) == 1 or not pods[group[0]].ready or len({pods[index].ready_since_s for index in group}) == len(group):
        return group

    def compare(left: int, right: int) -> int:
        if first_deleted(pods[left], pods[right], rank=0, other_rank=0, now_s=now_s):
            return -1
        return int(first_deleted(pods[right], pods[left], rank=0, other_rank=0, now_s=now_s))

    return sorted(group, key=cmp_to_key(compare))
