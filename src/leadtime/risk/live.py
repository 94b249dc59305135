"""Usage windows and ends of running pods → one calibrated score a pod, by the pipeline a published model was made with.

Pods are the trace's tasks: a workload is a collection, a pod one of its instances, a node a machine. The pods' windows
and lives are written down as canonical tables (designs/0015) and then go the very way of training: the as-of join of
``risk.asof`` and the features of ``risk.features``, so that nothing is computed twice in two ways. What a cluster does
not measure stays missing, never zero.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import nan
from typing import Any

import polars as pl

from leadtime.domain.borg import COLLECTION_EVENTS, INSTANCE_EVENTS, MACHINE_EVENTS, EventType, MachineEventType
from leadtime.domain.errors import BadTrace
from leadtime.domain.risk import (
    PodEnd,
    PodEnding,
    PodFacts,
    PodUsage,
    RiskDriver,
    RiskModel,
    RiskReading,
    RiskScore,
    UsageWindow,
)
from leadtime.domain.series import Missing
from leadtime.risk.asof import join_partition
from leadtime.risk.causes import with_causes
from leadtime.risk.features import Profile, features_of, live_rows
from leadtime.risk.features.context import Context, collection_table, merge, partial
from leadtime.risk.runs import ordered
from leadtime.risk.windows import USAGE_SCHEMA

CELL = "live"
MOST_DRIVERS = 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SERVING_CLASS = 2  # latency-sensitive, as services are in the trace
ENDS = {
    PodEnding.FAILED: EventType.FAIL,
    PodEnding.DELETED: EventType.KILL,
    PodEnding.EVICTED: EventType.EVICT,
    PodEnding.DONE: EventType.FINISH,
}
USAGE_FIELDS = (
    "avg_cpu", "avg_memory", "max_cpu", "max_memory", "sample_cpu", "assigned_memory", "page_cache_memory", "cpu_p50",
    "cpu_p90", "cpu_p95", "cpu_p99", "cycles_per_instruction", "memory_accesses_per_instruction", "sample_rate",
)  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFrames:
    """The canonical tables of one reading, and which pod each (collection, instance) is."""

    usage: pl.DataFrame
    instance_events: pl.DataFrame
    collection_events: pl.DataFrame
    machine_events: pl.DataFrame
    pods: Mapping[tuple[int, int], PodFacts]


class LiveScorer:
    """A RiskScorer (domain.risk) of one published model."""

    def __init__(self, model: RiskModel) -> None:
        """Raises BadTrace when the model asks for a feature that is not made."""
        self.model = model
        self.profile = profile_of(model.features)

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def scores(
        self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float
    ) -> RiskReading | Missing:
        """One score a running pod that has a usage window, in order of name; see domain.risk.RiskScorer."""
        wanted_min = horizon.total_seconds() / 60
        horizons = [minutes for minutes in sorted(self.model.base_rates) if minutes >= wanted_min]
        if not horizons:
            known = ", ".join(str(minutes) for minutes in sorted(self.model.base_rates))
            return Missing(source=self.name, reason=f"it knows {known} min, none of them as long as {wanted_min:g} min")
        gone = {end.pod for end in usage.ends}
        running = {pod.pod: pod for pod in usage.pods if pod.pod not in gone}
        seen = {window.pod for window in usage.windows}
        unscored = {pod: "no usage window" for pod in sorted(running) if pod not in seen}
        if not seen & set(running):
            return RiskReading(scores=(), unscored=unscored)
        rows = _rows(usage, self.profile, running, self.model.features)
        matrix = [values for _, _, values in rows]
        found = self.model.probabilities(matrix)[horizons[0]]
        scores = []
        for (pod, window_end, values), probability in zip(rows, found, strict=True):
            drivers: Sequence[RiskDriver] = ()
            if probability >= explain_from:
                drivers = self.model.drivers(values, horizons[0], most=MOST_DRIVERS)
            scores.append(
                RiskScore(
                    pod=pod.pod, node=pod.node, workload=pod.workload, as_of=usage.as_of, window_end=window_end,
                    horizon=timedelta(minutes=horizons[0]), probability=float(probability),
                    base_rate=float(self.model.base_rates[horizons[0]]), expires_at=window_end + expiry,
                    model=self.name, drivers=tuple(drivers),
                )
            )  # fmt: skip
        return RiskReading(scores=tuple(scores), unscored=unscored)


def profile_of(names: Sequence[str]) -> Profile:
    """The smallest profile that has all ``names``. Raises BadTrace naming the first feature no profile has."""
    for profile in (Profile.BASELINE, Profile.ADVANCED):
        made = {feature.name for feature in features_of(profile)}
        if made.issuperset(names):
            return profile
    unknown = next(name for name in names if name not in made)
    raise BadTrace(
        "risk-feature-unknown", "loading a failure model", f"it asks for feature {unknown!r}, which is not made here",
        "train it again with this version",
    )  # fmt: skip


def canonical(usage: PodUsage) -> LiveFrames:
    """Windows and lives of pods → canonical tables. Collections, instances and machines are numbered by name."""
    owners = {pod.pod: "" if pod.workload is None else pod.workload.key for pod in usage.pods}
    collections = {name: i + 1 for i, name in enumerate(sorted(set(owners.values())))}
    ids: dict[str, tuple[int, int]] = {}
    taken = Counter[int]()
    for pod in sorted(owners):
        number = collections[owners[pod]]
        ids[pod] = number, taken[number]
        taken[number] += 1
    nodes = sorted({pod.node for pod in usage.pods if pod.node is not None})
    machines = {node: i + 1 for i, node in enumerate(nodes)}
    facts = {pod.pod: pod for pod in usage.pods}
    ends = {end.pod: end for end in usage.ends}
    return LiveFrames(
        usage=pl.DataFrame(
            [_usage(window, ids[window.pod], facts[window.pod], machines) for window in usage.windows],
            schema=USAGE_SCHEMA,
        ),
        instance_events=_table(
            INSTANCE_EVENTS,
            [event for pod in usage.pods for event in _events(pod, ends.get(pod.pod), ids[pod.pod], machines)],
        ),
        collection_events=_table(COLLECTION_EVENTS, _collection_events(usage.pods, owners, collections)),
        machine_events=_table(MACHINE_EVENTS, _machine_events(usage.pods, machines)),
        pods={ids[pod.pod]: pod for pod in usage.pods},
    )


def _rows(
    usage: PodUsage, profile: Profile, running: Mapping[str, PodFacts], names: Sequence[str]
) -> list[tuple[PodFacts, datetime, list[float]]]:
    """The newest feature row of each running pod, in order of name; NaN where a feature is missing."""
    frames = canonical(usage)
    lazy = [frames.usage, frames.instance_events, frames.collection_events, frames.machine_events]
    windows = join_partition(*(frame.lazy() for frame in lazy)).collect()
    windows = windows.with_columns(pl.lit(CELL).alias("cell"))
    events = with_causes(
        ordered(frames.instance_events.lazy()), frames.collection_events.lazy(), frames.machine_events.lazy()
    ).collect()
    rows = live_rows(windows, events, _context(frames, windows, events), profile=profile, at_us=to_us(usage.as_of))
    found = []
    values = rows.select(pl.col(names).cast(pl.Float64)).rows()
    keys = rows.select("collection_id", "instance_index", "end_time_us").rows()
    for (collection, instance, end_us), row in zip(keys, values, strict=True):
        pod = frames.pods[collection, instance]
        if pod.pod in running:
            found.append((pod, EPOCH + end_us * MICROSECOND, [nan if value is None else value for value in row]))
    return sorted(found, key=lambda row: row[0].pod)


def _context(frames: LiveFrames, windows: pl.DataFrame, events: pl.DataFrame) -> Context:
    collections = collection_table(frames.collection_events)
    part = partial(windows.lazy(), events.lazy(), collections)
    return merge([part], machines=frames.machine_events, collections=collections)


def to_us(at: datetime) -> int:
    """Microseconds since 1970: far after every trace's first instant, so no event counts as before it."""
    return (at - EPOCH) // MICROSECOND


def _table(columns: Sequence[Any], rows: list[Row]) -> pl.DataFrame:
    schema = {column.name: getattr(pl, column.dtype) for column in columns}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def _usage(window: UsageWindow, key: tuple[int, int], pod: PodFacts, machines: Mapping[str, int]) -> Row:
    return {
        "start_time_us": to_us(window.start),
        "end_time_us": to_us(window.end),
        "collection_id": key[0],
        "instance_index": key[1],
        "machine_id": machines.get(pod.node or ""),
        "alloc_collection_id": 0,
        "alloc_instance_index": -1,
        "collection_type": 0,
        **{name: getattr(window, name) for name in USAGE_FIELDS},
    }


def _events(pod: PodFacts, end: PodEnd | None, key: tuple[int, int], machines: Mapping[str, int]) -> list[Row]:
    """SUBMIT, one SCHEDULE a start (earlier ones of a restarted pod at its creation), and the end where it has one."""
    machine = machines.get(pod.node or "")
    told = {
        "collection_id": key[0], "instance_index": key[1], "collection_type": 0, "priority": pod.priority,
        "scheduling_class": SERVING_CLASS, "missing_type": 0, "alloc_collection_id": 0, "alloc_instance_index": -1,
        "request_cpu": pod.request_cpu, "request_memory": pod.request_memory, "machine_id": machine,
    }  # fmt: skip
    created, started = to_us(pod.created_at), to_us(pod.started_at)
    events: list[Row] = [told | {"time_us": created, "type": EventType.SUBMIT, "machine_id": None}]
    for restart in range(pod.restarts):
        events.append(told | {"time_us": created + restart, "type": EventType.SCHEDULE})
        events.append(told | {"time_us": created + restart + 1, "type": EventType.FAIL})
    events.append(told | {"time_us": max(started, created + pod.restarts + 1), "type": EventType.SCHEDULE})
    if end is not None:
        events.append(told | {"time_us": to_us(end.at), "type": ENDS[end.how]})
    return events


def _collection_events(
    pods: Sequence[PodFacts], owners: Mapping[str, str], collections: Mapping[str, int]
) -> list[Row]:  # fmt: skip
    """A workload is submitted and scheduled when its first pod was created."""
    rows: list[Row] = []
    for name, number in collections.items():
        mine = [pod for pod in pods if owners[pod.pod] == name]
        first_us = min(to_us(pod.created_at) for pod in mine)
        told = {
            "collection_id": number, "scheduling_class": SERVING_CLASS, "missing_type": 0, "collection_type": 0,
            "priority": mine[0].priority, "alloc_collection_id": 0, "collection_name": name,
            "collection_logical_name": name, "user": name.partition("/")[0], "vertical_scaling": 0, "scheduler": 0,
        }  # fmt: skip
        rows += [told | {"time_us": first_us, "type": kind} for kind in (EventType.SUBMIT, EventType.SCHEDULE)]
    return rows


def _machine_events(pods: Sequence[PodFacts], machines: Mapping[str, int]) -> list[Row]:
    """A node is there from the first pod on that is known of it."""
    rows: dict[str, Row] = {}
    for pod in sorted(pods, key=lambda pod: pod.created_at):
        if pod.node is not None:
            rows.setdefault(
                pod.node,
                {
                    "time_us": to_us(pod.created_at), "machine_id": machines[pod.node], "type": MachineEventType.ADD,
                    "capacity_cpu": pod.capacity_cpu, "capacity_memory": pod.capacity_memory,
                },
            )  # fmt: skip
    return list(rows.values())
