"""The libraries' rivals answer through our interface, are repeatable, and say why where they cannot."""

import importlib.util

import numpy as np
import pytest

from leadtime.forecast.model import Band, TooShort
from leadtime.testing import forecast_battery as battery
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted, Trainee
from leadtime.training.rivals import cells, rivals
from leadtime.training.rivals.light_lags import LightTrainee
from leadtime.training.rivals.nixtla import AutoEtsHour, AutoEtsWeek, MstlEts, NixtlaTrainee
from leadtime.training.rivals.prophet_days import ProphetTrainee

DAY_MIN = 1440
VALUES = battery.demand(4 * DAY_MIN)
HISTORY = MinuteHistory(
    start_s=battery.START_S, values=np.array([np.nan if v is None else v for v in VALUES[: 3 * DAY_MIN + 360]])
)
LIBRARY = {"auto_ets_60": "statsforecast", "mstl": "statsforecast", "prophet": "prophet", "lightgbm_lags": "lightgbm"}
TRAINEES: tuple[Trainee, ...] = (
    NixtlaTrainee(model=AutoEtsHour()), NixtlaTrainee(model=MstlEts()), ProphetTrainee(), LightTrainee()
)  # fmt: skip


def fit(trainee: Trainee, budget_s: float = 1e6, history: MinuteHistory = HISTORY):
    return trainee.fit(history, seed=1, budget_s=budget_s, progress=lambda share: None)


@pytest.mark.slow
@pytest.mark.parametrize("trainee", TRAINEES, ids=lambda t: t.name)
def test_a_rival_is_fitted_answers_and_answers_again_the_same(trainee: Trainee, capfd: pytest.CaptureFixture) -> None:
    pytest.importorskip(LIBRARY[trainee.name], reason="the extra 'bench' is not installed")
    model, again = fit(trainee), fit(trainee)
    assert not isinstance(model, TooShort | NotFitted)
    assert not isinstance(again, TooShort | NotFitted)
    assert model.name == trainee.name
    state = battery.fed(model, VALUES[: 3 * DAY_MIN + 360])
    band, other = model.predict(state, 60), again.predict(state, 60)
    assert isinstance(band, Band)
    assert isinstance(other, Band)
    assert np.array_equal(band.expected, other.expected)
    assert np.isfinite(band.expected).all()
    assert (band.expected > 50).all()
    assert (band.expected < 400).all()
    assert capfd.readouterr() == ("", "")
    assert isinstance(model.predict(model.start(), 10), TooShort)
    battery.pickles(model)


def test_every_rival_has_a_name_of_its_own_and_dear_ones_a_stride() -> None:
    names = [trainee.name for trainee in rivals()]
    assert len(set(names)) == len(names)
    assert {"holt_winters_replicas", "fft_last_period", "auto_ets", "mstl", "prophet", "lightgbm_lags"} <= set(names)
    assert AutoEtsHour().stride > 1
    assert AutoEtsWeek().stride > AutoEtsHour().stride
    assert MstlEts().stride > AutoEtsWeek().stride


def test_without_the_extra_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "find_spec", lambda name: None)
    for trainee in rivals():
        if trainee.name in ("holt_winters_replicas", "fft_last_period"):
            continue
        refused = fit(trainee)
        assert isinstance(refused, NotFitted)
        assert trainee.name in refused.reason
        assert "leadtime[bench]" in refused.reason


def test_a_rival_too_dear_for_the_budget_is_refused_with_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "find_spec", lambda name: importlib.util.find_spec("json"))
    monkeypatch.setattr(NixtlaTrainee, "_tried_s", lambda self, history: 3.0)
    refused = fit(NixtlaTrainee(model=MstlEts()), budget_s=10.0)
    assert isinstance(refused, NotFitted)
    assert refused.reason == "mstl: one fit takes 3 s, too dear for a budget of 10 s"


@pytest.mark.parametrize("trainee", [ProphetTrainee(), LightTrainee()], ids=lambda t: t.name)
def test_a_short_history_is_refused_by_name(trainee: Trainee) -> None:
    pytest.importorskip(LIBRARY[trainee.name], reason="the extra 'bench' is not installed")
    short = MinuteHistory(start_s=battery.START_S, values=np.ones(600))
    refused = fit(trainee, history=short)
    assert isinstance(refused, TooShort)
    assert trainee.name in refused.reason
    assert refused.have_s < refused.needed_s
