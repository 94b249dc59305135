"""Wanted and ordered pods, minute by minute → pods that have a place on a node: a pool of one workload, in small.

Kept as the number of nodes by how many pods they hold. Pods come to the fullest node that has room (most allocated) and
go from the fullest nodes first (the ReplicaSet controller's rank: more siblings on the node), so a slowly falling load
leaves nodes half full and few empty; only empty ones go. That is why the HPA alone often finds a place at once.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]

DRAINS_PER_STEP = 6  # Cluster Autoscaler drains one node a scan of ten seconds
EMPTY_STEPS = 10  # Karpenter's and Cluster Autoscaler's usual ten minutes, in steps of a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Pods bound at each step, and nodes × steps over all of them, those on their way included."""

    bound: Column
    node_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShape:
    """Pods of one size that fit on a node, and below which use a node is drained (None: only empty nodes go)."""

    pods_per_node: int = 1
    drain_below_ratio: float | None = None


def placed(wanted: Column, ordered: Column, *, node_steps: int, shape: PoolShape, fixed_nodes: int) -> Placed:
    """Pods of ``wanted`` that are bound, step by step; the first step begins with a place for every pod.

    ``ordered``: pods for which nodes are asked (those wanted, and room beside them); nodes come ``node_steps`` later.
    ``fixed_nodes`` are never removed.
    """
    first = int(max(wanted[0], ordered[0])) if len(wanted) else 0
    pool = _Pool(pods_per_node=shape.pods_per_node, fixed_nodes=fixed_nodes, drain_below_ratio=shape.drain_below_ratio)
    pool.by_pods[0] = max(fixed_nodes, -(-first // shape.pods_per_node))
    bound = np.empty(len(wanted))
    asked = zip(wanted.tolist(), ordered.tolist(), strict=True)
    nodes = 0
    for step, (want, room) in enumerate(asked):
        bound[step] = pool.step(step, int(want), int(max(want, room)), node_steps)
        nodes += pool.nodes
    return Placed(bound=bound, node_steps=nodes)


@dataclass(slots=True, kw_only=True)
class _Pool:
    """Nodes by the pods on them; lives for one call of ``placed``."""

    pods_per_node: int
    fixed_nodes: int
    drain_below_ratio: float | None = None
    by_pods: list[int] = field(default_factory=list)
    bound: int = 0
    nodes: int = 0
    arrivals: deque[int] = field(default_factory=deque)  # the step at which each node on its way is there
    idle_steps: int = 0
    drain_steps: int = 0

    def __post_init__(self) -> None:
        self.by_pods = [0] * (self.pods_per_node + 1)

    def step(self, step: int, want: int, room: int, node_steps: int) -> int:
        """One minute: nodes arrive, pods go or come, nodes are ordered and empty ones removed."""
        while self.arrivals and self.arrivals[0] <= step:
            self.arrivals.popleft()
            self.by_pods[0] += 1
        if want < self.bound:
            self._take(self.bound - want)
        elif want > self.bound:
            self._bind(want - self.bound)
        nodes = sum(self.by_pods)
        needed = -(-room // self.pods_per_node)
        short = needed - nodes - len(self.arrivals)
        if short > 0:
            self.arrivals.extend([step + node_steps] * short)
        spare = min(self.by_pods[0], nodes - max(needed, self.fixed_nodes))
        self.idle_steps = self.idle_steps + 1 if spare > 0 else 0
        if self.idle_steps > EMPTY_STEPS:
            self.by_pods[0] -= spare
            self.idle_steps = 0
        if self.drain_below_ratio is not None:
            self._drain(max(needed, self.fixed_nodes), self.drain_below_ratio)
        self.nodes = sum(self.by_pods) + len(self.arrivals)
        return self.bound

    def _drain(self, keep_nodes: int, below_ratio: float) -> None:
        """Nodes used less than ``below_ratio`` whose pods fit elsewhere go after ten minutes, one in ten seconds."""
        self.drain_steps = self.drain_steps + 1 if self._drainable(keep_nodes, below_ratio) else 0
        if self.drain_steps <= EMPTY_STEPS:
            return
        for _ in range(DRAINS_PER_STEP):
            held = self._drainable(keep_nodes, below_ratio)
            if not held:
                return
            self.by_pods[held] -= 1
            self.bound -= held
            self._bind(held)

    def _drainable(self, keep_nodes: int, below_ratio: float) -> int:
        """Pods on the least used node that may be drained; 0 when there is none."""
        nodes = sum(self.by_pods)
        if nodes <= keep_nodes:
            return 0
        held = next((n for n in range(1, self.pods_per_node) if self.by_pods[n]), 0)
        elsewhere = (nodes - 1) * self.pods_per_node - (self.bound - held)
        return held if held < below_ratio * self.pods_per_node and elsewhere >= held else 0

    def _bind(self, pods: int) -> None:
        """To the fullest node that has room."""
        for held in range(self.pods_per_node - 1, -1, -1):
            while pods > 0 and self.by_pods[held] > 0:
                fits = min(pods, self.pods_per_node - held)
                self.by_pods[held] -= 1
                self.by_pods[held + fits] += 1
                self.bound += fits
                pods -= fits

    def _take(self, pods: int) -> None:
        """From the fullest nodes; among equally full ones ranks do not change while pods go, so whole nodes empty."""
        for held in range(self.pods_per_node, 0, -1):
            nodes = min(self.by_pods[held], pods // held)
            self.by_pods[held] -= nodes
            self.by_pods[0] += nodes
            self.bound -= nodes * held
            pods -= nodes * held
            if pods > 0 and self.by_pods[held] > 0:
                self.by_pods[held] -= 1
                self.by_pods[held - pods] += 1
                self.bound -= pods
                return
