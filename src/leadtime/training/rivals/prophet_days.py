"""Weeks of cells → Prophet's curve for the weeks to come, worked out once; asked later, it is looked up.

Prophet knows the calendar and no level of today, so nothing that happens after the fit changes what it says.
"""

import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadtime.domain.calendar import Calendar
from leadtime.forecast.day_cells import CELL_MINUTES, CELL_S, CELLS_A_DAY
from leadtime.forecast.model import MINUTE_S, Band, DemandModel, FloatColumn, TooShort, check_step, point
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted
from leadtime.training.rivals.cells import MAX_DAYS, absent

AHEAD_DAYS = 62
NEEDED_DAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockState:
    """End of the newest bucket; 0 before the first."""

    next_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProphetCurve:
    """``curve[i]`` is said of cell ``first + i`` (epoch_s // 300)."""

    curve: FloatColumn
    first: int
    name: str = "prophet"
    memory: str = "clock"

    def start(self, step_s: int = MINUTE_S) -> ClockState:
        """See DemandModel."""
        check_step(self.name, step_s)
        return ClockState()

    def update(self, state: ClockState, at_s: int, value: float | None) -> ClockState:
        """See DemandModel."""
        del state, value
        return ClockState(next_s=at_s + MINUTE_S)

    def predict(self, state: ClockState, steps: int) -> Band | TooShort:
        """See DemandModel. Refuses outside the weeks it was worked out for."""
        cells = (state.next_s + MINUTE_S * np.arange(steps)) // CELL_S - self.first
        if cells[0] < 0 or cells[-1] >= len(self.curve):
            return TooShort(reason=f"{self.name} was not worked out for this time", needed_s=CELL_S, have_s=0)
        return point(self.curve[cells])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProphetTrainee:
    """Prophet as it comes, on at most four weeks of five-minute means, with the calendar's holidays."""

    calendar: Calendar = field(default_factory=Calendar)
    name: str = "prophet"

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """See Trainee. A fit cannot be stopped halfway: it is refused where its first seconds say it takes too long."""
        del budget_s
        refusal = absent(self.name, "prophet")
        if refusal is not None:
            return refusal
        skip = -(history.start_s // MINUTE_S) % CELL_MINUTES
        minutes = history.values[skip:]
        cells = _means(minutes[: len(minutes) // CELL_MINUTES * CELL_MINUTES])[-MAX_DAYS * CELLS_A_DAY :]
        until = (history.start_s + skip * MINUTE_S) // CELL_S + len(minutes) // CELL_MINUTES
        if np.count_nonzero(~np.isnan(cells)) < NEEDED_DAYS * CELLS_A_DAY:
            have = int(np.count_nonzero(~np.isnan(cells))) * CELL_S
            return TooShort(reason=f"{self.name} needs {NEEDED_DAYS} days", needed_s=NEEDED_DAYS * 86_400, have_s=have)
        curve = self._curve(cells, until - len(cells), seed)
        progress(1.0)
        return ProphetCurve(curve=np.maximum(0.0, curve), first=until - len(cells))

    def _curve(self, cells: FloatColumn, first: int, seed: int) -> FloatColumn:
        """What Prophet says of the cells it saw and of ``AHEAD_DAYS`` after them."""
        for name in ("prophet", "prophet.plot", "cmdstanpy"):  # they would write to stderr, plots it lacks included
            logging.getLogger(name).disabled = True
        import pandas as pd  # type: ignore[import-untyped]
        from prophet import Prophet

        at = pd.to_datetime((first + np.arange(len(cells) + AHEAD_DAYS * CELLS_A_DAY)) * CELL_S, unit="s")
        holidays: Any = None
        if self.calendar.holidays:
            days = [{"holiday": "holiday", "ds": pd.Timestamp(h.day)} for h in self.calendar.holidays]
            holidays = pd.DataFrame(days)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas and its own, about itself
            model = Prophet(uncertainty_samples=0, holidays=holidays)
            model.fit(pd.DataFrame({"ds": at[: len(cells)], "y": cells}), seed=seed)
            return np.asarray(model.predict(pd.DataFrame({"ds": at}))["yhat"], dtype=np.float64)


def _means(minutes: FloatColumn) -> FloatColumn:
    """Means of five minutes each, of what is known; NaN where nothing is."""
    rows = minutes.reshape(-1, CELL_MINUTES)
    known = ~np.isnan(rows)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, rows, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)
