"""A demand file's buckets → the simulator's steps: held constant, averaged, on whole minutes, never guessed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.cli.replay_run import on_grid
from leadtime.domain.errors import WrongUse
from leadtime.domain.time_window import from_epoch
from leadtime.sources.demand_file import DemandFile, DemandFileOptions, read_demand

MIDNIGHT_S = 1_772_409_600
NAN = float("nan")


@pytest.fixture(scope="module")
def some_file(tmp_path_factory: pytest.TempPathFactory) -> DemandFile:
    path = tmp_path_factory.mktemp("grid") / "demand.csv"
    path.write_text("t,v\n2026-03-02T00:00:00Z,1\n2026-03-02T00:01:00Z,2\n")
    return read_demand(path, DemandFileOptions(time_column="t", value_column="v"))


def file_of(some_file: DemandFile, values: list[float], *, step_s: int, start_s: float = MIDNIGHT_S) -> DemandFile:
    return replace(some_file, start=from_epoch(start_s), step_s=step_s, values=np.asarray(values, dtype=np.float64))


def test_a_minute_is_held_constant_over_its_steps(some_file: DemandFile) -> None:
    trace = on_grid(file_of(some_file, [1.0, 2.0], step_s=60), 15)
    assert (trace.start_s, trace.step_s, trace.rps.tolist()) == (MIDNIGHT_S, 15, [1.0] * 4 + [2.0] * 4)


def test_ten_minutes_are_held_constant_too(some_file: DemandFile) -> None:
    trace = on_grid(file_of(some_file, [986.5, 1044.0], step_s=600), 15)
    assert trace.rps.tolist() == [986.5] * 40 + [1044.0] * 40


def test_steps_outside_whole_minutes_are_dropped_and_not_guessed(some_file: DemandFile) -> None:
    # Buckets of 57 s from 00:00:20 to 00:03:11: whole minutes are [00:01, 00:03).
    trace = on_grid(file_of(some_file, [1.0, 2.0, 3.0], step_s=57, start_s=MIDNIGHT_S + 20), 15)
    assert (trace.start_s, trace.end_s) == (MIDNIGHT_S + 60, MIDNIGHT_S + 180)
    # A step takes the bucket it begins in: the first ends at 77 s, the second at 134 s.
    assert trace.rps.tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0]


def test_finer_buckets_are_averaged(some_file: DemandFile) -> None:
    seconds = [float(i) for i in range(120)]
    trace = on_grid(file_of(some_file, seconds, step_s=1), 15)
    assert trace.rps.tolist() == [7.0 + 15 * i for i in range(8)]


def test_finer_buckets_begin_with_the_first_whole_minute(some_file: DemandFile) -> None:
    trace = on_grid(file_of(some_file, [9.0] * 6 + [1.0] * 12, step_s=5, start_s=MIDNIGHT_S - 30), 15)
    assert (trace.start_s, trace.rps.tolist()) == (MIDNIGHT_S, [1.0] * 4)


def test_a_missing_bucket_stays_missing(some_file: DemandFile) -> None:
    held = on_grid(file_of(some_file, [1.0, NAN, 3.0], step_s=60), 15)
    np.testing.assert_array_equal(held.rps, [1.0] * 4 + [NAN] * 4 + [3.0] * 4)
    fine = [1.0] * 12
    fine[4] = NAN
    averaged = on_grid(file_of(some_file, fine, step_s=5), 15)
    np.testing.assert_array_equal(averaged.rps, [1.0, NAN, 1.0, 1.0])


@pytest.mark.parametrize("step_s", [5, 30])
def test_less_than_a_whole_minute_is_refused_in_words(some_file: DemandFile, step_s: int) -> None:
    with pytest.raises(WrongUse, match="less than one whole minute") as caught:
        on_grid(file_of(some_file, [1.0], step_s=step_s), 15)
    assert caught.value.slug == "demand-too-short"


@settings(max_examples=80, deadline=None)
@given(
    values=st.lists(st.one_of(st.floats(0, 1e6), st.just(NAN)), min_size=30, max_size=200),
    step_s=st.sampled_from([1, 5, 7, 10, 15, 57, 60, 300, 600]),
    offset_s=st.integers(0, 119),
)
def test_the_grid_lies_on_whole_minutes_inside_the_file_and_never_exceeds_its_values(
    some_file: DemandFile, values: list[float], step_s: int, offset_s: int
) -> None:
    file = file_of(some_file, values, step_s=step_s, start_s=MIDNIGHT_S + offset_s)
    end_s = MIDNIGHT_S + offset_s + step_s * len(values)
    try:
        trace = on_grid(file, 15)
    except WrongUse:
        assert -(-(MIDNIGHT_S + offset_s) // 60) * 60 + 60 > end_s
        return
    assert trace.start_s % 60 == 0
    assert trace.end_s % 60 == 0
    assert MIDNIGHT_S + offset_s <= trace.start_s
    assert trace.end_s <= end_s
    known = trace.rps[~np.isnan(trace.rps)]
    if len(known):
        assert np.nanmin(values) - 1e-6 <= known.min()
        assert known.max() <= np.nanmax(values) + 1e-6


def test_the_original_file_is_named_in_the_refusal(tmp_path: Path, some_file: DemandFile) -> None:
    with pytest.raises(WrongUse, match=r"reading demand\.csv"):
        on_grid(file_of(some_file, [1.0], step_s=30), 15)
