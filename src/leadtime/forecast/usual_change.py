"""Earlier days that resemble today → last value × the change that usually follows at this time.

Which days: those of the same weekday where two are known, else of the same kind (working day, Saturday, Sunday or
holiday), else all; days with declared events are left out. A holiday is forecast from Sundays and earlier holidays.
Where days disagree the change is drawn towards none, so that on a series without a season this is last value.
"""

from dataclasses import dataclass, field

import numpy as np

from leadtime.forecast import day_cells, days
from leadtime.forecast.day_cells import CELL_MINUTES, CELL_S, CELLS_A_DAY, DayCells
from leadtime.forecast.days import BoolColumn, DayRules
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step, point
from leadtime.forecast.seasonal import HOUR_CELLS, LEVEL_FLOOR_RATIO, NEEDED_DAYS, Ranked

CALMER_RATIO = 0.97
BACK_CELLS = 24  # two hours: a gap as long as that leaves a last value to start from
# Variance of a median of n ÷ variance of one, for normal errors; and the MAD's factor to a standard deviation.
MEDIAN_VARIANCE, MAD_TO_SD = 1.571, 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualChange:
    """See the module. The parameters say how noisy the series is; ``training/demand_classical`` fits them.

    ``level_minutes``: the last value is the mean of 1 to 3 minutes, or of whole cells from 5 minutes on (to 60); 0: as
    long as did best over the last day, so that a series that grows, and with it grows calm, is followed at once.
    ``smooth_cells`` (odd): earlier days are read as a centred mean over that many cells.
    ``doubt``: how many times the days' disagreement counts when the change is drawn towards none.
    """

    rules: DayRules = field(default_factory=DayRules)
    max_days: int = 28
    level_minutes: int = 0
    smooth_cells: int = 1
    doubt: float = 1.0
    name: str = "usual_change"
    memory: str = "day_cells"

    def start(self, step_s: int = MINUTE_S) -> DayCells:
        """See DemandModel."""
        check_step(self.name, step_s)
        return day_cells.empty()

    def update(self, state: DayCells, at_s: int, value: float | None) -> DayCells:
        """See DemandModel."""
        return day_cells.add(state, at_s, value, self.max_days)

    def predict(self, state: DayCells, steps: int) -> Band | TooShort:
        """See DemandModel. Refuses before ``NEEDED_DAYS`` earlier days are known at the times asked for."""
        if len(state.cells) < NEEDED_DAYS * CELLS_A_DAY:
            return self._too_short(state)
        ahead = -(-(steps + CELL_MINUTES) // CELL_MINUTES) + 2 + self.smooth_cells // 2
        laid = day_cells.day_rows(state, back=BACK_CELLS, ahead=ahead, max_days=self.max_days, zone=self.rules.zone)
        rows = laid.rows[_alike(self.rules, state.next_s, steps * MINUTE_S, laid.rows)]
        into = (state.next_s % CELL_S) / MINUTE_S
        around = between(smooth(rows, self.smooth_cells), _cell_at(into + 0.5 + np.arange(steps, dtype=np.float64)))
        now, then = self._level(state, laid.today, rows, into)
        floor = LEVEL_FLOOR_RATIO * laid.mean if laid.mean > 0 else 1.0
        change = usual(np.log((around + floor) / (then[:, None] + floor)), self.doubt)
        if change is None:
            return self._too_short(state)
        return point(np.maximum(0.0, (now + floor) * np.exp(change) - floor))

    def _level(self, state: DayCells, today: FloatColumn, rows: FloatColumn, into: float) -> tuple[float, FloatColumn]:
        """Today's last value, and what earlier days (days,) had at the time it is about; the newest cell after a gap.

        Where two hours are gaps there is no last value: the days' own median stands for it.
        """
        minutes = self.level_minutes or calm_minutes(state.cells[-CELLS_A_DAY:])
        cells = minutes // CELL_MINUTES
        known = ~np.isnan(today)
        if cells and known[-cells:].any():
            both = rows[:, BACK_CELLS - cells : BACK_CELLS]
            return float(today[-cells:][known[-cells:]].mean()), mean_known(both)
        smoothed = smooth(rows, self.smooth_cells)
        if state.latest:
            newest = state.latest[-minutes:]
            return sum(newest) / len(newest), between(smoothed, _cell_at(np.array([into - len(newest) / 2.0])))[:, 0]
        if known.any():
            newest_cell = int(np.flatnonzero(known)[-1])
            return float(today[newest_cell]), smoothed[:, newest_cell]
        then = between(smoothed, _cell_at(np.array([into])))[:, 0]
        return float(np.median(then[~np.isnan(then)])) if (~np.isnan(then)).any() else 0.0, then

    def _too_short(self, state: DayCells) -> TooShort:
        return TooShort(
            reason=f"{self.name} needs {NEEDED_DAYS} earlier days at this time of day",
            needed_s=NEEDED_DAYS * 86_400 + CELL_S,
            have_s=min(len(state.cells) * CELL_S, NEEDED_DAYS * 86_400),
        )


def calm_minutes(cells: FloatColumn) -> int:
    """A day's cells → the minutes a level is best measured over, by what would have erred least ten minutes ahead.

    3 (one cell stands for it here), 10, 30 or 60; a longer one has to be better by ``CALMER_RATIO``.
    """
    known = cells[~np.isnan(cells)]
    best, least = 3, np.inf
    total = np.concatenate(((0.0,), np.cumsum(known)))
    for width, minutes in ((1, 3), (2, 10), (6, 30), (12, 60)):
        said = (total[width:-2] - total[: -width - 2]) / width
        if len(said) < 2 * HOUR_CELLS:
            break
        error = float(np.abs(known[width + 1 :] - said).sum()) / len(said)
        if error < CALMER_RATIO * least:
            best, least = minutes, error
    return best


def _alike(rules: DayRules, now_s: int, reach_s: int, rows: FloatColumn) -> BoolColumn:
    """The days to believe: the narrowest group of which two are known in most of the cells asked for."""
    known: BoolColumn = 2 * (~np.isnan(rows)).sum(axis=1) >= rows.shape[1]
    alike = days.resembling(rules, now_s, reach_s, len(rows))
    for group in (alike.same_weekday, alike.same_kind, alike.usable):
        if int((group & known).sum()) >= NEEDED_DAYS:
            return group & known
    return known


def _cell_at(minute: FloatColumn) -> FloatColumn:
    """Minutes after the open cell's start → positions among the columns, whose values stand for their middles."""
    return minute / CELL_MINUTES - 0.5 + BACK_CELLS


def smooth(rows: FloatColumn, width: int) -> FloatColumn:
    """Centred mean over ``width`` (odd) columns of what is known of them; the same shape. At the ends fewer."""
    if width == 1:
        return rows
    known = ~np.isnan(rows)
    pad = ((0, 0), (width // 2 + 1, width // 2))
    total = np.cumsum(np.pad(np.where(known, rows, 0.0), pad), axis=1)
    count = np.cumsum(np.pad(known.astype(np.float64), pad), axis=1)
    sums, counts = total[:, width:] - total[:, :-width], count[:, width:] - count[:, :-width]
    return np.where(counts > 0.5, np.maximum(sums, 0.0) / np.maximum(counts, 1.0), np.nan)


def mean_known(rows: FloatColumn) -> FloatColumn:
    """Mean over each row's known columns; NaN where fewer than half are known."""
    known = ~np.isnan(rows)
    count = known.sum(axis=1)
    mean = np.where(known, rows, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(2 * count >= rows.shape[1], mean, np.nan)


def between(rows: FloatColumn, at: FloatColumn) -> FloatColumn:
    """(days, columns), positions (n,) → (days, n) on the line between columns; the known one where the other is NaN."""
    low = np.clip(np.floor(at).astype(np.intp), 0, rows.shape[1] - 2)
    share = np.clip(at - low, 0.0, 1.0)
    left, right = rows[:, low], rows[:, low + 1]
    left, right = np.where(np.isnan(left), right, left), np.where(np.isnan(right), left, right)
    return np.asarray(left * (1.0 - share) + right * share)


def usual(change: FloatColumn, doubt: float) -> FloatColumn | None:
    """(days, n) log changes → their median, drawn towards 0 where days disagree; None without two days anywhere.

    The weight is m² ÷ (m² + ``doubt`` · variance of the median): one for a change all days agree on, nought for one
    that is as likely up as down. A minute that fewer than two days know changes as its neighbours do.
    """
    ranked = Ranked.of(change)
    if not ranked.counts.size or ranked.counts.max() < NEEDED_DAYS:
        return None
    median = ranked.median()
    spread = MAD_TO_SD * Ranked.of(np.abs(change - median)).median()
    variance = doubt * MEDIAN_VARIANCE * spread**2 / np.maximum(ranked.counts, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = median * np.where(variance > 0.0, median**2 / (median**2 + variance), 1.0)
    known = ranked.counts >= NEEDED_DAYS
    at = np.arange(len(drawn))
    return np.asarray(np.interp(at, at[known], drawn[known]))
