"""Rows with instants → one value a bucket on an even grid: order, duplicates, gaps, groups.

A row's value stands from its time until the next row (of its group), if that comes within one and a half sampling
periods, else for one period: a row that is late by a little is jitter, a row that never comes is silence.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.sources.demand_file_columns import BoolColumn, Columns, FloatColumn, IntColumn
from leadtime.sources.demand_file_errors import bad_file
from leadtime.sources.demand_file_options import Aggregate, OnDuplicate

MINUTE_S = 60
MAX_BUCKETS = 5_000_000  # as many as rows: a file of two rows a century apart must not fill the memory
JITTER_RATIO = 0.05  # a row this share of a step off its place still counts as on it
HELD_PERIODS = 1.5
KNOWN_FROM_RATIO = 0.5  # a minute of which less than half is known is missing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Rows by group and time, without duplicates: strictly increasing ``time_s`` within a ``group``."""

    time_s: FloatColumn
    value: FloatColumn
    group: IntColumn
    merged: int  # rows that went into another row of the same time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Value i is the mean over [start_s + i·step_s, start_s + (i+1)·step_s), NaN is missing; ``gaps`` hold no row."""

    start_s: float
    step_s: int
    values: FloatColumn
    gaps: int


def in_order(columns: Columns, instants: FloatColumn, on_duplicate: OnDuplicate, path: str) -> Samples:
    """Rows sorted by group; raises BadDemandFile where time runs backwards within a group, or stands still."""
    order = np.argsort(columns.group, kind="stable")
    time_s, group, value, row = instants[order], columns.group[order], columns.value[order], columns.row[order]
    same_group = group[1:] == group[:-1]
    passed_s = np.diff(time_s)
    backwards = np.flatnonzero(same_group & (passed_s < 0))
    if backwards.size:
        i = int(backwards[np.argmin(row[backwards + 1])])
        raise bad_file(
            "demand-time-order", path, f"its time lies before that of row {row[i]}",
            "sort the rows by time; if a clock went back there, name its zone with --time-zone", row=int(row[i + 1]),
        )  # fmt: skip
    again = same_group & (passed_s == 0)
    if not again.any():
        return Samples(time_s=time_s, value=value, group=group, merged=0)
    if on_duplicate is OnDuplicate.ERROR:
        at = np.flatnonzero(again)
        i = int(at[np.argmin(row[at + 1])])
        raise bad_file(
            "demand-time-twice", path, f"its time is that of row {row[i]}",
            "take one out, or say --on-duplicate first, sum or mean; --group-by if the rows are of several series",
            row=int(row[i + 1]),
        )  # fmt: skip
    first = np.flatnonzero(np.concatenate(([True], ~again)))
    merged = _merge(value, first, on_duplicate)
    return Samples(time_s=time_s[first], value=merged, group=group[first], merged=len(value) - len(first))


def _merge(value: FloatColumn, first: IntColumn, how: OnDuplicate) -> FloatColumn:
    """One value for each run that begins at ``first``. A missing value never counts as 0; a run without any is NaN."""
    known = np.isfinite(value)
    count = np.add.reduceat(known.astype(np.int64), first)
    if how is OnDuplicate.FIRST:
        place = np.where(known, np.arange(len(value)), len(value))
        at = np.minimum.reduceat(place, first)
        result = value[np.minimum(at, len(value) - 1)]
    else:
        result = np.add.reduceat(np.where(known, value, 0.0), first)
        if how is OnDuplicate.MEAN:
            result = result / np.maximum(count, 1)
    return np.where(count > 0, result, np.nan)


def sampling_period_s(samples: Samples) -> int:
    """The most frequent whole number of seconds between rows of a group, the smallest of equals; 60 for single rows."""
    same_group = samples.group[1:] == samples.group[:-1]
    passed_s = np.diff(samples.time_s)[same_group]
    if not passed_s.size:
        return MINUTE_S
    seconds, count = np.unique(np.maximum(1, np.rint(passed_s)).astype(np.int64), return_counts=True)
    return int(seconds[np.argmax(count)])


def even_grid(samples: Samples, path: str) -> Grid | None:
    """The rows of one series on their own grid, or None when their times do not lie on one.

    Raises BadDemandFile when first and last row lie more than MAX_BUCKETS steps or minutes apart.
    """
    step_s = sampling_period_s(samples)
    place = (samples.time_s - samples.time_s[0]) / step_s
    _refuse_span(samples, min(step_s, MINUTE_S), path)
    slot = np.rint(place).astype(np.int64)
    if np.any(np.abs(place - slot) > JITTER_RATIO) or np.any(np.diff(slot) < 1):
        return None
    values = np.full(int(slot[-1]) + 1, np.nan)
    values[slot] = samples.value
    return Grid(start_s=float(samples.time_s[0]), step_s=step_s, values=values, gaps=len(values) - len(slot))


def minute_grid(samples: Samples, aggregate: Aggregate, path: str) -> Grid:
    """Any rows → whole UTC minutes, each group's value weighted by the share of the minute in which it stands.

    Sum: the groups that have a row add up; one that has none adds nothing (it was silent or gone). A value that is
    given as missing makes the sum unknown. Mean: over the groups that have a value. A minute of which less than half
    is known is missing.
    """
    _refuse_span(samples, MINUTE_S, path)
    period_s = sampling_period_s(samples)
    ends = samples.time_s + period_s
    same_group = samples.group[1:] == samples.group[:-1]
    next_s = samples.time_s[1:]
    jitter = same_group & (next_s - samples.time_s[:-1] <= HELD_PERIODS * period_s)
    ends[:-1] = np.where(jitter, next_s, ends[:-1])
    return spread(samples.time_s, ends, samples.value, aggregate)


def spread(begins: FloatColumn, ends: FloatColumn, value: FloatColumn, aggregate: Aggregate) -> Grid:
    """Values standing over [begin, end), NaN among them, → the minutes they touch. See ``minute_grid`` for the rule."""
    start_s = float(np.floor(begins.min() / MINUTE_S) * MINUTE_S)
    count = int(np.ceil((ends.max() - start_s) / MINUTE_S))
    edges = start_s + MINUTE_S * np.arange(count + 1, dtype=np.float64)
    known = np.isfinite(value)
    amount = _integral(begins, ends, np.where(known, value, 0.0), edges)
    standing_s = _integral(begins, ends, known.astype(np.float64), edges)
    known_s = _covered_s(begins[known], ends[known], edges)
    unknown_s = _covered_s(begins[~known], ends[~known], edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = amount / (known_s if aggregate is Aggregate.SUM else standing_s)
    needed_s = KNOWN_FROM_RATIO * MINUTE_S
    missing = known_s < needed_s - 1e-6
    if aggregate is Aggregate.SUM:
        missing |= unknown_s > needed_s
    values = np.where(missing, np.nan, np.maximum(mean, 0.0))
    absent = (known_s < needed_s - 1e-6) & (unknown_s < needed_s - 1e-6)
    return _trimmed(Grid(start_s=start_s, step_s=MINUTE_S, values=values, gaps=0), absent)


def _trimmed(grid: Grid, absent: BoolColumn) -> Grid:
    """Without the minutes at either end that hold no row for half of them."""
    present = np.flatnonzero(~absent)
    if not present.size:
        return grid
    first, last = int(present[0]), int(present[-1])
    return Grid(
        start_s=grid.start_s + first * grid.step_s, step_s=grid.step_s, values=grid.values[first : last + 1],
        gaps=int(absent[first : last + 1].sum()),
    )  # fmt: skip


def _integral(begins: FloatColumn, ends: FloatColumn, height: FloatColumn, edges: FloatColumn) -> FloatColumn:
    """∫ Σ height·1[begin ≤ t < end] dt between neighbouring ``edges``."""
    at = np.concatenate((begins, ends))
    jump = np.concatenate((height, -height))
    order = np.argsort(at, kind="stable")
    at, level = at[order], np.cumsum(jump[order])
    until = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(at)))) if at.size else np.zeros(0)
    if not at.size:
        return np.zeros(len(edges) - 1)
    return np.diff(np.interp(edges, at, until))


def _covered_s(begins: FloatColumn, ends: FloatColumn, edges: FloatColumn) -> FloatColumn:
    """Seconds between neighbouring ``edges`` over which at least one span stands."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    opens = np.maximum(begins, np.concatenate(([-np.inf], ends[:-1]))) if begins.size else begins
    own = ends > opens  # spans inside earlier ones add nothing
    return _integral(opens[own], ends[own], np.ones(int(own.sum())), edges)


def _refuse_span(samples: Samples, step_s: int, path: str) -> None:
    """The grid's size is bounded before it is built."""
    first_s, last_s = float(samples.time_s.min()), float(samples.time_s.max())
    if (last_s - first_s) / step_s > MAX_BUCKETS:
        days = (last_s - first_s) / 86_400
        raise bad_file(
            "demand-too-large", path, f"it spans {days:,.0f} days, more than {MAX_BUCKETS:,} buckets of {step_s} s",
            "check for a stray time, or split it by time",
        )  # fmt: skip
