"""Demand files that can be read: what becomes of times, values, gaps, duplicates and groups."""

import math
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.errors import BadDemandFile, WrongUse
from leadtime.sources.demand_file import (
    Aggregate,
    DemandFile,
    DemandFileOptions,
    OnDuplicate,
    TimeUnit,
    ValueUnit,
    read_demand,
)

T0 = datetime(2026, 3, 2, tzinfo=UTC)
NAN = math.nan


def write(tmp_path: Path, *rows: str, header: str = "t,v") -> Path:
    """A CSV with one row a text."""
    path = tmp_path / "demand.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def options(**changes: object) -> DemandFileOptions:
    """Columns t and v, and what differs."""
    return DemandFileOptions(**{"time_column": "t", "value_column": "v", **changes})  # type: ignore[arg-type]


def at(seconds: float) -> str:
    """T0 + seconds as text."""
    return (T0 + timedelta(seconds=seconds)).isoformat()


def test_a_plain_series_is_read_as_it_stands(tmp_path: Path) -> None:
    file = read_demand(write(tmp_path, f"{at(0)},1", f"{at(60)},2.5", f"{at(120)},0"), options())
    assert (file.start, file.step_s, file.values.tolist()) == (T0, 60, [1.0, 2.5, 0.0])
    assert (file.rows_read, file.gaps, file.missing_values, file.end) == (3, 0, 0, T0 + timedelta(minutes=3))


def test_gaps_and_empty_nan_and_infinite_values_are_missing_and_counted_not_zero(tmp_path: Path) -> None:
    rows = [f"{at(0)},4", f"{at(60)},", f"{at(120)},NaN", f"{at(180)},-Inf", f"{at(240)},inf", f"{at(420)},5"]
    file = read_demand(write(tmp_path, *rows), options())
    np.testing.assert_equal(file.values, [4, NAN, NAN, NAN, NAN, NAN, NAN, 5])
    assert (file.missing_values, file.gaps, file.missing_buckets) == (4, 2, 6)
    assert "2 gaps, 4 missing values" in file.summary()


def test_counts_per_minute_become_requests_per_second(tmp_path: Path) -> None:
    file = read_demand(write(tmp_path, f"{at(0)},120", f"{at(60)},60"), options(value_unit=ValueUnit.PER_MINUTE))
    assert file.values.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(("how", "value"), [(OnDuplicate.FIRST, 3.0), (OnDuplicate.SUM, 10.0), (OnDuplicate.MEAN, 5.0)])
def test_duplicates_are_merged_as_told_and_missing_ones_never_count_as_zero(
    tmp_path: Path, how: OnDuplicate, value: float
) -> None:
    rows = [f"{at(0)},1", f"{at(60)},", f"{at(60)},3", f"{at(60)},7", f"{at(120)},1", f"{at(180)},", f"{at(180)},nan"]
    file = read_demand(write(tmp_path, *rows), options(on_duplicate=how))
    np.testing.assert_equal(file.values, [1, value, 1, NAN])
    assert file.duplicates_merged == 3


@pytest.mark.parametrize(
    ("first", "changes", "start"),
    [
        pytest.param(0, {}, "2026-01-01T00:00:00+00:00", id="small numbers count from 2026 unless told otherwise"),
        pytest.param(1750000000, {}, "2025-06-15T15:06:40+00:00", id="large numbers count from 1970"),
        pytest.param(600, {"start": T0}, "2026-03-02T00:10:00+00:00", id="--start is the instant of 0"),
        pytest.param(600000, {"start": T0, "time_unit": TimeUnit.MS}, "2026-03-02T00:10:00+00:00", id="milliseconds"),
    ],
)  # fmt: skip
def test_numbers_as_times(tmp_path: Path, first: int, changes: dict[str, object], start: str) -> None:
    step = 60_000 if changes.get("time_unit") is TimeUnit.MS else 60
    path = write(tmp_path, f"{first},1", f"{first + step},2")
    file = read_demand(path, options(**{"time_unit": TimeUnit.S, **changes}))
    assert (file.start.isoformat(), file.step_s) == (start, 60)


def test_a_byte_order_mark_quotes_spaces_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "demand.csv"
    path.write_bytes(
        b'\xef\xbb\xbf"t", v,"note"\r\n2026-03-02 00:00:00,1,"a,\r\nb"\r\n\r\n2026-03-02 00:01:00 , 2 ,x\r\n'
    )
    assert read_demand(path, options()).values.tolist() == [1.0, 2.0]


def test_the_row_of_an_error_counts_line_breaks_inside_cells_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, f'{at(0)},1,"a\nb"', "", f"{at(60)},oops,c", header="t,v,note")
    with pytest.raises(BadDemandFile, match="row 5: column v holds 'oops'"):
        read_demand(path, options())


def test_where_keeps_rows_that_match_every_pair(tmp_path: Path) -> None:
    rows = [f"{at(0)},1,a,x", f"{at(0)},2,b,x", f"{at(60)},3,a,x", f"{at(60)},4,a,y"]
    path = write(tmp_path, *rows, header="t,v,g,h")
    file = read_demand(path, options(where=(("g", "a"), ("h", "x"))))
    assert (file.values.tolist(), file.rows_filtered, file.rows_read) == ([1.0, 3.0], 2, 4)


# --- time zones ---------------------------------------------------------------------------------------------------


def test_times_without_offset_are_utc_unless_a_zone_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "2026-07-01T12:00:00,1", "2026-07-01T12:01:00,1")
    assert read_demand(path, options()).start.hour == 12
    assert read_demand(path, options(time_zone="Europe/Berlin")).start.hour == 10


def test_an_offset_in_the_text_outranks_the_zone(tmp_path: Path) -> None:
    path = write(tmp_path, "2026-07-01T12:00:00+02:00,1", "2026-07-01T12:01:00,1")
    file = read_demand(path, options(time_zone="Europe/Berlin"))
    assert (file.start.hour, file.gaps, len(file.values)) == (10, 0, 2)


def test_over_the_autumn_change_the_hour_that_comes_twice_is_two_hours(tmp_path: Path) -> None:
    hours = ["01:00", "01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]
    path = write(tmp_path, *(f"2026-10-25T{hour}:00,{i}" for i, hour in enumerate(hours)))
    file = read_demand(path, options(time_zone="Europe/Berlin"))
    assert (file.step_s, file.gaps, file.values.tolist()) == (1800, 0, [float(i) for i in range(7)])


def test_each_group_has_its_own_two_passes_of_that_hour(tmp_path: Path) -> None:
    rows = [f"2026-10-25T{t}:00,{v},{g}" for t, v, g in
            [("02:00", 1, "a"), ("02:00", 10, "b"), ("02:30", 1, "a"), ("02:30", 10, "b"),
             ("02:00", 1, "a"), ("02:00", 10, "b"), ("02:30", 1, "a"), ("02:30", 10, "b")]]  # fmt: skip
    path = write(tmp_path, *rows, header="t,v,g")
    file = read_demand(path, options(time_zone="Europe/Berlin", group_by="g"))
    assert (file.start.hour, len(file.values), set(file.values)) == (0, 120, {11.0})


def test_over_the_spring_change_no_bucket_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "2026-03-29T01:00:00,1", "2026-03-29T01:30:00,2", "2026-03-29T03:00:00,3")
    file = read_demand(path, options(time_zone="Europe/Berlin"))
    assert (file.values.tolist(), file.gaps) == ([1.0, 2.0, 3.0], 0)


def test_a_time_that_the_zone_skips_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "2026-03-29T01:30:00,1", "2026-03-29T02:30:00,2")
    with pytest.raises(BadDemandFile, match=r"row 3: the time 2026-03-29T02:30:00 does not exist in Europe/Berlin"):
        read_demand(path, options(time_zone="Europe/Berlin"))


# --- minutes ------------------------------------------------------------------------------------------------------


def test_longer_buckets_are_held_constant(tmp_path: Path) -> None:
    minutes = read_demand(write(tmp_path, f"{at(0)},6", f"{at(300)},9"), options()).minutes()
    assert (minutes.start, minutes.values.tolist()) == (T0, [6.0] * 5 + [9.0] * 5)


def test_shorter_buckets_are_averaged_and_a_minute_half_unknown_is_missing(tmp_path: Path) -> None:
    values = ["1", "2", "3", "6", "1", "", "", "3", "1", "", "", ""]
    rows = [f"{at(15 * i)},{value}" for i, value in enumerate(values)]
    minutes = read_demand(write(tmp_path, *rows), options()).minutes()
    np.testing.assert_allclose(minutes.values, [3, 2, NAN])


def test_buckets_that_begin_within_a_minute_are_shared_out_by_time(tmp_path: Path) -> None:
    minutes = read_demand(write(tmp_path, f"{at(45)},4", f"{at(345)},8", f"{at(645)},8"), options()).minutes()
    assert minutes.start == T0 + timedelta(minutes=1)  # of minute 0 only a quarter is known
    np.testing.assert_allclose(minutes.values[:6], [4, 4, 4, 4, 0.75 * 4 + 0.25 * 8, 8])


def test_times_on_no_even_grid_are_written_onto_minutes(tmp_path: Path) -> None:
    rows = [f"{at(0)},2", f"{at(60)},2", f"{at(90)},4", f"{at(150)},4", f"{at(210)},4", f"{at(600)},8"]
    file = read_demand(write(tmp_path, *rows), options())
    assert (file.on_own_grid, file.step_s, file.start) == (False, 60, T0)
    np.testing.assert_allclose(file.values, [2, 3, 4, 4, 4, NAN, NAN, NAN, NAN, NAN, 8])
    assert file.gaps == 5


def test_late_scrapes_are_jitter_not_gaps(tmp_path: Path) -> None:
    file = read_demand(
        write(tmp_path, *(f"{at(s)},{i}" for i, s in enumerate((0.2, 60.1, 120.3, 181.9, 240)))), options()
    )
    assert (file.on_own_grid, file.step_s, file.values.tolist()) == (True, 60, [0.0, 1.0, 2.0, 3.0, 4.0])


def test_rows_that_stand_for_seconds_far_apart_make_no_minute(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"{at(s)},1" for s in (0, 1, 2.5, 7200, 7201)))
    with pytest.raises(BadDemandFile, match="no minute is known for half of it"):
        read_demand(path, options())


# --- groups -------------------------------------------------------------------------------------------------------


def grouped(tmp_path: Path, *rows: tuple[float, str, str], how: Aggregate = Aggregate.SUM) -> DemandFile:
    """Rows of (seconds, group, value)."""
    path = write(tmp_path, *(f"{at(s)},{value},{group}" for s, group, value in rows), header="t,v,g")
    return read_demand(path, options(group_by="g", aggregate=how))


def test_groups_add_up_each_minute(tmp_path: Path) -> None:
    rows = [(s, g, v) for s in (0, 60, 120) for g, v in (("a", "1"), ("b", "10"))]
    assert grouped(tmp_path, *rows).values.tolist() == [11.0, 11.0, 11.0]
    assert grouped(tmp_path, *rows, how=Aggregate.MEAN).values.tolist() == [5.5, 5.5, 5.5]


def test_a_group_without_a_sample_adds_nothing_and_a_minute_without_any_is_missing(tmp_path: Path) -> None:
    rows = [
        (0, "a", "1"),
        (0, "b", "2"),
        (60, "a", "1"),
        (60, "b", "2"),
        (120, "a", "1"),
        (240, "a", "1"),
        (240, "b", "2"),
    ]
    file = grouped(tmp_path, *rows)
    np.testing.assert_allclose(file.values, [3, 3, 1, NAN, 3])
    assert (file.gaps, file.groups) == (1, 2)


def test_a_sum_with_a_value_given_as_missing_is_missing_a_mean_is_not(tmp_path: Path) -> None:
    rows = [(0, "a", "1"), (0, "b", "3"), (60, "a", "1"), (60, "b", ""), (120, "a", "1"), (120, "b", "3")]
    np.testing.assert_allclose(grouped(tmp_path, *rows).values, [4, NAN, 4])
    np.testing.assert_allclose(grouped(tmp_path, *rows, how=Aggregate.MEAN).values, [2, 1, 2])


def test_samples_every_57_s_are_shared_out_by_time(tmp_path: Path) -> None:
    file = grouped(tmp_path, *((57 * i, g, "2") for i in range(10) for g in ("a", "b")))
    np.testing.assert_allclose(file.values, [4.0] * 10)  # the last minute is known for half of it
    file = grouped(tmp_path, (0, "a", "0"), (57, "a", "20"), (114, "a", "20"), (171, "a", "20"))
    np.testing.assert_allclose(file.values[:2], [20 * 3 / 60, 20])


def test_groups_may_stand_one_after_the_other_but_each_in_order(tmp_path: Path) -> None:
    assert grouped(tmp_path, (0, "a", "1"), (60, "a", "1"), (0, "b", "2"), (60, "b", "2")).values.tolist() == [3.0, 3.0]
    with pytest.raises(BadDemandFile, match="row 4: its time lies before that of row 3"):
        grouped(tmp_path, (0, "a", "1"), (60, "b", "2"), (30, "b", "2"))


def test_the_same_time_twice_within_a_group_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadDemandFile, match="row 4: its time is that of row 2"):
        grouped(tmp_path, (0, "a", "1"), (0, "b", "2"), (0, "a", "3"))


# --- Parquet ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(pl.Series([T0, T0 + timedelta(minutes=1)], dtype=pl.Datetime("us", "UTC")), id="instants"),
        pytest.param(pl.Series([T0, T0 + timedelta(minutes=1)]).dt.convert_time_zone("Asia/Tokyo"), id="another zone"),
        pytest.param(pl.Series([T0, T0 + timedelta(minutes=1)]).dt.replace_time_zone(None), id="wall clock"),
        pytest.param(pl.Series(["2026-03-02T00:00:00Z", "2026-03-02 00:01"]), id="text"),
    ],
)
def test_parquet_holds_what_the_csv_holds(tmp_path: Path, times: pl.Series) -> None:
    path = tmp_path / "demand.parquet"
    pl.DataFrame({"t": times, "v": [1.5, None], "g": ["a", "b"]}).write_parquet(path)
    file = read_demand(path, options())
    assert (file.start, file.step_s, file.missing_values) == (T0, 60, 1)
    np.testing.assert_equal(file.values, [1.5, NAN])


def test_parquet_rows_are_named_as_they_stand_in_the_file_not_in_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "demand.parquet"
    pl.DataFrame({"t": [0, 0, 60], "v": [1, 2, -5], "g": ["b", "a", "a"]}).write_parquet(path)
    with pytest.raises(BadDemandFile, match="row 3: column v holds -5"):
        read_demand(path, options(time_unit=TimeUnit.S, where=(("g", "a"),)))


@pytest.mark.parametrize(
    ("frame", "slug"),
    [
        pytest.param({"t": [0, 1], "v": [1, 2]}, "demand-time-unit", id="numbers without a unit"),
        pytest.param({"t": ["2026-03-02", None], "v": [1, 2]}, "demand-time-unreadable", id="no time"),
        pytest.param({"t": [True, False], "v": [1, 2]}, "demand-time-unreadable", id="times of another type"),
        pytest.param({"t": ["2026-03-02", "2026-03-03"], "v": [[1], [2]]}, "demand-not-a-number", id="lists"),
        pytest.param({"t": ["2026-03-02"], "w": [1]}, "demand-column-missing", id="no column"),
        pytest.param({"t": pl.Series([], dtype=pl.String), "v": pl.Series([], dtype=pl.Float64)}, "demand-header-only",
                     id="no rows"),
    ],
)  # fmt: skip
def test_bad_parquet_files_give_the_same_errors(tmp_path: Path, frame: dict[str, object], slug: str) -> None:
    path = tmp_path / "demand.parquet"
    pl.DataFrame(frame).write_parquet(path)
    with pytest.raises(BadDemandFile) as caught:
        read_demand(path, options())
    assert caught.value.slug == slug


def test_without_polars_a_parquet_file_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "demand.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(WrongUse, match=r"pip install 'leadtime\[replay\]'"):
        read_demand(path, options())


# --- round trip ---------------------------------------------------------------------------------------------------

VALUE = st.one_of(st.just(NAN), st.floats(min_value=0, max_value=1e12, allow_nan=False))


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(VALUE, min_size=2, max_size=40).filter(lambda values: any(map(math.isfinite, values))),
    step_s=st.sampled_from([1, 15, 57, 60, 300, 600, 3600]),
    start_s=st.integers(min_value=0, max_value=4_000_000_000),
    zone=st.sampled_from([None, "Europe/Berlin", "America/St_Johns"]),
)
def test_a_valid_series_round_trips(tmp_path_factory, values, step_s, start_s, zone) -> None:
    start = datetime(1970, 1, 2, tzinfo=UTC) + timedelta(seconds=start_s)
    rows = [f"{(start + timedelta(seconds=i * step_s)).isoformat()},{'' if math.isnan(v) else repr(v)}" for i, v in
            enumerate(values)]  # fmt: skip
    path = tmp_path_factory.getbasetemp() / "round.csv"
    path.write_text("t,v\n" + "\n".join(rows))
    file = read_demand(path, options(time_zone=zone))
    assert (file.start, file.step_s) == (start, step_s)
    np.testing.assert_equal(file.values, np.array(values))


@settings(max_examples=100, deadline=None)
@given(
    samples=st.lists(st.tuples(st.integers(0, 3), st.integers(60, 200)), min_size=1, max_size=40),
    how=st.sampled_from(list(Aggregate)),
)
def test_putting_groups_together_invents_no_demand(tmp_path_factory, samples, how) -> None:
    clock = [0] * 4
    rows = []
    for group, passed in samples:
        clock[group] += passed
        rows.append(f"{at(clock[group])},{group + 1},{group}")
    path = tmp_path_factory.getbasetemp() / "groups.csv"
    path.write_text("t,v,g\n" + "\n".join(rows))
    file = read_demand(path, options(group_by="g", aggregate=how))
    known = file.values[np.isfinite(file.values)]
    groups = {group + 1 for group, _ in samples}
    most = sum(groups) if how is Aggregate.SUM else max(groups)
    assert np.all(known <= most + 1e-9)
    assert np.all(known >= min(groups) * (1 - 1e-9))
