"""A cluster's moving parts → an independent copy of them, in one walk without recursion.

Parts point at each other in circles (pod, node, pool, pod), deep enough in a large cluster to exhaust a recursive copy.
What is no part and no container is immutable, or shared on purpose (scenario, demand), and stays the same object.
"""

from collections import deque
from typing import Any

from leadtime.simulate.cluster_autoscaler import ClusterAutoscalerClock, KarpenterClock, NodeAutoscaler
from leadtime.simulate.cluster_events import Bench, Entry, Episodes
from leadtime.simulate.cluster_nodes import NodePool
from leadtime.simulate.cluster_workload import LowPriority, Workload
from leadtime.simulate.pod_failures import PodFailures
from leadtime.simulate.pods import Node, Pod, PodGroup
from leadtime.simulate.queueing import Cohort, FluidQueue
from leadtime.simulate.recorder import EventLog, PoolColumns, StepCounts, WorkloadColumns

PARTS = frozenset(
    {
        Bench, ClusterAutoscalerClock, Cohort, Episodes, EventLog, FluidQueue, KarpenterClock, LowPriority, Node,
        NodeAutoscaler, NodePool, Pod, PodFailures, PodGroup, PoolColumns, StepCounts, Workload, WorkloadColumns,
    }
)  # fmt: skip
_IMMUTABLE = (int, float, str, bool, type(None))


class Fork:
    """One copying walk. ``shared``: lists that must not be copied."""

    def __init__(self, shared: tuple[list[float], ...]) -> None:
        self._twins: dict[int, Any] = {id(column): column for column in shared}
        self._todo: list[tuple[Any, Any]] = []

    def copy(self, value: Any) -> Any:
        """``value``, or its twin where it is a part or holds parts; call ``finish`` when all is copied."""
        kind = type(value)
        if kind in _IMMUTABLE:
            return value
        twin = self._twins.get(id(value))
        if twin is not None:
            return twin
        if kind in PARTS:
            twin = self._twins[id(value)] = object.__new__(kind)
            self._todo.append((value, twin))
            return twin
        if kind is dict:
            return {key: self.copy(item) for key, item in value.items()}
        if kind is list or kind is deque:
            moving = value and (type(value[0]) in PARTS or type(value[0]) in {Entry, list, dict})
            return kind(self.copy(item) for item in value) if moving else value.copy()
        if kind is set:
            return value.copy()
        if kind is Entry:
            return value._replace(subject=self.copy(value.subject))
        return value

    def finish(self) -> None:
        """Fill every twin that was only named so far."""
        while self._todo:
            part, twin = self._todo.pop()
            for name in type(part).__slots__:
                setattr(twin, name, self.copy(getattr(part, name)))
