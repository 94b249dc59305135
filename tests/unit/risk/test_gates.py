"""Each gate passes on clean data and fails on its own trap, the others staying as they were."""

from collections.abc import Callable

import polars as pl
import pytest

from leadtime.domain.borg import V2_TO_V3, EventType
from leadtime.risk import gates_ends, gates_join, gates_rows
from leadtime.risk.gates import Gate, Standing, too_few, too_small
from leadtime.risk.gates_enum import enum_proof
from leadtime.risk.gates_tally import Tally, narrow, tally
from leadtime.testing.toy_trace import ToyTrace, toy_trace

PASSED, FAILED, NOT_EXAMINED = Standing.PASSED, Standing.FAILED, Standing.NOT_EXAMINED
V3_TO_V2 = {int(v3): v2 for v2, v3 in V2_TO_V3.items()}


@pytest.fixture(scope="module")
def clean() -> ToyTrace:
    return toy_trace()


def windows_of(trace: ToyTrace) -> pl.DataFrame:
    return narrow(trace.usage, "instance_usage", 0)


def events_of(trace: ToyTrace) -> pl.DataFrame:
    return narrow(trace.events, "instance_events", 1)


def tally_of(frame: pl.DataFrame, table: str) -> Tally:
    return tally(frame, table, rows_in=frame.height, rejects={})


def in_unit(frame: pl.DataFrame, divisor: int, *columns: str) -> pl.DataFrame:
    return frame.with_columns(pl.col(columns) // divisor)


def ended(trace: ToyTrace, windows: pl.DataFrame | None = None) -> pl.DataFrame:
    return gates_ends.windows_with_ends(windows_of(trace) if windows is None else windows, events_of(trace))


# --- the meaning of the codes -------------------------------------------------------------------------------------


def test_v3_codes_are_proved_as_v3(clean: ToyTrace) -> None:
    gate = enum_proof(events_of(clean), windows_of(clean), where="b", declared="v3")
    assert gate.standing is PASSED
    assert gate.figures["proved"] == "v3"


def as_v2(events: pl.DataFrame) -> pl.DataFrame:
    kept = events.filter(pl.col("type").is_in(list(V3_TO_V2)))
    return kept.with_columns(pl.col("type").replace_strict(V3_TO_V2, return_dtype=pl.Int8))


@pytest.mark.parametrize("alone", [False, True], ids=["with usage", "one file alone"])
def test_v2_codes_in_a_v3_file_are_refused_and_named_v2(clean: ToyTrace, alone: bool) -> None:
    gate = enum_proof(as_v2(events_of(clean)), None if alone else windows_of(clean), where="b", declared="v3")
    assert gate.standing is FAILED
    assert "codes are v2's" in gate.sentence
    assert "enum-v2-to-v3" in gate.cure


def test_codes_that_follow_no_numbering_are_refused(clean: ToyTrace) -> None:
    shuffled = events_of(clean).with_columns(type=(10 - pl.col("type")).cast(pl.Int8))
    gate = enum_proof(shuffled, windows_of(clean), where="b", declared="v3")
    assert gate.standing is FAILED
    assert "neither" in gate.sentence


def test_a_proof_on_nothing_is_no_pass(clean: ToyTrace) -> None:
    assert enum_proof(events_of(clean).head(0), None, where="b", declared="v3").standing is NOT_EXAMINED
    ids = events_of(clean)["collection_id"].unique().sort()
    whole = events_of(clean).filter(pl.col("collection_id") == ids[0])
    for windows in (windows_of(clean), None):
        few = enum_proof(whole, windows, where="b", declared="v3")
        assert few.standing is NOT_EXAMINED
        assert few.figures["rows"] < few.figures["needed"] == 20
        assert few.sentence.startswith(f"not examined: {few.figures['rows']} SCHEDULE rows, 20 needed")


def test_a_few_events_against_v3_are_refused_however_small_the_trace(clean: ToyTrace) -> None:
    few = as_v2(events_of(clean)).filter(pl.col("collection_id") <= pl.col("collection_id").sort().head(60).max())
    assert enum_proof(few, windows_of(clean), where="b", declared="v3").standing is FAILED


def test_machines_set_before_placement_refute_v3(clean: ToyTrace) -> None:
    placed = events_of(clean).with_columns(pl.col("machine_id").fill_null(7))
    gate = enum_proof(placed, windows_of(clean), where="b", declared="v3")
    assert gate.standing is FAILED
    assert "before placement" in gate.sentence


def null_gates(rows: int, missing: int) -> dict[str, Gate]:
    frame = (
        toy_trace()
        .usage.head(rows)
        .with_columns(machine_id=pl.when(pl.int_range(pl.len()) < missing).then(None).otherwise(1).cast(pl.Int64))
    )
    gates = gates_rows.null_rates({"instance_usage": tally_of(frame, "instance_usage")}, "cell b")
    return {gate.where: gate for gate in gates}


@pytest.mark.parametrize(
    ("rows", "missing", "standing"),
    [(30, 3, None), (30, 5, NOT_EXAMINED), (30, 12, FAILED), (99, 11, NOT_EXAMINED), (100, 11, FAILED)],
)
def test_a_few_more_missing_values_than_allowed_mean_nothing_in_a_few_rows(
    rows: int, missing: int, standing: Standing | None
) -> None:
    found = null_gates(rows, missing).get("cell b instance_usage.machine_id")  # its limit is 10 %
    assert (None if found is None else found.standing) == standing
    if standing is NOT_EXAMINED:
        assert found is not None
        assert found.sentence.startswith(f"not examined: {rows} rows, 100 needed")


def test_a_key_that_is_missing_once_is_refused_in_however_few_rows() -> None:
    frame = (
        toy_trace()
        .usage.head(25)
        .with_columns(end_time_us=pl.when(pl.int_range(pl.len()) > 0).then("end_time_us").cast(pl.Int64))
    )
    gates = gates_rows.null_rates({"instance_usage": tally_of(frame, "instance_usage")}, "cell b")
    assert [gate.where for gate in gates if gate.standing is FAILED] == ["cell b instance_usage.end_time_us"]


def test_a_trace_is_called_too_small_by_the_gates_that_must_be_able_to_fail() -> None:
    short = [too_few("enum-proof", 12, 20, where="cell b"), too_few("coverage", 40, 100, where="cell b request")]
    beside = [
        too_few("null-rate", 3, 20, where="cell b machine_events"),
        too_few("time-unit", 3, 20, where="instance_usage-000000000000.parquet"),
        too_few("negative-sampling", 3, 20, where="cell b"),
    ]
    said = too_small(gate.to_json() for gate in [*short, *beside])
    assert said is not None
    assert "cell b: enum-proof 12 of 20 rows needed, coverage 40 of 100 rows needed" in said
    assert too_small(gate.to_json() for gate in beside) is None


# --- units, rows, missing values ----------------------------------------------------------------------------------


def unit_gates(clean: ToyTrace, usage: pl.DataFrame, events: pl.DataFrame) -> dict[str, Gate]:
    shards = {
        "usage-0": tally_of(clean.usage, "instance_usage"), "usage-1": tally_of(usage, "instance_usage"),
        "events-1": tally_of(events, "instance_events"),
    }  # fmt: skip
    latest = gates_rows.proved_latest_us(shards.values(), None)
    return {gate.where: gate for gate in gates_rows.time_unit(shards, latest_us=latest)}


def test_microseconds_pass(clean: ToyTrace) -> None:
    assert {gate.standing for gate in unit_gates(clean, clean.usage, clean.events).values()} == {PASSED}


@pytest.mark.parametrize(("unit", "divisor"), [("ms", 1_000), ("s", 1_000_000)])
def test_a_file_in_another_unit_is_named_with_its_unit(clean: ToyTrace, unit: str, divisor: int) -> None:
    usage = in_unit(clean.usage, divisor, "start_time_us", "end_time_us")
    gates = unit_gates(clean, usage, in_unit(clean.events, divisor, "time_us"))
    assert gates["usage-0"].standing is PASSED
    for file in ("usage-1", "events-1"):
        assert gates[file].standing is FAILED
        assert f"times are {unit}" in gates[file].sentence


def test_a_trace_on_another_grid_is_refused(clean: ToyTrace) -> None:
    minute = clean.usage.with_columns(end_time_us=pl.col("start_time_us") + 60_000_000)
    (gate,) = gates_rows.time_unit({"u": tally_of(minute, "instance_usage")}, latest_us=None)
    assert gate.standing is FAILED
    assert gate.measured == 60_000_000


def test_few_rows_say_nothing_of_their_unit(clean: ToyTrace) -> None:
    (gate,) = gates_rows.time_unit({"u": tally_of(clean.usage.head(5), "instance_usage")}, latest_us=None)
    assert gate.standing is NOT_EXAMINED
    assert "5 usage rows" in gate.sentence


def test_rows_that_vanish_are_named_with_their_file() -> None:
    one = Tally(table="instance_usage", rows_in=100, rows_out=97, rejects={"not-an-integer": 1})
    gates = {gate.name: gate for gate in gates_rows.rows_accounted({"u": one})}
    assert gates["rows-accounted"].standing is FAILED
    assert gates["rows-accounted"].measured == 2
    assert gates["reject-rate"].standing is PASSED
    many = Tally(table="instance_usage", rows_in=100, rows_out=90, rejects={"not-an-integer": 10})
    gates = {gate.name: gate for gate in gates_rows.rows_accounted({"u": many})}
    assert (gates["rows-accounted"].standing, gates["reject-rate"].standing) == (PASSED, FAILED)


def test_a_column_that_was_not_read_is_named(clean: ToyTrace) -> None:
    spoilt = clean.usage.with_columns(machine_id=pl.lit(None, pl.Int64))
    gates = gates_rows.null_rates({"instance_usage": tally_of(spoilt, "instance_usage")}, "cell b")
    assert [(gate.where, gate.measured) for gate in gates if gate.standing is FAILED] == [
        ("cell b instance_usage.machine_id", 1.0)
    ]


@pytest.mark.parametrize("column", ["collection_id", "end_time_us", "avg_cpu"])
def test_keys_and_times_of_zero_are_named(clean: ToyTrace, column: str) -> None:
    spoilt = clean.usage.with_columns(pl.col(column) * 0)
    gates = gates_rows.sentinel_rates({"instance_usage": tally_of(spoilt, "instance_usage")}, "cell b")
    assert [gate.where for gate in gates if gate.standing is FAILED] == [f"cell b instance_usage.{column}"]


def test_rates_of_a_clean_trace_pass(clean: ToyTrace) -> None:
    tables = {table: tally_of(frame, table) for table, frame in clean.tables().items()}
    gates = (*gates_rows.null_rates(tables, "b"), *gates_rows.sentinel_rates(tables, "b"))
    assert {gate.standing for gate in gates} == {PASSED}


def test_machine_zero_in_the_machine_table_is_named(clean: ToyTrace) -> None:
    none = clean.machines.head(2).with_columns(machine_id=pl.Series([0, -1]))
    tables = {"machine_events": tally_of(pl.concat([clean.machines, none]), "machine_events")}
    gate = gates_rows.machine_sentinels(tables, "b")
    assert (gate.standing, gate.measured) == (FAILED, 2)
    tables = {"machine_events": tally_of(clean.machines, "machine_events")}
    assert gates_rows.machine_sentinels(tables, "b").standing is PASSED
    assert gates_rows.machine_sentinels({}, "b").standing is NOT_EXAMINED


def test_columns_from_the_whole_trace_are_named_as_ignored() -> None:
    gate = gates_rows.leaked_columns({"u": ("event_count", "note"), "v": ()})
    assert gate.standing is PASSED
    assert gate.figures["whole_trace"] == ["event_count"]
    assert "never read" in gate.sentence


# --- joins --------------------------------------------------------------------------------------------------------


def test_a_file_of_another_cell_is_named(clean: ToyTrace) -> None:
    other = toy_trace(seed=2, first_id=900)
    windows = pl.concat([windows_of(clean), narrow(other.usage, "instance_usage", 2)])
    events = pl.concat([events_of(clean), narrow(other.events.head(0), "instance_events", 3)])
    gates = gates_join.join_match(windows, events, ["u-0", "e-0", "u-other", "e-1"], cell="cell b")
    assert {gate.where for gate in gates if gate.standing is FAILED} == {"u-other"}


def test_a_cell_whose_usage_finds_no_events_fails_as_a_whole(clean: ToyTrace) -> None:
    other = toy_trace(seed=2, first_id=900)
    gates = gates_join.join_match(windows_of(clean), events_of(other), ["u-0", "e-0"], cell="cell b")
    assert gates[0].standing is FAILED
    assert gates[0].measured == 0


def test_coverage_tells_of_lost_requests_and_of_a_cut_machine_table(clean: ToyTrace) -> None:
    windows, events = windows_of(clean), events_of(clean)
    good = gates_join.coverage(windows, events, clean.machines["machine_id"], cell="b")
    assert [gate.standing for gate in good] == [PASSED, PASSED]
    blind = events.with_columns(request_cpu=pl.lit(None, pl.Float32))
    bad = gates_join.coverage(windows, blind, clean.machines["machine_id"].head(9), cell="b")
    assert [gate.standing for gate in bad] == [FAILED, FAILED]
    assert gates_join.coverage(windows, events, None, cell="b")[1].standing is NOT_EXAMINED


def test_events_read_twice_fail_and_are_told_apart_from_twins(clean: ToyTrace) -> None:
    events = events_of(clean)
    assert gates_join.duplicate_events(events, cell="b").standing is PASSED
    twins = events.head(10).with_columns(missing_type=pl.lit(1, pl.Int8))
    gate = gates_join.duplicate_events(pl.concat([events, events.head(100), twins]), cell="b")
    assert gate.standing is FAILED
    assert (gate.figures["exact"], gate.figures["twins"]) == (100, 10)


def test_ids_shared_by_cells_are_counted_and_harmless() -> None:
    gate = gates_join.id_overlap({"b": pl.Series([1, 2, 3]), "c": pl.Series([3, 4, 3])})
    assert (gate.standing, gate.measured) == (PASSED, 1)


# --- ends ---------------------------------------------------------------------------------------------------------


def cut_at_the_end(trace: ToyTrace) -> pl.DataFrame:
    """One more window for each end: from the grid to a moment before it."""
    ends = trace.events.filter(pl.col("type").is_in([4, 5, 6, 7])).select(
        "collection_id", "instance_index", "time_us", "machine_id"
    )  # fmt: skip
    start = pl.col("time_us") - (pl.col("time_us") - 600_000_000) % 300_000_000
    cut = ends.with_columns(
        start_time_us=start, end_time_us=pl.col("time_us") - 1_000_000, sample_rate=pl.lit(1.0, pl.Float32),
        collection_type=pl.lit(0, pl.Int8),
    ).filter(pl.col("end_time_us") > pl.col("start_time_us"))  # fmt: skip
    return pl.concat([windows_of(trace), narrow(cut, "instance_usage", 0)])


def test_windows_cut_just_before_the_end_are_named(clean: ToyTrace) -> None:
    assert gates_ends.terminal_timing(ended(clean), cell="b").standing is PASSED
    gate = gates_ends.terminal_timing(ended(clean, cut_at_the_end(clean)), cell="b")
    assert gate.standing is FAILED
    assert gate.measured is not None
    assert gate.measured > 0.9


def test_short_windows_anywhere_are_no_tell(clean: ToyTrace) -> None:
    short = windows_of(clean).with_columns(
        end_time_us=pl.when(pl.col("draw") % 3 == 0).then(pl.col("end_time_us") - 60_000_000).otherwise("end_time_us")
    )
    assert gates_ends.terminal_timing(ended(clean, short), cell="b").standing is PASSED


def test_few_samples_before_the_end_are_a_tell_too(clean: ToyTrace) -> None:
    found = ended(clean)
    soon = (pl.col("next_terminal_time_us") - pl.col("end_time_us") <= 60_000_000).fill_null(value=False)
    thin = found.with_columns(sample_rate=pl.when(soon).then(0.3).otherwise(1.0))
    assert gates_ends.terminal_timing(thin, cell="b").standing is FAILED


def test_rows_after_the_end_are_counted_and_too_many_fail(clean: ToyTrace) -> None:
    late = windows_of(clean).with_columns(pl.col("start_time_us", "end_time_us") + 40 * 300_000_000)
    gate = gates_ends.rows_after_end(ended(clean, late), cell="b")
    assert gate.standing is FAILED
    assert gates_ends.rows_after_end(ended(clean), cell="b").standing is PASSED


def test_negatives_sampled_away_are_named(clean: ToyTrace) -> None:
    found = ended(clean)
    assert gates_ends.negative_sampling(found, cell="b").standing is PASSED
    near = (pl.col("next_terminal_type") == EventType.FAIL) & (
        pl.col("next_terminal_time_us") - pl.col("end_time_us") <= 900_000_000
    )
    kept = found.filter(near.fill_null(value=False) | (pl.col("end_time_us").hash(1) % 10 == 0))
    assert gates_ends.negative_sampling(kept, cell="b").standing is FAILED
    by_chance = found.filter(pl.struct("draw", "end_time_us").hash(1) % 2 == 0)  # half of the shards: no fault
    assert gates_ends.negative_sampling(by_chance, cell="b").standing is PASSED


def rate(clean: ToyTrace, spoil: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame) -> Gate:
    found = spoil(ended(clean))
    return gates_ends.positive_rates(
        gates_ends.labelled_rows(found, observed_until_us=clean.observed_until_us), cell="b"
    )


def test_positive_rates_grow_with_the_horizon_and_none_at_all_is_not_silent(clean: ToyTrace) -> None:
    gate = rate(clean)
    shares = [gate.figures[str(minutes)]["ratio"] for minutes in (5, 15, 30, 45, 60)]
    assert gate.standing is PASSED
    assert shares == sorted(shares)
    assert shares[0] > 0
    none = rate(clean, lambda found: found.with_columns(next_terminal_type=pl.lit(6, pl.Int8)))
    assert none.standing is NOT_EXAMINED


def test_a_positive_rate_beyond_belief_fails(clean: ToyTrace) -> None:
    soon = rate(
        clean,
        lambda found: found.with_columns(
            next_terminal_type=pl.lit(5, pl.Int8), next_terminal_time_us=pl.col("end_time_us") + 1
        ),
    )
    assert soon.standing is FAILED


def test_a_changed_positive_rate_is_named_and_chance_is_not(clean: ToyTrace) -> None:
    now = rate(clean)
    before = {"figures": {"15": {"ratio": now.figures["15"]["ratio"] / 3, "rows": 100_000, "positives": 1}}}
    assert gates_ends.positive_rate_change(now, before, source="x").standing is FAILED
    same = gates_ends.positive_rate_change(now, now.to_json(), source="x")
    assert (same.standing, same.measured) == (PASSED, 1.0)
    small = {"figures": {"15": {"ratio": now.figures["15"]["ratio"] / 3, "rows": 40, "positives": 1}}}
    assert gates_ends.positive_rate_change(now, small, source="x").standing is PASSED
    assert gates_ends.positive_rate_change(now, None, source="x").standing is NOT_EXAMINED


def test_drift_is_told_and_never_fails(clean: ToyTrace) -> None:
    labelled = gates_ends.labelled_rows(ended(clean), observed_until_us=clean.observed_until_us)
    gate = gates_ends.drift(labelled, cell="b")
    assert gate.standing is PASSED
    assert gate.measured == pytest.approx(gate.figures["second_half_ratio"] / gate.figures["first_half_ratio"])
