"""Theta's drift and Holt-Winters' day, worked out by hand or by the truth that made the series."""

import numpy as np
import pytest

from leadtime.forecast.holt_winters import HoltWinters
from leadtime.forecast.model import Band, DemandModel
from leadtime.forecast.theta import Theta
from leadtime.testing.forecast_battery import fed

DAY_MIN = 1440


def expected(model: DemandModel, values: list[float | None], steps: int) -> np.ndarray:
    band = model.predict(fed(model, values), steps)
    assert isinstance(band, Band)
    return band.expected


def day(days: int, extra: int = 0, level: float = 100.0) -> list[float | None]:
    t = np.arange(days * DAY_MIN + extra)
    return [float(v) for v in level * (1.0 + 0.4 * np.sin(2 * np.pi * t / DAY_MIN))]


def test_on_a_straight_line_theta_goes_on_with_half_its_slope_from_the_line_itself() -> None:
    line = [100.0 + 2.0 * i for i in range(600)]
    said = expected(Theta(alpha=0.4, theta=2.0, line_min=30), line, 3)
    # the level lags by slope · (1 − α)/α = 3; half the slope is added for h − 1 + 1/α minutes
    level = line[-1] - 2.0 * 0.6 / 0.4
    assert said == pytest.approx([level + 2.0 * 0.5 * (h - 1 + 2.5) for h in (1, 2, 3)], rel=1e-6)


def test_theta_of_one_has_no_line_and_no_line_is_carried_on_for_longer_than_it_was_seen() -> None:
    line = [100.0 + 2.0 * i for i in range(600)]
    assert len(set(expected(Theta(theta=1.0), line, 50).tolist())) == 1
    said = expected(Theta(line_min=30), line, 200)
    assert said[29] == said[199]


def test_the_young_line_is_the_ordinary_regression() -> None:
    state = fed(Theta(line_min=100), [10.0, 12.0, 14.0, 16.0, 18.0])
    assert state.slope == pytest.approx(2.0, rel=0.35)


def test_a_gap_leaves_the_level_and_theta_answers_after_it() -> None:
    said = expected(Theta(), [*([50.0] * 30), *([None] * 500)], 5)
    assert said.tolist() == [50.0] * 5


def test_holt_winters_says_the_next_hours_of_a_repeating_day() -> None:
    said = expected(HoltWinters(), day(4, 300), 120)
    truth = np.array(day(4, 420)[-120:])
    assert np.abs(said / truth - 1.0).max() < 0.03


def test_holt_winters_keeps_the_days_shape_at_twice_the_level() -> None:
    values = [*day(4), *day(0, 300, 200.0)]
    said = expected(HoltWinters(), values, 60)
    truth = np.array(day(0, 360, 200.0)[-60:])
    assert np.abs(said / truth - 1.0).max() < 0.05


def test_a_hole_of_hours_between_two_buckets_is_the_same_as_that_many_gaps() -> None:
    model, values = HoltWinters(), day(4)
    state = fed(model, values)
    gaps = fed(model, [None] * 300, state, 4 * DAY_MIN)
    jumped = fed(model, [120.0], state, 4 * DAY_MIN + 300)
    filled = fed(model, [120.0], gaps, 4 * DAY_MIN + 300)
    one, other = model.predict(jumped, 50), model.predict(filled, 50)
    assert isinstance(one, Band)
    assert isinstance(other, Band)
    assert np.allclose(one.expected, other.expected)


def test_a_hole_longer_than_any_memory_is_borne() -> None:
    model = HoltWinters()
    state = model.update(fed(model, day(3)), 2_000_000_000, 100.0)
    band = model.predict(state, 10)
    assert isinstance(band, Band)
    assert np.isfinite(band.expected).all()
