"""Earlier days → the same five minutes a week ago, or yesterday where no week is known. No level, no correction.

The baseline that weighted quantile losses are published against. Five minutes instead of one, because the memory of
days keeps no minutes, and because a single minute of another day says less than the mean around it.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast import day_cells
from leadtime.forecast.day_cells import CELL_S, CELLS_A_DAY, DayCells, DayRows
from leadtime.forecast.model import Band, FloatColumn, TooShort, check_step, point
from leadtime.forecast.seasonal import cells_ahead, to_minutes

WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonalNaive:
    """What was at this local time a week ago stays; else yesterday; else the newest day that is known there."""

    zone: str = "UTC"
    max_days: int = 28
    name: str = "seasonal_naive"
    memory: str = "day_cells"

    def start(self, step_s: int = 60) -> DayCells:
        """See DemandModel."""
        check_step(self.name, step_s)
        return day_cells.empty()

    def update(self, state: DayCells, at_s: int, value: float | None) -> DayCells:
        """See DemandModel."""
        return day_cells.add(state, at_s, value, self.max_days)

    def predict(self, state: DayCells, steps: int) -> Band | TooShort:
        """See DemandModel. Refuses where less than a day is known, or no earlier day at any of the times asked for."""
        if len(state.cells) < CELLS_A_DAY:
            return self._too_short(state)
        ahead = cells_ahead(steps)
        laid = day_cells.day_rows(state, back=1, ahead=ahead, max_days=self._days(ahead), zone=self.zone)
        cells = filled(first_known(laid))
        return self._too_short(state) if cells is None else point(to_minutes(cells, state, steps))

    def _days(self, ahead: int) -> int:
        """Days to look back: a week and what the path itself reaches beyond a day."""
        return min(self.max_days, WEEK + 1 + ahead // CELLS_A_DAY)

    def _too_short(self, state: DayCells) -> TooShort:
        return TooShort(
            reason=f"{self.name} needs one earlier day at this time of day",
            needed_s=86_400 + CELL_S,
            have_s=min(len(state.cells) * CELL_S, 86_400),
        )


def first_known(laid: DayRows) -> FloatColumn:
    """Per cell ahead: a week ago, else yesterday, else the newest earlier day, else what is said of the day before.

    NaN where no day is known at that time of day.
    """
    rows = laid.rows[:, 1:]
    order = [WEEK - 1, *(d for d in range(len(rows)) if d != WEEK - 1)] if len(rows) >= WEEK else list(range(len(rows)))
    ordered = rows[order]
    first = np.argmax(~np.isnan(ordered), axis=0)
    cells = ordered[first, np.arange(ordered.shape[1])]
    for k in range(CELLS_A_DAY, len(cells)):
        if np.isnan(cells[k]):
            cells[k] = cells[k - CELLS_A_DAY]
    return np.asarray(cells)


def filled(cells: FloatColumn) -> FloatColumn | None:
    """Unknown cells take the line between their known neighbours; None where nothing is known."""
    known = ~np.isnan(cells)
    if not known.any():
        return None
    at = np.arange(len(cells))
    return np.asarray(np.interp(at, at[known], cells[known]))
