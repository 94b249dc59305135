"""Demand as replica counts → Holt-Winters on them; cells of days → the last period repeated: two open peers' methods.

``holt_winters_replicas``: predictive-horizontal-pod-autoscaler. Replicas wanted are counted (rounded up), additive
Holt-Winters runs over the stored seasons with gains set by hand (its documentation's 0.9, 0.9, 0.9 and four seasons,
here of a day), and what it says is turned back into demand.
``fft_last_period``: gocrane/crane's DSP. A period of exactly a day or a week is accepted where the autocorrelation has
its peak there; outliers beyond the 0.1 and 99.9 percentile are cut; the last period, cleared of high frequencies by a
Fourier transform, is repeated; of several filters the one wins that erred least on the last period, under-forecast
counting more. No level: what was yesterday at this time is said, whatever today is like.
Both were re-made from their documentation; no code was taken. Both work on five-minute means here.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from leadtime.forecast.day_cells import CELLS_A_DAY
from leadtime.forecast.model import FloatColumn
from leadtime.training.backtest.trainee import MinuteHistory, Note
from leadtime.training.rivals.cells import OfCells

TARGET_RATIO = 0.70
PODS_AT_PEAK = 100
CUTS_CELLS = (1, 3, 12, 24)  # shortest wave kept: 5 min (all), 15 min, 1 h, 2 h
UNDER_WEIGHT = 2.0
PERIODIC_CORRELATION = 0.3  # below it a series has no period to repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHoltWinters(OfCells):
    """Additive Holt-Winters over counts of replicas. ``per_pod``: demand a replica takes at the target."""

    name: str = "holt_winters_replicas"
    window_days: int = 4
    needed_days: int = 2
    stride: int = 7
    per_pod: float = 1.0
    alpha: float = 0.9
    beta: float = 0.9
    gamma: float = 0.9

    def following(self, window: FloatColumn, cell: int, count: int) -> FloatColumn:
        """See OfCells."""
        del cell
        replicas = np.ceil(window / self.per_pod)
        day = CELLS_A_DAY
        level, second = float(replicas[:day].mean()), float(replicas[day : 2 * day].mean())
        trend = (second - level) / day
        season = (replicas[:day] - level).tolist()
        for i, value in enumerate(replicas[day:].tolist(), start=day):
            before, place = level, i % day
            level = self.alpha * (value - season[place]) + (1.0 - self.alpha) * (level + trend)
            trend = self.beta * (level - before) + (1.0 - self.beta) * trend
            season[place] = self.gamma * (value - level) + (1.0 - self.gamma) * season[place]
        ahead = np.arange(count)
        said = level + (1.0 + ahead) * trend + np.array(season)[(len(replicas) + ahead) % day]
        return np.asarray(np.maximum(0.0, np.ceil(said)) * self.per_pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTrainee:
    """The capacity of a pod is what makes the history's peak ``PODS_AT_PEAK`` pods, as the backtest assumes."""

    name: str = "holt_winters_replicas"

    def fit(self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note) -> ReplicaHoltWinters:
        """See Trainee. Nothing is fitted but the unit: the method's gains are set by hand."""
        del seed, budget_s
        progress(1.0)
        known = history.values[~np.isnan(history.values)]
        peak = float(known.max()) if known.size else 0.0
        return ReplicaHoltWinters(per_pod=TARGET_RATIO * peak / PODS_AT_PEAK if peak > 0 else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FftLastPeriod(OfCells):
    """The last day or week repeated, its high frequencies cut."""

    name: str = "fft_last_period"
    window_days: int = 15
    needed_days: int = 2
    stride: int = 7

    def following(self, window: FloatColumn, cell: int, count: int) -> FloatColumn:
        """See OfCells. Without a period the last day's mean stays, as no forecast is issued then."""
        del cell
        low, high = np.quantile(window, (0.001, 0.999))
        cut = np.clip(window, low, high)
        period = found_period(cut)
        if period is None:
            return np.full(count, cut[-CELLS_A_DAY:].mean())
        last = cut[-period:]
        if len(cut) >= 2 * period:
            before = cut[-2 * period : -period]
            kept = min(CUTS_CELLS, key=lambda shortest: _asymmetric(last - low_pass(before, shortest)))
        else:
            kept = CUTS_CELLS[0]
        repeated = low_pass(last, kept)
        return np.asarray(repeated[np.arange(count) % period])


def found_period(cells: FloatColumn) -> int | None:
    """A day or a week in cells, whichever correlates more with itself; None where neither does."""
    best, most = None, PERIODIC_CORRELATION
    for period in (CELLS_A_DAY, 7 * CELLS_A_DAY):
        if len(cells) < 2 * period:
            continue
        a, b = cells[period:] - cells[period:].mean(), cells[:-period] - cells[:-period].mean()
        size = float(np.sqrt((a * a).sum() * (b * b).sum()))
        if size > 0 and float((a * b).sum()) / size > most:
            best, most = period, float((a * b).sum()) / size
    return best


def low_pass(period: FloatColumn, shortest_cells: int) -> FloatColumn:
    """The period without waves shorter than ``shortest_cells``."""
    spectrum = np.fft.rfft(period)
    spectrum[ceil(len(period) / shortest_cells) :] = 0.0
    return np.asarray(np.fft.irfft(spectrum, n=len(period)))


def _asymmetric(missed: FloatColumn) -> float:
    """Mean error in which under-forecast (> 0) weighs more."""
    return float(np.where(missed > 0, UNDER_WEIGHT * missed, -missed).mean())
