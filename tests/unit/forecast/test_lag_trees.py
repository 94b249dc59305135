"""Rows of relative lags: what is in them, that they know no unit, and that the model on them keeps all rules."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from leadtime.forecast import lag_features, lag_memory
from leadtime.forecast.lag_features import FEATURES, Matrix, Relative
from leadtime.forecast.lag_trees import LagTrees
from leadtime.forecast.model import Band, FloatColumn, RowsModel, TooShort
from leadtime.forecast.recent import LastValue, Mean5Min, Recent
from leadtime.testing import forecast_battery as battery
from leadtime.testing.forecast_battery import DAY_MIN, START_S, demand, fed


@dataclass(frozen=True)
class Course:
    """Says what earlier days did, a tenth less to a tenth more."""

    def __call__(self, features: Matrix) -> FloatColumn:
        course = np.nan_to_num(features[:, FEATURES.index("course")].astype(np.float64))
        return np.stack((course + 0.1, course, course - 0.1), axis=1)  # out of order: the model puts them in order


@dataclass(frozen=True)
class Nothing:
    """Has learned nothing: the level stays."""

    def __call__(self, features: Matrix) -> FloatColumn:
        return np.zeros((len(features), 3))


MODEL = LagTrees(reader=Course())


@pytest.mark.parametrize("check", battery.CHECKS, ids=lambda c: c.__name__)
def test_the_model_passes_the_battery(check: Any) -> None:
    check(MODEL)


def relative(values: list[float | None], model: LagTrees = MODEL) -> Relative:
    made = model.row(fed(model, values))
    assert not isinstance(made, TooShort)
    return lag_features.relative(made[None, :])


def feature(rows: Relative, ahead_min: int, name: str) -> float:
    return float(lag_features.features(rows, (ahead_min,))[0, 0, FEATURES.index(name)])


@pytest.mark.parametrize("values", [demand(3 * DAY_MIN), [*demand(3 * DAY_MIN), None, None, 90.0, None]])
def test_a_reader_that_says_nothing_leaves_a_naive_forecast(values: list[float | None]) -> None:
    model = LagTrees(reader=Nothing())
    state = fed(model, values)
    band = model.predict(state, 20)
    naive = (LastValue(), Mean5Min())[state.hits_mean > state.hits_last + 0.01].predict(state.recent, 20)
    assert isinstance(band, Band)
    assert isinstance(naive, Band)
    assert np.array_equal(band.expected, naive.expected)


def test_the_level_is_whichever_naive_forecast_hit_more_often() -> None:
    noisy = np.random.default_rng(1).normal(100.0, 8.0, 2000).tolist()
    steps = np.repeat(np.random.default_rng(2).uniform(50.0, 150.0, 100), 20).tolist()
    assert feature(relative(noisy), 10, "is_mean") == 1.0
    assert feature(relative(steps), 10, "is_mean") == 0.0


def test_hits_are_those_of_the_last_value_ten_minutes_later() -> None:
    values = demand(600)
    state = fed(MODEL, values)
    pairs = [(values[i - 10], values[i]) for i in range(14, 600) if None not in values[i - 14 : i - 9]]
    hits = [abs(then - now) <= 0.1 * now for then, now in pairs if then is not None and now is not None]
    assert state.judged == len(hits)
    assert state.hits_last == pytest.approx(np.mean(hits))


def test_a_row_knows_no_unit() -> None:
    values = demand(4 * DAY_MIN)
    thousandfold = [None if v is None else 1000.0 * v for v in values]
    one, other = (lag_features.features(relative(v), (30,))[0, 0] for v in (values, thousandfold))
    differing = [
        name
        for name, a, b in zip(FEATURES, one, other, strict=True)
        if not np.isclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
    ]
    assert differing == ["size"]


def test_earlier_days_tell_what_follows_at_this_time() -> None:
    day = 100.0 + 50.0 * np.sin(np.arange(DAY_MIN) * (2.0 * np.pi / 240.0))  # a wave of four hours
    values = [*np.tile(day, 3).tolist(), *day[: 6 * 60].tolist()]
    rows = relative(values)
    for ahead in (10, 90):
        change = feature(rows, ahead, "change")
        assert np.exp(change) * day[6 * 60 - 3] == pytest.approx(day[6 * 60 + ahead - 1], rel=0.02)
        assert feature(rows, ahead, "change_spread") == pytest.approx(0.0, abs=1e-6)


def test_the_lag_of_a_period_stands_one_period_before_the_target() -> None:
    values = [100.0 + i for i in range(60)]
    rows = relative([*values])
    for ahead in (1, 10, 40):
        lag = feature(rows, ahead, "period60")
        expected = values[-1] + ahead - 60
        assert np.exp(lag) * (rows.anchor[0] + rows.floor[0]) - rows.floor[0] == pytest.approx(expected, rel=1e-5)
    assert np.isnan(feature(rows, 61, "period60"))


def test_the_time_of_day_is_the_local_one_of_the_target_minute() -> None:
    values = demand(DAY_MIN + 95)
    assert feature(relative(values), 10, "hour") == pytest.approx((95 + 9) / 60)
    assert feature(relative(values), 10, "weekday") == 1.0  # the history began on a Monday
    berlin = relative(values, LagTrees(reader=Course(), zone="Europe/Berlin"))
    assert feature(berlin, 10, "hour") == pytest.approx((95 + 9) / 60 + 1)


def test_target_and_demand_undo_each_other() -> None:
    rows = relative(demand(2 * DAY_MIN))
    actual = np.array([80.0])
    said = lag_features.target(rows, actual)
    assert lag_features.demand(rows, said[:, None])[0, 0] == pytest.approx(80.0)
    assert lag_features.demand(rows, np.array([[99.0]]))[0, 0] < 5 * rows.anchor[0]  # nothing explodes


def test_many_rows_are_read_as_one_by_one() -> None:
    assert isinstance(MODEL, RowsModel)
    values = demand(3 * DAY_MIN + 50)
    states = [fed(MODEL, values[:n]) for n in (100, DAY_MIN + 7, 3 * DAY_MIN + 50)]
    rows = np.stack([MODEL.row(state) for state in states])
    steps = (39, 0, 9)
    together = MODEL.read(rows, steps)
    assert together.shape == (3, 3, 3)
    for i, state in enumerate(states):
        band = MODEL.predict(state, 40)
        assert isinstance(band, Band)
        alone = np.stack((band.lower, band.expected, band.upper))[:, list(steps)]
        np.testing.assert_allclose(together[:, i], alone, rtol=1e-9)


def test_a_row_depends_on_no_other() -> None:
    rows = np.stack([MODEL.row(fed(MODEL, demand(n, seed=n))) for n in (70, DAY_MIN, 2 * DAY_MIN)])
    before = rows.copy()
    whole = lag_features.features(lag_features.relative(rows), (10,))
    assert np.array_equal(rows, before, equal_nan=True)
    for i in range(len(rows)):
        alone = lag_features.features(lag_features.relative(rows[i : i + 1]), (10,))
        np.testing.assert_allclose(alone[0], whole[i], rtol=1e-6, equal_nan=True)


def test_no_demand_for_a_day_stays_none() -> None:
    band = MODEL.predict(fed(MODEL, [0.0] * DAY_MIN), 10)
    assert isinstance(band, Band)
    assert band.expected == pytest.approx(np.zeros(10), abs=1e-9)


def test_less_than_an_hour_is_refused() -> None:
    refused = MODEL.predict(fed(MODEL, demand(59)), 10)
    assert isinstance(refused, TooShort)
    assert (refused.needed_s, refused.have_s) == (3600, 59 * 60)
    assert MODEL.start().recent == Recent()


def test_the_state_of_four_weeks_is_small() -> None:
    import pickle

    state = lag_memory.empty()
    for minute in range(30 * DAY_MIN):
        state = lag_memory.add(state, START_S + 60 * minute, 1.0 + minute % 7)
    assert len(pickle.dumps(state)) < 90_000


def test_counts_are_forecast_as_whole_numbers() -> None:
    counts = [float(v) for v in np.random.default_rng(5).poisson(2.5, DAY_MIN + 60)]
    whole, fractions = fed(MODEL, counts), fed(MODEL, [v + 0.25 for v in counts])
    for state, expected in ((whole, True), (fractions, False)):
        band = MODEL.predict(state, 30)
        assert isinstance(band, Band)
        assert bool((band.upper == np.rint(band.upper)).all()) is expected
