"""The newest forecast in words: level, usual change, interval, what more would take; by hand on a made series."""

import numpy as np
import pytest

from leadtime.domain.errors import WrongUse
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.recent import LastValue, Mean5Min
from leadtime.training.backtest.explain import Explained, explain
from leadtime.training.backtest.plan import BacktestOptions
from leadtime.training.backtest.run import backtest
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.trainee import Ready
from leadtime.training.progress import silent

DAY = 144
FIELD = (Ready(model=LastValue()), Ready(model=Mean5Min()))
OPTIONS = BacktestOptions(lead_s=600)


def explained(values: FloatColumn) -> Explained:
    series = BacktestSeries(name="made", start_s=1_772_409_600, step_s=600, values=values)
    return explain(backtest(series, FIELD, OPTIONS, silent))


def doubling_at_six(days: int) -> FloatColumn:
    """100 all day with noise of 1 %, but 200 in the bucket that begins at 06:00; ends just before it."""
    values = 100.0 + np.random.default_rng(1).standard_normal(days * DAY)
    values[36::DAY] = 200.0
    return values[: (days - 1) * DAY + 36]


def test_level_and_usual_change_are_those_of_earlier_days_at_this_time() -> None:
    found = explained(doubling_at_six(9))
    assert found.level == pytest.approx(100.0, abs=1.5)
    assert found.usual_change_ratio == pytest.approx(1.0, abs=0.02)
    assert len(found.changes) == 8


def test_level_usual_change_and_the_rest_multiply_to_the_forecast() -> None:
    found = explained(doubling_at_six(9))
    assert found.beyond_usual_ratio is not None
    assert found.usual_change_ratio is not None
    product = found.level * (1.0 + found.usual_change_ratio) * (1.0 + found.beyond_usual_ratio)
    assert product == pytest.approx(found.expected)
    assert found.beyond_usual_ratio == pytest.approx(-0.5, abs=0.02)  # last value does not know of the day's doubling


def test_days_are_named_by_when_they_were_at_this_time() -> None:
    found = explained(doubling_at_six(9))
    assert [found.at_s - day.at_s for day in found.days] == [86_400 * back for back in range(1, 9)]
    assert [day.change_ratio for day in found.days] == list(found.changes)


def test_days_that_went_beyond_the_interval_are_counted() -> None:
    found = explained(doubling_at_six(9))
    assert found.lower < found.expected < found.upper < 150.0
    assert found.days_with_more == 8
    assert found.needed_for_more_ratio == pytest.approx(found.upper / found.level - 1.0)


def test_how_the_interval_held_lately_is_a_share_of_the_last_day() -> None:
    found = explained(doubling_at_six(9))
    assert found.scored_lately == DAY
    assert found.coverage_lately_ratio == pytest.approx(0.90, abs=0.07)


def test_without_an_earlier_day_there_is_no_usual_change() -> None:
    found = explained(doubling_at_six(9)[: DAY // 2 + 60])
    assert (found.usual_change_ratio, found.changes) == (None, ())


def test_after_a_gap_last_value_still_speaks() -> None:
    values = doubling_at_six(9)
    values[-3:] = np.nan
    assert explained(values).expected == pytest.approx(values[-4], rel=0.05)


def test_what_was_never_known_cannot_be_explained() -> None:
    values = doubling_at_six(9)
    result = backtest(BacktestSeries(name="made", start_s=0, step_s=600, values=values), FIELD, OPTIONS, silent)
    result.served.spoken.expected[-1] = np.nan
    with pytest.raises(WrongUse, match="nothing is known at"):
        explain(result)
