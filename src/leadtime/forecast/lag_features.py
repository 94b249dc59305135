"""Rows of raw lags → what a model sees of them: logarithms of ratios to the level, spreads, times of day.

The level is the better of the two naive forecasts, last value and mean of five minutes, by how often each was within
10 % of what came during the last week: a model that has nothing to add is then the naive forecast itself. As all is
relative to it, a row of a large workload can teach about a small one, and a level shift changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from leadtime.forecast.lag_memory import DAY_MIN, KEPT_DAYS, MEAN_MIN, WEEK_MIN
from leadtime.forecast.lag_rows import DAY_COLUMNS, FACTS, FIRST_DAY, FIRST_MINUTE, KNOTS_MIN
from leadtime.forecast.lag_rows import SPANS_MIN as LONG_SPANS_MIN
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.recent import KEPT_MINUTES

Matrix = npt.NDArray[np.float32]
BoolColumn = npt.NDArray[np.bool_]
FLOOR_RATIO = 0.02  # of the usual demand, added to both sides of a ratio: at night 3 requests against 1 are no tripling
NOTHING = 1e-300  # keeps the logarithm finite where there never was any demand
MOST_LOG = 3.0  # a ratio beyond e³ = 20 says no more than 20
MOST_SAID_LOG = 1.5  # trees know nothing beyond what they saw: 4.5 times the level is the most they may say
BETTER_RATIO = 0.01  # the simpler of the two naive forecasts, last value, stays unless the other hits a point more
SPANS_MIN = (3, 10, 15, 30, 60)
SINGLE_LAGS = tuple(range(10))
MEAN_LAGS = (12, 15, 20, 25, 30, 40, 50)  # each the mean of three minutes
PERIODS_MIN = (15, 30, 60)  # of jobs that run by the clock: the lag at the same place in the period as the target

NOW = ("is_mean", "last", "mean5", *(f"mean{m}" for m in SPANS_MIN), *(f"mean{m}" for m in LONG_SPANS_MIN), "usual",
       "step_day", "wave_day", "step_10", "step_60", "wave_60", "unmoved_60", "size", "hits_last",
       "hits_mean")  # fmt: skip
SEASON = ("course", "course_spread", "course_yesterday", "course_week", "change", "change_spread", "change_yesterday")
STILL = (*NOW, *(f"lag{m}" for m in SINGLE_LAGS), *(f"lag{m}_3" for m in MEAN_LAGS), "lag58_3")  # whatever the horizon
FEATURES = (
    *STILL, *SEASON, *(f"period{p}" for p in PERIODS_MIN), "period60_5", "hour", "hour_sin", "hour_cos", "minute",
    "minute_of_10", "weekday", "horizon",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relative:
    """Rows made relative to their level. ``anchor``: the level, ``floor``: FLOOR_RATIO of the usual demand, both (n,).

    ``counts`` (n,): True where all of the last hour were whole numbers.
    ``lags`` (n, KEPT_MINUTES): newest first. ``season`` (n, len(SEASON), knots): ``course``: what earlier days did
    between their last hour and each knot, on top of today's last hour; ``change``: the same from their last 5 minutes.
    """

    anchor: FloatColumn
    floor: FloatColumn
    counts: BoolColumn
    at_min: FloatColumn
    now: FloatColumn
    lags: FloatColumn
    season: FloatColumn

    def take(self, index: npt.NDArray[np.intp]) -> "Relative":
        """Those rows alone."""
        return Relative(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @classmethod
    def together(cls, parts: Sequence["Relative"]) -> "Relative":
        """All rows of ``parts`` (at least one), in their order."""
        return cls(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)})


def relative(rows: FloatColumn) -> Relative:
    """(n, lag_rows.COLUMNS) → the same, relative to each row's level."""
    fact = dict(zip(FACTS, rows[:, :FIRST_MINUTE].T, strict=True))
    minutes = rows[:, FIRST_MINUTE:FIRST_DAY]
    mean5 = _newest_mean(minutes, fact["last"])
    is_mean = fact["hits_mean"] > fact["hits_last"] + BETTER_RATIO
    anchor = np.where(is_mean, mean5, fact["last"])
    floor = FLOOR_RATIO * fact["usual"] + NOTHING
    base = np.log(anchor + floor)[:, None]
    means = [_mean(minutes[:, -m:]) for m in SPANS_MIN]
    levels = np.column_stack((fact["last"], mean5, *means, *(fact[f"mean{m}"] for m in LONG_SPANS_MIN), fact["usual"]))
    ratios = _clipped(np.log(levels + floor[:, None]) - base)
    scale = (anchor + floor)[:, None]
    moves, waves = np.abs(np.diff(minutes)) / scale, np.abs(minutes[:, MEAN_MIN:] - minutes[:, :-MEAN_MIN]) / scale
    unmoved = _mean(np.where(np.isnan(moves), np.nan, moves == 0.0))
    now = np.column_stack((
        is_mean, ratios, fact["step"], fact["wave"], _mean(moves[:, -10:]), _mean(moves), _mean(waves), unmoved,
        np.log10(1.0 + anchor), fact["hits_last"], fact["hits_mean"],
    ))  # fmt: skip
    hour = ratios[:, 2 + SPANS_MIN.index(60)]
    return Relative(
        anchor=anchor, floor=floor, counts=(np.isnan(minutes) | (minutes == np.rint(minutes))).all(axis=1),
        at_min=fact["at_min"], now=now,
        lags=_clipped(np.log(minutes[:, ::-1] + floor[:, None]) - base),
        season=_season(rows[:, FIRST_DAY:], hour, floor),
    )  # fmt: skip


def features(rows: Relative, ahead_min: Sequence[int]) -> Matrix:
    """What a model sees of the demand minutes ahead (1: the next) → (n, len(ahead_min), len(FEATURES)) float32."""
    ahead = np.asarray(ahead_min, dtype=np.intp)
    made = np.empty((len(rows.anchor), len(ahead), len(FEATURES)), dtype=np.float32)
    still = (
        rows.now, rows.lags[:, : len(SINGLE_LAGS)], *(_lag(rows.lags, np.array([m]), 3) for m in MEAN_LAGS),
        _lag(rows.lags, np.array([KEPT_MINUTES - 2]), 3),
    )  # fmt: skip
    minute = np.mod(rows.at_min[:, None] + ahead - 1, WEEK_MIN)
    day = np.mod(minute, DAY_MIN)
    angle = day * (2.0 * np.pi / DAY_MIN)
    periods = (*(_lag(rows.lags, period - ahead, 1) for period in PERIODS_MIN), _lag(rows.lags, 60 - ahead, 5))
    calendar = (day / 60.0, np.sin(angle), np.cos(angle), np.mod(day, 60), np.mod(day, 10), minute // DAY_MIN)
    made[:, :, : len(STILL)] = np.column_stack(still)[:, None, :]
    made[:, :, len(STILL) : len(STILL) + len(SEASON)] = _ahead(rows.season, ahead)
    for j, column in enumerate((*periods, *calendar, np.broadcast_to(ahead, minute.shape))):
        made[:, :, len(STILL) + len(SEASON) + j] = column
    return made


def demand(rows: Relative, said: FloatColumn) -> FloatColumn:
    """Logarithms (n, …) above each row's level → demand (n, …), not below 0; 0 gives the level itself, bit for bit.

    Quantiles of counts are whole numbers, and so is the answer: of two or three a minute, two and a half never come.
    """
    shape = (-1,) + (1,) * (said.ndim - 1)
    anchor, floor = rows.anchor.reshape(shape), rows.floor.reshape(shape)
    moved = (anchor + floor) * np.exp(np.clip(said, -MOST_SAID_LOG, MOST_SAID_LOG)) - floor
    moved = np.where(rows.counts.reshape(shape), np.rint(moved), moved)
    return np.maximum(0.0, np.where((said == 0.0) | (floor <= NOTHING), anchor, moved))


def target(rows: Relative, actual: FloatColumn) -> FloatColumn:
    """What a model has to learn to say: the logarithm (n,) of ``actual`` demand ÷ level; ``demand`` undoes it."""
    ratio = np.log((actual + rows.floor) / (rows.anchor + rows.floor))
    return np.asarray(np.clip(ratio, -MOST_SAID_LOG, MOST_SAID_LOG))


def _season(days: FloatColumn, hour: FloatColumn, floor: FloatColumn) -> FloatColumn:
    """See Relative.season. ``days`` (n, KEPT_DAYS · DAY_COLUMNS); ``hour``: the last hour in logs above the level."""
    laid = np.log(days.reshape(len(days), KEPT_DAYS, DAY_COLUMNS) + floor[:, None, None])
    course = _clipped(laid[:, :, 2:] - laid[:, :, :1]) + hour[:, None, None]
    change = _clipped(laid[:, :, 2:] - laid[:, :, 1:2])
    middle, spread = _middle(course)
    moved, unsure = _middle(change)
    return np.stack((middle, spread, course[:, 0], course[:, 6], moved, unsure, change[:, 0]), axis=1)


def _middle(days: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
    """(n, days, k) → (n, k) median of the known days, and their mean distance from it; NaN where none, or one, is."""
    ordered = np.sort(days, axis=1)
    count = days.shape[1] - np.isnan(days).sum(axis=1, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, days.shape[1] - 1)
    median = (np.take_along_axis(ordered, low, axis=1) + np.take_along_axis(ordered, high, axis=1)) / 2.0
    off = np.abs(days - median)
    spread = np.where(np.isnan(off), 0.0, off).sum(axis=1) / np.maximum(count[:, 0], 1)
    return median[:, 0], np.where(count[:, 0] > 1, spread, np.nan)


def _ahead(season: FloatColumn, ahead: npt.NDArray[np.intp]) -> FloatColumn:
    """(n, steps, len(SEASON)) what earlier days say minutes ahead, on lines between knots; held beyond the last."""
    at = np.interp(ahead, KNOTS_MIN, np.arange(len(KNOTS_MIN)))
    low = np.minimum(at.astype(np.intp), len(KNOTS_MIN) - 2)
    share = at - low
    left, right = season[:, :, low], season[:, :, low + 1]
    line = left * (1.0 - share) + right * share
    line = np.where(share == 0.0, left, np.where(share == 1.0, right, line))  # the other knot may be unknown
    return np.asarray(line.transpose(0, 2, 1))


def _lag(lags: FloatColumn, minutes: npt.NDArray[np.intp], width: int) -> FloatColumn:
    """(n, len(minutes)) mean over ``width`` (odd) lags around each of ``minutes``; NaN outside the hour."""
    index = minutes[:, None] + np.arange(width) - width // 2
    inside = ((index >= 0) & (index < lags.shape[1])).all(axis=1)
    return np.where(inside, lags[:, np.where(inside[:, None], index, 0)].mean(axis=2), np.nan)


def _newest_mean(minutes: FloatColumn, last: FloatColumn) -> FloatColumn:
    """Mean of the newest five known minutes, as ``recent.Mean5Min``; ``last`` where none is known."""
    known = ~np.isnan(minutes)
    newest = known & (np.cumsum(known[:, ::-1], axis=1)[:, ::-1] <= MEAN_MIN)
    count = newest.sum(axis=1)
    # summed newest first, as Mean5Min does: the same bits
    total = np.cumsum(np.where(newest, minutes, 0.0)[:, ::-1], axis=1)[:, -1]
    return np.where(count > 0, total / np.maximum(count, 1), last)


def _mean(values: FloatColumn) -> FloatColumn:
    """Mean of what is known along the last axis; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    mean = np.where(known, values, 0.0).sum(axis=-1) / np.maximum(count, 1)
    return np.where(count > 0, mean, np.nan)


def _clipped(logs: FloatColumn) -> FloatColumn:
    return np.clip(logs, -MOST_LOG, MOST_LOG)
