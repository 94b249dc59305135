"""A recorded series → how much of what comes in ten minutes the past tells at all: the share of variation explained.

Four plain forecasts, none of which is fitted: last value, the mean of the last five minutes, of the last hour, and the
mean of the same time (± 30 min) on the seven days before. The share is the square of the best one's correlation with
what came: 0 is pure chance. It asks for much less than a hit within ± 10 %: a series that is noisy in every minute but
has a level is told apart from one that has none.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.foresight import IntColumn, Recorded
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.selection import BLOCK_S

AHEAD_S = 600
HOUR_S, FIVE_MIN_S, DAY_S = 3600, 300, 86_400
DAYS_BACK = 7
DRAWS = 200
SEED = 20260302
LEAST_BLOCKS = 8  # two days
LEAST_BUCKETS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """``ratio`` (``lower`` … ``upper``, 90 % by redrawn blocks of six hours) by the best forecast, ``by`` its name.

    ``day_correlation``: of the hours' means with those a day before; None with less than two days.
    """

    ratio: float
    lower: float
    upper: float
    by: str
    ahead_s: int
    buckets: int
    day_correlation: float | None


def explained(series: Recorded, ahead_s: int = AHEAD_S) -> Explained | None:
    """The share explained ``ahead_s`` ahead (rounded up to a bucket); None with fewer than two days of blocks.

    A constant series is explained wholly: there is no variation that the past does not tell.
    """
    ahead = max(1, int(-(-ahead_s // series.step_s)))
    if len(series.values) <= ahead:
        return None
    truth = series.values[ahead:]
    forecasts = {name: column[:-ahead] for name, column in _forecasts(series, ahead).items()}
    block: IntColumn = (np.arange(len(truth), dtype=np.int64) * series.step_s) // BLOCK_S
    best: tuple[float, str] = (-1.0, "")
    for name, column in forecasts.items():
        known = ~np.isnan(truth) & ~np.isnan(column)
        if known.sum() >= LEAST_BUCKETS and len(np.unique(block[known])) >= LEAST_BLOCKS:
            best = max(best, (_share(_sums(column, truth, block)), name))
    if not best[1]:
        return None
    sums = _sums(forecasts[best[1]], truth, block)
    rng = np.random.default_rng(SEED)
    drawn = [_share(sums[:, rng.integers(0, sums.shape[1], sums.shape[1])]) for _ in range(DRAWS)]
    return Explained(
        ratio=best[0], lower=float(np.quantile(drawn, 0.05)), upper=float(np.quantile(drawn, 0.95)), by=best[1],
        ahead_s=ahead * series.step_s, buckets=int(sums[0].sum()), day_correlation=_by_day(series),
    )  # fmt: skip


def _forecasts(series: Recorded, ahead: int) -> dict[str, FloatColumn]:
    """By newest bucket: what each says of the bucket ``ahead`` later."""
    found = {
        "last value": series.values,
        "mean of 5 min": _trailing(series.values, max(1, FIVE_MIN_S // series.step_s)),
        "mean of the last hour": _trailing(series.values, max(1, HOUR_S // series.step_s)),
    }
    day = DAY_S // series.step_s
    half = max(0, HOUR_S // 2 // series.step_s)
    around = np.roll(_trailing(series.values, 2 * half + 1), -half)
    around[len(around) - half :] = np.nan
    shifted = [_later(around, day * back - ahead) for back in range(1, DAYS_BACK + 1) if day * back < len(around)]
    if shifted:
        rows = np.stack(shifted)
        known = ~np.isnan(rows)
        count = known.sum(axis=0)
        total = np.where(known, rows, 0.0).sum(axis=0)
        found["same time on the days before"] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found


def _later(values: FloatColumn, by: int) -> FloatColumn:
    """Each value ``by`` buckets later; NaN before the first."""
    moved = np.full(len(values), np.nan)
    moved[by:] = values[: len(values) - by]
    return moved


def _trailing(values: FloatColumn, width: int) -> FloatColumn:
    """Mean of the known among the last ``width`` buckets; NaN where none is."""
    known = ~np.isnan(values)
    sums = np.concatenate(([0.0], np.cumsum(np.where(known, values, 0.0))))
    counts = np.concatenate(([0], np.cumsum(known)))
    end = np.arange(1, len(values) + 1)
    begin = np.maximum(0, end - width)
    many = counts[end] - counts[begin]
    return np.where(many > 0, (sums[end] - sums[begin]) / np.maximum(many, 1), np.nan)


def _sums(forecast: FloatColumn, truth: FloatColumn, block: IntColumn) -> FloatColumn:
    """Sums a correlation is made of, by block: (6, blocks) count, x, y, xx, yy, xy."""
    known = ~np.isnan(forecast) & ~np.isnan(truth)
    x, y = forecast[known], truth[known]
    scale = float(np.abs(y).max()) or 1.0  # squares of large demands must not lose their last digits
    x, y = x / scale, y / scale
    _, which = np.unique(block[known], return_inverse=True)
    return np.stack([np.bincount(which, weights=w) for w in (np.ones(len(x)), x, y, x * x, y * y, x * y)])


def _share(sums: FloatColumn) -> float:
    """Squared correlation; 0 for a negative one, 1 where the truth never varies."""
    n, x, y, xx, yy, xy = sums.sum(axis=1)
    var_x, var_y, cov = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2, xy / n - x / n * (y / n)
    if var_y <= 1e-12:
        return 1.0
    return 0.0 if cov <= 0 or var_x <= 0 else float(min(1.0, cov * cov / (var_x * var_y)))


def _by_day(series: Recorded) -> float | None:
    """Correlation of hourly means with those of the day before."""
    width = max(1, HOUR_S // series.step_s)
    means = _trailing(series.values, width)[width - 1 :: width]
    a_day = DAY_S // (width * series.step_s)
    if len(means) < 2 * a_day:
        return None
    now, before = means[a_day:], means[:-a_day]
    known = ~np.isnan(now) & ~np.isnan(before)
    if known.sum() < a_day // 2 or np.ptp(now[known]) == 0 or np.ptp(before[known]) == 0:
        return None
    return float(np.corrcoef(now[known], before[known])[0, 1])
