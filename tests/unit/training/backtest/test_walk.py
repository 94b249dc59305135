"""A series is walked bucket by bucket: answers equal those asked one by one, and nothing later is seen."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.forecast.model import Band, FloatColumn, TooShort
from leadtime.forecast.recent import LastValue, Mean5Min, Recent
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.walk import Asked, Said, walk

START_S = 1_772_409_600
EXPECTED = 1


def series(values: list[float], step_s: int = 60) -> BacktestSeries:
    return BacktestSeries(name="s", start_s=START_S, step_s=step_s, values=np.array(values))


def told(_share: float) -> None:
    """Nobody watches."""


def ask(values: BacktestSeries, *asked: Asked, steps: tuple[int, ...] = (9,)) -> tuple[Said, ...]:
    return walk(values, asked, steps, told)


def all_of(model: object, count: int, stride: int = 1) -> Asked:
    return Asked(model=model, first=0, until=count, stride=stride)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rowing(LastValue):
    """Last value that answers by rows."""

    name: str = "rowing"

    def row(self, state: Recent) -> FloatColumn | TooShort:
        answer = self.predict(state, 1)
        return answer if isinstance(answer, TooShort) else answer.expected

    def read(self, rows: FloatColumn, steps: tuple[int, ...]) -> FloatColumn:
        return np.broadcast_to(rows[None, :, :], (3, len(rows), len(steps)))


def test_every_origin_is_answered_with_what_was_known_at_its_end() -> None:
    (said,) = ask(series([1.0, 2.0, np.nan, 4.0]), all_of(LastValue(), 4))
    assert said.values[EXPECTED, 0].tolist() == [1.0, 2.0, 2.0, 4.0]
    assert said.answered == 4


def test_a_model_is_asked_only_between_first_and_until_at_its_stride() -> None:
    (said,) = ask(series([1.0, 2.0, 3.0, 4.0, 5.0]), Asked(model=LastValue(), first=1, until=5, stride=2))
    assert np.flatnonzero(~np.isnan(said.values[EXPECTED, 0])).tolist() == [1, 3]


def test_long_buckets_are_fed_as_equal_minutes() -> None:
    (said,) = ask(series([10.0, 20.0], step_s=300), all_of(Mean5Min(), 2))
    assert said.values[EXPECTED, 0].tolist() == [10.0, 20.0]


def test_a_refusal_keeps_its_reason() -> None:
    (said,) = ask(series([np.nan, np.nan]), all_of(LastValue(), 2))
    assert np.isnan(said.values).all()
    assert said.refusal is not None
    assert "last_value" in said.refusal


def test_rows_are_answered_as_one_by_one() -> None:
    values = series([float(i % 7) for i in range(5000)])
    one, rows = ask(values, all_of(LastValue(), 5000), all_of(Rowing(), 5000), steps=(39, 9))
    assert np.array_equal(one.values, rows.values)


def test_steps_come_back_in_the_order_asked() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Counting(LastValue):
        name: str = "counting"

        def predict(self, state: Recent, steps: int) -> Band | TooShort:
            del state
            path = np.arange(steps, dtype=np.float64)
            return Band(expected=path, lower=path, upper=path)

    (said,) = ask(series([1.0]), all_of(Counting(), 1), steps=(39, 9))
    assert said.values[EXPECTED, :, 0].tolist() == [39.0, 9.0]


def test_the_walk_can_be_stopped() -> None:
    def stop(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk(series([1.0] * 10), [all_of(LastValue(), 10)], (9,), stop)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 59), st.floats(0.0, 1e6))
def test_what_comes_after_an_origin_changes_nothing_said_at_or_before_it(seed: int, origin: int, other: float) -> None:
    values = np.random.default_rng(seed).lognormal(3.0, 1.0, 60).tolist()
    changed = [*values[: origin + 1], *([other] * (len(values) - origin - 1))]
    models = [all_of(LastValue(), len(values)), all_of(Mean5Min(), len(values)), all_of(Rowing(), len(values))]
    for one, two in zip(ask(series(values), *models), ask(series(changed), *models), strict=True):
        assert np.array_equal(one.values[..., : origin + 1], two.values[..., : origin + 1], equal_nan=True)
