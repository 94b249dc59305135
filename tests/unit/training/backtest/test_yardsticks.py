"""Naive forecasts, ceiling and seasonal naive, by hand on small series."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.yardsticks import within, yardsticks


def series(values: list[float] | np.ndarray, step_s: int = 60) -> BacktestSeries:
    return BacktestSeries(name="s", start_s=0, step_s=step_s, values=np.asarray(values, dtype=np.float64))


@pytest.mark.parametrize(("step_s", "ahead"), [(60, 10), (120, 5), (300, 2), (600, 1), (3600, 1)])
def test_ten_minutes_ahead_are_one_step_as_far_as_needed(step_s: int, ahead: int) -> None:
    assert series([1.0], step_s).ahead(600) == ahead


def test_on_minutes_the_truth_is_ten_on_and_the_ceiling_the_mean_of_eleven_around_it() -> None:
    sticks = yardsticks(series(list(range(40))), 600)
    assert (sticks.truth[10], sticks.last[10], sticks.mean5[10]) == (20.0, 10.0, 8.0)
    assert sticks.ceiling[10] == 20.0
    assert np.isnan(sticks.truth[30])


def test_on_five_minutes_the_ceiling_is_of_three_buckets_and_on_ten_of_itself() -> None:
    five = yardsticks(series([0.0, 3.0, 9.0, 0.0, 0.0], 300), 600)
    assert (five.ceiling[0], five.mean5[0], five.last[0]) == (4.0, 0.0, 0.0)
    ten = yardsticks(series([0.0, 3.0, 9.0], 600), 600)
    assert ten.ceiling[0] == ten.truth[0] == 3.0


def test_the_seasonal_one_says_yesterday_or_the_newest_day_that_is_known() -> None:
    values = np.arange(4 * 24, dtype=np.float64)
    sticks = yardsticks(series(values, 3600), 3600)
    assert np.isnan(sticks.seasonal[22])
    assert (sticks.truth[30], sticks.seasonal[30]) == (31.0, 7.0)
    far = yardsticks(series(values, 3600), 30 * 3600)
    assert (far.truth[50], far.seasonal[50]) == (80.0, 32.0)


def test_a_gap_is_no_forecast_and_nothing_is_scored_there() -> None:
    values = np.ones(60)
    values[20] = np.nan
    scored = yardsticks(series(values), 600).scored()
    assert not scored[20:25].any()  # the last value, and the means of five that hold the gap
    assert not scored[5:16].any()  # the truth at 10, and the ceilings around it
    assert scored[16:20].all()


def test_a_tenth_counts_and_nothing_is_said_of_zero() -> None:
    hits = within(np.array([9.0, 8.9, 11.0, 0.0, np.nan]), np.array([10.0, 10.0, 10.0, 0.0, 1.0]))
    assert hits[:3].tolist() == [1.0, 0.0, 1.0]
    assert np.isnan(hits[3:]).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 99), st.floats(0.1, 1e5))
def test_naive_and_seasonal_forecasts_know_no_future(seed: int, origin: int, other: float) -> None:
    values = np.random.default_rng(seed).lognormal(3.0, 1.0, 100)
    changed = values.copy()
    changed[origin + 1 :] = other
    one, two = yardsticks(series(values, 3600), 3600), yardsticks(series(changed, 3600), 3600)
    for first, second in ((one.last, two.last), (one.mean5, two.mean5), (one.seasonal, two.seasonal)):
        assert np.array_equal(first[: origin + 1], second[: origin + 1], equal_nan=True)
