"""The two open peers' methods, re-made: what they say, what they cannot know, and what they refuse."""

import numpy as np
import pytest

from leadtime.forecast.day_cells import CELLS_A_DAY
from leadtime.forecast.model import Band, DemandModel, TooShort
from leadtime.testing import forecast_battery as battery
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.rivals.peers import FftLastPeriod, ReplicaTrainee, found_period, low_pass

DAY_MIN = 1440
CHECKS = (
    battery.orders_its_bounds, battery.refuses_no_history, battery.answers_twice_the_same, battery.knows_no_future,
    battery.survives_saving, battery.pickles,
)  # fmt: skip


def replicas() -> DemandModel:
    values = np.array([np.nan if v is None else v for v in battery.demand(3 * DAY_MIN)])
    history = MinuteHistory(start_s=battery.START_S, values=values)
    return ReplicaTrainee().fit(history, seed=1, budget_s=1.0, progress=lambda share: None)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", ["replicas", "fft"])
def test_they_keep_the_rules_of_every_model(name: str, check) -> None:
    check(replicas() if name == "replicas" else FftLastPeriod())


def expected(model: DemandModel, values: list[float | None], steps: int) -> np.ndarray:
    band = model.predict(battery.fed(model, values), steps)
    assert isinstance(band, Band)
    return band.expected


def test_replicas_are_whole_pods() -> None:
    model = replicas()
    said = expected(model, battery.demand(3 * DAY_MIN), 100)
    pods = said / model.per_pod  # type: ignore[attr-defined]
    assert np.allclose(pods, np.round(pods))


def test_the_last_period_is_repeated_whatever_today_is_like() -> None:
    day = [100.0 + 50.0 * np.sin(2 * np.pi * i / DAY_MIN) for i in range(DAY_MIN)]
    doubled = [2.0 * v for v in day[:720]]
    said = expected(FftLastPeriod(), [*day * 3, *doubled], 10)
    assert said[0] == pytest.approx(day[720], rel=0.1)  # yesterday's noon, though today is twice as high


def test_a_day_and_a_week_are_told_apart_and_noise_has_no_period() -> None:
    t = np.arange(15 * CELLS_A_DAY)
    daily = np.sin(2 * np.pi * t / CELLS_A_DAY)
    weekday = np.where(t // CELLS_A_DAY % 7 < 5, 1.0, -1.0)
    assert found_period(daily) == CELLS_A_DAY
    assert found_period(daily * 0.2 + weekday) == 7 * CELLS_A_DAY
    assert found_period(np.random.default_rng(1).standard_normal(len(t))) is None
    assert found_period(np.full(len(t), 3.0)) is None


def test_short_waves_are_cut_and_the_rest_stays() -> None:
    t = np.arange(CELLS_A_DAY)
    long, short = np.sin(2 * np.pi * t / CELLS_A_DAY), 0.3 * np.sin(2 * np.pi * t / 4)
    assert np.allclose(low_pass(long + short, 12), long, atol=1e-9)
    assert np.allclose(low_pass(long + short, 1), long + short, atol=1e-9)


def test_less_than_two_days_are_refused_by_name() -> None:
    model = FftLastPeriod()
    answer = model.predict(battery.fed(model, battery.demand(2 * DAY_MIN - 5)), 10)
    assert isinstance(answer, TooShort)
    assert "fft_last_period needs 2 days" in answer.reason
