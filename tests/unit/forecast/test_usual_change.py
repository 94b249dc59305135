"""Last value × usual change: exact on a repeating day, by weekday and holiday, and last value where days disagree."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from leadtime.forecast.days import DayRules
from leadtime.forecast.model import Band, TooShort
from leadtime.forecast.usual_change import UsualChange, between, calm_minutes, smooth, usual

DAY_MIN = 1440
MONDAY_S = 1_772_409_600  # 2026-03-02T00:00Z


def said(model: UsualChange, values: np.ndarray, steps: int = 60, start_s: int = MONDAY_S) -> np.ndarray:
    state = model.start()
    for i, value in enumerate(values.tolist()):
        state = model.update(state, start_s + 60 * i, None if np.isnan(value) else value)
    band = model.predict(state, steps)
    assert isinstance(band, Band)
    return band.expected


def weeks(count: int, extra_min: int) -> np.ndarray:
    """Working days double from 08:00 to 09:00 and stay so to 18:00; Saturdays and Sundays are flat."""
    t = np.arange(count * 7 * DAY_MIN + extra_min)
    hour = t % DAY_MIN / 60
    working = t // DAY_MIN % 7 < 5
    return 100.0 * (1.0 + np.where(working, np.clip(hour - 8, 0, 1) * (hour < 18), 0.0))


def test_a_repeating_day_is_said_exactly_at_todays_level() -> None:
    t = np.arange(4 * DAY_MIN + 500)
    day = 100 + 40 * np.sin(2 * np.pi * t / DAY_MIN)
    level = np.where(t < 4 * DAY_MIN, 1.0, 3.0)  # today everything is three times as much
    truth = 3 * (100 + 40 * np.sin(2 * np.pi * (np.arange(60) + len(t)) / DAY_MIN))
    assert np.allclose(said(UsualChange(), day * level), truth, rtol=0.01)


def test_monday_morning_is_forecast_from_mondays_not_from_sunday() -> None:
    rise = said(UsualChange(), weeks(2, 7 * 60 + 50))
    assert rise[-1] == pytest.approx(100 * (1 + 49.5 / 60), rel=0.03)


def test_sunday_morning_is_flat_although_five_of_seven_days_rise() -> None:
    assert np.allclose(said(UsualChange(), weeks(2, 6 * DAY_MIN + 7 * 60 + 50)), 100.0)


def test_a_holiday_is_forecast_from_sundays_and_teaches_no_working_day() -> None:
    values = weeks(2, 2 * DAY_MIN + 7 * 60 + 50)  # Wednesday 18 March, 07:50
    rules = DayRules(holidays=frozenset([date(2026, 3, 18).toordinal()]))
    assert np.allclose(said(UsualChange(rules=rules), values), 100.0)
    assert said(UsualChange(), values)[-1] > 170.0
    # last Wednesday was a holiday with the course of a Sunday: without the calendar it would halve today's rise
    values[9 * DAY_MIN : 10 * DAY_MIN] = 100.0
    last = DayRules(holidays=frozenset([date(2026, 3, 11).toordinal()]))
    assert said(UsualChange(rules=last), values)[-1] == pytest.approx(182.0, rel=0.03)
    assert said(UsualChange(), values)[-1] < 150.0


def test_a_day_with_a_declared_event_teaches_nothing() -> None:
    values = np.full(4 * DAY_MIN + 600, 100.0)
    windows = [(day * DAY_MIN + 605, day * DAY_MIN + 660) for day in (2, 3)]
    for first, last in windows:
        values[first:last] = 500.0
    rules = DayRules(left_out=tuple((MONDAY_S + 60 * first, MONDAY_S + 60 * last) for first, last in windows))
    assert said(UsualChange(), values).max() > 105.0
    assert np.allclose(said(UsualChange(rules=rules), values), 100.0)


@pytest.mark.parametrize(("month", "day"), [(3, 29), (10, 25)])
def test_the_morning_after_the_clock_was_changed_comes_by_local_time(month: int, day: int) -> None:
    start_s = int(datetime(2026, month, day - 6, tzinfo=UTC).timestamp())
    zone_s = 3600 if month == 3 else 7200
    change_min = 6 * DAY_MIN + 60  # 01:00Z on the day
    count = 6 * DAY_MIN + (5 * 60 + 50 if month == 3 else 6 * 60 + 50)
    t = np.arange(count + 60)
    local = t + zone_s // 60 + np.where(t >= change_min, 60 if month == 3 else -60, 0)
    values = 100.0 * (1.0 + np.clip(local % DAY_MIN / 60 - 8, 0, 1) * (local % DAY_MIN < 18 * 60))
    model = UsualChange(rules=DayRules(zone="Europe/Berlin", holidays=frozenset()))
    path = said(model, values[:count], 60, start_s)
    assert np.allclose(path, values[count:], rtol=0.05)


def test_where_days_disagree_it_is_last_value() -> None:
    values = np.random.default_rng(3).uniform(50, 150, 10 * DAY_MIN)
    model = UsualChange(level_minutes=1, doubt=30.0)
    assert np.allclose(said(model, values), values[-1], rtol=0.12)


def test_a_change_is_believed_as_far_as_days_agree() -> None:
    agree = usual(np.full((4, 3), 0.5), 1.0)
    assert agree is not None
    assert agree.tolist() == [0.5] * 3
    torn = usual(np.array([[1.0], [-1.0], [1.0], [-1.0]]), 1.0)
    assert torn is not None
    assert torn[0] == 0.0
    assert usual(np.array([[1.0], [np.nan]]), 1.0) is None
    partly = usual(np.array([[0.5, np.nan], [0.5, 0.7]]), 1.0)
    assert partly is not None
    assert partly.tolist() == [0.5, 0.5]


def test_how_long_a_level_is_measured_follows_the_noise_of_the_last_day() -> None:
    rng = np.random.default_rng(4)
    assert calm_minutes(100 + np.cumsum(rng.standard_normal(288))) == 3
    assert calm_minutes(rng.uniform(50, 150, 288)) >= 30
    assert calm_minutes(np.full(288, 7.0)) == 3
    assert calm_minutes(np.full(288, np.nan)) == 3
    assert calm_minutes(np.empty(0)) == 3


def test_means_over_neighbours_skip_gaps_and_lines_between_them_do_too() -> None:
    rows = np.array([[1.0, np.nan, 3.0, 8.0]])
    assert smooth(rows, 3).tolist() == [[1.0, 2.0, 5.5, 5.5]]
    assert between(rows, np.array([0.5, 2.5])).tolist() == [[1.0, 5.5]]


def test_one_day_is_refused_by_name() -> None:
    model = UsualChange()
    state = model.start()
    for i in range(DAY_MIN + 100):
        state = model.update(state, MONDAY_S + 60 * i, 1.0)
    answer = model.predict(state, 10)
    assert isinstance(answer, TooShort)
    assert "usual_change needs 2 earlier days" in answer.reason
