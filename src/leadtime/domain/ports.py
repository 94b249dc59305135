"""The seams of the loop: what it reads from, writes through and records to. The loop knows no more."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from leadtime.domain.decision import Decision, Outcome
from leadtime.domain.lead_time import StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series
from leadtime.domain.snapshot import ClusterSnapshot
from leadtime.domain.tick import Tick
from leadtime.domain.time_window import TimeWindow


class Source(Protocol):
    """The only reads of a tick. Nothing it returns lies after ``as_of``."""

    def snapshot(self, as_of: datetime) -> ClusterSnapshot:
        """The cluster at ``as_of``."""
        ...

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """Demand of ``ref`` in one-minute buckets within ``window``, only buckets visible at ``as_of``."""
        ...

    def stage_samples(self, since: datetime | None, as_of: datetime) -> Sequence[StageSample]:
        """Stage passages that ended (or were censored) in (since, as_of]; all up to as_of when ``since`` is None."""
        ...


class ClusterWriter(Protocol):
    """The few writes leadtime may make. Each expires by itself or is undone by the call named beside it."""

    def set_floor(self, ref: WorkloadRef, replicas: int, expires_at: datetime) -> None:
        """minReplicas := max(owner's, replicas) until ``expires_at``; undone by release_floor or by expiring."""
        ...

    def release_floor(self, ref: WorkloadRef) -> None:
        """minReplicas := the owner's value."""
        ...

    def set_buffer(self, ref: WorkloadRef, pool: str, pods: int, expires_at: datetime) -> None:
        """Room for ``pods`` further pods; 0 removes the buffer."""
        ...

    def set_low_priority_admission(self, queue: str, *, paused: bool) -> None:
        """Hold back or admit new low-priority pods of a queue."""
        ...

    def set_consolidation(self, pool: str, *, offered: bool) -> None:
        """Offer empty nodes of a pool to the node autoscaler, or withhold them."""
        ...

    def protect_pod(self, pod: str, ref: WorkloadRef, expires_at: datetime | None) -> None:
        """Hold scale-downs of ``ref``, the pod's workload, until ``expires_at``; None ends it."""
        ...

    def avoid_node(self, node: str, pool: str, expires_at: datetime | None) -> None:
        """Keep new pods from ``node`` while others of ``pool`` have room, until ``expires_at``; None ends it."""
        ...


class Actuator(Protocol):
    """Turns decisions into writes (or, in shadow, into a record of what it would have written)."""

    def act(self, decisions: Sequence[Decision], as_of: datetime) -> Sequence[Outcome]:
        """Carry out ``decisions``; one outcome per decision that has an action. Never raises for a failed write."""
        ...


class TickSink(Protocol):
    """Where ticks go: a ledger, or a list in a test."""

    def append(self, tick: Tick) -> None:
        """Store one tick durably (one commit)."""
        ...
