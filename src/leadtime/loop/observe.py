"""Source → the demand buckets that are new since the last tick, and how far they can be relied on."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite

from leadtime.domain.ports import Source
from leadtime.domain.series import Missing, Series
from leadtime.domain.snapshot import ClusterSnapshot, WorkloadState
from leadtime.domain.time_window import TimeWindow
from leadtime.loop.memory import HpaShadow, WorkloadMemory
from leadtime.policy.schema import Policy
from leadtime.propose.context import DataStanding, DemandReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """New buckets of one workload (None: there are none), the memory that knows them, and how they stand."""

    series: Series | None
    memory: WorkloadMemory
    reading: DemandReading


def first_memory(workload: WorkloadState) -> WorkloadMemory:
    """The memory of a workload seen for the first time: its HPA's shadow begins at the replicas that stand."""
    return WorkloadMemory(hpa=HpaShadow(replicas=max(workload.owner_min_replicas, workload.wanted_replicas)))


def read_new(
    source: Source, workload: WorkloadState, memory: WorkloadMemory, as_of: datetime, policy: Policy
) -> Series | Missing:
    """Buckets not read before; the first time, everything a model may remember (policy.forecast.max_history_days)."""
    start = memory.read_until or as_of - timedelta(days=policy.forecast.max_history_days)
    return source.demand(workload.ref, TimeWindow(start=min(start, as_of), end=as_of), as_of)


def take(memory: WorkloadMemory, series: Series | Missing) -> WorkloadMemory:
    """Remember how far was read, the newest value and its end."""
    if isinstance(series, Missing) or not len(series.values):
        return memory
    memory = replace(memory, read_until=series.end, lag_s=series.lag_s)
    for back in range(1, len(series.values) + 1):
        value = series.values[-back]
        if value is not None and isfinite(value):
            end = series.start + timedelta(seconds=series.step_s * (len(series.values) - back + 1))
            return replace(memory, known_until=end, last_value=float(value))
    return memory


def missing_now(memory: WorkloadMemory, series: Series | Missing, as_of: datetime) -> bool:
    """True when a bucket that should be visible by now has no value. ``memory`` already holds ``series``."""
    if isinstance(series, Missing):
        return True
    if any(value is None or not isfinite(value) for value in series.values):
        return True
    if memory.known_until is None:
        return True
    return (as_of - memory.known_until).total_seconds() >= series.step_s + memory.lag_s


def reading(
    memory: WorkloadMemory, *, missing: bool, since: datetime | None, as_of: datetime, policy: Policy
) -> DemandReading:
    """How demand stands. ``since``: when the missing began, as remembered; None when nothing was missing before."""
    if not missing:
        return DemandReading(
            standing=DataStanding.COMPLETE, value=memory.last_value, missing_since=None, hold_until=None
        )
    since = since or memory.known_until or as_of
    until = since + timedelta(seconds=policy.missing_data.hold_max_s)
    known = memory.known_until
    stale = known is None or (as_of - known).total_seconds() > policy.loop.stale_after_s + memory.lag_s
    if as_of >= until:
        standing = DataStanding.EXPIRED if stale else DataStanding.COMPLETE
    else:
        standing = DataStanding.HOLD if stale else DataStanding.GAP
    return DemandReading(
        standing=standing, value=None if stale else memory.last_value, missing_since=since, hold_until=until
    )


def missing_inputs(
    snapshot: ClusterSnapshot, since: dict[str, datetime], as_of: datetime, policy: Policy
) -> str | None:
    """In words, the first input of the snapshot that is missing and still held for; None when there is none."""
    hold = timedelta(seconds=policy.missing_data.hold_max_s)
    for absent in snapshot.missing:
        began = since.get(absent.source, as_of)
        if as_of < began + hold:
            return f"{absent.source} is missing ({absent.reason})"
    return None
