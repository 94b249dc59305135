"""Bounds hold what they state, before and after a level shift, and know nothing that came later."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.forecast.conformal import FEWEST, QUANTILES, Bounds, Calibration, Timing, calibrated
from leadtime.forecast.model import FloatColumn

AHEAD = 10
TIMING = Timing(start_s=0, step_s=60, ahead=AHEAD)
DAY = 1440


def noisy_days(days: int, *, seed: int, noise: float = 0.05) -> FloatColumn:
    """A wave by the hour of day with noise that is twice as large in the afternoon."""
    t = np.arange(days * DAY)
    wave = 100.0 + 30.0 * np.sin(2.0 * np.pi * t / DAY)
    louder = np.where((t % DAY) // 60 >= 12, 2.0, 1.0)
    return np.asarray(wave * (1.0 + noise * louder * np.random.default_rng(seed).standard_normal(len(t))))


def around_last_value(values: FloatColumn) -> tuple[Bounds, FloatColumn]:
    truth = np.concatenate((values[AHEAD:], np.full(AHEAD, np.nan)))
    return calibrated(values, truth, TIMING, 0.90), truth


def covered(bounds: Bounds, truth: FloatColumn, where: slice) -> float:
    return float(((bounds.lower <= truth) & (truth <= bounds.upper))[where].mean())


@pytest.mark.parametrize("seed", range(2))
def test_a_stated_90_percent_holds_90_percent(seed: int) -> None:
    bounds, truth = around_last_value(noisy_days(3, seed=seed))
    assert 0.88 <= covered(bounds, truth, slice(DAY, -AHEAD)) <= 0.92


def test_it_holds_by_day_and_by_night_though_the_noise_differs() -> None:
    bounds, truth = around_last_value(noisy_days(5, seed=1))
    inside = ((bounds.lower <= truth) & (truth <= bounds.upper))[2 * DAY : -AHEAD]
    hour = (np.arange(2 * DAY, 5 * DAY - AHEAD) + AHEAD) % DAY // 60
    assert 0.87 <= inside[hour >= 13].mean() <= 0.93
    assert 0.87 <= inside[(hour >= 1) & (hour < 12)].mean() <= 0.95


def test_it_holds_over_the_200_origins_after_a_level_shift() -> None:
    made, about = [], []
    for seed, ratio in enumerate((0.5, 0.5, 1.5, 2.0, 2.0, 3.0)):
        shift = 2 * DAY + 97 * seed
        values = noisy_days(3, seed=seed)[: shift + 220]
        values[shift:] *= ratio
        bounds, truth = around_last_value(values)
        made.append(covered(bounds, truth, slice(shift, shift + 200)))
        # The ten forecasts made before it and about what came after it could not but miss: five points of 200.
        about.append(covered(bounds, truth, slice(shift - AHEAD, shift + 200 - AHEAD)))
    assert 0.87 <= np.mean(made) <= 0.93
    assert 0.85 <= np.mean(about) <= 0.93
    assert min(made) >= 0.85
    assert max(made) <= 0.96


def test_better_forecasts_get_narrower_bounds() -> None:
    values = noisy_days(3, seed=2)
    truth = np.concatenate((values[AHEAD:], np.full(AHEAD, np.nan)))
    smooth = np.convolve(values, np.ones(15) / 15)[: len(values)]
    last, better = around_last_value(values)[0], calibrated(smooth, truth, TIMING, 0.90)
    after = slice(DAY, -AHEAD)
    assert (better.upper - better.lower)[after].mean() < 0.85 * (last.upper - last.lower)[after].mean()


def test_quantiles_rise_and_hold_their_share() -> None:
    bounds, truth = around_last_value(noisy_days(3, seed=3))
    known = bounds.quantiles[:, DAY:-AHEAD]
    assert (np.diff(known, axis=0) >= 0).all()
    shares = (truth[DAY:-AHEAD] <= known).mean(axis=1)
    assert np.abs(shares - np.array(QUANTILES)).max() < 0.03


def test_until_enough_misses_were_seen_bounds_are_a_quarter_of_the_level_and_quantiles_unknown() -> None:
    bounds, _ = around_last_value(np.full(FEWEST + AHEAD - 1, 100.0))
    assert bounds.lower[-1] == pytest.approx(75.0)
    assert bounds.upper[0] == pytest.approx(125.0)
    assert np.isnan(bounds.quantiles).all()


def test_demand_that_never_moves_has_bounds_without_width() -> None:
    bounds, _ = around_last_value(np.full(300, 100.0))
    assert bounds.upper[-1] == bounds.lower[-1] == 100.0


def test_nothing_said_is_nan_and_a_truth_that_never_came_teaches_nothing() -> None:
    values = noisy_days(2, seed=4)
    truth = np.full(len(values), np.nan)
    values[500:510] = np.nan
    bounds = calibrated(values, truth, TIMING, 0.90)
    assert np.isnan(bounds.upper[500:510]).all()
    assert bounds.upper[400] == pytest.approx(1.25 * values[400], rel=0.2)


def test_no_bound_is_negative() -> None:
    values = np.abs(np.random.default_rng(5).standard_cauchy(3000))
    bounds, _ = around_last_value(values)
    assert np.nanmin(bounds.lower) >= 0.0
    assert np.nanmin(bounds.quantiles) >= 0.0


def test_the_miss_rate_is_raised_after_hits_and_lowered_after_misses() -> None:
    hit, missed = Calibration(0.90), Calibration(0.90)
    for i in range(100):
        for state, above in ((hit, False), (missed, i >= 90)):
            state.learn(float(i), below=False, above=above)
    assert missed.bounds()[1] > hit.bounds()[1]
    assert missed.bounds()[0] == hit.bounds()[0]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 119), st.floats(0.0, 1e6))
def test_what_came_after_an_origin_changes_no_bound_said_at_or_before_it(seed: int, origin: int, other: float) -> None:
    one = np.random.default_rng(seed).lognormal(3.0, 1.0, 120)
    two = one.copy()
    two[origin + 1 :] = other
    first, second = around_last_value(one)[0], around_last_value(two)[0]
    until = slice(0, origin + 1)
    assert np.array_equal(first.lower[until], second.lower[until], equal_nan=True)
    assert np.array_equal(first.upper[until], second.upper[until], equal_nan=True)
    assert np.array_equal(first.quantiles[:, until], second.quantiles[:, until], equal_nan=True)
