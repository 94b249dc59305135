"""Pods of one owner: pending → starting (image, weights) → ready → deleted; and who goes first on a scale-down.

Also the node a pod stands on; how nodes come and go is in cluster_nodes.py.

Counts are the lengths of three dictionaries; pod seconds are summed when a count changes, never pod by pod.
"""

from collections import Counter
from typing import Protocol

from leadtime.domain.risk import PodEnding
from leadtime.mechanics import replicaset
from leadtime.mechanics.stages import StageDistribution, draw_s
from leadtime.simulate.cluster_events import DAY_S, Bench, Due, Episodes, Passage

STANDING_AGE_S = 86_400.0  # pods that stand at the start have been Ready for a day
_ODD = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: multiplying by it scatters serial numbers as random UIDs are


class Place(Protocol):
    """What pods need of their node pool."""

    name: str

    def queue_up(self, pod: "Pod") -> None:
        """A new pod waits for a node."""

    def leave_queue(self, pod: "Pod") -> None:
        """A pod was deleted while it waited."""

    def release(self, pod: "Pod", at_s: float) -> None:
        """A bound pod has gone: its GPUs are free."""


class Owner(Protocol):
    """What pods need of the workload they belong to."""

    def delete(self, pods: "list[Pod]", at_s: float, how: PodEnding = PodEnding.DELETED) -> None:
        """Delete pods and count what it cost."""

    def pod_gone(self, pod: "Pod") -> None:
        """A pod of the group was taken away, whoever did it."""


class Lives(Protocol):
    """What watches pods live and end (simulate/pod_failures.py)."""

    def begin(self, pod: "Pod", at_s: float) -> None:
        """``pod`` is Ready."""

    def ended(self, pod: "Pod", at_s: float, how: PodEnding) -> None:
        """``pod`` is gone."""


class Node:
    """One node. ``stage`` counts the provisioning stages passed; its GPUs count once all are. ``draw`` None: it stood
    at the start."""

    __slots__ = (
        "alive", "draw", "empty_since_s", "episode", "free_gpus", "images", "pods", "pool", "requested_s", "serial",
        "stage", "stage_began_s", "static",
    )  # fmt: skip

    def __init__(
        self, pool: Place, serial: int, gpus: int, *, draw: int | None, static: bool, requested_s: float
    ) -> None:
        self.pool = pool
        self.serial = serial
        self.draw = draw
        self.static = static
        self.requested_s = requested_s
        self.free_gpus = gpus
        self.stage = 0
        self.stage_began_s = requested_s
        self.pods: dict[int, Pod] = {}
        self.images: set[str] = set()
        self.empty_since_s = requested_s
        self.episode = ""
        self.alive = True


class Pod:
    """One pod. ``draw`` is its index among the pods its owner created (None: it stood at the start)."""

    __slots__ = (
        "alive", "bound_s", "created_s", "draw", "episode", "group", "node", "ready_s", "serial", "stage",
        "stage_began_s",
    )  # fmt: skip

    def __init__(self, group: "PodGroup", serial: int, draw: int | None, created_s: float) -> None:
        self.group = group
        self.serial = serial
        self.draw = draw
        self.created_s = created_s
        self.node: Node | None = None
        self.bound_s = 0.0
        self.stage = 0
        self.stage_began_s = 0.0
        self.ready_s: float | None = None
        self.episode = ""
        self.alive = True

    @property
    def uid(self) -> int:
        """As random as Kubernetes' UIDs, and the same in a rerun: ties in the deletion order scatter over the nodes."""
        return (self.serial * _ODD) & 0xFFFFFFFFFFFFFFFF


class PodGroup:
    """All pods of one owner (a Deployment with one ReplicaSet, or a batch workload without start-up stages)."""

    __slots__ = (
        "bench",
        "bound_area_s",
        "cached_ratio",
        "episodes",
        "gpus",
        "key",
        "lives",
        "next_draw",
        "owner",
        "pending",
        "pending_area_s",
        "pool",
        "priority",
        "ready",
        "ready_area_s",
        "run_s",
        "stages",
        "starting",
        "touched_s",
    )  # fmt: skip

    def __init__(
        self, *, key: str, pool: Place, gpus: int, priority: int, stages: tuple[StageDistribution, ...],
        cached_ratio: float, run_s: float | None, bench: Bench, start_s: float,
    ) -> None:  # fmt: skip
        self.key = key
        self.pool = pool
        self.gpus = gpus
        self.priority = priority
        self.stages = stages
        self.cached_ratio = cached_ratio
        self.run_s = run_s  # None: runs until it is deleted
        self.owner: Owner | None = None  # None: nobody counts what a deletion costs
        self.lives: Lives | None = None  # None: nobody watches, and no pod fails
        self.bench = bench
        self.next_draw = 0
        self.pending: dict[int, Pod] = {}
        self.starting: dict[int, Pod] = {}
        self.ready: dict[int, Pod] = {}
        self.episodes = Episodes(f"{pool.name}/{key}")
        self.touched_s = start_s
        self.ready_area_s = 0.0  # pod seconds since the last step's end
        self.bound_area_s = 0.0
        self.pending_area_s = 0.0

    @property
    def total(self) -> int:
        """Pods that exist."""
        return len(self.pending) + len(self.starting) + len(self.ready)

    def touch(self, at_s: float) -> None:
        """Add the pod seconds up to ``at_s``; called before every change of a count."""
        passed_s = at_s - self.touched_s
        if passed_s > 0.0:
            ready = len(self.ready)
            self.ready_area_s += ready * passed_s
            self.bound_area_s += (ready + len(self.starting)) * passed_s
            self.pending_area_s += len(self.pending) * passed_s
            self.touched_s = at_s

    def create(self, at_s: float, draw: int | None = None) -> Pod:
        """A new pending pod; ``draw`` None takes the next index."""
        if draw is None:
            draw = self.next_draw
            self.next_draw += 1
        self.touch(at_s)
        self.bench.pods_created += 1
        pod = Pod(self, self.bench.pods_created, draw, at_s)
        self.pending[pod.serial] = pod
        self.pool.queue_up(pod)
        return pod

    def stand(self, node: Node, at_s: float) -> Pod:
        """A pod that stands on ``node``, Ready for a day, when the world begins. It takes no draw."""
        self.bench.pods_created += 1
        pod = Pod(self, self.bench.pods_created, None, at_s - STANDING_AGE_S)
        pod.bound_s, pod.ready_s, pod.stage = pod.created_s, pod.created_s, len(self.stages)
        node.images.add(self.key)
        self.ready[pod.serial] = pod
        return pod

    def stage_s(self, stage: int, draw: int, at_s: float, *, cached: bool = False) -> float:
        """How long pod ``draw`` stays in stage ``stage`` that begins at ``at_s``."""
        place = f"{self.pool.name}/{self.key}"
        seconds = draw_s(self.stages[stage], seed=self.bench.seed, pool=place, day=int(at_s // DAY_S), k=draw)
        return seconds * self.cached_ratio if cached and stage == 0 else seconds

    def bound(self, pod: Pod, node: Node, at_s: float) -> None:
        """``pod`` was bound to ``node`` (which already counts it): its start-up begins."""
        self.touch(at_s)
        del self.pending[pod.serial]
        pod.bound_s = pod.stage_began_s = at_s
        if self.run_s is not None:
            pod.ready_s = at_s
            self.ready[pod.serial] = pod
            self.bench.push(at_s + self.run_s, Due.BATCH_DONE, pod)
            return
        self.starting[pod.serial] = pod
        pod.episode = self.episodes.of(at_s)
        seconds = self.stage_s(0, pod.draw or 0, at_s, cached=self.key in node.images)
        self.bench.push(at_s + seconds, Due.POD_STAGE, pod)
        self.bench.log.add(at_s, "pod_bound", workload=self.key, pool=self.pool.name, count=1)

    def stage_ended(self, pod: Pod, at_s: float) -> None:
        """The pod's current stage is over: the next begins, or it is Ready."""
        self._note_passage(pod, at_s, censored=False)
        if pod.stage == 0 and pod.node is not None:
            pod.node.images.add(self.key)
        pod.stage += 1
        if pod.stage < len(self.stages):
            pod.stage_began_s = at_s
            self.bench.push(at_s + self.stage_s(pod.stage, pod.draw or 0, at_s), Due.POD_STAGE, pod)
            return
        self.touch(at_s)
        del self.starting[pod.serial]
        pod.ready_s = at_s
        self.ready[pod.serial] = pod
        self.bench.log.add(at_s, "pod_ready", workload=self.key, pool=self.pool.name, count=1)
        if self.lives is not None:
            self.lives.begin(pod, at_s)

    def delete(self, pod: Pod, at_s: float, how: PodEnding = PodEnding.DELETED) -> None:
        """Take the pod away at once, wherever it is on its way."""
        if self.lives is not None:
            self.lives.ended(pod, at_s, how)
            if self.owner is not None:
                self.owner.pod_gone(pod)
        self.touch(at_s)
        self.bench.pods_deleted += 1
        pod.alive = False
        if pod.serial in self.pending:
            del self.pending[pod.serial]
            self.pool.leave_queue(pod)
            return
        if self.starting.pop(pod.serial, None) is not None:
            self._note_passage(pod, at_s, censored=True)
        else:
            del self.ready[pod.serial]
        self.pool.release(pod, at_s)
        if self.run_s is None:
            self.bench.log.add(at_s, "pod_deleted", workload=self.key, pool=self.pool.name, count=1)

    def evict(self, pod: Pod, at_s: float) -> None:
        """The pod's node is drained: it goes, and its owner makes another at its next look."""
        if self.owner is None:
            self.delete(pod, at_s, PodEnding.EVICTED)
        else:
            self.owner.delete([pod], at_s, PodEnding.EVICTED)

    def _note_passage(self, pod: Pod, at_s: float, *, censored: bool) -> None:
        stage = self.stages[pod.stage].name
        spent_s = at_s - pod.stage_began_s
        self.bench.passages.append(
            Passage(at_s, self.pool.name, self.key, stage, spent_s, censored, pod.episode)
        )  # fmt: skip

    def first_to_go(self, count: int, now_s: float) -> list[Pod]:
        """The ``count`` pods a scale-down deletes, first one first (mechanics/replicaset.py has the rules).

        Whole classes that cannot be reached (ready pods while enough are pending) are not ranked.
        """
        chosen = self._ranked(self.pending, assigned=False, now_s=now_s)[:count]
        if len(chosen) < count:
            chosen += self._ranked(self.starting, assigned=True, now_s=now_s)[: count - len(chosen)]
        if len(chosen) < count:
            chosen += self._ranked(self.ready, assigned=True, now_s=now_s)[: count - len(chosen)]
        return chosen

    def _ranked(self, pods: dict[int, Pod], *, assigned: bool, now_s: float) -> list[Pod]:
        """``pods`` of one class in the order of deletion."""
        if not pods:
            return []
        siblings: Counter[int] = Counter()
        if assigned:
            for mine in (self.starting, self.ready):
                siblings.update(pod.node.serial for pod in mine.values() if pod.node is not None)

        def key(pod: Pod) -> replicaset.DeletionKey:
            ready = pod.ready_s is not None
            phase = replicaset.Phase.PENDING if pod.stage == 0 and not ready else replicaset.Phase.RUNNING
            rank = siblings[pod.node.serial] if pod.node is not None else len(self.pending)
            return replicaset.deletion_key(
                assigned, phase, ready, 0, rank, pod.ready_s, 0, pod.created_s, now_s, pod.uid
            )  # fmt: skip

        return sorted(pods.values(), key=key)
