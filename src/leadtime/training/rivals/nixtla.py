"""Minutes or cells → AutoETS and MSTL of statsforecast, fitted anew at every origin they are asked at.

That is how they are used, and why they are asked only at every ``stride``-th origin: a fit takes 1 to 300 ms.
"""

import warnings
from dataclasses import dataclass
from math import isnan
from time import perf_counter
from typing import Any

import numpy as np

from leadtime.forecast import recent
from leadtime.forecast.day_cells import CELLS_A_DAY
from leadtime.forecast.model import MINUTE_S, Band, DemandModel, FloatColumn, TooShort, check_step, point
from leadtime.forecast.recent import KEPT_MINUTES, Recent
from leadtime.forecast.seasonal_naive import filled
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted
from leadtime.training.rivals.cells import OfCells, absent

HOUR_STRIDE, WEEK_STRIDE, MSTL_STRIDE = 31, 61, 149  # odd: see demand_classical/choice.py
DEAR_SHARE = 0.05  # one fit that takes a twentieth of the budget is too dear for a backtest


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEtsHour:
    """AutoETS on the last 60 minutes; shares the memory of last value."""

    name: str = "auto_ets_60"
    memory: str = "recent"
    stride: int = HOUR_STRIDE

    def start(self, step_s: int = MINUTE_S) -> Recent:
        """See DemandModel."""
        check_step(self.name, step_s)
        return Recent()

    def update(self, state: Recent, at_s: int, value: float | None) -> Recent:
        """See DemandModel."""
        del at_s
        return recent.add(state, value)

    def predict(self, state: Recent, steps: int) -> Band | TooShort:
        """See DemandModel."""
        window = filled(np.array([np.nan if v is None else v for v in state.minutes]))
        if len(state.minutes) < KEPT_MINUTES or window is None:
            have = len(state.minutes) * MINUTE_S
            needed = KEPT_MINUTES * MINUTE_S
            return TooShort(reason=f"{self.name} needs {KEPT_MINUTES} minutes", needed_s=needed + 1, have_s=have)
        return point(np.maximum(0.0, _forecast(_auto_ets(), window, steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEtsWeek(OfCells):
    """AutoETS without a season on a week of five-minute means; a season of 288 takes minutes a fit."""

    name: str = "auto_ets"
    window_days: int = 7
    needed_days: int = 1
    stride: int = WEEK_STRIDE

    def following(self, window: FloatColumn, cell: int, count: int) -> FloatColumn:
        """See OfCells."""
        del cell
        return _forecast(_auto_ets(), window, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class MstlEts(OfCells):
    """MSTL with a season of a day, AutoETS for what is left, on a week of five-minute means."""

    name: str = "mstl"
    window_days: int = 7
    needed_days: int = 3
    stride: int = MSTL_STRIDE

    def following(self, window: FloatColumn, cell: int, count: int) -> FloatColumn:
        """See OfCells."""
        del cell
        from statsforecast.models import MSTL, AutoETS

        return _forecast(MSTL(season_length=CELLS_A_DAY, trend_forecaster=AutoETS(model="ZZN")), window, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class NixtlaTrainee:
    """A model that is fitted at each origin: here it is only tried once, against the budget."""

    model: AutoEtsHour | AutoEtsWeek | MstlEts

    @property
    def name(self) -> str:
        """See Trainee."""
        return self.model.name

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """See Trainee. Refuses where one fit takes more than ``DEAR_SHARE`` of the budget."""
        del seed
        refusal = absent(self.name, "statsforecast")
        if refusal is not None:
            return refusal
        took = self._tried_s(history)
        progress(1.0)
        if took > DEAR_SHARE * budget_s:
            return NotFitted(reason=f"{self.name}: one fit takes {took:.2g} s, too dear for a budget of {budget_s:g} s")
        return self.model

    def _tried_s(self, history: MinuteHistory) -> float:
        """Seconds for one fit on as many values as it will have; the second, because the first one loads."""
        state: Any = self.model.start()
        kept = KEPT_MINUTES if isinstance(self.model, AutoEtsHour) else self.model.window_days * 1440
        for i, value in enumerate(history.values[-kept:].tolist()):
            state = self.model.update(state, i * MINUTE_S, None if isnan(value) else value)
        for _ in range(2):
            begun = perf_counter()
            self.model.predict(state, 10)
        return perf_counter() - begun


def _auto_ets() -> Any:
    from statsforecast.models import AutoETS

    return AutoETS(season_length=1, model="ZZZ")


def _forecast(model: Any, window: FloatColumn, count: int) -> FloatColumn:
    """What ``model`` says after ``window``; the window's last value where it fails or says no number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of every series that is constant or short
        try:
            said = np.asarray(model.forecast(y=np.ascontiguousarray(window), h=count)["mean"], dtype=np.float64)
        except (ValueError, RuntimeError, ZeroDivisionError, np.linalg.LinAlgError):
            said = np.full(count, np.nan)  # its own refusal: a constant window, mostly
    return np.where(np.isfinite(said), said, window[-1])
