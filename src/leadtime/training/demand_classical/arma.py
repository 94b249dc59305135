"""Minutes of history → coefficients of ARIMA(p, 1, q) by two least squares (Hannan and Rissanen 1982).

A long autoregression of the changes gives errors; the changes are then explained by their own past and those errors.
Not a likelihood: what is wanted is a recursion that forecasts ten minutes well, and candidates are judged by that
anyway. It takes a millisecond where a likelihood takes a hundred.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from leadtime.forecast.arima import Arima, pulled_in
from leadtime.forecast.model import DemandModel, FloatColumn, TooShort
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted
from leadtime.training.demand_classical.choice import Grid, choose

ORDERS = ((0, 1), (1, 1), (2, 1), (3, 2), (5, 0), (10, 0))
WINDOWS_MIN = (360, 1440, 7 * 1440)  # a quarter of a day: the "short window" of the textbook; a day; a week
LONG_AR = 20
MOST_ROOT = 0.98  # a change is worth half after 34 minutes at most
CLIP_SD = 6.0  # changes beyond six robust deviations are outages and faults: one would decide the fit


@dataclass(frozen=True, slots=True, kw_only=True)
class ArimaTrainee:
    """Tries ``ORDERS`` on the newest ``WINDOWS_MIN`` of a history, and smoothing with three constants."""

    name: str = "arima"
    horizons_min: tuple[int, ...] = (10, 40)

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """See Trainee. Coefficients come from before the part they are judged on."""
        del seed
        smoothing = [Arima(ma=(-keep,)) for keep in (0.2, 0.5, 0.8)]
        grid = Grid(candidates=tuple(smoothing), warm_min=120, horizons_min=self.horizons_min)
        before = history.values[: int(0.6 * len(history.values))]
        candidates = (*smoothing, *fitted(before))
        return choose(candidates, history, grid, budget_s=budget_s, progress=progress)


def fitted(values: FloatColumn) -> Iterator[Arima]:
    """One model a window and order, where the window has enough neighbours without gaps."""
    for minutes in WINDOWS_MIN:
        changes = clipped(np.diff(values[-minutes - 1 :]))
        if np.count_nonzero(~np.isnan(changes)) < minutes // 2:
            continue
        for p, q in ORDERS:
            found = hannan_rissanen(changes, p, q)
            if found is not None:
                yield found


def clipped(changes: FloatColumn) -> FloatColumn:
    """Changes held within ``CLIP_SD`` robust deviations of their median; NaN stays."""
    known = changes[~np.isnan(changes)]
    if not known.size:
        return changes
    middle = np.median(known)
    spread = 1.4826 * np.median(np.abs(known - middle)) or np.std(known)
    return np.asarray(np.clip(changes, middle - CLIP_SD * spread, middle + CLIP_SD * spread))


def hannan_rissanen(changes: FloatColumn, p: int, q: int) -> Arima | None:
    """ARIMA(p, 1, q) of ``changes`` (NaN: unknown), pulled inside the unit circle; None where too little is known."""
    errors = np.zeros_like(changes)
    if q:
        ar = _regressed(changes, _lagged(changes, LONG_AR))
        if ar is None:
            return None
        errors = changes - _lagged(changes, LONG_AR) @ ar
    both = _regressed(changes, np.hstack((_lagged(changes, p), _lagged(errors, q))))
    if both is None:
        return None
    ar_part = pulled_in(tuple(float(c) for c in both[:p]), MOST_ROOT)
    ma_part = pulled_in(tuple(-float(c) for c in both[p:]), MOST_ROOT)  # 1 + Σ ma: the same rule with the other sign
    return Arima(ar=ar_part, ma=tuple(-c for c in ma_part))


def _lagged(values: FloatColumn, count: int) -> FloatColumn:
    """(n, count): column i holds the value i + 1 steps before; NaN before the first."""
    columns = np.full((len(values), count), np.nan)
    for i in range(count):
        columns[i + 1 :, i] = values[: -i - 1]
    return columns


def _regressed(target: FloatColumn, on: FloatColumn) -> FloatColumn | None:
    """Least squares over the rows without gaps; None with fewer than ten rows a column, or when nothing changes."""
    known = ~np.isnan(target) & ~np.isnan(on).any(axis=1)
    if known.sum() < 10 * max(1, on.shape[1]) or not np.any(target[known]):
        return None
    return np.asarray(np.linalg.lstsq(on[known], target[known], rcond=None)[0])
