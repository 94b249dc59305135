"""Minutes one by one, beside what was forecast for them → the alarms that are raised, and rises that were dismissed.

``surge`` sees every run of demand above its forecast and lets the loop answer it; an *alarm* is what people are told,
and it is scored: a rise by half within ten minutes, to above what is usual here. Whatever sees it first raises it:
*expected* (the path holds such a rise within 25 min), *deviation* (two minutes in a row half above the path and above
the noise of this series), *rise* (the five-minute mean has risen by half, forecast or not), *saturation* (fewer of the
wanted pods are ready while more is asked). ``surge_cause`` may dismiss it: a restart is no surge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from leadtime.forecast import surge_cause
from leadtime.forecast.surge_cause import KEPT_MINUTES, Facts, NotASurge
from leadtime.forecast.surge_definition import LOOK_BACK_MINUTES, MEAN_MINUTES, RISE_RATIO
from leadtime.policy.schema import SurgePolicy

DAY_MIN = 1440
# The median is tracked by steps of a thousandth: it moves by a tenth in about two hours, by half within a night, and
# an hour of surge does not move it. Chosen on the first 60 % of the series; 0.0005 to 0.002 catch the same episodes.
MEDIAN_GAIN = 0.001
USUAL_RATIO = 0.9  # a day is not the whole series: a surge at night may pass the one and not the other
SETTLE_RISE_MIN = 60  # an hour of minutes tells what is usual; the noise of forecasts takes longer (policy)
SETTLE_PATH_MIN = 2 * DAY_MIN  # a course of the day must have been seen twice
AHEAD_MIN = 25  # with the path's cells of five minutes that is a warning at most 30 min before
EXPECTED_HOLDS_MIN = 5  # an expected rise is asked for again ten minutes later; until then its alarm stands
DEVIATION_OF_MEDIAN = 1.4826
DEVIATION_GAIN = 0.02
START_DEVIATION = 0.2
LEAST_DEVIATION = 0.001
FEWEST_KNOWN = 3  # of five minutes
BRIDGED_GAP_MIN = 30  # a rise across a longer gap says nothing about how fast it came
# Two high minutes need three more to fill the mean of five; it is then measured against the five that end now less 7.
SOON_MINUTES = 7
TWICE = 2
BESIDE_MINUTES = 2 * MEAN_MINUTES + LOOK_BACK_MINUTES
# Saturation: the ready share fell by this within ten minutes while what is offered rose by that.
READY_FALL = 0.15
OFFERED_RISE_RATIO = 1.15


class AlarmKind(StrEnum):
    """What saw the surge first."""

    EXPECTED = "expected"
    DEVIATION = "deviation"
    RISE = "rise"
    SATURATION = "saturation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A warning that was raised at ``raised_s`` (epoch s, the end of the minute that showed it) and may still stand.

    ``ratio``: how many times what stood ten minutes earlier (expected: of what stands now).
    """

    raised_s: int
    kind: AlarmKind
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What else is known of the newest minute; None is unknown. ``ready_ratio``: ready ÷ wanted pods, or served ÷
    offered. ``was_reset``: a counter behind the series was reset. ``changes``: names of recent changes."""

    ready_ratio: float | None = None
    reporting_pods: float | None = None
    rollout_in_progress: bool | None = None
    was_reset: bool = False
    changes: tuple[str, ...] = ()


NOTHING_BESIDE = Beside()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """``minutes``: newest last, at most two hours, None is a gap; ``beside`` the newest of them. ``mean`` fades over a
    day, ``median`` is tracked; ``deviation`` is the tracked median of |actual ÷ expected − 1|; ``over`` counts minutes
    in a row above it. ``dismissed``: why the newest minute's rise is no surge."""

    minutes: tuple[float | None, ...] = ()
    beside: tuple[Beside, ...] = ()
    known: int = 0
    mean: float = 0.0
    median: float = 0.0
    deviation: float = START_DEVIATION
    over: int = 0
    quiet: int = 0
    standing: Alarm | None = None
    dismissed: NotASurge | None = None

    @property
    def usual(self) -> float:
        """Demand below this is never alarmed: nine tenths of the day's mean, or of the tracked median if higher."""
        return USUAL_RATIO * max(self.mean, self.median)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was said about the newest minute at least five minutes ago, and (if issued now) the path from now on."""

    expected: float | None = None
    upper: float | None = None
    path: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """Means of five minutes: the newest, those ten minutes earlier, and those the newest two minutes would be measured
    against if they were to stay; None where fewer than three are known."""

    now: float | None
    before: float | None
    soon_before: float | None


def watch(
    state: AlarmState,
    at_min: int,
    actual: float | None,
    said: Expected,
    policy: SurgePolicy,
    *,
    beside: Beside = NOTHING_BESIDE,
) -> AlarmState:
    """The state after the minute ``at_min`` (epoch minutes). O(1) in history.

    actual: the minute's demand, None for a gap; the first minute after a gap may hold more than itself and counts as
    a gap for every mean. An alarm that is raised has ``standing.raised_s`` equal to the end of this minute.
    """
    usual = state.usual
    minutes = (*state.minutes[-(KEPT_MINUTES - 1) :], actual)
    levels = _levels(minutes)
    off = _off(actual, said)
    over = _over(state, off, said, levels, policy)
    known_beside = state.beside
    if known_beside or beside is not NOTHING_BESIDE:  # nothing is kept where nothing is ever known
        known_beside = (*known_beside[-(BESIDE_MINUTES - 1) :], beside)
    state = _learned(state, minutes, known_beside, over, off)
    kind, ratio = _kind(state, levels, said, policy, usual)
    if kind is not None and kind is not AlarmKind.EXPECTED:
        judged = surge_cause.explain(minutes, _facts(known_beside))
        if isinstance(judged, NotASurge):
            return _calmer(replace(state, dismissed=judged), policy)
    if kind is None:
        return _calmer(state, policy)
    quiet = -EXPECTED_HOLDS_MIN if kind is AlarmKind.EXPECTED else 0
    standing = state.standing or Alarm(raised_s=60 * (at_min + 1), kind=kind, ratio=ratio)
    return replace(state, standing=standing, quiet=quiet)


def _kind(
    state: AlarmState, levels: _Levels, said: Expected, policy: SurgePolicy, usual: float
) -> tuple[AlarmKind | None, float]:
    """Which trigger the newest minute pulls, the surest first, and its ratio."""
    now, before = levels.now, levels.before
    if now is not None and before is not None and before > 0 and state.known > SETTLE_RISE_MIN:
        ratio = now / before
        if ratio >= RISE_RATIO and now > usual and _twice(state.minutes, RISE_RATIO * before):
            return AlarmKind.RISE, ratio
        if state.over >= policy.persistence_ticks and state.known > policy.settle_minutes:
            return AlarmKind.DEVIATION, ratio
        if now > usual and ratio >= OFFERED_RISE_RATIO and _saturated(state.beside, policy.persistence_ticks):
            return AlarmKind.SATURATION, ratio
    if said.path and state.known > SETTLE_PATH_MIN:
        ratio = rise_ahead(said.path, now, usual)
        if ratio >= RISE_RATIO:
            return AlarmKind.EXPECTED, ratio
    return None, 0.0


def _levels(minutes: Sequence[float | None]) -> _Levels:
    count = len(minutes)
    return _Levels(
        now=_mean(_known(minutes, count - MEAN_MINUTES, count)),
        before=_stood(minutes, count - LOOK_BACK_MINUTES),
        soon_before=_stood(minutes, count - SOON_MINUTES),
    )


def _stood(minutes: Sequence[float | None], until: int) -> float | None:
    """Mean of the five minutes before index ``until``, of those before a gap there that is no longer than 30 min."""
    five = _known(minutes, until - MEAN_MINUTES, until)
    if len(five) < FEWEST_KNOWN:
        five = _known(minutes, until - MEAN_MINUTES - BRIDGED_GAP_MIN, until)[-MEAN_MINUTES:]
    return _mean(five)


def _known(minutes: Sequence[float | None], first: int, until: int) -> list[float]:
    """Known minutes of [first, until), without any that ends a gap: that one may hold more than itself."""
    return [
        value
        for i in range(max(0, first), max(0, until))
        if (value := minutes[i]) is not None and (i == 0 or minutes[i - 1] is not None)
    ]


def _mean(known: Sequence[float]) -> float | None:
    return sum(known) / len(known) if len(known) >= FEWEST_KNOWN else None


def _twice(minutes: Sequence[float | None], least: float) -> bool:
    """Two of the last five minutes at least: one spike is a scrape artefact."""
    return sum(v is not None and v >= least for v in minutes[-MEAN_MINUTES:]) >= TWICE


def _off(actual: float | None, said: Expected) -> float | None:
    """How far the minute lies from what was expected, as a share of that; None where one of them is unknown."""
    if actual is None or said.expected is None or said.expected <= 0:
        return None
    return actual / said.expected - 1.0


def _over(state: AlarmState, off: float | None, said: Expected, levels: _Levels, policy: SurgePolicy) -> int:
    """Minutes in a row half above the path, its upper bound, its noise, the usual, and what stood ten min earlier."""
    if off is None or said.upper is None or said.expected is None or levels.soon_before is None:
        return 0
    if state.minutes and state.minutes[-1] is None:
        return 0
    actual = said.expected * (1.0 + off)
    noise = policy.deviations * DEVIATION_OF_MEDIAN * state.deviation
    large = off > max(RISE_RATIO - 1.0, noise) and actual > said.upper * (1.0 + policy.min_excess_ratio)
    return state.over + 1 if large and actual >= max(state.usual, RISE_RATIO * levels.soon_before) else 0


def _learned(
    state: AlarmState, minutes: tuple[float | None, ...], beside: tuple[Beside, ...], over: int, off: float | None
) -> AlarmState:
    """Mean, median and deviation after the newest minute; nothing is dismissed yet."""
    actual = minutes[-1]
    known, mean, median, deviation = state.known, state.mean, state.median, state.deviation
    if actual is not None:
        median = actual if known == 0 else _stepped(median, actual, MEDIAN_GAIN)
        known += 1
        mean += (actual - mean) / min(known, DAY_MIN)
    if off is not None:
        deviation = max(LEAST_DEVIATION, _stepped(deviation, abs(off), DEVIATION_GAIN))
    return AlarmState(
        minutes=minutes, beside=beside, known=known, mean=mean, median=median, deviation=deviation, over=over,
        quiet=state.quiet, standing=state.standing,
    )  # fmt: skip


def _stepped(median: float, value: float, gain: float) -> float:
    """The tracked median moves one step towards the value, however far that is; from 0 it starts anew."""
    if median <= 0:
        return value
    return median * (1.0 + gain) if value > median else median / (1.0 + gain)


def rise_ahead(path: Sequence[float], now: float | None, usual: float) -> float:
    """The largest rise within ten minutes to above ``usual`` in the next 25 minutes of ``path``; 0 without one.

    path: expected demand a minute, from now on. now: the five-minute mean that stands. What the path says of the
    present is taken for it where that is more: a path that lies above the demand is biased, which is no rise.
    """
    ahead = np.asarray(path[: AHEAD_MIN + MEAN_MINUTES], dtype=np.float64)
    if not len(ahead) or now is None:
        return 0.0
    stands = max(float(ahead[0]), now)
    course = np.concatenate((np.full(LOOK_BACK_MINUTES + MEAN_MINUTES, stands), ahead))
    means = np.convolve(course, np.full(MEAN_MINUTES, 1.0 / MEAN_MINUTES), "valid")
    later, earlier = means[LOOK_BACK_MINUTES:], means[:-LOOK_BACK_MINUTES]
    rising = (later > usual) & (earlier > 0)
    return float((later[rising] / earlier[rising]).max()) if rising.any() else 0.0


def _saturated(beside: Sequence[Beside], ticks: int) -> bool:
    """The last ``ticks`` minutes each had a lower ready share than ten minutes earlier; unknown is not saturated."""
    if len(beside) < LOOK_BACK_MINUTES + ticks:
        return False
    pairs = [(beside[-1 - i].ready_ratio, beside[-1 - i - LOOK_BACK_MINUTES].ready_ratio) for i in range(ticks)]
    return all(now is not None and then is not None and now <= then - READY_FALL for now, then in pairs)


def _facts(beside: Sequence[Beside]) -> Facts:
    """The minutes' facts as columns, for naming a cause."""
    if not beside:
        return surge_cause.NOTHING_KNOWN
    return Facts(
        reporting_pods=tuple(facts.reporting_pods for facts in beside),
        rollout_in_progress=beside[-1].rollout_in_progress,
        resets=tuple(i for i, facts in enumerate(reversed(beside)) if facts.was_reset),
        changes=beside[-1].changes,
    )


def _calmer(state: AlarmState, policy: SurgePolicy) -> AlarmState:
    """One more minute without a trigger; the alarm ends after ``clear_ticks`` of them."""
    quiet = state.quiet + 1
    return replace(state, quiet=quiet, standing=state.standing if quiet < policy.clear_ticks else None)
