"""What a simulated world did, step by step → the score card's columns (scorecard/run.py).

Plain lists while the world runs, because appending to a list is the fastest thing Python does; arrays when collected.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leadtime.scorecard.run import FloatColumn, IntColumn, PoolRun, RunEvent, WorkloadRun


class StepCounts:
    """What is counted between two steps' ends."""

    __slots__ = ("busy_killed", "deleted", "deleted_stayed", "floor_added", "warm_killed")

    def __init__(self) -> None:
        self.deleted = 0
        self.deleted_stayed = 0
        self.busy_killed = 0
        self.warm_killed = 0
        self.floor_added = 0


class WorkloadColumns:
    """One workload's columns from step ``first`` on. Requests may be booked at any step already begun."""

    __slots__ = (
        "arrived", "busy_killed", "deleted", "deleted_stayed", "first", "floor", "floor_added", "late", "latency_sum",
        "now", "pending", "pending_s", "pod_s", "ready", "served", "starting", "unserved", "wanted", "warm_killed",
    )  # fmt: skip

    def __init__(self, first: int) -> None:
        self.first = first
        self.arrived: list[float] = []
        self.served: list[float] = []
        self.unserved: list[float] = []
        self.late: list[float] = []
        self.latency_sum: list[float] = []
        self.wanted: list[int] = []
        self.ready: list[int] = []
        self.starting: list[int] = []
        self.pending: list[int] = []
        self.floor: list[int] = []
        self.pod_s: list[float] = []
        self.pending_s: list[float] = []
        self.deleted: list[int] = []
        self.deleted_stayed: list[int] = []
        self.busy_killed: list[int] = []
        self.warm_killed: list[int] = []
        self.floor_added: list[int] = []
        self.now = StepCounts()

    def begin_step(self, arrived: float) -> None:
        """Open the next step; requests can now be booked at it."""
        self.arrived.append(arrived)
        self.served.append(0.0)
        self.unserved.append(0.0)
        self.late.append(0.0)
        self.latency_sum.append(0.0)

    def add_served(self, index: int, count: float, latency_sum: float, late: float) -> None:
        """``count`` requests of step ``index`` were served, ``late`` of them late; latencies sum to ``latency_sum``."""
        i = index - self.first
        if i >= 0:  # what arrived before the recording began is nobody's concern
            self.served[i] += count
            self.latency_sum[i] += latency_sum
            self.late[i] += late

    def add_unserved(self, index: int, count: float) -> None:
        """``count`` requests that arrived in step ``index`` expired or were rejected."""
        i = index - self.first
        if i >= 0:
            self.unserved[i] += count

    def lose(self, index: int, count: float) -> None:
        """Up to ``count`` requests counted as served in step ``index`` were in flight on a pod that failed."""
        i = index - self.first
        if i < 0 or self.served[i] <= 0.0:
            return
        lost = min(count, self.served[i])
        kept = 1.0 - lost / self.served[i]
        self.served[i] -= lost
        self.late[i] *= kept
        self.latency_sum[i] *= kept
        self.unserved[i] += lost

    def end_step(
        self, *, wanted: int, ready: int, starting: int, pending: int, floor: int, pod_s: float, pending_s: float
    ) -> None:
        """Close the step: pod counts at its end, pod seconds within it, and what was counted since the last end."""
        self.wanted.append(wanted)
        self.ready.append(ready)
        self.starting.append(starting)
        self.pending.append(pending)
        self.floor.append(floor)
        self.pod_s.append(pod_s)
        self.pending_s.append(pending_s)
        now = self.now
        self.deleted.append(now.deleted)
        self.deleted_stayed.append(now.deleted_stayed)
        self.busy_killed.append(now.busy_killed)
        self.warm_killed.append(now.warm_killed)
        self.floor_added.append(now.floor_added)
        if now.deleted or now.floor_added:
            self.now = StepCounts()

    def collect(
        self, *, workload: str, start_s: int, step_s: int, capacity_per_pod_rps: float, gpus_per_pod: int,
        slo_s: float, demand_rps: FloatColumn,
    ) -> WorkloadRun:  # fmt: skip
        """The columns as arrays. ``demand_rps``: the demand series over the same steps, NaN where it has no value."""
        served = _floats(self.served)
        latency = np.full(len(served), np.nan)
        np.divide(_floats(self.latency_sum), served, out=latency, where=served > 0)
        return WorkloadRun(
            workload=workload, start_s=start_s, step_s=step_s, capacity_per_pod_rps=capacity_per_pod_rps,
            gpus_per_pod=gpus_per_pod, slo_s=slo_s, demand_rps=demand_rps, arrived=_floats(self.arrived),
            unserved=_floats(self.unserved), late=_floats(self.late), latency_s=latency, wanted=_ints(self.wanted),
            ready=_ints(self.ready), starting=_ints(self.starting), pending=_ints(self.pending),
            floor=_ints(self.floor), pod_seconds=_floats(self.pod_s), pending_pod_seconds=_floats(self.pending_s),
            deleted=_ints(self.deleted), deleted_while_demand_stayed=_ints(self.deleted_stayed),
            busy_killed=_ints(self.busy_killed), warm_killed=_ints(self.warm_killed),
            floor_added=_ints(self.floor_added),
        )  # fmt: skip


class PoolColumns:
    """One pool's columns."""

    __slots__ = ("by_stage", "node_s")

    def __init__(self, stages: int) -> None:
        self.node_s: list[float] = []
        self.by_stage: list[list[int]] = [[] for _ in range(stages)]

    def collect(
        self, *, pool: str, start_s: int, step_s: int, gpus_per_node: int, stage_names: Sequence[str]
    ) -> PoolRun:
        """The columns as arrays."""
        return PoolRun(
            pool=pool, start_s=start_s, step_s=step_s, gpus_per_node=gpus_per_node, node_seconds=_floats(self.node_s),
            nodes_by_stage={name: _ints(column) for name, column in zip(stage_names, self.by_stage, strict=True)},
        )  # fmt: skip


class EventLog:
    """Events since the recording began; equal ones at one instant become one with their number."""

    __slots__ = ("events", "recording")

    def __init__(self) -> None:
        self.recording = False
        self.events: list[RunEvent] = []

    def add(
        self, at_s: float, kind: str, *, workload: str | None, pool: str | None, count: int, detail: str = ""
    ) -> None:
        """Note an event at ``at_s`` (kept to the whole second at or before it)."""
        if not self.recording:
            return
        at = int(at_s)
        for i in range(len(self.events) - 1, max(-1, len(self.events) - 4), -1):
            last = self.events[i]
            same = last.kind == kind and last.workload == workload and last.pool == pool and last.detail == detail
            if last.at_s == at and same:
                self.events[i] = replace(last, count=last.count + count)
                return
        self.events.append(RunEvent(at_s=at, kind=kind, workload=workload, pool=pool, count=count, detail=detail))


def _floats(column: Sequence[float]) -> FloatColumn:
    return np.asarray(column, dtype=np.float64)


def _ints(column: Sequence[int]) -> IntColumn:
    return np.asarray(column, dtype=np.int64)
