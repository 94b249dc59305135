"""Every registered model passes the shipped battery, and the battery catches models that do not."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from leadtime.forecast.entrants import entrants, memories
from leadtime.forecast.model import Band, DemandModel, TooShort, point
from leadtime.forecast.recent import LastValue, Recent
from leadtime.policy.schema import ForecastPolicy
from leadtime.testing import forecast_battery as battery

MODELS = entrants(ForecastPolicy())


@pytest.mark.parametrize("check", battery.CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_model_passes(model: DemandModel, check: Any) -> None:
    check(model)


def test_models_are_ordered_from_simple_to_complex_and_share_memories() -> None:
    assert [m.name for m in MODELS] == ["last_value", "mean_5min", "ets", "seasonal_ratio", "usual_envelope"]
    assert [m.memory for m in memories(ForecastPolicy())] == ["recent", "ets", "day_cells"]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_step_other_than_a_minute_is_refused(model: DemandModel) -> None:
    with pytest.raises(ValueError, match="resample"):
        model.start(300)


@dataclass(frozen=True)
class Mutates(LastValue):
    """Breaks: writes into the state it was given."""

    name: str = "mutates"

    def update(self, state: Recent, at_s: int, value: float | None) -> Recent:
        object.__setattr__(state, "last", value)
        return super().update(state, at_s, value)


@dataclass(frozen=True)
class Guesses(LastValue):
    """Breaks: answers without history."""

    name: str = "guesses"

    def predict(self, state: Recent, steps: int) -> Band | TooShort:
        return point(np.zeros(steps))


@dataclass(frozen=True)
class Crosses(LastValue):
    """Breaks: its lower bound lies above."""

    name: str = "crosses"

    def predict(self, state: Recent, steps: int) -> Band | TooShort:
        band = super().predict(state, steps)
        return replace(band, lower=band.expected + 1.0) if isinstance(band, Band) else band


@pytest.mark.parametrize(
    ("model", "check"),
    [
        (Mutates(), battery.leaves_its_input_alone),
        (Guesses(), battery.refuses_no_history),
        (Crosses(), battery.orders_its_bounds),
    ],
)
def test_the_battery_catches(model: Any, check: Any) -> None:
    with pytest.raises(battery.BatteryFailure, match=model.name):
        check(model)
