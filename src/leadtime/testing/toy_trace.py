"""A small, clean Borg-like trace as canonical frames, built by plain loops: what gates and repairs are tried on.

Each task is submitted, placed and measured on the 300 s grid until it ends at a random instant inside a window; half
of the failed ones come back. Nothing here is calibrated; for a trace with a known optimum see ``simulate/borg``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl

from leadtime.domain.borg import TABLES, TRACE_START_US, WINDOW_US, Column, EventType

_DTYPES: dict[str, type[pl.DataType]] = {
    "Int8": pl.Int8, "Int32": pl.Int32, "Int64": pl.Int64, "Float32": pl.Float32, "String": pl.String,
}  # fmt: skip
MACHINES = tuple(range(1_001, 1_041))


@dataclass(slots=True, kw_only=True)
class ToyTrace:
    """Canonical frames of one cell. Each can be replaced by a spoilt one before it is written or checked."""

    usage: pl.DataFrame
    events: pl.DataFrame
    collections: pl.DataFrame
    machines: pl.DataFrame
    observed_until_us: int

    def tables(self) -> dict[str, pl.DataFrame]:
        """By table name."""
        return {
            "instance_usage": self.usage, "instance_events": self.events, "collection_events": self.collections,
            "machine_events": self.machines,
        }  # fmt: skip


@dataclass(slots=True)
class _Rows:
    random: Random
    usage: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    collections: list[dict[str, Any]] = field(default_factory=list)


def frame_of(table: str, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows → a frame with the table's columns; what a row leaves out is 0 or null, as the column says."""
    columns = TABLES[table]
    types: dict[str, Any] = {one.name: _DTYPES.get(one.dtype, pl.List(pl.Float32)) for one in columns}
    return pl.DataFrame([{one.name: row.get(one.name, _blank(one)) for one in columns} for row in rows], schema=types)


def _blank(column: Column) -> int | None:
    return 0 if column.omitted == "zero" else None


def toy_trace(
    *, collections: int = 40, tasks: int = 8, windows: int = 60, seed: int = 1, first_id: int = 1
) -> ToyTrace:
    """``collections`` × ``tasks`` tasks over about ``windows`` windows; ids from ``first_id`` × 1,000."""
    rows = _Rows(Random(seed))
    until = TRACE_START_US + windows * WINDOW_US
    for number in range(collections):
        collection = (first_id + number) * 1_000
        start = TRACE_START_US + WINDOW_US * rows.random.randrange(2, windows // 4)
        for kind, at in ((EventType.SUBMIT, start - 2_000_000), (EventType.SCHEDULE, start)):
            rows.collections.append({"time_us": at, "type": kind, "collection_id": collection, "priority": 200})
        for index in range(tasks):
            _task(rows, collection, index, start, until)
    machines = [
        {"time_us": 0, "machine_id": one, "type": 1, "capacity_cpu": 1.0, "capacity_memory": 1.0, "platform_id": "p"}
        for one in MACHINES
    ] + [
        {"time_us": TRACE_START_US + at * WINDOW_US, "machine_id": one, "type": 3, "capacity_cpu": 1.0,
         "capacity_memory": 1.0, "platform_id": "p"}
        for at, one in enumerate(MACHINES)
    ]  # fmt: skip
    return ToyTrace(
        usage=frame_of("instance_usage", rows.usage), events=frame_of("instance_events", rows.events),
        collections=frame_of("collection_events", rows.collections), machines=frame_of("machine_events", machines),
        observed_until_us=until,
    )  # fmt: skip


def _task(rows: _Rows, collection: int, index: int, start: int, until: int) -> None:
    at: int | None = start
    while at is not None and at < until:
        at = _run(rows, collection, index, at, until)


def _run(rows: _Rows, collection: int, index: int, start: int, until: int) -> int | None:
    """One life: events and windows. Returns when the next one begins, None where there is none."""
    random, machine = rows.random, rows.random.choice(MACHINES)
    key = {"collection_id": collection, "instance_index": index, "priority": 200}
    told = {**key, "request_cpu": 0.5, "request_memory": 0.25}
    last = random.randrange(6, 30)
    end = start + last * WINDOW_US + random.randrange(1, WINDOW_US)
    for kind, before in ((EventType.SUBMIT, 2_000_000), (EventType.QUEUE, 1_500_000), (EventType.ENABLE, 1_000_000)):
        rows.events.append({**told, "type": kind, "time_us": start - before})
    rows.events.append({**told, "type": EventType.SCHEDULE, "time_us": start, "machine_id": machine})
    if random.random() < 0.2:
        update = {**told, "type": EventType.UPDATE_RUNNING, "time_us": start + 3 * WINDOW_US, "machine_id": machine}
        rows.events.append(update)
    for window in range(last):
        at = start + window * WINDOW_US
        if at + WINDOW_US <= until:
            rows.usage.append(_usage(random, key, machine, at))
    if end >= until:
        return None
    kind = random.choices((EventType.FAIL, EventType.FINISH, EventType.KILL, EventType.EVICT), (3, 5, 3, 1))[0]
    rows.events.append({**told, "type": kind, "time_us": end, "machine_id": machine})
    return end + 30_000_000 if kind == EventType.FAIL and random.random() < 0.5 else None


def _usage(random: Random, key: dict[str, int], machine: int, at: int) -> dict[str, Any]:
    level = 0.2 + 0.1 * random.random()
    return {
        **key, "start_time_us": at, "end_time_us": at + WINDOW_US, "machine_id": machine, "avg_cpu": level,
        "avg_memory": 0.1, "max_cpu": 1.5 * level, "max_memory": 0.12, "sample_cpu": level, "assigned_memory": 0.25,
        "page_cache_memory": 0.01, "cycles_per_instruction": 1.5, "memory_accesses_per_instruction": 0.01,
        "sample_rate": 1.0, "cpu_usage_distribution": [level] * 11, "tail_cpu_usage_distribution": [level] * 9,
    }  # fmt: skip
