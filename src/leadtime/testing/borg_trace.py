"""A small Borg-like trace by seed: canonical tables with resubmissions, evictions, parents, flaps, short windows.

For tests that need the real joins on little data; nothing in it is meant to be learnable.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import DECLARATION, DECLARATION_SCHEMA, TABLES, TRACE_START_US, WINDOW_US, EventType
from leadtime.risk.asof import join_partition
from leadtime.risk.causes import with_causes
from leadtime.risk.runs import ordered
from leadtime.sources.borg.canonical import schema_of

ENDS = (EventType.EVICT, EventType.FAIL, EventType.FINISH, EventType.KILL)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One cell's canonical tables; ``until_us``: observed until then (open)."""

    usage: pl.DataFrame
    events: pl.DataFrame
    collections: pl.DataFrame
    machines: pl.DataFrame
    until_us: int

    def windows(self) -> pl.DataFrame:
        """Windows as make-dataset joins them."""
        frames = (self.usage, self.events, self.collections, self.machines)
        return join_partition(*(frame.lazy() for frame in frames)).collect()

    def ordered_events(self) -> pl.DataFrame:
        """Instance events as make-dataset keeps them."""
        return with_causes(ordered(self.events.lazy()), self.collections.lazy(), self.machines.lazy()).collect()

    def write(self, folder: Path, cell: str = "b") -> Path:
        """Parquet shards with their declaration below ``folder``/<cell>; returns ``folder``."""
        below = folder / cell
        below.mkdir(parents=True, exist_ok=True)
        tables = {
            "instance_usage": self.usage, "instance_events": self.events, "collection_events": self.collections,
            "machine_events": self.machines,
        }  # fmt: skip
        for name, frame in tables.items():
            dotted = {column.name: column.path for column in TABLES[name]}
            frame.rename(dotted).write_parquet(below / f"{name}-000000000000.parquet")
        declared = (
            f'{{"schema": "{DECLARATION_SCHEMA}", "cell": "{cell}", "clusterdata": "v3", '
            f'"observed_until_us": {self.until_us}}}'
        )
        (below / DECLARATION).write_text(declared, encoding="utf-8")
        return folder


def small_trace(seed: int, *, collections: int = 5, tasks: int = 4, steps: int = 30, run_windows: float = 6) -> Trace:
    """``collections`` of up to ``tasks`` tasks over ``steps`` windows of 300 s; equal seeds give equal tables.

    ``run_windows``: mean length of a run, in windows.
    """
    rng = np.random.default_rng(seed)
    usage: list[Row] = []
    events: list[Row] = []
    owners: list[Row] = []
    until = TRACE_START_US + steps * WINDOW_US
    for collection in range(10, 10 + collections):
        priority = int(rng.choice([25, 103, 117, 200, 360]))
        owner = {"collection_id": collection, "priority": priority, "user": f"user-{collection % 2}"}
        named = owner | {"collection_logical_name": f"job-{collection % 3}", "vertical_scaling": collection % 4}
        parent = {"parent_collection_id": collection - 1 if collection % 2 else None}
        owners.append(named | parent | {"time_us": TRACE_START_US, "type": EventType.SUBMIT})
        owners.append(named | parent | {"time_us": until - int(rng.integers(WINDOW_US)), "type": EventType.FINISH})
        for task in range(int(rng.integers(1, tasks + 1))):
            key = {"collection_id": collection, "instance_index": task, "priority": priority}
            for event, rows in _lives(rng, key, until, run_windows):
                events.append(event)
                usage += rows
    machines = [
        {"time_us": int(at), "machine_id": machine, "type": kind, "capacity_cpu": 0.5, "capacity_memory": 0.25}
        for machine in (1, 2, 3)
        for at, kind in ((0, 1), (rng.integers(TRACE_START_US, until), 2), (rng.integers(TRACE_START_US, until), 1))
    ]
    return Trace(
        usage=_frame("instance_usage", usage), events=_frame("instance_events", events),
        collections=_frame("collection_events", owners), machines=_frame("machine_events", machines), until_us=until,
    )  # fmt: skip


def _lives(rng: np.random.Generator, key: Row, until: int, run_windows: float) -> Iterator[tuple[Row, list[Row]]]:
    """A task's events, each with the windows of the run it begins."""
    at = int(rng.choice([0, TRACE_START_US + int(rng.integers(5 * WINDOW_US))]))
    request = {"request_cpu": float(rng.choice([0.0, 0.1, 0.2])), "request_memory": 0.05}
    for _ in range(4):
        machine = {"machine_id": int(rng.integers(1, 4))}
        yield key | {"time_us": at, "type": EventType.SUBMIT}, []
        end = max(at, TRACE_START_US) + int(rng.exponential(run_windows * WINDOW_US)) + 1
        yield (
            key | machine | request | {"time_us": at, "type": EventType.SCHEDULE},
            list(_usage(rng, key, at, end, until)),
        )
        if end >= until:
            return
        kind = ENDS[int(rng.integers(len(ENDS)))]
        yield key | machine | {"time_us": end, "type": kind}, []
        if kind not in {EventType.FAIL, EventType.EVICT}:
            return
        at = end + int(rng.integers(2)) * int(rng.exponential(60e6))


def _usage(rng: np.random.Generator, key: Row, start: int, end: int, until: int) -> Iterator[Row]:
    """Windows on the 300 s grid, the first and last cut short, some left out, some running past the end."""
    begin = max(start, TRACE_START_US)
    machine = {"machine_id": int(rng.choice([0, 1, 2, 3]))}
    while begin < min(end, until):
        stop = min((begin // WINDOW_US + 1) * WINDOW_US, end + int(rng.choice([0, 30_000_000])), until)
        level = float(rng.choice([0.0, 0.05 + 0.01 * rng.normal()]))
        seen = {"avg_cpu": max(level, 0.0), "max_cpu": max(level, 0.0) * 1.5, "avg_memory": 0.02 + 0.01 * rng.random()}
        if rng.random() < 0.9:
            yield key | machine | seen | {
                "start_time_us": begin, "end_time_us": stop, "assigned_memory": 0.06, "page_cache_memory": 0.001,
                "max_memory": None if rng.random() < 0.1 else 0.04, "sample_cpu": 0.01, "sample_rate": 1.0,
            }  # fmt: skip
        begin = stop


def _frame(table: str, rows: list[Row]) -> pl.DataFrame:
    """Rows → the table's canonical schema; numbers left out are 0, texts null."""
    schema = schema_of(table)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame = frame.select(pl.col(name).cast(schema[name]) for name in schema if name in frame.columns)
    zeros = ("missing_type", "collection_type", "scheduling_class", "alloc_collection_id")
    absent = [name for name in schema if name not in frame.columns]
    frame = frame.with_columns(pl.lit(0 if name in zeros else None).cast(schema[name]).alias(name) for name in absent)
    return frame.select(list(schema))
