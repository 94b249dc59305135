"""Minutes of load and utilisation → five-minute cells, a robust line through them, and whether two lines are meant."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]

CELL_MIN = 5
CELL_KNOWN = 3  # of five minutes: a median of fewer is one scrape's luck
# Two sizes: the best split of load-per-use into two groups explains this much of its spread (64 % for one normal, 75 %
TWO_SIZES_EXPLAINED, TWO_SIZES_SHARE, TWO_SIZES_APART = 0.88, 0.10, 1.25


def cells(column: FloatColumn) -> FloatColumn:
    """Medians of five minutes each, (minutes // 5,); NaN where fewer than three are known. The rest is dropped."""
    rows = column[: len(column) // CELL_MIN * CELL_MIN].reshape(-1, CELL_MIN)
    enough = (~np.isnan(rows)).sum(axis=1) >= CELL_KNOWN
    found = np.full(len(rows), np.nan)
    found[enough] = np.nanmedian(rows[enough], axis=1)
    return found


def paired_cells(load: FloatColumn, use: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
    """Means of both over the same minutes of each five: all but those with the lowest and the highest use for load.

    Two medians would come from two different minutes, and that is noise in the load, which flattens the line.
    """
    whole = len(load) // CELL_MIN * CELL_MIN
    x, y = load[:whole].reshape(-1, CELL_MIN), use[:whole].reshape(-1, CELL_MIN)
    known = ~np.isnan(x) & ~np.isnan(y) & (x > 0)
    ratio = np.where(known, y / np.where(known, x, 1.0), np.inf)
    rank = np.argsort(np.argsort(ratio, axis=1, kind="stable"), axis=1, kind="stable")
    count = known.sum(axis=1)
    kept = (rank >= 1) & (rank <= count[:, None] - 2) & (count[:, None] >= CELL_KNOWN)
    many = kept.sum(axis=1)
    means = [np.where(kept, part, 0.0).sum(axis=1) / np.maximum(many, 1) for part in (x, y)]
    return np.where(many > 0, means[0], np.nan), np.where(many > 0, means[1], np.nan)


def rank_correlation(one: FloatColumn, other: FloatColumn) -> float:
    """Spearman's, without correction for ties; 0 where one of them never changes."""
    ranks = [np.argsort(np.argsort(column, kind="stable"), kind="stable").astype(np.float64) for column in (one, other)]
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSizes:
    """Two heaps of capacity: their means, and the share of cells in the smaller one."""

    small: float
    large: float
    share_small: float


def two_sizes(capacities: FloatColumn) -> TwoSizes | None:
    """The best split of ``capacities`` (cells,) into two heaps (least squares), or None when one heap explains them."""
    ordered = np.sort(capacities[np.isfinite(capacities)])
    count = len(ordered)
    least = max(2, math.ceil(TWO_SIZES_SHARE * count))
    if count < 2 * least:
        return None
    left = np.arange(least, count - least + 1)
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    below, above = sums[left - 1] / left, (sums[-1] - sums[left - 1]) / (count - left)
    within = squares[-1] - left * below**2 - (count - left) * above**2
    total = squares[-1] - sums[-1] ** 2 / count
    best = int(within.argmin())
    if total <= 0 or within[best] > (1.0 - TWO_SIZES_EXPLAINED) * total or above[best] < TWO_SIZES_APART * below[best]:
        return None
    return TwoSizes(small=float(below[best]), large=float(above[best]), share_small=float(left[best] / count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """u = idle + slope · load, idle ≥ 0."""

    idle: float
    slope: float

    def load_at(self, use: float) -> float:
        """The load at which a pod's utilisation is ``use``; NaN when the line never gets there."""
        return (use - self.idle) / self.slope if self.slope > 0 and use > self.idle else math.nan


def fit_line(load: FloatColumn, use: FloatColumn) -> Line:
    """Theil's incomplete method; through the origin when the idle part comes out negative. Columns (points,), ≥ 2."""
    order = np.argsort(load, kind="stable")
    x, y = load[order], use[order]
    half = len(x) // 2
    apart = x[-half:] - x[:half]
    rising = apart > 0
    slope = float(np.median((y[-half:] - y[:half])[rising] / apart[rising])) if rising.any() else 0.0
    idle = float(np.median(y - slope * x))
    if idle >= 0.0:
        return Line(idle=idle, slope=slope)
    busy = x >= np.median(x)
    return Line(idle=0.0, slope=float(np.median(y[busy] / x[busy])))
