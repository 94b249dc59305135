"""What survives a tick for one workload, pool and queue: frozen values, saved by loop/checkpoint.py.

They lie in LoopState: ``scaling`` by workload key, ``pool:<name>`` and ``loop``; ``queue_health`` by queue; ``rate`` by
workload key; ``forecast`` by workload key; ``lead_times`` under ``cluster``, because stages are shared by workloads.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from leadtime.domain.evidence import Explanation
from leadtime.domain.snapshot import Floor
from leadtime.mechanics.hpa import HpaState
from leadtime.propose.plan import PLANS, CandidatePlans
from leadtime.propose.queue_rule import QueueMemory

LOOP_KEY = "loop"
CLUSTER_KEY = "cluster"
RECORD_DAYS = 7
HOUR_S = 3600

Rows = npt.NDArray[np.int64]
LogRows = npt.NDArray[np.float32]


def pool_key(name: str) -> str:
    """The key of a pool in LoopState.scaling; a workload key holds a slash and no colon, so they never meet."""
    return f"pool:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaShadow:
    """The HPA as it would be without us: its controller's memory and the replicas it would have."""

    state: HpaState = field(default_factory=HpaState)
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentNeeds:
    """What each plan (and the surge) asked for in the last policy.scaling.floor_hold_s; one row a tick.

    Columns: required by plan, room by plan, surge. A floor outlives its need by the hold: the highest row counts.
    """

    at_s: tuple[int, ...] = ()
    rows: tuple[Rows, ...] = ()

    def after(self, at_s: int, plans: CandidatePlans | None, surge_pods: int, hold_s: int) -> "RecentNeeds":
        """With one more tick, and without those at or before at_s − hold_s."""
        row = np.zeros(2 * len(PLANS) + 1, dtype=np.int64)
        if plans is not None:
            row[: len(PLANS)] = plans.required
            row[len(PLANS) : -1] = plans.room
        row[-1] = surge_pods
        first = sum(1 for at in self.at_s if at <= at_s - hold_s)
        return RecentNeeds(at_s=(*self.at_s[first:], at_s), rows=(*self.rows[first:], row))

    def highest(self) -> Rows:
        """The highest value of each column."""
        highest: Rows = np.maximum.reduce(self.rows)
        return highest


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowLog:
    """The shadow record as it grows: closed hours of rows, and the open hour. Bounded to seven days.

    Columns: demand (NaN: missing), the HPA's wish, the floor and then the room of each path plan (NaN: the model might
    not act). 32-bit, because a thousand workloads keep one each; the steady headrooms follow from the HPA's wish.
    """

    hours: tuple[LogRows, ...] = ()
    tail: tuple[LogRows, ...] = ()
    path_steps: int = 0  # rows ever written in which the model might act

    def after(self, row: LogRows, step_s: int, *, may_act: bool) -> "ShadowLog":
        """With one more row; the oldest hour is forgotten beyond seven days."""
        tail, path_steps = (*self.tail, row), self.path_steps + may_act
        if len(tail) < max(1, HOUR_S // step_s):
            return ShadowLog(hours=self.hours, tail=tail, path_steps=path_steps)
        hours = (*self.hours, np.stack(tail))[-RECORD_DAYS * 24 :]
        return ShadowLog(hours=hours, tail=(), path_steps=path_steps)

    def steps(self) -> int:
        """Rows held."""
        return sum(len(hour) for hour in self.hours) + len(self.tail)

    def rows(self) -> LogRows:
        """All rows, oldest first."""
        return np.concatenate([*self.hours, *([np.stack(self.tail)] if self.tail else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHour:
    """Pod-hours booked within one hour from ``start_s`` on."""

    start_s: int
    hpa: float
    extra: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHourAccount:
    """What the HPA alone would have spent, and what our floors spent on top, hour by hour over the budget window."""

    hours: tuple[PodHour, ...] = ()

    def after(
        self, at_s: int, *, hpa_pods: float, extra_pods: float, seconds: float, window_s: int
    ) -> "PodHourAccount":
        """With ``seconds`` more in which the HPA alone would have had ``hpa_pods`` and ours were ``extra_pods``."""
        start_s = at_s - at_s % HOUR_S
        hours = self.hours
        if hours and hours[-1].start_s == start_s:
            last, hours = hours[-1], hours[:-1]
        else:
            last = PodHour(start_s=start_s, hpa=0.0, extra=0.0, seconds=0.0)
            while hours and hours[0].start_s <= start_s - window_s:
                hours = hours[1:]
        booked = PodHour(
            start_s=start_s,
            hpa=last.hpa + hpa_pods * seconds / HOUR_S,
            extra=last.extra + extra_pods * seconds / HOUR_S,
            seconds=last.seconds + seconds,
        )
        return PodHourAccount(hours=(*hours, booked))

    @property
    def extra(self) -> float:
        """Extra pod-hours in the window."""
        return sum(hour.extra for hour in self.hours)

    def allowed(self, ratio: float, window_s: int) -> float:
        """``ratio`` of the HPA's pod-hours over a whole window, a young account carried on at its mean so far."""
        seconds = sum(hour.seconds for hour in self.hours)
        if seconds <= 0:
            return float("inf")
        return ratio * sum(hour.hpa for hour in self.hours) * window_s / seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The last verdict on whether acting pays: with which plan, why, when, and whether the model might act then."""

    plan: str | None
    why: Explanation
    at: datetime
    model_might_act: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMemory:
    """One workload's memory. ``known_until``: end of the newest known bucket; ``floor_seen``: ours, last tick."""

    hpa: HpaShadow
    recent: RecentNeeds = RecentNeeds()
    log: ShadowLog = ShadowLog()
    account: PodHourAccount = PodHourAccount()
    judged: Judged | None = None
    read_until: datetime | None = None
    known_until: datetime | None = None
    last_value: float | None = None
    lag_s: float = 0.0
    floor_seen: Floor | None = None
    floor_needed_at: datetime | None = None
    floor_lowered_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMemory:
    """Since when the pool has had an empty node."""

    empty_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    """The queue rule's memory, and whether leadtime paused the queue's low-priority admission."""

    rule: QueueMemory = field(default_factory=QueueMemory)
    paused_by_us: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """Pods one of our floors added at ``at``."""

    at: datetime
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseLog:
    """Our raises of the last minute, for the rate rule."""

    raises: tuple[Raise, ...] = ()

    def added(self, as_of: datetime) -> int:
        """Pods added in (as_of − 60 s, as_of]."""
        return sum(r.pods for r in self.raises if r.at > as_of - timedelta(seconds=60))

    def after(self, as_of: datetime, pods: int) -> "RaiseLog":
        """With one more raise (0: none), and without those that no longer count."""
        kept = tuple(r for r in self.raises if r.at > as_of - timedelta(seconds=60))
        return RaiseLog(raises=(*kept, Raise(at=as_of, pods=pods)) if pods > 0 else kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMemory:
    """When the loop last looked: stage samples are asked for from there on."""

    last_as_of: datetime | None = None


def with_floor(memory: WorkloadMemory, floor: Floor | None) -> WorkloadMemory:
    """``memory`` that remembers ``floor`` as ours."""
    return replace(memory, floor_seen=floor)


def with_written_floor(memory: WorkloadMemory, floor: Floor | None, as_of: datetime) -> WorkloadMemory:
    """``memory`` after we wrote ``floor`` (None: released); a lower one than stood is remembered as a lowering."""
    stood = memory.floor_seen.replicas if memory.floor_seen is not None else 0
    lower = (floor.replicas if floor is not None else 0) < stood
    return replace(memory, floor_seen=floor, floor_lowered_at=as_of if lower else memory.floor_lowered_at)
