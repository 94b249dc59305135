"""Earlier days at this local time → what usually comes next, relative to today's level.

``seasonal_ratio``: today's level × the usual change from here. ``usual_envelope``: the same, but as bounds that
allow each day's course to come a quarter of an hour earlier or later, and that believe what at least two days did:
so a surge that recurs about six is expected in time, one odd day moves nothing, one skipped day hides nothing.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leadtime.forecast import day_cells
from leadtime.forecast.day_cells import CELL_MINUTES, CELL_S, CELLS_A_DAY, DayCells, DayRows
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step, point

HOUR_CELLS = 12
STEADY_CELLS = 24  # two hours: their median does not move when a surge of 40 minutes passes
NEEDED_DAYS = 2  # a season must have been seen twice
# A level is never compared below this share of the usual demand: at night ten requests against five are no doubling.
LEVEL_FLOOR_RATIO = 0.05
# The last hours may say that today is higher or lower than the last 24 hours say, but by a quarter at most: an outage
# or a surge at this time on an earlier day would otherwise multiply today. Loss of the envelope's upper bound, % of
# mean demand, unlimited → 1.5 → 1.25 → 1.15: mongo-01 2.50 2.47 1.95 1.68, ingress-01 1.41 0.89 0.66 0.56, m-mid
# 8.34 3.95 3.21 3.08, World Cup 3.35 3.25 3.35 3.51 (last value: 4.09, 1.10, 4.69, 3.68).
MOST_RATIO = 1.25
SPARE_AHEAD = 24  # cells beyond the path: the widest tolerance, two hours


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnDays:
    """What both models share: the memory of days, by local time in ``zone``."""

    zone: str = "UTC"
    max_days: int = 28
    memory: str = "day_cells"

    def start(self, step_s: int = MINUTE_S) -> DayCells:
        """See DemandModel."""
        check_step("seasonal", step_s)
        return day_cells.empty()

    def update(self, state: DayCells, at_s: int, value: float | None) -> DayCells:
        """See DemandModel."""
        return day_cells.add(state, at_s, value, self.max_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonalRatio(_OnDays):
    """Last hour's level × the median over earlier days of (demand then ÷ level then)."""

    name: str = "seasonal_ratio"

    def predict(self, state: DayCells, steps: int) -> Band | TooShort:
        """See DemandModel."""
        if len(state.cells) < NEEDED_DAYS * CELLS_A_DAY:
            return _too_short(self.name, state)
        usual = _usual_course(_Closed(state=state), cells_ahead(steps), self.max_days, self.zone)
        return _too_short(self.name, state) if usual is None else point(to_minutes(usual, state, steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualEnvelope(_OnDays):
    """Bounds that hold what earlier days did within ± ``tolerance_s``; see the module."""

    name: str = "usual_envelope"
    tolerance_s: int = 900
    level_ratio: float = 0.90

    def predict(self, state: DayCells, steps: int) -> Band | TooShort:
        """See DemandModel."""
        if len(state.cells) < NEEDED_DAYS * CELLS_A_DAY:
            return _too_short(self.name, state)
        found = _usual_bounds(_Closed(state=state), cells_ahead(steps), self)
        if found is None:
            return _too_short(self.name, state)
        usual = Band(
            expected=to_minutes(found.expected, state, steps),
            lower=to_minutes(found.lower, state, steps),
            upper=to_minutes(found.upper, state, steps),
        )
        return held(usual, state.latest, self.tolerance_s / MINUTE_S)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Closed:
    """The closed cells of a state, as a key: equal for the minutes of one open cell, whose states share the array."""

    state: DayCells

    def __hash__(self) -> int:
        return id(self.state.cells)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closed) and other.state.cells is self.state.cells


@lru_cache(maxsize=8)
def _usual_course(closed: _Closed, ahead: int, max_days: int, zone: str) -> FloatColumn | None:
    """The open cell and those after it as earlier days had them, on today's level; None where days are lacking."""
    laid, day = beside_today(closed, ahead, max_days, zone)
    scale = near(mean_ratio(laid, HOUR_CELLS), day)
    ranked = Ranked.of(laid.rows[:, CELLS_A_DAY : CELLS_A_DAY + ahead] * scale[:, None])
    return None if ranked.fewest < NEEDED_DAYS else ranked.median()


@lru_cache(maxsize=8)
def _usual_bounds(closed: _Closed, ahead: int, model: UsualEnvelope) -> Band | None:
    """The same as a band of cells that allows the course to come earlier or later by the model's tolerance."""
    reach = -(-model.tolerance_s // CELL_S)
    laid, day = beside_today(closed, ahead, model.max_days, model.zone)
    scale = near(median_ratio(laid, STEADY_CELLS), day)
    shape = laid.rows[:, CELLS_A_DAY - reach : CELLS_A_DAY + ahead + reach] * scale[:, None]
    ranked = Ranked.of(shape[:, reach : reach + ahead])
    if ranked.fewest < NEEDED_DAYS:
        return None
    around = np.lib.stride_tricks.sliding_window_view(shape, 2 * reach + 1, axis=1)
    upper = Ranked.of(np.fmax.reduce(around, axis=2)).high(model.level_ratio)
    lower = Ranked.of(-np.fmin.reduce(around, axis=2)).high(model.level_ratio)
    return Band(expected=ranked.median(), lower=-lower, upper=upper)


def held(usual: Band, latest: tuple[float, ...], hold_min: float) -> Band:
    """What lies outside the usual band now stays so for ``hold_min`` minutes, then fades by half each ``hold_min``.

    Too high raises expected and upper, too low lowers expected and lower: a drop is no reason to expect less at most.
    """
    if not latest:
        return usual
    now = sum(latest) / len(latest)
    over, under = max(0.0, now - float(usual.upper[0])), max(0.0, float(usual.lower[0]) - now)
    ahead = np.arange(len(usual.expected))
    fade = 0.5 ** np.maximum(0.0, ahead / max(hold_min, 1.0) - 1.0)
    return Band(
        expected=usual.expected + (over - under) * fade,
        lower=usual.lower - under * fade,
        upper=usual.upper + over * fade,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """Columns sorted upwards with gaps (NaN) last, so that order statistics skip them."""

    values: FloatColumn
    counts: FloatColumn

    @classmethod
    def of(cls, rows: FloatColumn) -> "Ranked":
        """Sort ``rows`` (days × columns) within each column."""
        return cls(values=np.sort(rows, axis=0), counts=rows.shape[0] - np.isnan(rows).sum(axis=0, dtype=np.float64))

    @property
    def fewest(self) -> int:
        """Known days in the poorest column."""
        return int(self.counts.min()) if self.counts.size else 0

    def median(self) -> FloatColumn:
        """Median of the known days; NaN where none is known."""
        low = np.maximum(self.counts - 1, 0) // 2
        return (self._at(low) + self._at(np.maximum(self.counts // 2, low))) / 2.0

    def high(self, quantile: float) -> FloatColumn:
        """The ``quantile`` order statistic, but never the highest day alone: a second one must have been as high."""
        index = np.minimum(self.counts - 2, np.floor(quantile * (self.counts - 1)))
        return self._at(np.maximum(index, 0))

    def _at(self, index: FloatColumn) -> FloatColumn:
        return np.asarray(self.values[index.astype(np.intp), np.arange(self.values.shape[1])])


def mean_ratio(laid: DayRows, back: int) -> FloatColumn:
    """Per earlier day: today's mean over the last ``back`` cells ÷ that day's over the same, on cells known in both.

    NaN where fewer than half of the cells are known in both.
    """
    then, now = laid.rows[:, CELLS_A_DAY - back : CELLS_A_DAY], laid.today[-back:]
    both = ~(np.isnan(then) | np.isnan(now))
    count = both.sum(axis=1)
    known = np.maximum(count, 1)
    now_mean = np.where(both, now, 0.0).sum(axis=1) / known
    then_mean = np.where(both, then, 0.0).sum(axis=1) / known
    return np.where(2 * count >= back, _ratio(now_mean, then_mean, laid.mean), np.nan)


def median_ratio(laid: DayRows, back: int) -> FloatColumn:
    """Per earlier day: today's median over the last ``back`` cells ÷ that day's; NaN without a known cell."""
    then = Ranked.of(laid.rows[:, CELLS_A_DAY - back : CELLS_A_DAY].T).median()
    now = Ranked.of(laid.today[-back:, None]).median()
    return _ratio(now, then, laid.mean)


def near(lately: FloatColumn, day: FloatColumn) -> FloatColumn:
    """The factor per earlier day that brings it to today: ``lately``, kept near the ratio of whole days."""
    return np.where(np.isnan(day), lately, np.clip(lately, day / MOST_RATIO, day * MOST_RATIO))


@lru_cache(maxsize=8)
def beside_today(closed: _Closed, ahead: int, max_days: int, zone: str) -> tuple[DayRows, FloatColumn]:
    """Earlier days beside today, and today's last 24 hours ÷ each day's; kept, because both models ask in one tick."""
    laid = day_cells.day_rows(closed.state, back=CELLS_A_DAY, ahead=ahead + SPARE_AHEAD, max_days=max_days, zone=zone)
    return laid, mean_ratio(laid, CELLS_A_DAY)


def _ratio(now: FloatColumn, then: FloatColumn, usual: float) -> FloatColumn:
    """``now`` ÷ ``then``, drawn towards 1 where both are far below the usual demand; 1 when all is 0."""
    floor = LEVEL_FLOOR_RATIO * usual if usual > 0 else 1.0
    return np.asarray((now + floor) / (then + floor))


def cells_ahead(steps: int) -> int:
    """Cells that cover ``steps`` minutes from anywhere within the open cell."""
    return -(-(steps + CELL_MINUTES - 1) // CELL_MINUTES)


def to_minutes(cells: FloatColumn, state: DayCells, steps: int) -> FloatColumn:
    """Each minute takes its cell's value; cells[0] is the open cell, minute 0 follows the newest bucket."""
    into = (state.next_s % CELL_S) // MINUTE_S
    return np.asarray(cells[(into + np.arange(steps)) // CELL_MINUTES])


def _too_short(name: str, state: DayCells) -> TooShort:
    return TooShort(
        reason=f"{name} needs {NEEDED_DAYS} earlier days at this time of day",
        needed_s=NEEDED_DAYS * 86_400 + HOUR_CELLS * CELL_S,
        have_s=len(state.cells) * CELL_S,
    )
