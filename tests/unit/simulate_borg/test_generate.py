"""A whole trace: labels against its own events, calibration of the score, rates of every fault, same bytes."""

import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from leadtime.domain.borg import AFTER_TRACE_US, HORIZONS_MIN, TERMINAL, Dialect, EventType, MachineEventType
from leadtime.domain.errors import BadTrace, WrongUse
from leadtime.simulate.borg.generate import Generated, Knobs, generate
from leadtime.simulate.borg.knobs import Trap

KEY = ["collection_id", "instance_index"]
ROWS = 120_000
KNOBS = Knobs(rows=ROWS, seed=3, base_rate=0.02, lost=0.02, days=1, largest_share=0.01)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(tmp_path_factory.mktemp("trace") / "c", KNOBS)


def table(trace: Generated, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in trace.files if path.name.startswith(name)])


def truth(trace: Generated) -> dict[str, Any]:
    return json.loads(trace.truth.read_text())


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- labels -------------------------------------------------------------------------------------------------------


def labelled_by_events(trace: Generated, minutes: int) -> pl.DataFrame:
    """The contract (0013) read off the written events alone."""
    until = trace_end(trace)
    events = (
        table(trace, "instance_events")
        .filter(pl.col("collection_type") == 0, pl.col("time") < AFTER_TRACE_US)
        .select("collection_id", pl.col("instance_index").cast(pl.Int32), "time", "type")
        .unique()
    )
    ends = events.filter(pl.col("type").is_in([int(one) for one in TERMINAL]))
    starts = events.filter(pl.col("type") == int(EventType.SCHEDULE))
    rows = pl.read_parquet(trace.truth_rows).select(*KEY, "start_time_us", "end_time_us").sort("end_time_us")
    last_start = starts.sort("time").select(*KEY, pl.col("time").alias("started"), "time")
    last_end = ends.sort("time").select(*KEY, pl.col("time").alias("ended"), "time")
    next_end = ends.sort("time").with_columns(pl.col("time").alias("next"), before=pl.col("time") - 1)
    joined = rows
    for frame, on, strategy in (
        (last_start, "time", "backward"), (last_end, "time", "backward"),
        (next_end.select(*KEY, "next", pl.col("type").alias("next_type"), "before"), "before", "forward"),
    ):  # fmt: skip
        joined = joined.join_asof(
            frame, left_on="end_time_us", right_on=on, by=KEY, strategy=strategy, check_sortedness=False, coalesce=True
        )
    h = pl.col("end_time_us") + minutes * 60_000_000
    running = pl.col("started").is_not_null() & (pl.col("ended").is_null() | (pl.col("ended") <= pl.col("started")))
    soon = pl.col("next") <= h
    excluded = (
        pl.when(~running).then(pl.lit("not_running"))
        .when(h > until).then(pl.lit("censored"))
        .when(soon & (pl.col("next_type") == int(EventType.LOST))).then(pl.lit("lost"))
    )  # fmt: skip
    y = (soon & (pl.col("next_type") == int(EventType.FAIL))).fill_null(value=False).cast(pl.Int8)
    return (
        joined.with_columns(excluded=excluded)
        .with_columns(y=pl.when(pl.col("excluded").is_null()).then(y))
        .sort(*KEY, "end_time_us", "start_time_us")
    )


def trace_end(trace: Generated) -> int:
    return int(json.loads((trace.folder / "trace.json").read_text())["observed_until_us"])


@pytest.mark.parametrize("minutes", HORIZONS_MIN)
def test_truth_equals_the_contract_read_off_the_events(trace: Generated, minutes: int) -> None:
    rows = pl.read_parquet(trace.truth_rows)
    read = labelled_by_events(trace, minutes)
    assert rows[f"excluded_{minutes}"].equals(read["excluded"], null_equal=True)
    assert rows[f"y_{minutes}"].equals(read["y"], null_equal=True)
    assert {"not_running", "censored", "lost"} <= set(read["excluded"].drop_nulls())


@pytest.mark.parametrize("traps", [(Trap.T4,), (Trap.T5,), (Trap.T6,), (Trap.T3,), (Trap.T14,), (Trap.T15,)])
def test_truth_equals_the_events_under_every_trap_of_time(tmp_path: Path, traps: tuple[Trap, ...]) -> None:
    trapped = generate(tmp_path / "c", replace(KNOBS, rows=15_000, traps=traps))
    rows, read = pl.read_parquet(trapped.truth_rows), labelled_by_events(trapped, 15)
    assert rows["excluded_15"].equals(read["excluded"], null_equal=True)
    assert rows["y_15"].equals(read["y"], null_equal=True)


def test_t4_puts_ends_on_the_edges_of_the_horizon(tmp_path: Path) -> None:
    trapped = generate(tmp_path / "c", replace(KNOBS, rows=15_000, traps=(Trap.T4,), on_grid=1.0))
    fails = table(trapped, "instance_events").filter(pl.col("type") == int(EventType.FAIL))
    after = fails["time"] % 300_000_000
    assert (after == 0).mean() > 0.15  # at p + H of an earlier row
    assert (after == 1).mean() > 0.15  # at p + 1 us


def test_labels_and_scores_rise_with_the_horizon(trace: Generated) -> None:
    rows = pl.read_parquet(trace.truth_rows).filter(pl.col("excluded_60").is_null())
    for kind in ("y", "score"):
        for less, more in pairwise(HORIZONS_MIN):
            assert (rows[f"{kind}_{less}"] <= rows[f"{kind}_{more}"]).all()


def test_truth_rows_are_the_usage_rows_of_tasks_in_order(trace: Generated) -> None:
    rows = pl.read_parquet(trace.truth_rows)
    order = [*KEY, "end_time_us", "start_time_us"]
    assert rows.select(order).equals(rows.select(order).sort(order))
    usage = table(trace, "instance_usage").filter(pl.col("collection_type") == 0)
    mine = usage.select(*KEY, pl.col("start_time").alias("start_time_us"), pl.col("end_time").alias("end_time_us"))
    assert mine.cast(rows.select(mine.columns).schema).sort(order).equals(rows.select(mine.columns))
    assert ROWS <= rows.height == trace.rows <= ROWS * 1.05
    assert set(rows["cell"]) == {"c"}


# --- the score ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes", [5, 15, 60])
def test_the_score_is_calibrated_in_every_part_of_its_range(trace: Generated, minutes: int) -> None:
    rows = pl.read_parquet(trace.truth_rows).drop_nulls(f"y_{minutes}").sort(f"score_{minutes}")
    score, y = rows[f"score_{minutes}"].to_numpy(), rows[f"y_{minutes}"].to_numpy()
    for part in np.array_split(np.arange(len(score)), 10):
        expected = score[part].mean()
        # rows of one run fail together: about `minutes` / 5 rows share one failure
        error = np.sqrt(expected * (1 - expected) / len(part) * minutes / 5)
        assert abs(y[part].mean() - expected) < 4 * error + 0.03 * expected


@pytest.mark.slow
@pytest.mark.parametrize("base_rate", [0.01, 0.001, 0.03])
def test_the_realised_base_rate_is_the_one_asked_for(tmp_path: Path, base_rate: float) -> None:
    made = generate(tmp_path / "c", Knobs(rows=1_500_000, base_rate=base_rate, seed=5, alloc_sets=0.0))
    found = truth(made)["horizons"]["15"]
    failures = found["positives"] / 3
    assert found["base_rate"] == pytest.approx(base_rate, rel=max(0.05, 3 / np.sqrt(failures)))
    assert found["mean_score"] == pytest.approx(base_rate, rel=0.05)


def test_the_placebo_has_nothing_to_find(tmp_path: Path) -> None:
    made = generate(tmp_path / "c", replace(KNOBS, mu=0.0, rows=60_000))
    for found in truth(made)["horizons"].values():
        assert found["average_precision"] < 1.1 * found["base_rate"] + 3 * found["average_precision_se"]
        assert found["average_precision"] < 1.5 * found["base_rate"]


def test_bad_collections_are_found_by_their_siblings(tmp_path: Path) -> None:
    """With a signal too weak for one run, knowing the siblings lifts the optimum far above the base rate."""
    weak = replace(KNOBS, mu=0.1, rows=60_000)
    with_siblings = truth(generate(tmp_path / "c", weak))["horizons"]["15"]
    without = truth(generate(tmp_path / "d", replace(weak, bad_collections=0.0)))["horizons"]["15"]
    assert with_siblings["average_precision"] > 1.6 * with_siblings["base_rate"]
    assert without["average_precision"] < 1.3 * without["base_rate"]


def test_truth_json_says_what_the_rows_say(trace: Generated) -> None:
    rows, said = pl.read_parquet(trace.truth_rows), truth(trace)
    assert said["seed"] == 3
    assert said["knobs"]["lost"] == 0.02
    assert said["windows"] == rows.height
    for minutes in HORIZONS_MIN:
        found, y = said["horizons"][str(minutes)], rows[f"y_{minutes}"]
        assert found["positives"] == y.sum()
        assert found["rows"] == y.count()
        assert found["excluded"] == {
            why: rows.filter(pl.col(f"excluded_{minutes}") == why).height for why in ("not_running", "censored", "lost")
        }
        score = rows.drop_nulls(f"y_{minutes}")[f"score_{minutes}"].to_numpy()
        outcome = y.drop_nulls().to_numpy()
        order = np.argsort(-score, kind="stable")
        hits = np.cumsum(outcome[order])
        exact = (hits / np.arange(1, len(hits) + 1))[outcome[order] == 1].mean()
        assert found["average_precision"] == pytest.approx(exact, rel=0.005)
        assert found["brier"] == pytest.approx(((score - outcome) ** 2).mean())
        top = outcome[order][: round(0.01 * len(order))].mean()
        assert found["precision_at_top"]["0.01"] == pytest.approx(top, rel=0.03)


# --- faults -------------------------------------------------------------------------------------------------------


def test_nulls_and_sentinels_come_at_their_rates(trace: Generated) -> None:
    usage, events = table(trace, "instance_usage"), table(trace, "instance_events")
    nulls = {name: count / usage.height for name, count in usage.null_count().row(0, named=True).items()}
    tasks = usage.filter(pl.col("collection_type") == 0)
    assert nulls["machine_id"] == pytest.approx(KNOBS.no_machine_usage, rel=0.1)
    assert (usage["machine_id"] == -1).mean() == pytest.approx(KNOBS.dedicated_usage, rel=0.2)
    empty = (usage["cpu_usage_distribution"].list.len() == 0).mean()
    assert empty == pytest.approx(KNOBS.no_vectors, rel=0.1)
    assert nulls["cycles_per_instruction"] == pytest.approx(KNOBS.no_counters, abs=0.12)
    assert usage["maximum_usage"].struct.field("memory").is_null().mean() == pytest.approx(KNOBS.no_max_memory, rel=0.1)
    assert events["machine_id"].is_null().mean() == pytest.approx(0.48, abs=0.03)
    assert events["resource_request"].is_null().mean() == pytest.approx(KNOBS.null_request, rel=0.5)
    assert (events["missing_type"] != 0).mean() == pytest.approx(KNOBS.missing_type + 0.001, rel=0.6)
    assert (events["time"] == AFTER_TRACE_US).sum() > 100
    assert ((events["time"] == 0) & (events["type"] == 3)).sum() > 100
    whole = (tasks["start_time"] % 300_000_000 == 0) & (tasks["end_time"] - tasks["start_time"] == 300_000_000)
    assert whole.mean() == pytest.approx(KNOBS.on_grid, abs=0.05)
    assert truth(trace)["null_ratios"]["instance_usage.machine_id"] == pytest.approx(nulls["machine_id"])


def test_copies_and_latecomers_come_at_their_rates(tmp_path: Path) -> None:
    made = generate(tmp_path / "c", replace(KNOBS, rows=60_000, duplicated=0.05, duplicated_otherwise=0.02, late=0.1))
    events = table(made, "instance_events")
    exact = events.height - events.unique().height
    assert exact / events.height == pytest.approx(0.05, rel=0.15)
    other = events.unique().height - events.drop("missing_type").unique().height
    assert other / events.height == pytest.approx(0.02, rel=0.25)
    last = [path for path in made.files if path.name.startswith("instance_events")][-1]
    shards = len([path for path in made.files if path.name.startswith("instance_usage")])
    assert last.name.startswith(f"instance_events-{shards:012d}")  # one more than usage has: latecomers of the last
    assert pl.read_parquet(last).height > 0


def test_ends_and_their_shares_are_the_knobs(trace: Generated) -> None:
    events = (
        table(trace, "instance_events").filter(pl.col("collection_type") == 0, pl.col("time") < AFTER_TRACE_US).unique()
    )
    ends = events.filter(pl.col("type").is_in([int(one) for one in TERMINAL]))
    share = dict(ends["type"].value_counts(normalize=True).iter_rows())
    assert share[int(EventType.LOST)] == pytest.approx(KNOBS.lost, rel=0.4)
    evictions = ends.filter(pl.col("type") == int(EventType.EVICT))
    assert (evictions["priority"] < 116).mean() > 0.75  # ten times the rate in 55 % of the collections
    updated = events.filter(pl.col("type") == int(EventType.UPDATE_RUNNING)).height
    runs = events.filter(pl.col("type") == int(EventType.SCHEDULE)).height
    assert 0.2 * KNOBS.updated < updated / runs < KNOBS.updated  # only runs that live long enough show it


def test_removing_a_machine_evicts_all_its_tasks_within_a_second(tmp_path: Path) -> None:
    made = generate(tmp_path / "c", replace(KNOBS, rows=40_000, removals_a_day=1.0))
    machines = table(made, "machine_events").filter(pl.col("type") == int(MachineEventType.REMOVE))
    events = table(made, "instance_events").filter(pl.col("collection_type") == 0).unique(["time", "type", *KEY])
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


def test_a_parents_end_kills_its_children_within_a_minute(trace: Generated) -> None:
    collections = table(trace, "collection_events").unique(["collection_id", "time", "type"])
    parents = collections.filter(pl.col("parent_collection_id") > 0).unique("collection_id")
    jobs = collections.filter(pl.col("collection_type") == 0)["collection_id"].n_unique()
    assert parents.height / jobs == pytest.approx(KNOBS.parents, abs=0.06)
    killed = collections.filter(pl.col("type") == int(EventType.KILL)).select(
        parent_collection_id="collection_id", gone="time"
    )
    children = parents.select("collection_id", "parent_collection_id").join(killed, on="parent_collection_id")
    events = table(trace, "instance_events").join(children, on="collection_id")
    assert (
        events.filter(
            pl.col("time").is_between(pl.col("gone"), pl.col("gone") + 60_000_000), pl.col("type") == 7
        ).height
        > 3
    )
    after = events.filter(pl.col("time") > pl.col("gone") + 60_000_000, pl.col("time") < AFTER_TRACE_US)
    assert after.height == 0


def test_alloc_instances_are_in_usage_and_events_and_not_in_the_truth(trace: Generated) -> None:
    usage = table(trace, "instance_usage")
    allocs = usage.filter(pl.col("collection_type") == 1)
    assert 0.005 < allocs.height / usage.height < 0.2
    rows = pl.read_parquet(trace.truth_rows)
    assert not set(allocs["collection_id"]) & set(rows["collection_id"])
    inside = usage.filter(pl.col("alloc_collection_id") > 0)
    assert set(inside["alloc_collection_id"]) <= set(
        table(trace, "instance_events").filter(pl.col("collection_type") == 1)["collection_id"]
    )


def test_crash_loops_fail_many_times_before_they_last(trace: Generated) -> None:
    events = table(trace, "instance_events").unique()
    fails = events.filter(pl.col("type") == int(EventType.FAIL)).group_by(KEY).len()
    tasks = events.filter(pl.col("collection_type") == 0).select(KEY).unique().height
    assert 0.002 < (fails["len"] > 8).sum() / tasks < 0.02


# --- files --------------------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_bytes_and_another_seed_gives_others(tmp_path: Path) -> None:
    small = replace(KNOBS, rows=5_000)
    first = digest(generate(tmp_path / "a", small).folder)
    assert digest(generate(tmp_path / "b", small).folder) == first
    other = digest(generate(tmp_path / "d", replace(small, seed=4)).folder)
    assert other["truth/truth_rows.parquet"] != first["truth/truth_rows.parquet"]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_dialect_has_the_same_truth(tmp_path: Path, dialect: Dialect) -> None:
    small = replace(KNOBS, rows=2_000)
    plain = generate(tmp_path / "plain", small)
    other = generate(tmp_path / "other", replace(small, dialects=(dialect,)))
    assert other.truth_rows.read_bytes() == plain.truth_rows.read_bytes()
    declared = json.loads((other.folder / "trace.json").read_text())
    assert declared["clusterdata"] == ("v2" if dialect is Dialect.V2 else "v3")
    assert sum(path.name.startswith(("instance_usage", "slice", "task_usage")) for path in other.files) >= 2


def test_an_earlier_trace_is_replaced_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    out = tmp_path / "c"
    generate(out, replace(KNOBS, rows=5_000, dialects=(Dialect.NDJSON,)))
    again = generate(out, replace(KNOBS, rows=2_000))
    assert not list(out.glob("*.json.gz"))
    assert digest(out) == digest(generate(tmp_path / "d", replace(KNOBS, rows=2_000)).folder)
    assert again.rows < 5_000


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadTrace) as refused:
        generate(tmp_path, replace(KNOBS, rows=1_000))
    assert refused.value.slug == "trace-folder-not-ours"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="is a file"):
        generate(tmp_path / "file" / "c", replace(KNOBS, rows=1_000))


def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    def stop(_what: str, _done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path / "c", replace(KNOBS, rows=5_000), progress=stop)
    assert list(tmp_path.iterdir()) == []


# --- traps of the files -------------------------------------------------------------------------------------------


def test_t1_leaks_the_future_into_usage(tmp_path: Path) -> None:
    usage = table(generate(tmp_path / "c", replace(KNOBS, rows=5_000, traps=(Trap.T1,))), "instance_usage")
    assert {"event_count", "final_type", "last_event_time", "max_request_cpu"} <= set(usage.columns)
    assert usage["event_count"].null_count() == 0


def test_t2_writes_one_shard_in_milliseconds(tmp_path: Path) -> None:
    made = generate(tmp_path / "c", replace(KNOBS, rows=5_000, traps=(Trap.T2,)))
    lengths = [
        pl.read_parquet(path).select(pl.col("end_time") - pl.col("start_time")).to_series().mode().item()
        for path in made.files
        if path.name.startswith("instance_usage")
    ]
    assert lengths[1] == 300_000
    assert {*lengths[:1], *lengths[2:]} == {300_000_000}


def test_t8_counts_event_types_as_2011_did(tmp_path: Path) -> None:
    clean = table(generate(tmp_path / "a", replace(KNOBS, rows=5_000)), "instance_events")
    old = table(generate(tmp_path / "b", replace(KNOBS, rows=5_000, traps=(Trap.T8,))), "instance_events")
    assert old["type"].max() <= 8
    assert (old["type"] == 3).sum() == (clean["type"] == int(EventType.FAIL)).sum()


def test_t11_hides_a_third_of_the_machines(tmp_path: Path) -> None:
    usage = table(generate(tmp_path / "c", replace(KNOBS, rows=5_000, traps=(Trap.T11,))), "instance_usage")
    assert (usage["machine_id"].is_null() | (usage["machine_id"] == -1)).mean() == pytest.approx(0.35, abs=0.03)


def test_t12_gives_two_cells_the_same_ids(tmp_path: Path) -> None:
    def ids(cell: str, *traps: Trap) -> set[int]:
        made = generate(tmp_path / f"{cell}{len(traps)}", replace(KNOBS, rows=2_000, cell=cell, traps=traps))
        return set(pl.read_parquet(made.truth_rows)["collection_id"])

    assert not ids("a") & ids("b")
    assert ids("a", Trap.T12) & ids("b", Trap.T12)


def test_t15_prevents_failures_and_says_that_the_score_is_not_exact(tmp_path: Path) -> None:
    acted = truth(generate(tmp_path / "c", replace(KNOBS, rows=60_000, traps=(Trap.T15,))))
    assert acted["score_is_exact"] is False
    assert acted["horizons"]["15"]["base_rate"] < 0.97 * acted["horizons"]["15"]["mean_score"]
