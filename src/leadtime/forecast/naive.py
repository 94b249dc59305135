"""Demand by buckets → the naive forecasts, the ceiling, and what counts as a hit: what every model is held against.

Definitions: record 0019. The replay's report, the backtest and the doctor measure by these.
"""

import numpy as np
import numpy.typing as npt

from leadtime.forecast.model import FloatColumn

WITHIN_RATIO = 0.10  # a forecast hits when it is within 10 % of what came
NAIVE_MEAN_MINUTES = 5
CEILING_MINUTES = 11  # centred: 5 before, the minute itself, 5 after


def trailing_mean(values: FloatColumn, count: int) -> FloatColumn:
    """Mean of the ``count`` values that end with each value, itself included; NaN where one of them is missing."""
    means = np.full(len(values), np.nan)
    if len(values) >= count:
        means[count - 1 :] = np.lib.stride_tricks.sliding_window_view(values, count).mean(axis=1)
    return means


def centred_mean(values: FloatColumn, half: int = CEILING_MINUTES // 2) -> FloatColumn:
    """Mean of the ``half`` values before each value, itself and the ``half`` after; NaN where one is missing.

    It needs the future, so it is a ceiling and not a forecast.
    """
    count = 2 * half + 1
    means = np.full(len(values), np.nan)
    if len(values) >= count:
        means[half : len(values) - half] = trailing_mean(values, count)[count - 1 :]
    return means


def is_within(expected: FloatColumn, truth: FloatColumn) -> npt.NDArray[np.bool_]:
    """|expected − truth| ≤ 10 % of the truth; a hair of slack, or 0.9 · 10 would miss by rounding. False for NaN."""
    return np.asarray(np.abs(expected - truth) <= WITHIN_RATIO * np.abs(truth) * (1 + 1e-9), dtype=np.bool_)
