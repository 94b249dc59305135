"""Five-minute means one by one → level, damped trend and 288 factors of a day, by multiplicative Holt-Winters.

Sources: Winters 1960; damped trend, Gardner and McKenzie 1985. Factors multiply, because a service twice as busy has
twice the day; what is added to both sides of the ratio keeps a night of zeros from becoming a factor of infinity.
What the last minutes say beyond the last cell moves the level at once, with the level's own gain.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.day_cells import CELL_MINUTES, CELL_S, CELLS_A_DAY
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step, point

NEEDED_CELLS = 2 * CELLS_A_DAY  # the first day sets the factors, the second one shows them once
FLOOR_RATIO = 0.05  # as in forecast/seasonal.py: far below the usual demand ratios mean nothing
MOST_FACTOR = 100.0  # a factor beyond it is a fault in the data; it would stay for days


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HoltWintersState:
    """``season`` (288,) by cell of the UTC day; before the first day is over it holds the day's means (NaN: none)."""

    season: FloatColumn
    level: float = 0.0
    trend: float = 0.0
    mean: float = 0.0  # fading mean of a week of cells, known ones
    cells: int = 0  # closed cells since the first value, gaps too
    known: int = 0
    cell: int = -1  # epoch_s // 300 of the open cell; −1 before the first value
    open_sum: float = 0.0
    open_count: int = 0
    next_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HoltWinters:
    """See the module. Gains of level, trend and season per cell, and the trend's damping; fitted offline."""

    alpha: float = 0.5
    beta: float = 0.0
    gamma: float = 0.1
    phi: float = 0.9
    name: str = "holt_winters"

    @property
    def memory(self) -> str:
        """See DemandModel: the state depends on the gains."""
        return f"holt_winters {self.alpha:g} {self.beta:g} {self.gamma:g} {self.phi:g}"

    def start(self, step_s: int = MINUTE_S) -> HoltWintersState:
        """See DemandModel."""
        check_step(self.name, step_s)
        return HoltWintersState(season=np.full(CELLS_A_DAY, np.nan))

    def update(self, state: HoltWintersState, at_s: int, value: float | None) -> HoltWintersState:
        """See DemandModel. A cell without a value moves the level along its trend and leaves its factor."""
        cell = at_s // CELL_S
        if state.cell < 0:
            if value is None:
                return state
            state = _opened(state, cell)
        missed = min(cell - state.cell, NEEDED_CELLS)
        for _ in range(missed):
            state = self._closed(state)
        if missed and state.cell != cell:
            state = _opened(state, cell)
        total = state.open_sum if value is None else state.open_sum + value
        return HoltWintersState(
            season=state.season, level=state.level, trend=state.trend, mean=state.mean, cells=state.cells,
            known=state.known, cell=state.cell, open_sum=total, open_count=state.open_count + (value is not None),
            next_s=at_s + MINUTE_S,
        )  # fmt: skip

    def _closed(self, state: HoltWintersState) -> HoltWintersState:
        """The state after its open cell, with the next one open."""
        place, cells = state.cell % CELLS_A_DAY, state.cells + 1
        value = state.open_sum / state.open_count if state.open_count else None
        known = state.known + (value is not None)
        mean = state.mean if value is None else state.mean + (value - state.mean) / min(known, 7 * CELLS_A_DAY)
        season, level, trend = state.season, state.level, state.trend
        if state.cells < CELLS_A_DAY:  # the first day is only kept
            if value is not None:
                season = _with(season, place, value)
            if cells == CELLS_A_DAY:
                season, level = _factors(season, mean), mean
        else:
            factor, floor, carried = float(season[place]), FLOOR_RATIO * mean, level + self.phi * trend
            level, trend = carried, self.phi * trend
            if value is not None:
                off = (value + floor) / factor - floor - carried if factor > 0 else 0.0
                level, trend = carried + self.alpha * off, trend + self.alpha * self.beta * off
                told = (value + floor) / (max(level, 0.0) + floor) if floor > 0 else 1.0
                season = _with(season, place, min(MOST_FACTOR, factor + self.gamma * (told - factor)))
        return HoltWintersState(
            season=season, level=level, trend=trend, mean=mean, cells=cells, known=known, cell=state.cell + 1,
            next_s=state.next_s,
        )  # fmt: skip

    def predict(self, state: HoltWintersState, steps: int) -> Band | TooShort:
        """See DemandModel. Refuses before ``NEEDED_CELLS`` cells have passed and half of them are known."""
        if state.known < NEEDED_CELLS // 2 or state.cells < NEEDED_CELLS:
            return TooShort(
                reason=f"{self.name} needs two days, at least half of their minutes known",
                needed_s=NEEDED_CELLS * CELL_S,
                have_s=min(NEEDED_CELLS - 1, state.known) * CELL_S,
            )
        floor = FLOOR_RATIO * state.mean
        open_s = state.next_s - state.cell * CELL_S
        level = state.level + self.phi * state.trend
        if state.open_count:
            factor = float(state.season[state.cell % CELLS_A_DAY])
            heard = (state.open_sum / state.open_count + floor) / factor - floor
            level += self.alpha * state.open_count / CELL_MINUTES * (heard - level)
        minute = open_s / MINUTE_S + 0.5 + np.arange(steps)
        ahead = minute / CELL_MINUTES - 0.5  # in cells from the open one's middle
        trend = state.trend * self.phi * _damped_sum(self.phi, np.maximum(0.0, ahead))
        path = (level + trend + floor) * _factor_at(state.season, state.cell + ahead) - floor
        return point(np.maximum(0.0, path))


def _opened(state: HoltWintersState, cell: int) -> HoltWintersState:
    """The state with ``cell`` open and empty."""
    return HoltWintersState(
        season=state.season, level=state.level, trend=state.trend, mean=state.mean, cells=state.cells,
        known=state.known, cell=cell, next_s=state.next_s,
    )  # fmt: skip


def _with(season: FloatColumn, place: int, value: float) -> FloatColumn:
    """A copy with one element changed."""
    season = season.copy()
    season[place] = value
    return season


def _factors(first_day: FloatColumn, mean: float) -> FloatColumn:
    """The first day's means → factors around 1, smoothed over 25 minutes; a cell without a value has its neighbours'.

    One day's cells are noisy, and their noise would be said every day until the gains have forgotten it.
    """
    known = ~np.isnan(first_day)
    if mean <= 0 or not known.any():
        return np.ones(CELLS_A_DAY)
    at = np.arange(CELLS_A_DAY)
    whole = np.interp(at, at[known], first_day[known], period=CELLS_A_DAY)
    ring = np.concatenate((whole[-2:], whole, whole[:2]))
    smoothed = np.convolve(ring, np.full(5, 0.2), mode="valid")
    floor = FLOOR_RATIO * mean
    return np.asarray(np.minimum(MOST_FACTOR, (np.maximum(smoothed, 0.0) + floor) / (mean + floor)))


def _damped_sum(phi: float, cells: FloatColumn) -> FloatColumn:
    """φ + φ² + … over ``cells`` terms, also for parts of one."""
    return cells if phi >= 1.0 else phi * (1.0 - phi**cells) / (1.0 - phi)


def _factor_at(season: FloatColumn, cell: FloatColumn) -> FloatColumn:
    """Factors on the line between the middles of cells."""
    low = np.floor(cell)
    share, place = cell - low, low.astype(np.intp)
    return np.asarray(season[place % CELLS_A_DAY] * (1.0 - share) + season[(place + 1) % CELLS_A_DAY] * share)
