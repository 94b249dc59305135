"""Minutes one by one → two weeks of minutes and a few running measures: what the learned demand model remembers.

Minutes and not five-minute means, because jobs that run by the clock step within one: on mongo-01 means lose a tenth of
the skill. Single precision keeps two weeks in 80 kB a workload. Closed hours stand in an array that is copied once an
hour, the open one in a tuple.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leadtime.forecast import recent
from leadtime.forecast.model import MINUTE_S
from leadtime.forecast.naive import NAIVE_MEAN_MINUTES, WITHIN_RATIO
from leadtime.forecast.recent import KEPT_MINUTES, Recent

AHEAD_MIN = 10  # the horizon at which the two naive forecasts are compared
MEAN_MIN = NAIVE_MEAN_MINUTES
WEEK_MIN, DAY_MIN = 10_080, 1440
KEPT_DAYS = 14
SPARE_MIN = 2 * KEPT_MINUTES  # the level of the oldest day needs its hour before, and the open hour is not in the array

Minutes = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lags:
    """``minutes`` (NaN a gap) end where ``open``, of less than an hour, begin; ``open`` end at ``next_s``.

    ``usual``: fading mean of a week. ``hits_*``: share of the last week's minutes that each naive forecast hit ten
    minutes ahead, ``judged`` of them. ``step``: fading mean over a day of |minute − minute before|, ``wave``: of
    |mean of five − the five before|, in levels.
    """

    minutes: Minutes
    recent: Recent
    open: tuple[float | None, ...] = ()
    next_s: int = 0
    usual: float = 0.0
    known: int = 0
    hits_last: float = 0.0
    hits_mean: float = 0.0
    judged: int = 0
    step: float = 0.0
    wave: float = 0.0
    moved: int = 0


def empty() -> Lags:
    """Before the first bucket."""
    return Lags(minutes=np.empty(0, dtype=np.float32), recent=Recent())


def add(state: Lags, at_s: int, value: float | None) -> Lags:
    """The state after the bucket [at_s, at_s + 60); None is a gap. Minutes left out since the one before are gaps."""
    if state.next_s and at_s > state.next_s:
        state = _hole(state, (at_s - state.next_s) // MINUTE_S)
    newest = recent.add(state.recent, value)
    minutes, opened = state.minutes, (*state.open, value)
    if len(opened) >= KEPT_MINUTES:
        minutes, opened = _closed(minutes, opened), ()
    known, usual = state.known, state.usual
    if value is not None:
        known += 1
        usual += (value - usual) / min(known, WEEK_MIN)
    moved = replace(
        state, minutes=minutes, recent=newest, open=opened, next_s=at_s + MINUTE_S, usual=usual, known=known
    )  # fmt: skip
    return moved if value is None else _measured(moved, value)


def _closed(minutes: Minutes, opened: tuple[float | None, ...]) -> Minutes:
    added = np.array(opened, dtype=np.float64)
    return np.concatenate((minutes, added))[-(KEPT_DAYS * DAY_MIN + SPARE_MIN) :].astype(np.float32)


def _hole(state: Lags, missed: int) -> Lags:
    """The state after ``missed`` minutes nobody told of; a hole longer than the memory empties it."""
    kept = min(missed, KEPT_DAYS * DAY_MIN + SPARE_MIN)
    minutes = _closed(state.minutes, (*state.open, *(None,) * kept))
    gaps = Recent(
        minutes=(*state.recent.minutes, *(None,) * min(missed, KEPT_MINUTES))[-KEPT_MINUTES:], last=state.recent.last
    )
    return replace(state, minutes=minutes, open=(), recent=gaps)


def _measured(state: Lags, value: float) -> Lags:
    """The running measures after ``value``, the newest of ``recent``; those that a gap makes unknown stay."""
    minutes = state.recent.minutes
    hits_last, hits_mean, judged = state.hits_last, state.hits_mean, state.judged
    step, wave, moved = state.step, state.wave, state.moved
    if value > 0.0 and (then := _whole(minutes[-AHEAD_MIN - MEAN_MIN : -AHEAD_MIN], MEAN_MIN)):
        judged += 1
        gain = 1.0 / min(judged, WEEK_MIN)
        hits_last += (_hit(then[-1], value) - hits_last) * gain
        hits_mean += (_hit(sum(then) / MEAN_MIN, value) - hits_mean) * gain
    if both := _whole(minutes[-2 * MEAN_MIN :], 2 * MEAN_MIN):
        before, now = sum(both[:MEAN_MIN]) / MEAN_MIN, sum(both[MEAN_MIN:]) / MEAN_MIN
        level = max(before, now)
        if level > 0.0:
            moved += 1
            gain = 1.0 / min(moved, DAY_MIN)
            step += (abs(value - both[-2]) / level - step) * gain
            wave += (abs(now - before) / level - wave) * gain
    return replace(
        state, hits_last=hits_last, hits_mean=hits_mean, judged=judged, step=step, wave=wave, moved=moved
    )  # fmt: skip


def _whole(minutes: tuple[float | None, ...], count: int) -> tuple[float, ...]:
    """The minutes, if there are ``count`` and none is a gap; else nothing."""
    known = tuple(v for v in minutes if v is not None)
    return known if len(known) == count else ()


def _hit(said: float, value: float) -> float:
    return 1.0 if abs(said - value) <= WITHIN_RATIO * value * (1 + 1e-9) else 0.0
