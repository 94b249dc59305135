"""Windows of the last hour: what is in them, what a gap is, and that the model on them keeps all rules."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from leadtime.forecast import lag_features
from leadtime.forecast.model import Band, FloatColumn, RowsModel, TooShort
from leadtime.forecast.recent import LastValue
from leadtime.forecast.sequence_model import CHANNELS, HEADS_MIN, WINDOW_MIN, SequenceModel, Windows, at_steps, windows
from leadtime.testing import forecast_battery as battery
from leadtime.testing.forecast_battery import DAY_MIN, demand, fed


@dataclass(frozen=True)
class Mean:
    """Says the window's mean level at every head, a tenth less to a tenth more, out of order."""

    def __call__(self, seen: Windows) -> FloatColumn:
        mean = seen[:, :, CHANNELS.index("level")].astype(np.float64).mean(axis=1)
        heads = np.repeat(mean[:, None], len(HEADS_MIN), axis=1)
        return np.stack((heads + 0.1, heads, heads - 0.1), axis=2)


@dataclass(frozen=True)
class Nothing:
    """Has learned nothing: the level stays."""

    def __call__(self, seen: Windows) -> FloatColumn:
        return np.zeros((len(seen), len(HEADS_MIN), 3))


MODEL = SequenceModel(reader=Mean())


@pytest.mark.parametrize("check", battery.CHECKS, ids=lambda c: c.__name__)
def test_the_model_passes_the_battery(check: Any) -> None:
    check(MODEL)


def seen(values: list[float | None], zone: str = "UTC") -> FloatColumn:
    model = SequenceModel(reader=Mean(), zone=zone)
    made = model.row(fed(model, values))
    assert not isinstance(made, TooShort)
    return windows(lag_features.relative(made[None, :]))[0].astype(np.float64)


def channel(window: FloatColumn, name: str) -> FloatColumn:
    return window[:, CHANNELS.index(name)]


def test_a_window_is_the_last_hour_oldest_first_above_the_level() -> None:
    values = [100.0 + i for i in range(WINDOW_MIN)]
    window = seen([*values])
    assert window.shape == (WINDOW_MIN, len(CHANNELS))
    floor = 0.02 * np.mean(values)  # both sides of the ratio get a fiftieth of the usual demand
    expected = np.log((np.array(values) + floor) / (values[-1] + floor))
    assert channel(window, "level") == pytest.approx(expected, abs=1e-6)
    assert channel(window, "known").tolist() == [1.0] * WINDOW_MIN


def test_a_gap_is_marked_and_not_taken_for_the_level() -> None:
    values: list[float | None] = [100.0] * WINDOW_MIN
    values[10:13] = [None] * 3
    window = seen(values)
    assert np.flatnonzero(channel(window, "known") == 0.0).tolist() == [10, 11, 12]
    assert np.isfinite(window).all()


def test_the_clock_of_each_minute_is_the_local_one() -> None:
    values = demand(DAY_MIN + 90)
    for zone, shift in (("UTC", 0), ("Europe/Berlin", 60)):
        minute = np.arange(30, 90) + shift  # the history began on a Monday at 00:00 UTC
        window = seen(values, zone)
        assert channel(window, "day_sin") == pytest.approx(np.sin(minute * 2 * np.pi / DAY_MIN), abs=1e-6)
        assert channel(window, "hour_cos") == pytest.approx(np.cos(minute * 2 * np.pi / 60), abs=1e-6)


def test_a_window_knows_no_unit() -> None:
    values = demand(2 * DAY_MIN)
    thousandfold = [None if v is None else 1000.0 * v for v in values]
    np.testing.assert_allclose(seen(values), seen(thousandfold), atol=1e-6)


def test_a_reader_that_says_nothing_leaves_the_naive_forecast() -> None:
    model = SequenceModel(reader=Nothing())
    state = fed(model, [100.0, 105.0] * DAY_MIN)
    band, naive = model.predict(state, 200), LastValue().predict(state.recent, 200)
    assert isinstance(band, Band)
    assert isinstance(naive, Band)
    assert np.array_equal(band.expected, naive.expected)


def test_between_heads_lie_lines_and_beyond_the_last_its_value() -> None:
    said = np.repeat(np.array(HEADS_MIN, dtype=np.float64)[None, :, None], 3, axis=2)
    found = at_steps(said, [0, 5, 24, 179, 2000])[0, :, 1]
    assert found == pytest.approx([1.0, 6.0, 25.0, 180.0, 180.0])


def test_many_rows_are_read_as_one_by_one() -> None:
    assert isinstance(MODEL, RowsModel)
    values = demand(DAY_MIN + 50)
    states = [fed(MODEL, values[:n]) for n in (100, DAY_MIN + 7, DAY_MIN + 50)]
    together = MODEL.read(np.stack([MODEL.row(state) for state in states]), (39, 0, 9))
    assert together.shape == (3, 3, 3)
    for i, state in enumerate(states):
        band = MODEL.predict(state, 40)
        assert isinstance(band, Band)
        alone = np.stack((band.lower, band.expected, band.upper))[:, [39, 0, 9]]
        np.testing.assert_allclose(together[:, i], alone, rtol=1e-9)


def test_less_than_a_window_is_refused_by_name() -> None:
    refused = MODEL.predict(fed(MODEL, demand(WINDOW_MIN - 1)), 10)
    assert isinstance(refused, TooShort)
    assert "bi_lstm needs a window of 60 minutes" in refused.reason
    assert (refused.needed_s, refused.have_s) == (3600, 59 * 60)


def test_it_shares_its_memory_with_the_learned_trees() -> None:
    from leadtime.forecast.lag_trees import LagTrees

    values = demand(90)
    trees = LagTrees(reader=lambda features: np.zeros((len(features), 3)))
    mine, theirs = MODEL.row(fed(MODEL, values)), trees.row(fed(trees, values))
    assert MODEL.memory == trees.memory
    np.testing.assert_array_equal(mine, theirs)
