"""The classical field passes the shipped battery; what it refuses is in each model's own tests."""

from typing import Any

import pytest

from leadtime.forecast.arima import Arima
from leadtime.forecast.days import DayRules
from leadtime.forecast.holt_winters import HoltWinters
from leadtime.forecast.model import DemandModel
from leadtime.forecast.seasonal_naive import SeasonalNaive
from leadtime.forecast.theta import Theta
from leadtime.forecast.usual_change import UsualChange
from leadtime.testing import forecast_battery as battery

MODELS: tuple[DemandModel, ...] = (
    SeasonalNaive(zone="Europe/Berlin"),
    UsualChange(rules=DayRules(zone="Europe/Berlin")),
    UsualChange(level_minutes=30, smooth_cells=7, doubt=4.0, name="usual_change_smooth"),
    Theta(),
    Arima(ar=(0.7, -0.2), ma=(-0.9,)),
    HoltWinters(beta=0.1),
)


@pytest.mark.parametrize("check", battery.CHECKS + battery.CLAIMED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_every_classical_model_passes(model: DemandModel, check: Any) -> None:
    check(model)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_step_other_than_a_minute_is_refused(model: DemandModel) -> None:
    with pytest.raises(ValueError, match="resample"):
        model.start(300)
