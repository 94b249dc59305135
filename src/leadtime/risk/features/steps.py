"""Sorted rows → lags, means over the last windows, decayed sums, counts up to an instant. Arrays in, arrays out.

Every value depends only on rows inside its own group and inside a bounded look-back, and comes out bit for bit the
same however much history stands before it: sums run over integers (fixed-point), decayed sums over a tree whose shape
depends on the distance to the row only. So one row at a time equals the whole batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leadtime.domain.errors import BadTrace

Values = np.ndarray[Any, np.dtype[Any]]

SCALE = 2.0**16  # one fixed-point step is 1/65,536 of the unit
CLIP = 16.0  # ratios above it count as it; 16² · 2³² · 2²⁰ rows still fit 64 bits


def fixed(values: Values) -> Values:
    """Ratios → Int64 fixed-point, clipped to ±CLIP; NaN → 0 (count them apart)."""
    points: Values = np.clip(values, -CLIP, CLIP)
    points *= SCALE
    points[np.isnan(points)] = 0.0
    return np.rint(points, out=points).astype(np.int64)


def first_of_group(changes: Values) -> Values:
    """True where a group begins [n] → index of its group's first row, Int64 [n]."""
    return np.maximum.accumulate(np.where(changes, np.arange(len(changes)), 0))


def running_sum(values: Values) -> Values:
    """Int64 [n] → Int64 [n + 1], [k] = sum of the first k; wraps around, differences stay exact."""
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, dtype=np.int64, out=total[1:])
    return total


def lagged(values: Values, by: int, allowed: Values) -> Values:
    """The value ``by`` rows before, NaN where not ``allowed`` (Bool [n])."""
    out = np.full(len(values), np.nan)
    if by < len(values):
        out[by:] = values[:-by]
        out[~allowed] = np.nan
    return out


def rows_within(end: Values, first: Values, *, rows: int, span_us: int) -> Values:
    """Index of the oldest of the last ``rows`` rows that lie in (end − span_us, end] and in the row's group."""
    inside = np.zeros(len(end), dtype=np.int64)
    for back in range(1, rows):
        if back >= len(end):
            break
        inside[back:] += end[:-back] > end[back:] - span_us
    oldest: Values = np.maximum(np.arange(len(end)) - inside, first)
    return oldest


def lowest_before(total: Values, oldest: Values, *, rows: int) -> Values:
    """Lowest of total[oldest_i … i + 1], ends included, for each row i; total is [n + 1], i − oldest_i < ``rows``.

    Two overlapping blocks of a power of two cover each span (a sparse table: Bender and Farach-Colton, 2000).
    """
    width = np.arange(1, len(total)) - oldest + 1
    out = np.empty(len(total) - 1, dtype=total.dtype)
    lowest, size = total, 1
    while size <= rows + 1:
        here = np.flatnonzero((width >= size) & (width < 2 * size))
        out[here] = np.minimum(lowest[oldest[here]], lowest[here + 2 - size])
        lowest = np.minimum(lowest[: len(lowest) - size], lowest[size:]) if size < len(lowest) else lowest
        size *= 2
    return out


def decayed_sums(
    columns: Sequence[Values], at_us: Values, first: Values, *, half_life_us: float, doublings: int
) -> list[Values]:
    """Σ x_j · 2^(−(t_i − t_j) / half-life) over the last 2^doublings rows of the group, itself included.

    By doubling (Hillis and Steele, "Data parallel algorithms", CACM 1986): after step k a row has the sum of its last
    2^(k+1) rows, so n rows cost ``doublings`` passes, and the order of additions does not depend on where a row stands.
    """
    sums = [np.nan_to_num(column, nan=0.0) for column in columns]
    before = np.arange(len(at_us)) - first  # rows of the group before the row
    product = np.empty(len(at_us))
    for step in range(doublings):
        back = 1 << step
        if back >= len(at_us):
            break
        weight = np.where(before[back:] >= back, at_us[back:] - at_us[:-back], np.inf)
        weight *= -1.0 / half_life_us
        np.exp2(weight, out=weight)
        for column in sums:
            column[back:] += np.multiply(weight, column[:-back], out=product[back:])
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Things that happened, sorted by (group, time), to be counted up to an instant. Groups are codes 0, 1, …"""

    order: Values  # positions of the things, sorted
    keys: Values
    earliest_us: int
    span_us: int
    starts: Values  # of each group: how many things of the groups before it

    def upto(self, group: Values, at_us: Values) -> Values:
        """How many things of all groups before and of this group with time ≤ at_us: an index into sorted things."""
        within = np.minimum(np.maximum(at_us - self.earliest_us + 1, 0), self.span_us - 1)
        found: Values = np.searchsorted(self.keys, group * self.span_us + within, side="right")
        return found

    def first(self, group: Values) -> Values:
        """The same for "before the group began"."""
        return self.starts[group]


def timeline(group: Values, at_us: Values, *, groups: int, is_sorted: bool = False) -> Timeline:
    """Codes and times [n] → Timeline. Raises BadTrace where groups × span does not fit 64 bits."""
    earliest = int(at_us.min()) if len(at_us) else 0
    span = (int(at_us.max()) if len(at_us) else 0) - earliest + 3
    if groups * span >= 2**63:
        raise BadTrace(
            "features-too-wide", "making features", f"{groups:,} groups over {span / 1e6:,.0f} s do not fit 64 bits",
            "make more partitions, or check the time unit (microseconds)",
        )  # fmt: skip
    keys = group.astype(np.int64) * span + (at_us - earliest) + 1
    order = np.arange(len(keys)) if is_sorted else np.argsort(keys, kind="stable")
    keys = keys if is_sorted else keys[order]
    starts = np.searchsorted(keys, np.arange(groups + 1) * span)
    return Timeline(order=order, keys=keys, earliest_us=earliest, span_us=span, starts=starts)


def ratio(above: Values, below: Values) -> Values:
    """above / below; NaN where either is missing or below ≤ 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def share(above: Values, below: Values) -> Values:
    """above / below for counts; NaN where below is 0."""
    return ratio(above.astype(np.float64), below.astype(np.float64))
