"""Forecasts and what came → calibrated bounds and quantiles around any expected value, one origin at a time.

A miss is (actual − expected) in units of a scale known when the forecast was made. A window of recent misses is kept in
order; bounds are its quantiles at miss rates that are moved until the stated share is met. A miss is known ``ahead``
origins after its forecast, never earlier. Sources: split conformal prediction on a window (Lei et al. 2018), adaptive
conformal inference (Gibbs and Candès 2021).
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadtime.forecast.model import FloatColumn

WINDOW = 1000
FEWEST = 20
UNSURE_RATIO = 0.25
ADAPT_RATE = 0.01
QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """One entry an origin, NaN where nothing was forecast; ``quantiles`` is (levels, origins)."""

    lower: FloatColumn
    upper: FloatColumn
    quantiles: FloatColumn


class Calibration:
    """The state of one model at one horizon."""

    __slots__ = ("_aim", "_misses", "_ordered", "_rate_lower", "_rate_upper")

    def __init__(self, level_ratio: float) -> None:
        self._aim = (1.0 - level_ratio) / 2.0
        self._misses: deque[float] = deque()
        self._ordered: list[float] = []
        self._rate_lower = self._rate_upper = self._aim

    def learn(self, miss: float, *, below: bool, above: bool) -> None:
        """Take a miss, in units of its scale, and whether the actual lay below or above the bounds said then."""
        insort(self._ordered, miss)
        self._misses.append(miss)
        if len(self._misses) > WINDOW:
            del self._ordered[bisect_left(self._ordered, self._misses.popleft())]
        self._rate_lower = self._adapted(self._rate_lower, missed=below)
        self._rate_upper = self._adapted(self._rate_upper, missed=above)

    def _adapted(self, rate: float, *, missed: bool) -> float:
        return min(0.5, max(self._aim / 10.0, rate + ADAPT_RATE * (self._aim - missed)))

    def bounds(self) -> tuple[float, float]:
        """Lower and upper, in units of the scale, around the expected value."""
        if len(self._ordered) < FEWEST:
            return -UNSURE_RATIO, UNSURE_RATIO
        return self.at(self._rate_lower, -1), self.at(1.0 - self._rate_upper, 1)

    def at(self, level: float, outwards: int = 0) -> float:
        """The ``level`` quantile of the misses; ``outwards`` ±1 rounds up or down, 0 takes the nearest."""
        place = level * (len(self._ordered) + 1) - 1
        index = int(np.ceil(place)) if outwards > 0 else int(np.floor(place)) if outwards < 0 else round(place)
        return self._ordered[min(max(index, 0), len(self._ordered) - 1)]


def calibrated(  # the backtest's door: a whole series at once
    expected: FloatColumn, truth: FloatColumn, ahead: int, level_ratio: float, levels: Sequence[float] = QUANTILES
) -> Bounds:
    """Bounds and quantiles around ``expected[i]``, which speaks of ``truth[i]``, known at origin i + ``ahead``."""
    count = len(expected)
    lower, upper, quantiles = np.full(count, np.nan), np.full(count, np.nan), np.full((len(levels), count), np.nan)
    state = Calibration(level_ratio)
    floor = max(1e-9, 0.05 * float(np.nanmean(np.abs(expected)))) if np.isfinite(expected).any() else 1.0
    said, came = expected.tolist(), truth.tolist()
    for i in range(count):
        if i >= ahead and said[i - ahead] == said[i - ahead] and came[i - ahead] == came[i - ahead]:
            j = i - ahead
            scale = max(said[j], floor)
            state.learn((came[j] - said[j]) / scale, below=came[j] < lower[j], above=came[j] > upper[j])
        if said[i] != said[i]:
            continue
        scale = max(said[i], floor)
        low, high = state.bounds()
        lower[i], upper[i] = max(0.0, said[i] + low * scale), max(0.0, said[i] + high * scale)
        if len(state._ordered) >= FEWEST:
            quantiles[:, i] = [max(0.0, said[i] + state.at(level) * scale) for level in levels]
    return Bounds(lower=lower, upper=upper, quantiles=quantiles)
