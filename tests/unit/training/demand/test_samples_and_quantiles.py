"""A history becomes rows without a leak, and boosters that are the same every time and beat the naive forecast."""

import pickle

import numpy as np
import pytest

from leadtime.forecast.lag_features import FEATURES
from leadtime.forecast.lag_trees import LagTrees
from leadtime.forecast.model import Band, TooShort
from leadtime.testing import forecast_battery as battery
from leadtime.testing.forecast_battery import DAY_MIN, START_S, demand, fed
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.demand import quantiles, samples
from leadtime.training.demand.settings import Settings
from leadtime.training.demand.trainee import LagTreesTrainee

FEW = Settings(rounds=40)


def history(days: int, *, seed: int = 1) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in demand(days * DAY_MIN, seed=seed)])


def made(values: np.ndarray, *, most: int = 800, seed: int = 0) -> samples.Samples:
    return samples.samples(START_S, values, zone="UTC", most_origins=most, seed=seed)


def fitted(values: np.ndarray, *, threads: int = 1) -> quantiles.QuantileBoosters:
    return quantiles.fit(made(values), FEW, seed=0, threads=threads)


@pytest.mark.parametrize(("step", "minutes"), [(1, 1), (5, 5), (10, 10)])
def test_the_step_of_a_held_series_is_seen(step: int, minutes: int) -> None:
    values = np.repeat(np.random.default_rng(0).normal(100, 5, 600), step)
    values[: 7 * step] = np.nan
    assert samples.bucket_minutes(values) == minutes


def test_origins_are_bucket_ends_so_that_no_row_knows_its_own_bucket() -> None:
    values = np.repeat(np.random.default_rng(0).normal(100, 5, 600), 10)
    rows = made(values, most=10_000)
    horizon = rows.x[:, FEATURES.index("horizon")].astype(int)
    origin = (rows.at_s - START_S) // 60 - horizon
    assert set((origin + 1) % 10) == {0}


def test_no_row_changes_with_the_future() -> None:
    values = history(3)
    cut = 2 * DAY_MIN
    other = values.copy()
    other[cut:] = 7.0
    one, two = made(values, most=4000), made(other, most=4000)
    early = one.at_s < START_S + cut * 60
    assert early.sum() > 100
    assert np.array_equal(one.x[early], two.x[two.at_s < START_S + cut * 60], equal_nan=True)


def test_rows_are_thinned_evenly_and_the_same_every_time() -> None:
    one, two = made(history(3), most=300), made(history(3), most=300)
    assert np.array_equal(one.x, two.x, equal_nan=True)
    assert np.array_equal(one.y, two.y)
    ten = one.at_s[one.x[:, FEATURES.index("horizon")] == 10.0]
    assert 290 <= len(ten) <= 300
    apart_s = np.diff(np.sort(ten))
    assert np.quantile(apart_s, 0.98) - apart_s.min() <= 60  # but for the gaps


def test_boosters_are_the_same_every_time_whatever_the_threads() -> None:
    values = history(3)
    one, two = fitted(values), fitted(values, threads=2)
    assert [b.save_raw() for b in one.boosters] == [b.save_raw() for b in two.boosters]


def test_a_recurring_surge_is_foreseen_and_last_value_beaten() -> None:
    values = history(6)
    reader = quantiles.fit(made(values[: 5 * DAY_MIN], most=2000), Settings(rounds=150), seed=0)
    model = LagTrees(reader=reader)
    state = fed(model, [None if np.isnan(v) else float(v) for v in values[: 5 * DAY_MIN + 355]])
    band = model.predict(state, 15)
    assert isinstance(band, Band)
    before, actual = float(values[5 * DAY_MIN + 354]), float(values[5 * DAY_MIN + 364])
    assert actual > 1.4 * before  # the surge begins at 06:00, five minutes later
    assert abs(band.expected[9] - actual) < 0.5 * abs(before - actual)


def test_demand_that_stays_leaves_last_value_bit_for_bit() -> None:
    rng = np.random.default_rng(3)
    values = np.repeat(np.round(rng.uniform(20, 60, 60)), rng.integers(60, 120, 60)).astype(float)
    model = LagTrees(reader=fitted(values))
    band = model.predict(fed(model, values[:-30].tolist()), 10)
    assert isinstance(band, Band)
    assert (band.expected == values[-31]).all()


def test_the_fitted_model_passes_the_battery_and_pickles() -> None:
    model = LagTrees(reader=quantiles.fit(made(history(4)), Settings(rounds=10), seed=0))
    battery.check(pickle.loads(pickle.dumps(model)))


def test_a_history_of_less_than_a_day_is_refused_by_name() -> None:
    refused = LagTreesTrainee().fit(
        MinuteHistory(start_s=START_S, values=history(1)[:900]), seed=0, budget_s=60.0, progress=lambda _s: None
    )
    assert isinstance(refused, TooShort)
    assert "lag_trees" in refused.reason
    assert refused.have_s < refused.needed_s


def test_the_trainee_tells_its_progress_and_stops_when_told() -> None:
    shares: list[float] = []
    whole = MinuteHistory(start_s=START_S, values=history(2))
    model = LagTreesTrainee(settings=FEW).fit(whole, seed=0, budget_s=60.0, progress=shares.append)
    assert isinstance(model, LagTrees)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    def stop(share: float) -> None:
        if share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LagTreesTrainee(settings=FEW).fit(whole, seed=0, budget_s=60.0, progress=stop)


def test_the_budget_ends_the_growth() -> None:
    assert quantiles.fit(made(history(2)), FEW, seed=0, budget_s=0.0).boosters[1].num_boosted_rounds() == 1
