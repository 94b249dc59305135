"""How far a series is foreseen, how much of it is chance, and the buffer for what is not: series with a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.forecast.explained import explained
from leadtime.forecast.foresight import (
    Recorded,
    Served,
    centred,
    foresee,
    horizons_for,
    naive_forecasts,
    walk,
)
from leadtime.forecast.lead_buffer import BufferAsk, local_hours, now_and_most, size_buffer
from leadtime.policy.schema import Policy

DAY = 1440
START = 1_772_409_600  # 2026-03-02T00:00:00Z, a Monday


def waves(days: int, noise: float = 0.01, seed: int = 0, step_s: int = 60) -> Recorded:
    """Demand of a daily wave from 40 to 160."""
    minute = np.arange(days * DAY // (step_s // 60)) * (step_s // 60)
    rng = np.random.default_rng(seed)
    values = (100 - 60 * np.cos(2 * np.pi * minute / DAY)) * (1 + noise * rng.standard_normal(len(minute)))
    return Recorded(start_s=START, step_s=step_s, values=values)


def chance(days: int, seed: int = 0) -> Recorded:
    """Every minute drawn anew."""
    return Recorded(start_s=START, step_s=60, values=np.random.default_rng(seed).exponential(100.0, days * DAY))


def served(series: Recorded, expected: np.ndarray, horizon_s: int) -> Served:
    """Forecasts at every bucket, ``expected[i]`` made at the end of bucket i."""
    newest = np.arange(len(series.values), dtype=np.int64)
    return Served(newest=newest, horizons_s=(horizon_s,), expected=expected[:, None], upper=expected[:, None])


def shifted(values: np.ndarray, by: int) -> np.ndarray:
    """What will be, ``by`` buckets later."""
    found = np.full(len(values), np.nan)
    found[: len(values) - by] = values[by:]
    return found


def test_one_who_knows_the_future_foresees_and_last_value_does_not() -> None:
    series = waves(4)
    (known,) = foresee(series, served(series, shifted(series.values, 40), 2400)).horizons
    assert known.foreseen
    assert known.within_10pct_ratio == 1.0
    assert known.skill is not None
    assert known.skill >= 1.0
    naive = foresee(series, served(series, series.values.copy(), 2400))
    assert naive.reach_s == 0
    assert naive.horizons[0].skill == pytest.approx(0.0, abs=1e-12)
    assert "nowhere better foreseen" in naive.sentence


def test_where_the_level_stays_last_value_foresees_it() -> None:
    level = Recorded(start_s=START, step_s=60, values=np.full(4 * DAY, 50.0))
    found = foresee(level, served(level, level.values.copy(), 2400))
    assert found.reach_s == 2400
    assert found.horizons[0].skill is None
    assert found.foreseen_at(2000.0) is True
    assert found.foreseen_at(5000.0) is None


def test_chance_is_not_foreseen_though_there_is_no_room_either() -> None:
    series = chance(4)
    (one,) = foresee(series, served(series, np.full(4 * DAY, 70.0), 600)).horizons
    assert one.ceiling_within_10pct_ratio < 0.5
    assert not one.foreseen


def test_less_than_two_days_of_blocks_is_not_judged() -> None:
    series = waves(1)
    found = foresee(series, served(series, series.values.copy(), 600))
    assert found.reach_s is None
    assert "not judged" in found.sentence


def test_the_walk_hears_nothing_later_and_answers_at_ends_of_buckets() -> None:
    series, policy = waves(1, step_s=300), Policy()
    horizons = horizons_for(300, (2400.0,))
    whole = walk(series, policy, horizons, first_s=START + 43_200)
    cut = walk(replace(series, values=series.values[:200]), policy, horizons, first_s=START + 43_200)
    assert len(whole.newest) == 73  # every ten minutes of the second half day, both ends counted
    assert whole.newest[0] == 143
    np.testing.assert_array_equal(whole.expected[: len(cut.newest)], cut.expected)


def test_the_walk_s_forecast_of_a_daily_wave_beats_last_value_at_the_lead() -> None:
    series = waves(4)
    found = foresee(series, walk(series, Policy(), (600, 2400), first_s=START + 2 * 86_400))
    assert found.foreseen_at(2400.0) is True


def test_horizons_hold_the_leads_and_nothing_below_a_bucket() -> None:
    assert horizons_for(600, (95.0, 2430.0)) == (600, 1200, 1800, 2400, 2460, 3600, 5400, 7200, 10_800)
    assert 120 in horizons_for(60, (95.0,))


def test_naive_and_ceiling_are_those_of_the_record() -> None:
    series = Recorded(start_s=START, step_s=60, values=np.arange(20.0))
    last, mean = naive_forecasts(series)
    assert (last[10], mean[10]) == (10.0, 8.0)
    assert centred(series)[10] == 10.0
    assert np.isnan(centred(series)[[0, 4, 15, 19]]).all()
    five = Recorded(start_s=START, step_s=300, values=np.array([1.0, 2.0, 6.0, 4.0]))
    assert naive_forecasts(five)[1][1] == 2.0
    assert centred(five)[1] == 3.0


# --- explained ----------------------------------------------------------------------------------------------------


def test_chance_explains_nothing_and_a_wave_nearly_all() -> None:
    by_chance, of_wave = explained(chance(5)), explained(waves(5))
    assert by_chance is not None
    assert of_wave is not None
    assert by_chance.ratio < 0.02
    assert by_chance.lower <= by_chance.ratio
    assert of_wave.ratio > 0.95
    assert of_wave.day_correlation == pytest.approx(1.0, abs=0.01)


def test_noise_around_a_level_that_has_a_day_is_not_chance() -> None:
    noisy = waves(5, noise=0.5)
    found = explained(noisy)
    assert found is not None
    assert found.ratio > 0.2


def test_the_share_of_a_known_mixture_lies_in_its_interval() -> None:
    """Half of the variance is a level held for six hours, half is new every minute.

    The hour's mean straddles a step for an hour in six: covariance 0.444, its variance 0.48, so 0.444²/0.48 = 0.41.
    """
    rng = np.random.default_rng(4)
    level = np.repeat(rng.standard_normal(80), 360)
    values = 100 + 10 * (level + rng.standard_normal(len(level)))
    found = explained(Recorded(start_s=START, step_s=60, values=values))
    assert found is not None
    assert found.lower < 0.41 < found.upper


def test_a_day_is_too_little_and_a_constant_is_wholly_explained() -> None:
    assert explained(waves(1)) is None
    constant = explained(Recorded(start_s=START, step_s=60, values=np.full(3 * DAY, 7.0)))
    assert constant is not None
    assert constant.ratio == 1.0


@settings(max_examples=8, deadline=None)
@given(factor=st.floats(1e-6, 1e9), seed=st.integers(0, 99))
def test_the_unit_does_not_matter(factor: float, seed: int) -> None:
    one = waves(3, noise=0.3, seed=seed, step_s=300)
    other = replace(one, values=one.values * factor)
    first, second = explained(one), explained(other)
    assert first is not None
    assert second is not None
    assert second.ratio == pytest.approx(first.ratio, rel=1e-6)


# --- buffer -------------------------------------------------------------------------------------------------------


def test_highest_demand_of_the_next_lead() -> None:
    values = np.array([10.0] * 5 + [10.0, 30.0, 20.0, 10.0, 10.0])
    now, most = now_and_most(Recorded(start_s=START, step_s=60, values=values), 120.0)
    assert most[4] == 30.0  # minutes 5 and 6
    assert most[3] == 10.0  # minutes 4 and 5
    assert now[6] == pytest.approx(14.0)
    assert np.isnan(most[-2:]).all()


def test_a_level_that_stays_needs_no_buffer() -> None:
    found = size_buffer(
        Recorded(start_s=START, step_s=60, values=np.full(3 * DAY, 50.0)), BufferAsk(lead_s=2400, per_pod=1.0)
    )
    assert found is not None
    assert (found.pods, found.gpu_hours_per_day, found.held_ratio) == (0, 0.0, 1.0)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 999), quantile=st.sampled_from([0.8, 0.9, 0.95]))
def test_the_stated_share_is_held_on_time_it_was_not_learned_on(seed: int, quantile: float) -> None:
    rng = np.random.default_rng(seed)
    bursts = np.repeat(rng.random(20 * 144) < 0.02, 10)  # ten minutes long, three times the demand
    values = 100 * (1 + 0.02 * rng.standard_normal(len(bursts))) * np.where(bursts, 3.0, 1.0)
    series = Recorded(start_s=START, step_s=60, values=values)
    found = size_buffer(series, BufferAsk(lead_s=1200, per_pod=1.0, quantile_ratio=quantile))
    assert found is not None
    assert found.by_hour
    assert found.held_ratio > quantile - 0.06
    assert found.held_ratio > found.without_ratio
    assert found.pods <= math.ceil(values.max())
    assert found.gpu_hours_per_day == pytest.approx(found.mean_pods * 24)


def test_a_higher_quantile_and_a_longer_lead_never_need_less() -> None:
    series = waves(15, noise=0.1)
    ask = BufferAsk(lead_s=1200, per_pod=1.0)
    sizes = [size_buffer(series, one) for one in (replace(ask, quantile_ratio=0.8), ask, replace(ask, lead_s=2400))]
    means = [one.mean_pods for one in sizes if one is not None]
    assert len(means) == 3
    assert means == sorted(means)


def test_by_hour_the_buffer_stands_where_the_rise_is() -> None:
    found = size_buffer(waves(15), BufferAsk(lead_s=2400, per_pod=1.0, gpus_per_pod=4))
    assert found is not None
    assert found.by_hour
    assert found.rise_ratio[5] > found.rise_ratio[15]
    assert found.rise_ratio[18] < 1.05
    assert found.gpu_hours_per_day == pytest.approx(found.mean_pods * 24 * 4)


def test_hours_are_local_and_follow_the_clock_change() -> None:
    series = Recorded(
        start_s=1_774_742_400, step_s=3600, values=np.zeros(4)
    )  # 2026-03-29T00:00Z: at 01:00Z clocks go on
    hours = local_hours(series, np.arange(4), "Europe/Berlin")
    assert hours.tolist() == [3, 4, 5, 6]
    assert local_hours(series, np.arange(4), "UTC").tolist() == [1, 2, 3, 4]


def test_too_little_is_no_buffer_and_nonsense_is_an_error() -> None:
    short = Recorded(start_s=START, step_s=60, values=np.full(600, 1.0))
    assert size_buffer(short, BufferAsk(lead_s=2400, per_pod=1.0)) is None
    with pytest.raises(ValueError, match="must be above 0"):
        size_buffer(short, BufferAsk(lead_s=0.0, per_pod=1.0))
