"""Demand that came, and the instants someone warned → each surge with its lead or lag, and the false alarms.

The one definition of a surge in the product: backtest, replay's report and tests use it. A minute qualifies
where the mean of the five minutes that end with it is at least 1.5 times the mean of the five that ended ten minutes
earlier, and above the series' median. Qualifying minutes at most 60 min apart are one episode; its onset is the end
of the first of them, the instant from which it could be known. Where a person labelled the series, labels count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.forecast.naive import trailing_mean
from leadtime.forecast.surge_definition import LOOK_BACK_MINUTES, MEAN_MINUTES, RISE_RATIO
from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.run import FloatColumn, IntColumn

SAME_EPISODE_S = 3600
EARLIEST_S = 1800  # an alarm counts from 30 min before the onset …
LATEST_TICKS = 2  # … to two ticks after it
BESIDE_S = 1800  # an alarm further than this from every episode is false
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One surge: could be known from ``onset_s`` on, its last qualifying minute (or label) ended at ``end_s``."""

    onset_s: int
    end_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEpisode:
    """An episode beside its first alarm in [onset − 30 min, end + 30 min]; ``lead_s`` < 0 is a lag, None no alarm.

    ``caught``: that alarm came at most two ticks after the onset.
    """

    episode: Episode
    lead_s: int | None
    caught: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeScore:
    """Every episode, the alarms raised, those of them that were false, over ``span_s`` of series."""

    episodes: tuple[JudgedEpisode, ...]
    alarms: int
    false_alarms_s: tuple[int, ...]
    span_s: float

    @property
    def total(self) -> int:
        """How many episodes there were."""
        return len(self.episodes)

    @property
    def caught(self) -> int:
        """How many were warned of in time."""
        return sum(judged.caught for judged in self.episodes)

    @property
    def lead_s(self) -> float | None:
        """Median lead over the caught episodes, negative for a lag; None when none was caught."""
        leads = [judged.lead_s for judged in self.episodes if judged.caught and judged.lead_s is not None]
        return float(np.median(leads)) if leads else None

    @property
    def false_alarms_per_day(self) -> float | None:
        """False alarms per 24 h of series; None for an empty span."""
        return len(self.false_alarms_s) / (self.span_s / DAY_S) if self.span_s > 0 else None


def qualifying_minutes(values: FloatColumn) -> npt.NDArray[np.bool_]:
    """Which minutes qualify as part of a surge (see the module). ``values``: minute means, NaN is a gap.

    A mean over a gap does not qualify. The median is that of the whole series' known minutes, so a longer series may
    call other minutes a surge: this is a judge, not a detector.
    """
    qualify = np.zeros(len(values), dtype=np.bool_)
    if len(values) < MEAN_MINUTES + LOOK_BACK_MINUTES or np.isnan(values).all():
        return qualify
    mean = trailing_mean(values, MEAN_MINUTES)
    now, before = mean[LOOK_BACK_MINUTES:], mean[:-LOOK_BACK_MINUTES]
    qualify[LOOK_BACK_MINUTES:] = (now >= RISE_RATIO * before) & (now > np.nanmedian(values))
    return qualify


def episodes_of(values: FloatColumn, start_s: int) -> tuple[Episode, ...]:
    """The surges of a series of minutes from ``start_s`` on, in order of time."""
    return episodes_of_buckets(qualifying_minutes(values), start_s)


def episodes_of_buckets(
    labelled: npt.NDArray[np.bool_], start_s: int, *, step_s: int = 60, apart_s: int = SAME_EPISODE_S
) -> tuple[Episode, ...]:
    """Labelled buckets [start_s + i·step_s, + step_s) → episodes; labels up to ``apart_s`` apart are one.

    The onset is the end of the first labelled bucket: nobody knows a bucket before it has ended.
    """
    ends = start_s + step_s * (np.flatnonzero(labelled).astype(np.int64) + 1)
    if not len(ends):
        return ()
    first = np.concatenate(([True], np.diff(ends) > apart_s))
    last = np.concatenate((first[1:], [True]))
    return tuple(
        Episode(onset_s=int(onset), end_s=int(end)) for onset, end in zip(ends[first], ends[last], strict=True)
    )


def episodes_of_intervals(intervals: Sequence[Episode]) -> tuple[Episode, ...]:
    """Intervals a person gave, in any order → episodes in order of time; those that overlap or touch are one."""
    merged: list[Episode] = []
    for interval in sorted(intervals, key=lambda i: (i.onset_s, i.end_s)):
        if merged and interval.onset_s <= merged[-1].end_s:
            end_s = max(merged[-1].end_s, interval.end_s)
            merged[-1] = Episode(onset_s=merged[-1].onset_s, end_s=end_s)
        else:
            merged.append(interval)
    return tuple(merged)


def score(alarms_s: IntColumn, episodes: Sequence[Episode], *, span_s: float, tick_s: int = 60) -> SurgeScore:
    """Match alarms with episodes.

    alarms_s: the instants at which an alarm was *raised* (epoch s, any order); an alarm that merely stands on is none.
    episodes: in order of time. An episode is caught by an alarm in [onset − 30 min, onset + 2 ticks]; an alarm is false
    when it lies outside [onset − 30 min, end + 30 min] of every episode. Both ends belong to the window.
    """
    alarms_s = np.sort(np.asarray(alarms_s, dtype=np.int64))
    near = np.zeros(len(alarms_s), dtype=np.bool_)
    judged = []
    for episode in episodes:
        begin = int(np.searchsorted(alarms_s, episode.onset_s - EARLIEST_S, side="left"))
        end = int(np.searchsorted(alarms_s, episode.end_s + BESIDE_S, side="right"))
        near[begin:end] = True
        lead_s = episode.onset_s - int(alarms_s[begin]) if begin < end else None
        in_time = lead_s is not None and lead_s >= -LATEST_TICKS * tick_s
        judged.append(JudgedEpisode(episode=episode, lead_s=lead_s, caught=in_time))
    return SurgeScore(
        episodes=tuple(judged),
        alarms=len(alarms_s),
        false_alarms_s=tuple(int(at) for at in alarms_s[~near]),
        span_s=span_s,
    )


def raised_s(warned_at_s: IntColumn, tick_s: int = 60) -> IntColumn:
    """Ticks that warned (ascending) → the instants an alarm was raised: ticks at most two apart are one alarm."""
    if not len(warned_at_s):
        return np.empty(0, dtype=np.int64)
    begins = np.concatenate(([True], np.diff(warned_at_s) > LATEST_TICKS * tick_s))
    return np.asarray(warned_at_s[begins], dtype=np.int64)


def warnings_from(ticks: Sequence[TickDigest], workload: str) -> IntColumn:
    """``as_of`` (epoch s) of the ticks in which an alarm stood."""
    return np.array(
        [tick.as_of_s for tick in ticks for state in tick.workloads if state.workload == workload and state.warned],
        dtype=np.int64,
    )
