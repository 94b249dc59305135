"""Minutes one by one → a memory of the last hour and of many days → one row that tells a model where demand stands.

A row is raw: the last hour's minutes, the same hours of earlier days, a few running measures. What they mean is worked
out for many rows at once (``lag_features``), which costs a tenth of doing it row by row. 70 kB a workload at 28 days.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from leadtime.domain.time_window import from_epoch
from leadtime.forecast import day_cells, recent
from leadtime.forecast.day_cells import CELL_S, CELLS_A_DAY, DayCells
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.recent import KEPT_MINUTES, Recent

AHEAD_MIN = 10  # the horizon at which the two naive forecasts are compared
MEAN_MIN = 5
HIT_RATIO = 0.10  # the product's measure: within 10 % of the actual minute
WEEK_MIN, DAY_MIN = 10_080, 1440
THURSDAY = 3  # days since Monday on 1970-01-01
BACK_CELLS = 12  # an hour: the level of earlier days
AHEAD_CELLS = 39  # three hours and a quarter
SEASON_DAYS = 14
CELL_SPANS = (24, 72, CELLS_A_DAY)  # two hours, six hours, a day

FACTS = (
    "last",
    "usual",
    "at_min",
    "into_min",
    "hits_last",
    "hits_mean",
    "step",
    "wave",
    *(f"cells{c}" for c in CELL_SPANS),
)
FIRST_MINUTE = len(FACTS)
FIRST_CELL = FIRST_MINUTE + KEPT_MINUTES
COLUMNS = FIRST_CELL + SEASON_DAYS * (BACK_CELLS + AHEAD_CELLS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lags:
    """``hits_*``: share of the last week's minutes that each naive forecast hit ten minutes ahead; ``judged`` of them.

    ``step``: mean over a day of |minute − minute before|, ``wave``: of |mean of five − the five before|, in levels.
    """

    recent: Recent
    days: DayCells
    hits_last: float = 0.0
    hits_mean: float = 0.0
    judged: int = 0
    step: float = 0.0
    wave: float = 0.0
    moved: int = 0


def empty() -> Lags:
    """Before the first bucket."""
    return Lags(recent=Recent(), days=day_cells.empty())


def add(state: Lags, at_s: int, value: float | None, max_days: int) -> Lags:
    """The state after the bucket [at_s, at_s + 60); None is a gap."""
    newest = recent.add(state.recent, value)
    days = day_cells.add(state.days, at_s, value, max_days)
    hits_last, hits_mean, judged = state.hits_last, state.hits_mean, state.judged
    step, wave, moved = state.step, state.wave, state.moved
    minutes = newest.minutes
    if value is not None and len(minutes) > AHEAD_MIN + MEAN_MIN:
        then = minutes[-AHEAD_MIN - MEAN_MIN : -AHEAD_MIN]
        if value > 0.0 and None not in then:
            judged += 1
            gain = 1.0 / min(judged, WEEK_MIN)
            hits_last += (_hit(then[-1], value) - hits_last) * gain  # type: ignore[arg-type] # None is not in it
            hits_mean += (_hit(sum(then) / MEAN_MIN, value) - hits_mean) * gain  # type: ignore[arg-type]
        both = minutes[-2 * MEAN_MIN :]
        if None not in both:
            moved += 1
            gain = 1.0 / min(moved, DAY_MIN)
            before, now = sum(both[:MEAN_MIN]), sum(both[MEAN_MIN:])  # type: ignore[arg-type]
            level = max(before, now) / MEAN_MIN
            if level > 0.0:
                step += (abs(value - both[-2]) / level - step) * gain  # type: ignore[operator]
                wave += (abs(now - before) / MEAN_MIN / level - wave) * gain
    return Lags(
        recent=newest, days=days, hits_last=hits_last, hits_mean=hits_mean, judged=judged, step=step, wave=wave,
        moved=moved,
    )  # fmt: skip


def _hit(said: float, value: float) -> float:
    return 1.0 if abs(said - value) <= HIT_RATIO * value * (1 + 1e-9) else 0.0


def row(state: Lags, zone: str) -> FloatColumn | None:
    """One row (COLUMNS,), NaN where unknown; None before an hour has passed with a known minute. O(1) in history.

    First FACTS: the last known value, the usual demand (both in units of demand), minutes since Monday 00:00 in
    ``zone`` at the end of the newest bucket, minutes into the open cell, then the state's measures and means over
    CELL_SPANS. Then KEPT_MINUTES minutes, oldest first; then SEASON_DAYS earlier days, newest first, each with its
    cells from BACK_CELLS before the same local time on.
    """
    last, days = state.recent.last, state.days
    if last is None or len(state.recent.minutes) < KEPT_MINUTES:
        return None
    made = np.full(COLUMNS, np.nan)
    made[: FIRST_MINUTE - len(CELL_SPANS)] = (
        last, days.mean if days.known else last, _local_minute(zone, days.next_s), days.next_s % CELL_S // MINUTE_S,
        state.hits_last, state.hits_mean, state.step, state.wave,
    )  # fmt: skip
    made[FIRST_MINUTE - len(CELL_SPANS) : FIRST_MINUTE] = _cell_means(days.cells)
    made[FIRST_MINUTE:FIRST_CELL] = state.recent.minutes
    if len(days.cells) >= CELLS_A_DAY:
        laid = day_cells.day_rows(days, back=BACK_CELLS, ahead=AHEAD_CELLS, max_days=SEASON_DAYS, zone=zone)
        made[FIRST_CELL : FIRST_CELL + laid.rows.size] = laid.rows.ravel()
    return made


def _cell_means(cells: FloatColumn) -> FloatColumn:
    """Mean of the known among the newest CELL_SPANS cells; NaN where none is."""
    newest = cells[-CELLS_A_DAY:][::-1]
    known = ~np.isnan(newest)
    total, count = np.cumsum(np.where(known, newest, 0.0)), np.cumsum(known)
    at = [min(span, len(newest)) - 1 for span in CELL_SPANS if len(newest)]
    return (
        np.where(count[at] > 0, total[at] / np.maximum(count[at], 1), np.nan)
        if at
        else np.full(len(CELL_SPANS), np.nan)
    )


def _local_minute(zone: str, at_s: int) -> float:
    local = (at_s + _offset_s(zone, at_s // 3600)) // MINUTE_S
    return float((local + THURSDAY * DAY_MIN) % WEEK_MIN)


@lru_cache(maxsize=4096)
def _offset_s(zone: str, hour: int) -> int:
    if zone == "UTC":
        return 0
    offset = from_epoch(hour * 3600).astimezone(ZoneInfo(zone)).utcoffset()
    return int((offset or timedelta()).total_seconds())
