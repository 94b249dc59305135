"""How good forecasts were: shares within 10 %, skill, intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.forecast.naive import centred_mean
from leadtime.scorecard.forecasts import ForecastPoints, MinuteSeries, actual_series, score_forecasts
from leadtime.scorecard.misses import worst_misses

T0 = 1_772_409_600


def points(expected, *, issued_minutes, horizon_s=600, half_width=5.0):
    expected = np.asarray(expected, dtype=float)
    return ForecastPoints(
        issued_at_s=T0 + 60 * np.asarray(issued_minutes, dtype=np.int64),
        horizon_s=np.full(len(expected), horizon_s, dtype=np.int64),
        expected=expected, lower=expected - half_width, upper=expected + half_width,
    )  # fmt: skip


def series(values):
    return MinuteSeries(start_s=T0, values=np.asarray(values, dtype=float))


def test_within_10pct_includes_the_bound():
    # actual 100 throughout; issued at minutes 10 … 13, about minutes 20 … 23
    found = score_forecasts(points([100, 110, 90, 110.5], issued_minutes=[10, 11, 12, 13]), series([100] * 40))
    assert found.within_10pct_ratio == 0.75
    assert found.scored == 4


def test_a_forecast_is_about_the_minute_that_holds_its_instant():
    values = [100.0] * 40
    values[20] = 200.0
    hit = score_forecasts(points([200], issued_minutes=[10]), series(values))
    miss = score_forecasts(points([200], issued_minutes=[11]), series(values))
    assert (hit.within_10pct_ratio, miss.within_10pct_ratio) == (1.0, 0.0)


def test_naive_knows_only_minutes_that_had_ended():
    # minute 9 (the last that ended before minute 10 began) is 50, minute 10 is 100 like the rest.
    # last value 50 misses 100; the mean of minutes 5 … 9 = 90 hits (within 10): the better of both is 1.0
    values = [100.0] * 40
    values[9] = 50.0
    assert score_forecasts(points([1], issued_minutes=[10]), series(values)).naive_within_10pct_ratio == 1.0
    values[8] = 50.0  # mean of 100, 100, 100, 50, 50 = 80 misses too
    assert score_forecasts(points([1], issued_minutes=[10]), series(values)).naive_within_10pct_ratio == 0.0


def test_the_ceiling_is_the_centred_mean_of_eleven_minutes():
    # 100 except minute 20 = 210: the mean of 15 … 25 is 110
    values = [100.0] * 40
    values[20] = 210.0
    assert centred_mean(np.array(values))[20] == pytest.approx(110.0)
    found = score_forecasts(points([1, 1], issued_minutes=[10, 11]), series(values))
    # about minute 20: 110 for 210 misses; about minute 21: 110 for 100 hits
    assert found.ceiling_within_10pct_ratio == 0.5


def test_skill_is_the_share_of_the_way_from_naive_to_ceiling():
    # a ramp that doubles in 10 minutes, then level: naive misses where the ramp has moved on
    values = [100.0] * 20 + [100.0 + 10 * i for i in range(1, 11)] + [200.0] * 30
    issued = list(range(10, 40))
    truth = [values[minute + 10] for minute in issued]
    half = [value if i % 2 else 1.0 for i, value in enumerate(truth)]
    found = score_forecasts(points(half, issued_minutes=issued), series(values))
    naive, best = found.naive_within_10pct_ratio, found.ceiling_within_10pct_ratio
    assert best - naive >= 0.03
    assert found.skill == pytest.approx((0.5 - naive) / (best - naive))


def test_skill_is_null_where_there_is_no_room():
    found = score_forecasts(points([100], issued_minutes=[10]), series([100] * 40))
    assert found.skill is None
    assert "no room" in found.reasons["skill"]


def test_coverage_counts_the_bounds_as_inside():
    found = score_forecasts(points([95, 105, 94, 100], issued_minutes=[10, 11, 12, 13]), series([100] * 40))
    assert found.coverage_ratio == 0.75


def test_width_is_the_mean_width_over_the_mean_actual():
    assert score_forecasts(points([100], issued_minutes=[10]), series([50] * 40)).mean_interval_width_ratio == 0.2


def test_points_that_touch_a_gap_are_not_scored():
    values = [100.0] * 40
    values[20] = np.nan
    found = score_forecasts(points([100, 100], issued_minutes=[10, 18]), series(values))
    # about minute 20: no actual; about minute 28: its centred mean needs 23 … 33, its past 13 … 17: all known
    assert found.scored == 1


def test_nothing_to_compare_is_null_with_reasons():
    found = score_forecasts(points([], issued_minutes=[]), series([100] * 40))
    assert found.scored == 0
    assert found.within_10pct_ratio is None
    assert set(found.reasons) >= {"within_10pct_ratio", "skill", "surges_caught"}


def test_minutes_are_means_of_their_known_steps(workload):
    demand = [1.0, 3.0, np.nan, np.nan] + [np.nan] * 4 + [5.0] * 32
    found = actual_series(workload(demand_rps=demand))
    assert found.values[0] == 2.0
    assert np.isnan(found.values[1])
    assert found.values[2] == 5.0


def test_the_worst_miss_of_each_episode_is_told():
    # intervals ± 5. Actual 100, but 120 at minutes 20 … 22 and 80 at minute 100
    values = np.full(200, 100.0)
    values[20:23] = 110.0, 120.0, 110.0
    values[100] = 80.0
    found = worst_misses(points([100] * 180, issued_minutes=range(180)), series(values), at_most=5)
    assert [(miss.about_s - T0, miss.actual, miss.misses) for miss in found] == [(21 * 60, 120.0, 3), (6000, 80.0, 1)]
    assert found[0].error_ratio == pytest.approx(-1 / 6)
    assert len(worst_misses(points([100] * 180, issued_minutes=range(180)), series(values), at_most=1)) == 1


@given(st.lists(st.floats(0, 1000), min_size=40, max_size=60), st.floats(0.5, 2))
def test_every_share_stays_between_0_and_1(values, factor):
    issued = list(range(10, len(values) - 10))
    expected = [values[minute + 10] * factor for minute in issued]
    found = score_forecasts(points(expected, issued_minutes=issued), series(values))
    shares = (found.within_10pct_ratio, found.naive_within_10pct_ratio, found.ceiling_within_10pct_ratio)
    for share in (*shares, found.coverage_ratio):
        assert share is None or 0 <= share <= 1


@given(st.lists(st.floats(1, 1000), min_size=40, max_size=60))
def test_a_perfect_forecast_is_always_within(values):
    issued = list(range(10, len(values) - 15))
    found = score_forecasts(points([values[m + 10] for m in issued], issued_minutes=issued), series(values))
    assert found.within_10pct_ratio == found.coverage_ratio == 1.0
