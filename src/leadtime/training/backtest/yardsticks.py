"""A series → at every origin what came, what the naive forecasts said, and the ceiling: what models are held against.

Definitions: the last section of the data folder's README, and record 0019. Arrays have one entry a bucket, read as the
origin at its end; NaN where a value is unknown.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.naive import CEILING_MINUTES, NAIVE_MEAN_MINUTES, centred_mean, is_within, trailing_mean
from leadtime.training.backtest.series import BacktestSeries

BoolColumn = npt.NDArray[np.bool_]
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Yardsticks:
    """``truth[i]``: the demand of the bucket ``ahead`` buckets after origin i's newest; the others forecast it."""

    ahead: int
    truth: FloatColumn
    last: FloatColumn
    mean5: FloatColumn
    ceiling: FloatColumn
    seasonal: FloatColumn

    def scored(self) -> BoolColumn:
        """True at the origins where truth, both naive forecasts and the ceiling are known."""
        unknown = np.isnan(np.stack((self.truth, self.last, self.mean5, self.ceiling)))
        return np.asarray(~unknown.any(axis=0))


def yardsticks(series: BacktestSeries, horizon_s: int) -> Yardsticks:
    """What every model is compared with at ``horizon_s``.

    last: the newest bucket. mean5: the mean of the buckets of the newest five minutes, one of them at least.
    ceiling: the centred mean over 11 minutes; of longer buckets those whose middle lies within 5 minutes.
    seasonal: the same bucket one day earlier, the season that published quantile losses of minute data are relative to.
    """
    values, ahead, minutes = series.values, series.ahead(horizon_s), series.bucket_min
    half = CEILING_MINUTES // 2 // minutes
    return Yardsticks(
        ahead=ahead,
        truth=_later(values, ahead),
        last=values,
        mean5=trailing_mean(values, max(1, NAIVE_MEAN_MINUTES // minutes)),
        ceiling=_later(centred_mean(values, half), ahead),
        seasonal=_seasonal(values, ahead, series.step_s),
    )


def within(expected: FloatColumn, truth: FloatColumn) -> FloatColumn:
    """1.0 where |expected − truth| ≤ 10 % of the truth, 0.0 where not; NaN where one is unknown or the truth is 0.

    A tenth of nothing says nothing: the README's table leaves zeros out too.
    """
    unknown = np.isnan(expected) | np.isnan(truth) | (truth == 0)
    return np.where(unknown, np.nan, is_within(expected, truth))


def _later(values: FloatColumn, ahead: int) -> FloatColumn:
    """``values[i + ahead]`` at i; NaN beyond the end."""
    found = np.full(len(values), np.nan)
    if ahead < len(values):
        found[: len(values) - ahead] = values[ahead:]
    return found


def _seasonal(values: FloatColumn, ahead: int, step_s: int) -> FloatColumn:
    """``values[i + ahead − k days]`` at i, with the smallest k that makes it known; NaN before the first day is over.

    NaN throughout where a day is no whole number of buckets.
    """
    day = DAY_S // step_s
    back = -(-ahead // day) * day - ahead if day else len(values)
    found = np.full(len(values), np.nan)
    if back < len(values) and not DAY_S % step_s:
        found[back:] = values[: len(values) - back]
    return found
