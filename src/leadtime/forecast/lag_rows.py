"""The memory of lags → one row of numbers that tells a model where demand stands and what earlier days did from here.

A row is raw: minutes, means, measures. What they mean is worked out for many rows at once (``lag_features``), which
costs a tenth of doing it row by row.
"""

from datetime import timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from leadtime.domain.time_window import from_epoch
from leadtime.forecast.lag_memory import DAY_MIN, KEPT_DAYS, MEAN_MIN, WEEK_MIN, Lags
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.recent import KEPT_MINUTES

IntColumn = npt.NDArray[np.int64]
THURSDAY = 3  # days since Monday on 1970-01-01
SPANS_MIN = (120, 360, DAY_MIN)
# Minutes ahead at which earlier days are read, each as the mean of five minutes around it.
KNOTS_MIN = (1, 2, 3, 5, 7, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180)
REACH_MIN = KNOTS_MIN[-1] + MEAN_MIN // 2

FACTS = ("last", "usual", "at_min", "hits_last", "hits_mean", "step", "wave", *(f"mean{m}" for m in SPANS_MIN))
FIRST_MINUTE = len(FACTS)
FIRST_DAY = FIRST_MINUTE + KEPT_MINUTES
DAY_COLUMNS = 2 + len(KNOTS_MIN)  # its last hour and last five minutes at this time, then the knots
COLUMNS = FIRST_DAY + KEPT_DAYS * DAY_COLUMNS
FIRSTS = np.array((-KEPT_MINUTES, -MEAN_MIN, *(k - 1 - MEAN_MIN // 2 for k in KNOTS_MIN)))
LASTS = np.array((0, 0, *(k + MEAN_MIN // 2 for k in KNOTS_MIN)))


def row(state: Lags, zone: str) -> FloatColumn | None:
    """One row (COLUMNS,), NaN where unknown; None before an hour has passed with a known minute. O(1) in history.

    First FACTS: the last known value and the usual demand in units of demand, minutes since Monday 00:00 in ``zone`` at
    the end of the newest bucket, the state's measures, means over SPANS_MIN. Then KEPT_MINUTES minutes, oldest first.
    Then KEPT_DAYS earlier days, newest first, each with DAY_COLUMNS means around the same local time.
    """
    last = state.recent.last
    if last is None or len(state.recent.minutes) < KEPT_MINUTES:
        return None
    made = np.full(COLUMNS, np.nan)
    made[: FIRST_MINUTE - len(SPANS_MIN)] = (
        last, state.usual, _local_minute(zone, state.next_s), state.hits_last, state.hits_mean, state.step, state.wave,
    )  # fmt: skip
    made[FIRST_MINUTE:FIRST_DAY] = state.recent.minutes
    opened = np.array(state.open, dtype=np.float64)
    lately = np.concatenate((state.minutes[-SPANS_MIN[-1] :].astype(np.float64), opened))[None, :]
    ends = np.full(len(SPANS_MIN), lately.shape[1])
    made[FIRST_MINUTE - len(SPANS_MIN) : FIRST_MINUTE] = _means(lately, ends - np.array(SPANS_MIN), ends)[0]
    now = len(state.minutes) + len(state.open)
    if days := min((now + REACH_MIN) // DAY_MIN, KEPT_DAYS):
        index = now + _day_starts(zone, state.next_s // 3600, days)[:, None] + np.arange(-KEPT_MINUTES, REACH_MIN)
        around = np.where(index >= 0, state.minutes[np.maximum(index, 0)], np.nan).astype(np.float64)
        means = _means(around, FIRSTS + KEPT_MINUTES, LASTS + KEPT_MINUTES)
        made[FIRST_DAY : FIRST_DAY + days * DAY_COLUMNS] = means.ravel()
    return made


def _means(minutes: FloatColumn, first: IntColumn, last: IntColumn) -> FloatColumn:
    """(rows, m) → (rows, n) means over the columns [first, last), NaN where fewer than half of them are known.

    Columns before the first are unknown.
    """
    known = ~np.isnan(minutes)
    shape = (len(minutes), minutes.shape[1] + 1)
    total, count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    np.cumsum(np.where(known, minutes, 0.0), axis=1, out=total[:, 1:])
    np.cumsum(known, axis=1, out=count[:, 1:])
    low = np.maximum(first, 0)
    found = count[:, last] - count[:, low]
    # sums of a spike of 1e12 and of what follows it may differ by a hair below 0
    mean = np.maximum(total[:, last] - total[:, low], 0.0) / np.maximum(found, 1)
    return np.where(2 * found >= last - first, mean, np.nan)


@lru_cache(maxsize=4096)
def _day_starts(zone: str, hour: int, days: int) -> IntColumn:
    """Minutes from now to the same local time on each of ``days`` earlier days; 1440 each unless the clocks changed."""
    before = range(1, days + 1)
    shift = [_offset_s(zone, hour) - _offset_s(zone, hour - 24 * d) for d in before]
    return np.array([s // MINUTE_S - DAY_MIN * d for d, s in zip(before, shift, strict=True)])


def _local_minute(zone: str, at_s: int) -> float:
    local = (at_s + _offset_s(zone, at_s // 3600)) // MINUTE_S
    return float((local + THURSDAY * DAY_MIN) % WEEK_MIN)


@lru_cache(maxsize=4096)
def _offset_s(zone: str, hour: int) -> int:
    if zone == "UTC":
        return 0
    offset = from_epoch(hour * 3600).astimezone(ZoneInfo(zone)).utcoffset()
    return int((offset or timedelta()).total_seconds())
