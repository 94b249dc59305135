"""A column of steps → sums over minutes and over sliding half-open windows. Plain numpy, no policy.

Sums are taken window by window, not as differences of a running total: a window without a single unserved request has
to come out as exactly 0.
"""

import numpy as np

from leadtime.scorecard.run import FloatColumn, IntColumn

MINUTE_S = 60


def check_step(step_s: int) -> None:
    """Raise ValueError unless steps tile a minute: windows and UTC minutes would cut through a step otherwise."""
    if step_s <= 0 or MINUTE_S % step_s:
        raise ValueError(f"measuring a run: step_s is {step_s}, must divide 60")


def sliding_sums(column: FloatColumn, *, window_steps: int, stride_steps: int = 1) -> FloatColumn:
    """Σ over [i, i + window_steps) for i = 0, stride, 2·stride, …; only whole windows, so it may be empty."""
    if len(column) < window_steps:
        return np.empty(0)
    sums: FloatColumn = np.lib.stride_tricks.sliding_window_view(column, window_steps)[::stride_steps].sum(axis=1)
    return sums


def worst_minute_sum(column: FloatColumn, *, step_s: int) -> float:
    """The largest sum over any 60 s that begin at a step; a run shorter than that counts as one window."""
    window_steps = MINUTE_S // step_s
    if len(column) <= window_steps:
        return float(column.sum())
    return float(sliding_sums(column, window_steps=window_steps).max())


def minute_sums(column: FloatColumn, *, start_s: int, step_s: int) -> FloatColumn:
    """Σ over each UTC minute that the steps touch; the first and last may be covered in part."""
    index = minute_index(len(column), start_s=start_s, step_s=step_s)
    return np.bincount(index, weights=column).astype(np.float64)


def minute_means(column: FloatColumn, *, start_s: int, step_s: int) -> FloatColumn:
    """Mean over the steps of each UTC minute that have a value; NaN where none has."""
    known = ~np.isnan(column)
    index = minute_index(len(column), start_s=start_s, step_s=step_s)
    counts = np.bincount(index, weights=known.astype(np.float64))
    sums = np.bincount(index, weights=np.where(known, column, 0.0))
    means: FloatColumn = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def minute_index(steps: int, *, start_s: int, step_s: int) -> IntColumn:
    """For each step the UTC minute it lies in, counted from the minute that holds ``start_s``."""
    return (start_s + np.arange(steps, dtype=np.int64) * step_s) // MINUTE_S - start_s // MINUTE_S
