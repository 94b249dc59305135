"""The canonical form of a Borg-like trace: tables, columns, codes. Whatever dialect a file speaks, it becomes this.

Google's cluster trace of 2019 ("v3"), its own history in the same schema, and the 2011 trace ("v2") are all read into
these tables. Facts: google/cluster-data, ``clusterdata_trace_format_v3.proto`` (CC-BY 4.0). Times are int64
microseconds since 600 s before the trace starts. Windows are half-open: [start_time_us, end_time_us).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

WINDOW_US = 300_000_000  # a usage window is normally 300 s
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
TRACE_START_US = 600_000_000  # the first instant of the trace; 0 means: before it
AFTER_TRACE_US = 2**63 - 1  # after it
NO_MACHINE = 0  # read as null: nothing is placed there
DEDICATED_MACHINE = -1  # a machine nobody else sees; never joined with machine events
HORIZONS_MIN = (5, 15, 30, 45, 60)
PRIMARY_HORIZON_MIN = 15  # the story's first horizon; the one ``risk_score`` means


class EventType(IntEnum):
    """Codes of collection and instance events in v3 (2019)."""

    SUBMIT = 0
    QUEUE = 1
    ENABLE = 2
    SCHEDULE = 3
    EVICT = 4
    FAIL = 5
    FINISH = 6
    KILL = 7
    LOST = 8
    UPDATE_PENDING = 9
    UPDATE_RUNNING = 10


TERMINAL = frozenset({EventType.EVICT, EventType.FAIL, EventType.FINISH, EventType.KILL, EventType.LOST})
V2_TO_V3: Mapping[int, EventType] = {
    0: EventType.SUBMIT,
    1: EventType.SCHEDULE,
    2: EventType.EVICT,
    3: EventType.FAIL,
    4: EventType.FINISH,
    5: EventType.KILL,
    6: EventType.LOST,
    7: EventType.UPDATE_PENDING,
    8: EventType.UPDATE_RUNNING,
}  # the 2011 trace has no QUEUE and no ENABLE, so every later code is another number


class MachineEventType(IntEnum):
    """Codes of machine events in v3; v2 counts ADD 0, REMOVE 1, UPDATE 2."""

    UNKNOWN = 0
    ADD = 1
    REMOVE = 2
    UPDATE = 3


class Tier(IntEnum):
    """Priority tiers of 2019; 100–109 count as best-effort batch (the trace document's revision of 2020-08)."""

    FREE = 0
    BEST_EFFORT = 1
    MID = 2
    PRODUCTION = 3
    MONITORING = 4


TIER_FROM: Mapping[Tier, int] = {
    Tier.FREE: 0,
    Tier.BEST_EFFORT: 100,
    Tier.MID: 116,
    Tier.PRODUCTION: 120,
    Tier.MONITORING: 360,
}  # lowest priority of each tier


class Cause(StrEnum):
    """Why a run ended, as far as the events show it."""

    SELF = "self"  # FAIL
    PARENT = "parent"  # KILL within a minute after its parent's end
    MACHINE = "machine"  # EVICT within a second after its machine's REMOVE
    PREEMPTION = "preemption"  # any other EVICT
    USER = "user"  # any other KILL
    DONE = "done"  # FINISH
    UNKNOWN = "unknown"  # LOST


class Excluded(StrEnum):
    """Why a row has no label. Tested in this order."""

    NOT_RUNNING = "not_running"
    CENSORED = "censored"
    LOST = "lost"


class Omitted(StrEnum):
    """What a missing number means. JSON exports leave out zeros, so missing and zero must mean the same there."""

    ZERO = "zero"  # missing = 0
    NULL = "null"  # missing and 0 = not known (a rate or a maximum of exactly zero is not physical; machine 0 is none)
    KEPT = "kept"  # missing stays null, 0 stays 0 (struct absent = null, struct there and field absent = 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One canonical column. ``dtype`` is a Polars name; ``path`` is where v3 keeps it (struct.field, list.index)."""

    name: str
    dtype: str
    omitted: Omitted
    path: str


def _int(name: str, dtype: str = "Int64", omitted: Omitted = Omitted.ZERO, path: str = "") -> Column:
    return Column(name=name, dtype=dtype, omitted=omitted, path=path or name)


def _real(name: str, omitted: Omitted = Omitted.ZERO, path: str = "") -> Column:
    return Column(name=name, dtype="Float32", omitted=omitted, path=path or name)


def _text(name: str) -> Column:
    return Column(name=name, dtype="String", omitted=Omitted.NULL, path=name)


INSTANCE_USAGE = (
    _int("start_time_us", path="start_time"),
    _int("end_time_us", path="end_time"),
    _int("collection_id"),
    _int("instance_index", "Int32"),
    _int("machine_id", omitted=Omitted.NULL),
    _int("alloc_collection_id"),
    _int("alloc_instance_index", "Int32"),
    _int("collection_type", "Int8"),
    _real("avg_cpu", path="average_usage.cpus"),
    _real("avg_memory", path="average_usage.memory"),
    _real("max_cpu", Omitted.NULL, path="maximum_usage.cpus"),
    _real("max_memory", Omitted.NULL, path="maximum_usage.memory"),
    _real("sample_cpu", path="random_sample_usage.cpus"),
    _real("assigned_memory"),
    _real("page_cache_memory"),
    _real("cycles_per_instruction", Omitted.NULL),
    _real("memory_accesses_per_instruction", Omitted.NULL),
    _real("sample_rate"),
    Column(name="cpu_usage_distribution", dtype="List(Float32)", omitted=Omitted.KEPT, path="cpu_usage_distribution"),
    Column(
        name="tail_cpu_usage_distribution",
        dtype="List(Float32)",
        omitted=Omitted.KEPT,
        path="tail_cpu_usage_distribution",
    ),
)  # empty lists are null; 11 values (0, 10, … 100 %) and 9 values (91 … 99 %), any other length is rejected
_OF_ANY_EVENT = (
    _int("time_us", path="time"),
    _int("type", "Int8"),
    _int("collection_id"),
    _int("scheduling_class", "Int8"),
    _int("missing_type", "Int8"),
    _int("collection_type", "Int8"),
    _int("priority", "Int32"),
    _int("alloc_collection_id"),
)
INSTANCE_EVENTS = (
    *_OF_ANY_EVENT,
    _int("instance_index", "Int32"),
    _int("machine_id", omitted=Omitted.NULL),
    _int("alloc_instance_index", "Int32"),
    _real("request_cpu", Omitted.KEPT, path="resource_request.cpus"),
    _real("request_memory", Omitted.KEPT, path="resource_request.memory"),
)
COLLECTION_EVENTS = (
    *_OF_ANY_EVENT,
    _text("user"),
    _text("collection_name"),
    _text("collection_logical_name"),
    _int("parent_collection_id"),
    _int("max_per_machine", "Int32"),
    _int("max_per_switch", "Int32"),
    _int("vertical_scaling", "Int8"),
    _int("scheduler", "Int8"),
)
MACHINE_EVENTS = (
    _int("time_us", path="time"),
    _int("machine_id"),
    _int("type", "Int8"),
    _text("switch_id"),
    _real("capacity_cpu", Omitted.KEPT, path="capacity.cpus"),
    _real("capacity_memory", Omitted.KEPT, path="capacity.memory"),
    _text("platform_id"),
    _int("missing_data_reason", "Int8"),
)
TABLES: Mapping[str, tuple[Column, ...]] = {
    "instance_usage": INSTANCE_USAGE,
    "instance_events": INSTANCE_EVENTS,
    "collection_events": COLLECTION_EVENTS,
    "machine_events": MACHINE_EVENTS,
}  # machine_attributes, constraints and start_after lists are not read
DECLARATION = "trace.json"  # beside the shards: {"schema", "cell", "clusterdata": "v3"|"v2", "observed_until_us"}
DECLARATION_SCHEMA = "leadtime.borg-trace/1"


class Dialect(StrEnum):
    """How a file writes the tables down."""

    NDJSON = "ndjson"  # .json.gz, one object a line, int64 as strings, zeros omitted, structs nested
    PARQUET = "parquet"  # structs
    PARQUET_GZ = "parquet-gz"  # plain Parquet in spite of its name
    DOTTED = "dotted"  # Parquet, flat columns average_usage.cpus
    UNDERSCORED = "underscored"  # Parquet, flat columns average_usage_cpus, ids as floats
    SLICE = "slice"  # one joined CSV of the Kaggle kind: dict strings, line-wrapped vectors, event as text
    V2 = "v2"  # 2011: CSV.gz without a header, 13- and 20-column tables


def primary_horizon_min(horizons_min: Collection[int]) -> int:
    """The horizon (minutes) that ``risk_score`` means: PRIMARY_HORIZON_MIN where it is there, else the shortest."""
    return PRIMARY_HORIZON_MIN if PRIMARY_HORIZON_MIN in horizons_min else min(horizons_min)
