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
    total, count = _sums(state)
    made[FIRST_MINUTE - len(SPANS_MIN) : FIRST_MINUTE] = _means(total, count, np.array(SPANS_MIN) * -1, 0)
    now = len(total) - 1
    if days := min((now + REACH_MIN) // DAY_MIN, KEPT_DAYS):
        starts = _day_starts(zone, state.next_s // 3600, days)[:, None]
        made[FIRST_DAY : FIRST_DAY + days * DAY_COLUMNS] = _means(total, count, starts + FIRSTS, starts + LASTS).ravel()
    return made


def _sums(state: Lags) -> tuple[FloatColumn, IntColumn]:
    """Sums of the known minutes before each, oldest first, and how many they are; one entry more than minutes."""
    minutes = np.concatenate((state.minutes, np.array(state.open, dtype=np.float64)))
    known = ~np.isnan(minutes)
    total, count = np.zeros(len(minutes) + 1), np.zeros(len(minutes) + 1, dtype=np.int64)
    np.cumsum(np.where(known, minutes, 0.0), out=total[1:])
    np.cumsum(known, out=count[1:])
    return total, count


def _means(total: FloatColumn, count: IntColumn, first: IntColumn, last: IntColumn | int) -> FloatColumn:
    """Means over [now + first, now + last) minutes; NaN where fewer than half of them are known."""
    now = len(total) - 1
    low, high = np.clip(now + first, 0, now), np.clip(now + last, 0, now)
    known = count[high] - count[low]
    wanted = last - first
    return np.where(2 * known >= wanted, np.maximum(total[high] - total[low], 0.0) / np.maximum(known, 1), np.nan)


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
