"""Demand that came, and the instants someone warned → surges caught, and false alarms.

The truth is that of the data folder's README: a minute qualifies where the mean of the five minutes that end with it
is at least 1.5 times the mean of the five that ended ten minutes earlier, and above the series' median.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.run import FloatColumn, IntColumn

RISE_RATIO = 1.5
MEAN_MINUTES = 5
LOOK_BACK_MINUTES = 10
# Qualifying minutes up to this far apart belong to one surge; on the World Cup series that gives 21 surges, on
# mongo-01 18, where the README's table counts 20 and 18.
SAME_SURGE_MINUTES = 15
EARLIEST_S = 1800  # a warning counts from 30 min before the onset …
LATEST_TICKS = 2  # … to two ticks after it


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeScore:
    """``caught`` of ``total`` surges were warned of in time; false alarms a day (None for an empty span)."""

    caught: int
    total: int
    false_alarms_per_day: float | None


def surge_onsets_s(values: FloatColumn, start_s: int) -> IntColumn:
    """The end of the first qualifying minute of each surge: the instant from which it could be known.

    values: minute means from ``start_s``; NaN is a gap, and a mean over a gap does not qualify.
    """
    if len(values) < MEAN_MINUTES + LOOK_BACK_MINUTES:
        return np.empty(0, dtype=np.int64)
    mean = np.full(len(values), np.nan)
    mean[MEAN_MINUTES - 1 :] = np.lib.stride_tricks.sliding_window_view(values, MEAN_MINUTES).mean(axis=1)
    before = np.concatenate((np.full(LOOK_BACK_MINUTES, np.nan), mean[:-LOOK_BACK_MINUTES]))
    known = values[~np.isnan(values)]
    median = float(np.median(known)) if len(known) else np.nan
    qualifying = np.flatnonzero((mean >= RISE_RATIO * before) & (mean > median))
    first = np.concatenate(([True], np.diff(qualifying) > SAME_SURGE_MINUTES))[: len(qualifying)]
    return start_s + 60 * (qualifying[first] + 1)


def score_warnings(warned_at_s: IntColumn, onsets_s: IntColumn, *, span_s: float, tick_s: int = 60) -> SurgeScore:
    """Match warnings (ticks that warned, ascending) with onsets.

    A surge is caught by any warning in [onset − 30 min, onset + 2 ticks]. Ticks that warn one after another (at most
    two ticks apart) are one alarm; an alarm is false when none of its ticks lies in such a window of any surge, nor in
    a surge that is still going on (up to 30 min after its onset).
    """
    latest_s = LATEST_TICKS * tick_s
    after = np.searchsorted(warned_at_s, onsets_s - EARLIEST_S, side="left")
    until = np.searchsorted(warned_at_s, onsets_s + latest_s, side="right")
    caught = int((until > after).sum())
    if span_s <= 0:
        return SurgeScore(caught=caught, total=len(onsets_s), false_alarms_per_day=None)
    near = np.searchsorted(onsets_s, warned_at_s + EARLIEST_S, side="right") - np.searchsorted(
        onsets_s, warned_at_s - EARLIEST_S, side="left"
    )
    begins = np.concatenate(([True], np.diff(warned_at_s) > latest_s))[: len(warned_at_s)]
    alarm = np.cumsum(begins) - 1
    justified = np.bincount(alarm, weights=near > 0, minlength=int(begins.sum()))
    return SurgeScore(
        caught=caught,
        total=len(onsets_s),
        false_alarms_per_day=float((justified == 0).sum()) / (span_s / 86_400),
    )


def warnings_from(ticks: Sequence[TickDigest], workload: str) -> IntColumn:
    """``as_of`` (epoch s) of the ticks that warned: a surge was seen, or a rise by half is expected within 30 min."""
    return np.array(
        [tick.as_of_s for tick in ticks for state in tick.workloads if state.workload == workload and state.warned],
        dtype=np.int64,
    )
