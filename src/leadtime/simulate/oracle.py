"""The oracle: all demand and every stage time known → the fewest pod-hours that keep enough pods ready.

Pods are levels: level k is needed while need(t) ≥ k. A level's pod is bound a start-up before it is needed and
deleted when it is not, except where the gap is shorter than the next start-up. Levels fill nodes in order; a node is
ordered one provisioning ahead of its first pod and given back as the node autoscaler would. Nothing can be ordered
before the span begins: where physics forbids, pods come as early as it allows. Draws carry the same keys as in every
other world.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLife:
    """One node: ordered (perhaps before the span), allocatable, deleted. ``draw`` None: it stood at the start."""

    slot: int
    ordered_s: float
    ready_s: float
    deleted_s: float
    draw: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleStart:
    """What stands, or is on its way, when the span begins, and how the pool may grow. Times are epoch seconds.

    starting_ready_s: when each pod that is bound already will be Ready, soonest first. arriving: nodes that were
    ordered before the span and are not allocatable yet, soonest first; their slots are given by the plan.
    """

    start_s: int
    end_s: int
    step_s: int
    ready_pods: int
    next_pod_draw: int  # index of the next pod the world would create
    next_node_draw: int
    standing_nodes: int
    static_nodes: int
    max_nodes: int
    pods_per_node: int
    release_after_s: float  # empty node → deleted, as the node autoscaler does it
    starting_ready_s: tuple[float, ...] = ()
    arriving: tuple[NodeLife, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLife:
    """One pod: bound in [bound_s, deleted_s), Ready from ready_s on."""

    level: int
    bound_s: float
    ready_s: float
    deleted_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OraclePlan:
    """Every pod and node of the oracle's world."""

    pods: tuple[PodLife, ...]
    nodes: tuple[NodeLife, ...]


def needed_pods(
    rps: FloatColumn, *, capacity_per_pod_rps: float, target_ratio: float, min_replicas: int, max_replicas: int
) -> IntColumn:
    """max(minReplicas, ceil(demand / (target·c))) per step, at most maxReplicas.

    A step without a value needs what the last one with a value needed; leading ones need minReplicas.
    """
    known = ~np.isnan(rps)
    last = np.maximum.accumulate(np.where(known, np.arange(len(rps)), -1))
    filled = np.where(last >= 0, rps[np.maximum(last, 0)], 0.0)
    wanted = np.ceil(filled / (capacity_per_pod_rps * target_ratio) - 1e-9)
    return np.asarray(np.clip(wanted, min_replicas, max_replicas), dtype=np.int64)


@dataclass(slots=True)
class _Spell:
    """A level needed during [start_s, end_s); ``standing``: its pod was bound, Ready or not, when the span began."""

    level: int
    start_s: float
    end_s: float
    standing: bool


def _spells(need: IntColumn, start: OracleStart, startup_s: float) -> list[_Spell]:
    """When each level is needed, gaps shorter than a start-up bridged. Ordered by start, then level."""
    end = float(start.end_s)
    spells: dict[int, list[_Spell]] = {}
    for level in range(1, start.ready_pods + len(start.starting_ready_s) + 1):
        spells[level] = [_Spell(level, float(start.start_s), float(start.start_s), standing=True)]
    previous = 0
    for i in np.flatnonzero(np.diff(need, prepend=-1)):
        at, now = float(start.start_s + int(i) * start.step_s), int(need[i])
        for level in range(previous, now, 1):  # levels previous+1 … now begin
            _begin(spells.setdefault(level + 1, []), level + 1, at, startup_s)
        for level in range(previous, now, -1):  # levels previous … now+1 end
            spells[level][-1].end_s = at
        previous = now
    for level in range(1, previous + 1):
        spells[level][-1].end_s = end
    found = [spell for row in spells.values() for spell in row if spell.end_s > spell.start_s]
    return sorted(found, key=lambda spell: (spell.start_s, spell.level))


def _begin(row: list[_Spell], level: int, at: float, startup_s: float) -> None:
    """Open a spell, or go on with the last one when the gap is shorter than a start-up."""
    if row and at - row[-1].end_s < startup_s:
        row[-1].end_s = at
        return
    row.append(_Spell(level, at, at, standing=False))


def plan(
    need: IntColumn,
    start: OracleStart,
    *,
    pod_startup_s: Callable[[int], float],
    node_startup_s: Callable[[int], float],
) -> OraclePlan:
    """The oracle's pods and nodes for ``need`` (pods per step of ``start.step_s`` from ``start.start_s``).

    ``pod_startup_s(k)`` and ``node_startup_s(k)`` are the drawn durations of the k-th pod and node of this world.
    """
    typical = float(np.median([pod_startup_s(start.next_pod_draw + i) for i in range(32)]))
    pods: list[PodLife] = []
    draw = start.next_pod_draw
    for spell in _spells(need, start, typical):
        if spell.standing:
            pods.append(_standing_pod(spell, start))
            continue
        startup = pod_startup_s(draw)
        draw += 1
        bound = max(float(start.start_s), spell.start_s - startup)
        pods.append(PodLife(level=spell.level, bound_s=bound, ready_s=bound + startup, deleted_s=spell.end_s))
    return _with_nodes(pods, start, node_startup_s)


def _standing_pod(spell: _Spell, start: OracleStart) -> PodLife:
    """The life of a pod that was bound when the span began; the lowest levels are those that were Ready."""
    late = spell.level - start.ready_pods - 1
    ready = float(start.start_s) if late < 0 else start.starting_ready_s[late]
    return PodLife(level=spell.level, bound_s=float(start.start_s), ready_s=ready, deleted_s=spell.end_s)


def _with_nodes(pods: Sequence[PodLife], start: OracleStart, node_startup_s: Callable[[int], float]) -> OraclePlan:
    """Order nodes for the levels beyond what stands; pods whose node cannot be there in time are bound when it is."""
    by_slot: dict[int, list[PodLife]] = {}
    for pod in pods:
        by_slot.setdefault((pod.level - 1) // start.pods_per_node, []).append(pod)
    nodes = [
        NodeLife(slot=slot, ordered_s=start.start_s, ready_s=start.start_s, deleted_s=start.end_s, draw=None)
        for slot in range(start.static_nodes)
    ]
    bound: list[PodLife] = [pod for slot in range(start.static_nodes) for pod in by_slot.get(slot, [])]
    draw = start.next_node_draw
    on_hand = start.standing_nodes + len(start.arriving)
    for slot in range(start.static_nodes, max([on_hand, *(s + 1 for s in by_slot)])):
        if slot >= start.max_nodes:
            break
        lives, draw = _node_lives(slot, by_slot.get(slot, []), start, node_startup_s, draw)
        nodes.extend(lives)
        bound.extend(_after_node(pod, lives) for pod in by_slot.get(slot, []))
    kept = (pod for pod in bound if pod.deleted_s > pod.bound_s)
    return OraclePlan(pods=tuple(sorted(kept, key=lambda pod: (pod.bound_s, pod.level))), nodes=tuple(nodes))


def _node_lives(
    slot: int, pods: Sequence[PodLife], start: OracleStart, node_startup_s: Callable[[int], float], draw: int
) -> tuple[list[NodeLife], int]:
    """The lives of one releasable node, and the next draw index. Gaps shorter than release + start-up are bridged."""
    lives: list[NodeLife] = []
    if slot < start.standing_nodes:
        gone = float(start.start_s) + start.release_after_s
        lives.append(NodeLife(slot=slot, ordered_s=start.start_s, ready_s=start.start_s, deleted_s=gone, draw=None))
    elif slot < start.standing_nodes + len(start.arriving):
        node = start.arriving[slot - start.standing_nodes]
        lives.append(replace(node, slot=slot, deleted_s=node.ready_s + start.release_after_s))
    for pod in sorted(pods, key=lambda pod: pod.bound_s):
        startup = node_startup_s(draw)
        free_again = min(pod.deleted_s + start.release_after_s, float(start.end_s))
        if lives and pod.bound_s <= lives[-1].deleted_s + startup:
            last = lives[-1]
            lives[-1] = NodeLife(
                slot=slot, ordered_s=last.ordered_s, ready_s=last.ready_s,
                deleted_s=max(last.deleted_s, free_again), draw=last.draw,
            )  # fmt: skip
            continue
        ordered = max(float(start.start_s), pod.bound_s - startup)
        lives.append(NodeLife(slot=slot, ordered_s=ordered, ready_s=ordered + startup, deleted_s=free_again, draw=draw))
        draw += 1
    return lives, draw


def _after_node(pod: PodLife, lives: Sequence[NodeLife]) -> PodLife:
    """The pod, bound no earlier than its node is allocatable."""
    node = next(life for life in lives if life.ordered_s <= pod.bound_s <= life.deleted_s)
    wait = max(0.0, node.ready_s - pod.bound_s)
    return PodLife(level=pod.level, bound_s=pod.bound_s + wait, ready_s=pod.ready_s + wait, deleted_s=pod.deleted_s)


def counts_per_second(spans: Sequence[tuple[float, float]], start: OracleStart) -> IntColumn:
    """How many of ``spans`` [from, to) cover each whole second of [start_s, end_s)."""
    seconds = start.end_s - start.start_s
    edges = np.zeros(seconds + 1, dtype=np.int64)
    if spans:
        ends = np.clip(np.rint(np.asarray(spans, dtype=np.float64) - start.start_s).astype(np.int64), 0, seconds)
        keep = ends[:, 1] > ends[:, 0]
        np.add.at(edges, ends[keep, 0], 1)
        np.add.at(edges, ends[keep, 1], -1)
    return np.asarray(np.cumsum(edges)[:-1], dtype=np.int64)
