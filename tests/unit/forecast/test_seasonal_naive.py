"""The same five minutes a week ago, else yesterday; by local time."""

from datetime import UTC, datetime

import numpy as np
import pytest

from leadtime.forecast.model import Band, TooShort
from leadtime.forecast.seasonal_naive import SeasonalNaive

DAY_MIN = 1440
MONDAY_S = 1_772_409_600  # 2026-03-02T00:00Z


def fed(model: SeasonalNaive, values: list[float | None], start_s: int = MONDAY_S):
    state = model.start()
    for i, value in enumerate(values):
        state = model.update(state, start_s + 60 * i, value)
    return state


def by_day(days: int, extra: int = 0) -> list[float | None]:
    """Day d has 100·d plus the cell of the day."""
    return [100.0 * (i // DAY_MIN) + (i % DAY_MIN) // 5 for i in range(days * DAY_MIN + extra)]


def expected(model: SeasonalNaive, values: list[float | None], steps: int, start_s: int = MONDAY_S) -> np.ndarray:
    band = model.predict(fed(model, values, start_s), steps)
    assert isinstance(band, Band)
    return band.expected


def test_before_a_week_is_known_it_is_yesterday() -> None:
    said = expected(SeasonalNaive(), by_day(3, 7), 10)
    # three days and seven minutes in: minutes 7 to 16 of yesterday, day 2
    assert said.tolist() == [201.0] * 3 + [202.0] * 5 + [203.0] * 2


def test_from_a_week_on_it_is_a_week_ago() -> None:
    assert expected(SeasonalNaive(), by_day(8), 5).tolist() == [100.0] * 5


def test_a_gap_a_week_ago_is_filled_by_yesterday_and_a_path_longer_than_a_day_by_known_days() -> None:
    values = by_day(8)
    values[DAY_MIN : DAY_MIN + 10] = [None] * 10
    assert expected(SeasonalNaive(), values, 15).tolist() == [700.0] * 5 + [701.0] * 5 + [102.0] * 5
    said = expected(SeasonalNaive(), by_day(2), 3 * DAY_MIN)
    assert said[0] == said[DAY_MIN] == said[2 * DAY_MIN] == 100.0


def test_less_than_a_day_is_refused_by_name() -> None:
    model = SeasonalNaive()
    answer = model.predict(fed(model, by_day(1)[:-5]), 10)
    assert isinstance(answer, TooShort)
    assert answer.reason.startswith("seasonal_naive")
    assert answer.have_s < answer.needed_s


@pytest.mark.parametrize(("zone", "shift_min"), [("UTC", 0), ("Europe/Berlin", 60)])
def test_after_the_clock_was_changed_it_is_the_same_local_time(zone: str, shift_min: int) -> None:
    start_s = int(datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp())  # the clock goes forward on the 29th at 01:00Z
    values = [float(i // 5) for i in range(DAY_MIN)]
    said = expected(SeasonalNaive(zone=zone), values, 5, start_s)
    assert said[0] == shift_min / 5  # 12:00Z is 14:00 in summer; that was 13:00Z the day before
