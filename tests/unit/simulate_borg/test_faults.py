"""Nulls, copies, latecomers, removals, parents, alloc sets, crash loops: each at its rate."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leadtime.domain.borg import AFTER_TRACE_US, TERMINAL, EventType, MachineEventType
from leadtime.simulate.borg.generate import Generated, Knobs, generate

KEY = ["collection_id", "instance_index"]


def test_nulls_and_sentinels_come_at_their_rates(trace: Generated, reading: Any, knobs: Knobs) -> None:
    usage, events = reading.table(trace, "instance_usage"), reading.table(trace, "instance_events")
    nulls = {name: count / usage.height for name, count in usage.null_count().row(0, named=True).items()}
    tasks = usage.filter(pl.col("collection_type") == 0)
    assert nulls["machine_id"] == pytest.approx(knobs.no_machine_usage, rel=0.1)
    assert (usage["machine_id"] == -1).mean() == pytest.approx(knobs.dedicated_usage, rel=0.2)
    empty = (usage["cpu_usage_distribution"].list.len() == 0).mean()
    assert empty == pytest.approx(knobs.no_vectors, rel=0.1)
    assert nulls["cycles_per_instruction"] == pytest.approx(knobs.no_counters, abs=0.12)
    assert usage["maximum_usage"].struct.field("memory").is_null().mean() == pytest.approx(knobs.no_max_memory, rel=0.1)
    assert events["machine_id"].is_null().mean() == pytest.approx(0.48, abs=0.03)
    assert events["resource_request"].is_null().mean() == pytest.approx(knobs.null_request, rel=0.5)
    assert (events["missing_type"] != 0).mean() == pytest.approx(knobs.missing_type + 0.001, rel=0.6)
    assert (events["time"] == AFTER_TRACE_US).sum() > 100
    assert ((events["time"] == 0) & (events["type"] == 3)).sum() > 100
    whole = (tasks["start_time"] % 300_000_000 == 0) & (tasks["end_time"] - tasks["start_time"] == 300_000_000)
    assert whole.mean() == pytest.approx(knobs.on_grid, abs=0.05)
    assert reading.truth(trace)["null_ratios"]["instance_usage.machine_id"] == pytest.approx(nulls["machine_id"])


def test_copies_and_latecomers_come_at_their_rates(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    made = generate(tmp_path / "c", replace(knobs, rows=60_000, duplicated=0.05, duplicated_otherwise=0.02, late=0.1))
    events = reading.table(made, "instance_events")
    exact = events.height - events.unique().height
    assert exact / events.height == pytest.approx(0.05, rel=0.15)
    other = events.unique().height - events.drop("missing_type").unique().height
    assert other / events.height == pytest.approx(0.02, rel=0.25)
    last = [path for path in made.files if path.name.startswith("instance_events")][-1]
    shards = len([path for path in made.files if path.name.startswith("instance_usage")])
    assert last.name.startswith(f"instance_events-{shards:012d}")  # one more than usage has: latecomers of the last
    assert pl.read_parquet(last).height > 0


def test_ends_and_their_shares_are_the_knobs(trace: Generated, reading: Any, knobs: Knobs) -> None:
    events = (
        reading.table(trace, "instance_events")
        .filter(pl.col("collection_type") == 0, pl.col("time") < AFTER_TRACE_US)
        .unique()
    )
    ends = events.filter(pl.col("type").is_in([int(one) for one in TERMINAL]))
    share = dict(ends["type"].value_counts(normalize=True).iter_rows())
    assert share[int(EventType.LOST)] == pytest.approx(knobs.lost, rel=0.4)
    evictions = ends.filter(pl.col("type") == int(EventType.EVICT))
    assert (evictions["priority"] < 116).mean() > 0.75  # ten times the rate in 55 % of the collections
    updated = events.filter(pl.col("type") == int(EventType.UPDATE_RUNNING)).height
    runs = events.filter(pl.col("type") == int(EventType.SCHEDULE)).height
    assert 0.2 * knobs.updated < updated / runs < knobs.updated  # only runs that live long enough show it


def test_removing_a_machine_evicts_all_its_tasks_within_a_second(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    made = generate(tmp_path / "c", replace(knobs, rows=40_000, removals_a_day=1.0))
    machines = reading.table(made, "machine_events").filter(pl.col("type") == int(MachineEventType.REMOVE))
    events = (
        reading.table(made, "instance_events").filter(pl.col("collection_type") == 0).unique(["time", "type", *KEY])
    )
    runs = (
        events.filter(pl.col("type").is_in([int(EventType.SCHEDULE), *map(int, TERMINAL)]))
        .sort("time", "type")
        .with_columns(end=pl.col("time").shift(-1).over(KEY), how=pl.col("type").shift(-1).over(KEY))
        .filter(pl.col("type") == int(EventType.SCHEDULE))
        .select("machine_id", "time", "end", "how")
    )
    hit = runs.join(machines.select("machine_id", removed="time"), on="machine_id")
    hit = hit.filter(pl.col("time") < pl.col("removed"), (pl.col("end") >= pl.col("removed")) | pl.col("end").is_null())
    assert hit.height > 50
    assert (hit["end"] - hit["removed"]).max() <= 1_000_000
    assert (hit["how"] == int(EventType.EVICT)).mean() > 0.97  # LOST and the chain's own end may fall in that second


def test_a_parents_end_kills_its_children_within_a_minute(trace: Generated, reading: Any, knobs: Knobs) -> None:
    collections = reading.table(trace, "collection_events").unique(["collection_id", "time", "type"])
    parents = collections.filter(pl.col("parent_collection_id") > 0).unique("collection_id")
    jobs = collections.filter(pl.col("collection_type") == 0)["collection_id"].n_unique()
    assert parents.height / jobs == pytest.approx(knobs.parents, abs=0.06)
    killed = collections.filter(pl.col("type") == int(EventType.KILL)).select(
        parent_collection_id="collection_id", gone="time"
    )
    children = parents.select("collection_id", "parent_collection_id").join(killed, on="parent_collection_id")
    events = reading.table(trace, "instance_events").join(children, on="collection_id")
    assert (
        events.filter(
            pl.col("time").is_between(pl.col("gone"), pl.col("gone") + 60_000_000), pl.col("type") == 7
        ).height
        > 3
    )
    after = events.filter(pl.col("time") > pl.col("gone") + 60_000_000, pl.col("time") < AFTER_TRACE_US)
    assert after.height == 0


def test_alloc_instances_are_in_usage_and_events_and_not_in_the_truth(trace: Generated, reading: Any) -> None:
    usage = reading.table(trace, "instance_usage")
    allocs = usage.filter(pl.col("collection_type") == 1)
    assert 0.005 < allocs.height / usage.height < 0.2
    rows = pl.read_parquet(trace.truth_rows)
    assert not set(allocs["collection_id"]) & set(rows["collection_id"])
    inside = usage.filter(pl.col("alloc_collection_id") > 0)
    assert set(inside["alloc_collection_id"]) <= set(
        reading.table(trace, "instance_events").filter(pl.col("collection_type") == 1)["collection_id"]
    )


def test_crash_loops_fail_many_times_before_they_last(trace: Generated, reading: Any) -> None:
    events = reading.table(trace, "instance_events").unique()
    fails = events.filter(pl.col("type") == int(EventType.FAIL)).group_by(KEY).len()
    tasks = events.filter(pl.col("collection_type") == 0).select(KEY).unique().height
    assert 0.002 < (fails["len"] > 8).sum() / tasks < 0.02
