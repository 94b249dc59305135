"""Constants are chosen on the history's last days: the right ones for smooth, noisy and seasonal demand."""

import numpy as np
import pytest

from leadtime.forecast.days import DayRules
from leadtime.forecast.model import Band, TooShort
from leadtime.forecast.theta import Theta
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.demand_classical import classical
from leadtime.training.demand_classical.choice import Grid, judged

START_S = 1_772_409_600
DAY_MIN = 1440


def silent(share: float) -> None:
    del share


def history(values: np.ndarray) -> MinuteHistory:
    return MinuteHistory(start_s=START_S, values=values)


def wave(days: int, noise: float, seed: int = 1) -> np.ndarray:
    t = np.arange(days * DAY_MIN)
    return (100 + 40 * np.sin(2 * np.pi * t / DAY_MIN)) * (
        1 + noise * np.random.default_rng(seed).standard_normal(len(t))
    )


GRID = Grid(candidates=(Theta(alpha=0.8), Theta(alpha=0.2), Theta(alpha=0.05)), warm_min=120)


def chosen(values: np.ndarray) -> Theta:
    model = GRID.fit(history(values), seed=1, budget_s=60.0, progress=silent)
    assert isinstance(model, Theta)
    return model


def test_the_noisier_the_series_the_smoother_the_constants() -> None:
    walk = 1000 + np.cumsum(np.random.default_rng(1).standard_normal(3 * DAY_MIN))
    assert chosen(walk).alpha == 0.8
    assert chosen(np.random.default_rng(2).uniform(50, 150, 3 * DAY_MIN)).alpha == 0.05


def test_the_choice_does_not_depend_on_the_unit_and_is_the_same_twice() -> None:
    values = wave(4, 0.1)
    assert chosen(values) == chosen(values) == chosen(values * 1000.0)


def test_what_lies_before_the_judged_part_and_gaps_do_no_harm() -> None:
    values = wave(4, 0.1)
    values[::7] = np.nan
    assert np.isfinite(chosen(values).alpha)
    assert isinstance(chosen(np.full(3 * DAY_MIN, 5.0)), Theta)
    assert isinstance(chosen(np.zeros(3 * DAY_MIN)), Theta)


def test_a_short_history_is_refused_by_name_with_what_is_needed() -> None:
    answer = GRID.fit(history(np.ones(100)), seed=1, budget_s=60.0, progress=silent)
    assert isinstance(answer, TooShort)
    assert answer.reason.startswith("theta needs")
    assert answer.have_s < answer.needed_s


def test_a_used_up_budget_gives_the_best_of_those_tried() -> None:
    model = GRID.fit(history(np.random.default_rng(2).uniform(50, 150, 3000)), seed=1, budget_s=0.0, progress=silent)
    assert model == GRID.candidates[0]


def test_a_stop_raised_by_the_listener_ends_the_fit() -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GRID.fit(history(wave(2, 0.1)), seed=1, budget_s=60.0, progress=stop)


def test_judged_minutes_lie_in_the_last_part_at_odd_steps_and_see_their_horizon() -> None:
    at = judged(history(np.ones(20 * DAY_MIN)), warm_min=120, reach_min=40)
    assert at[0] >= 12 * DAY_MIN
    assert at[-1] + 40 < 20 * DAY_MIN
    assert len(at) >= 200
    assert (at[1] - at[0]) % 2 == 1


@pytest.mark.slow
def test_the_whole_field_is_fitted_and_answers() -> None:
    values, heard = wave(6, 0.02), []
    for trainee in classical(DayRules(), 28):
        model = trainee.fit(history(values), seed=1, budget_s=60.0, progress=heard.append)
        assert not isinstance(model, TooShort)
        assert model.name == trainee.name
        state = model.start()
        for i in range(3 * DAY_MIN):
            state = model.update(state, START_S + 60 * i, float(values[i]))
        band = model.predict(state, 40)
        assert isinstance(band, Band)
        truth = 100 + 40 * np.sin(2 * np.pi * (np.arange(40) + 3 * DAY_MIN) / DAY_MIN)
        assert np.abs(band.expected / truth - 1.0).max() < 0.12, trainee.name
    assert max(heard) == 1.0
