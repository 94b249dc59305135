"""Minutes of demand, ready pods and utilisation → the demand one pod takes at the target utilisation, or why not.

A pod's utilisation is taken to rise along a straight line with its load, above an idle part: u = idle + load ÷ full.
The line is fitted to five-minute means by Theil's incomplete method (median of the slopes of pairs half the data
apart: 29 % of the points may be anything); its interval comes from redrawing whole hours, because neighbouring minutes
share their errors. Where latency is given, the load from which it stays doubled is a pod's limit too.

Assumed, and not seen from these columns: that noise sits in the utilisation and not in the demand, and that the mix of
requests stays what it was. What can be seen to be wrong is refused by name (``CapacityGap``).
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from leadtime.forecast.capacity_knee import Knee, find_knee
from leadtime.forecast.capacity_line import (
    CELL_MIN,
    cells,
    fit_line,
    paired_cells,
    rank_correlation,
    two_sizes,
)

FloatColumn = npt.NDArray[np.float64]

BLOCK_CELLS = 12  # an hour: errors within one are not independent
FEWEST_CELLS = 72  # six hours of cells with a value
FEWEST_BLOCKS = 6
LOAD_RANGE_RATIO = 1.2  # 95th over 5th percentile of the load a pod had: below it a line could lie anyhow
SATURATED_RATIO = 0.95  # of a full pod: from here on utilisation no longer follows the load
SATURATED_SHARE = 0.8
LEAST_RANK_CORRELATION = 0.3
LEAST_SPREAD = 0.01  # no pod is known better than to one per cent: nodes, neighbours and the clock of scrapes differ
WIDEST_RATIO = 2.0  # upper over lower bound: a wider interval sizes nothing
# for one uniform heap), each group has a tenth of the cells, and the means lie a quarter apart.
DRAWS = 200
SEED = 20260301
PERCENT_FROM = 4.0  # a utilisation above 400 % of the request is a percentage, not a ratio


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapacityMinutes:
    """Columns of equal length (minutes,), oldest first, one element a minute, NaN a gap.

    ``demand`` in requests/s (or tokens/s) over all pods; ``ready_pods`` ≥ 0; ``utilisation_ratio`` the mean over the
    ready pods of CPU or GPU use as a share of what a pod has (0–1; of its request it may exceed 1); ``latency_s`` any
    one percentile. A column that is not known is None; at least one of the last two must be there.
    """

    demand: FloatColumn
    ready_pods: FloatColumn
    utilisation_ratio: FloatColumn | None = None
    latency_s: FloatColumn | None = None

    def check(self) -> None:
        """Raises ValueError for columns of unlike length, negative or infinite values, or a utilisation in percent."""
        columns = {
            "demand": self.demand, "ready_pods": self.ready_pods, "utilisation_ratio": self.utilisation_ratio,
            "latency_s": self.latency_s,
        }  # fmt: skip
        for name, column in columns.items():
            if column is None:
                continue
            if len(column) != len(self.demand):
                raise ValueError(f"learning capacity: {name} has {len(column)} minutes, demand {len(self.demand)}")
            if np.isinf(column).any() or (column[~np.isnan(column)] < 0).any():
                raise ValueError(f"learning capacity: {name} holds negative or infinite values; a gap is NaN")
        use = self.utilisation_ratio
        if use is None and self.latency_s is None:
            raise ValueError("learning capacity: neither utilisation nor latency is given; one of them is needed")
        if use is not None and (~np.isnan(use)).any() and np.nanmedian(use) > PERCENT_FROM:
            raise ValueError(
                f"learning capacity: utilisation is {np.nanmedian(use):g} in the median; divide percent by 100"
            )


class CapacityGap(StrEnum):
    """Why no capacity can be told."""

    TOO_FEW_MINUTES = "too-few-minutes"
    LOAD_NEVER_VARIED = "load-never-varied"
    DOES_NOT_RISE = "utilisation-does-not-rise"
    ALWAYS_SATURATED = "always-saturated"
    SEVERAL_SIZES = "several-pod-sizes"
    TOO_UNSURE = "interval-too-wide"
    NO_KNEE = "latency-never-rose"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityUnknown:
    """A refusal. ``at_least_per_pod``: a pod took that much demand, so its full capacity is no less (None: not known).

    ``sentence`` has the number that decided and what would have to be true.
    """

    why: CapacityGap
    sentence: str
    minutes: int
    at_least_per_pod: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Demand one ready pod takes, in the unit of the demand given.

    ``at_target`` (``lower`` … ``upper`` with ``level_ratio``): at utilisation ``target_ratio``; what pods are sized by.
    ``full``: at full use, or at the knee of latency where that comes first. ``at_target`` ÷ ``target_ratio`` is what
    ``--capacity-per-pod`` wants. ``highest_ratio``: the highest utilisation seen (95th percentile); None from latency
    alone. ``minutes``: with every column known.
    """

    at_target: float
    lower: float
    upper: float
    level_ratio: float
    target_ratio: float
    full: float
    idle_ratio: float | None
    knee: float | None
    highest_ratio: float | None
    minutes: int
    sentence: str

    @property
    def per_pod(self) -> float:
        """``capacity_per_pod`` as the policy's target is applied to it: ``at_target`` ÷ ``target_ratio``."""
        return self.at_target / self.target_ratio

    def pods(self, demand: float) -> int:
        """Pods for ``demand`` at the target, never below 0; a hair above a whole number is that number."""
        return max(0, math.ceil(demand / self.at_target - 1e-9))

    def pods_between(self, demand: float) -> tuple[int, int]:
        """(fewest, most) pods for ``demand`` by the interval."""
        return max(0, math.ceil(demand / self.upper - 1e-9)), max(0, math.ceil(demand / self.lower - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the caller wants to know, see ``learn_capacity``."""

    target_ratio: float
    level_ratio: float
    full_ratio: float


def learn_capacity(
    minutes: CapacityMinutes, *, target_ratio: float = 0.70, level_ratio: float = 0.90, full_ratio: float = 1.0
) -> Capacity | CapacityUnknown:
    """Capacity per pod at ``target_ratio`` with an interval that holds the truth in ``level_ratio`` of cases.

    ``full_ratio``: the utilisation a saturated pod shows (limit ÷ request where use is a share of the request). Raises
    ValueError for columns of unlike length, negative values, or a utilisation in percent. Deterministic.
    """
    minutes.check()
    asked = _Asked(target_ratio=target_ratio, level_ratio=level_ratio, full_ratio=full_ratio)
    load = np.where(minutes.ready_pods > 0, minutes.demand / np.maximum(minutes.ready_pods, 1e-9), np.nan)
    knee = None if minutes.latency_s is None else find_knee(cells(load), cells(minutes.latency_s))
    if minutes.utilisation_ratio is None or np.isnan(minutes.utilisation_ratio).all():
        return _by_latency(load, minutes, knee, asked)
    known = int((~np.isnan(load) & ~np.isnan(minutes.utilisation_ratio)).sum())
    points = _Points.of(*paired_cells(load, minutes.utilisation_ratio))
    refused = _refused(points, known, full_ratio)
    if refused is not None:
        return refused
    return _by_utilisation(points.below(SATURATED_RATIO * full_ratio), known, knee, asked)


def after_removal_ratio(utilisation_ratio: float, pods: int, *, removed: int = 1, idle_ratio: float = 0.0) -> float:
    """The others' utilisation once ``removed`` of ``pods`` are gone: idle + (use − idle) · N ÷ (N − removed).

    Infinite when none is left and there is load. Raises ValueError for removing fewer than 0 pods or more than stand.
    """
    if removed < 0 or removed > pods:
        raise ValueError(f"removing {removed} pods of {pods}: must lie between 0 and {pods}")
    busy = max(0.0, utilisation_ratio - idle_ratio)
    if removed == pods:
        return math.inf if busy > 0 else idle_ratio
    return idle_ratio + busy * pods / (pods - removed)


def fewest_pods(
    utilisation_ratio: float, pods: int, *, target_ratio: float = 0.70, idle_ratio: float = 0.0, least: int = 1
) -> int:
    """How far ``pods`` may be lowered, one by one, while the others stay *below* the target each time; ≥ ``least``.

    ``pods`` itself when not even one may go: at 0.70 · (N − 1)/N and above, none. Example: 10 pods at 0.50 → 8, for
    0.50 · 10/8 = 0.625 and 0.50 · 10/7 = 0.714.
    """
    left = pods
    while left > least and after_removal_ratio(
        utilisation_ratio, pods, removed=pods - left + 1, idle_ratio=idle_ratio
    ) < target_ratio:  # fmt: skip
        left -= 1
    return left


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Points:
    """Cells in which both are known: load a pod had, its utilisation, and the hour (number) the cell lies in."""

    load: FloatColumn
    use: FloatColumn
    hour: npt.NDArray[np.int64]

    @classmethod
    def of(cls, load: FloatColumn, use: FloatColumn) -> "_Points":
        """From columns of cells."""
        known = ~np.isnan(load) & ~np.isnan(use) & (load > 0)
        return cls(load=load[known], use=use[known], hour=np.flatnonzero(known) // BLOCK_CELLS)

    def below(self, use: float) -> "_Points":
        """Those with less use than ``use``: a saturated pod's use says nothing of its load."""
        keep = self.use < use
        return _Points(load=self.load[keep], use=self.use[keep], hour=self.hour[keep])


def _refused(points: _Points, minutes: int, full_ratio: float) -> CapacityUnknown | None:
    """The first thing that is seen to be wrong, or None. Minutes before size before slope."""
    enough = len(points.load) >= FEWEST_CELLS
    saturated = points.use >= SATURATED_RATIO * full_ratio
    if enough and saturated.mean() >= SATURATED_SHARE:
        most = float(np.quantile(points.load[saturated], 0.9))
        text = (
            f"pods were saturated in {saturated.mean():.0%} of the time (utilisation ≥ "
            f"{SATURATED_RATIO * full_ratio:.2f}): one pod takes at least {most:.4g}, how much more is not known"
        )
        return CapacityUnknown(why=CapacityGap.ALWAYS_SATURATED, sentence=text, minutes=minutes, at_least_per_pod=most)
    usable = points.below(SATURATED_RATIO * full_ratio)
    if len(usable.load) < FEWEST_CELLS or len(np.unique(usable.hour)) < FEWEST_BLOCKS:
        text = (
            f"{minutes} minutes with demand, ready pods and utilisation below saturation; at least "
            f"{FEWEST_CELLS * CELL_MIN} are needed"
        )
        return CapacityUnknown(why=CapacityGap.TOO_FEW_MINUTES, sentence=text, minutes=minutes)
    low, high = np.quantile(usable.load, (0.05, 0.95))
    if high < LOAD_RANGE_RATIO * low:
        text = (
            f"the load of a pod hardly varied: 95 % of the time at most {high / low:.2f} × the low, "
            f"{LOAD_RANGE_RATIO:g} × are needed to see a slope"
        )
        return CapacityUnknown(
            why=CapacityGap.LOAD_NEVER_VARIED, sentence=text, minutes=minutes, at_least_per_pod=float(high)
        )
    return _no_line(usable, minutes, float(high))


def _no_line(points: _Points, minutes: int, high: float) -> CapacityUnknown | None:
    """Refuse where utilisation and load do not lie along one rising line."""
    rank = rank_correlation(points.load, points.use)
    if rank < LEAST_RANK_CORRELATION:
        text = (
            f"utilisation does not rise with the load of a pod (rank correlation {rank:.2f}, at least "
            f"{LEAST_RANK_CORRELATION:g} is needed): something else keeps the pods busy, or the columns do not belong "
            "together"
        )
        return CapacityUnknown(why=CapacityGap.DOES_NOT_RISE, sentence=text, minutes=minutes, at_least_per_pod=high)
    busy = (points.load >= np.median(points.load)) & (points.use > 0)
    split = two_sizes(points.load[busy] / points.use[busy])
    if split is not None:
        text = (
            f"pods of several sizes: a pod took {split.small:.4g} at full use in {split.share_small:.0%} of the time, "
            f"else {split.large:.4g}; give each size its own workload, or the time after the change only"
        )
        return CapacityUnknown(why=CapacityGap.SEVERAL_SIZES, sentence=text, minutes=minutes, at_least_per_pod=None)
    return None


def _by_utilisation(points: _Points, minutes: int, knee: Knee | None, asked: _Asked) -> Capacity | CapacityUnknown:
    line = fit_line(points.load, points.use)
    at_target = line.load_at(asked.target_ratio)
    spread = _spread(points, asked.target_ratio, asked.level_ratio) if math.isfinite(at_target) else math.inf
    if not math.isfinite(spread) or math.exp(2 * spread) > WIDEST_RATIO:
        wide = (
            "the line never reaches the target"
            if not math.isfinite(spread)
            else f"a factor of {math.exp(2 * spread):.1f}"
        )
        text = (
            f"the capacity of a pod at utilisation {asked.target_ratio:g} is too unsure: its "
            f"{asked.level_ratio:.0%} interval spans {wide}, at most {WIDEST_RATIO:g} is of use; "
            f"{minutes} minutes were known"
        )
        return CapacityUnknown(
            why=CapacityGap.TOO_UNSURE, sentence=text, minutes=minutes,
            at_least_per_pod=float(np.quantile(points.load, 0.95)),
        )  # fmt: skip
    limit = math.inf if knee is None else knee.load * asked.target_ratio
    highest = float(np.quantile(points.use, 0.95))
    found = Capacity(
        at_target=min(at_target, limit), lower=min(at_target * math.exp(-spread), limit),
        upper=min(at_target * math.exp(spread), limit), level_ratio=asked.level_ratio, target_ratio=asked.target_ratio,
        full=min(line.load_at(asked.full_ratio), math.inf if knee is None else knee.load), idle_ratio=line.idle,
        knee=None if knee is None else knee.load, highest_ratio=highest, minutes=minutes, sentence="",
    )  # fmt: skip
    return _told(found, by_knee=at_target > limit)


def _spread(points: _Points, target_ratio: float, level_ratio: float) -> float:
    """Half the width of the interval in logarithms: redrawn hours' standard deviation × Student's quantile."""
    hours = np.unique(points.hour)
    members = [np.flatnonzero(points.hour == hour) for hour in hours]
    rng = np.random.default_rng(SEED)
    draws = np.full(DRAWS, np.nan)
    for i in range(DRAWS):
        chosen = np.concatenate([members[k] for k in rng.integers(0, len(members), len(members))])
        draws[i] = fit_line(points.load[chosen], points.use[chosen]).load_at(target_ratio)
    good = draws[np.isfinite(draws)]
    if len(good) < 0.95 * DRAWS:
        return math.inf
    free = len(hours) - 1
    half = float(np.log(good).std(ddof=1)) * math.sqrt(len(hours) / free) * _student(level_ratio, free)
    return max(LEAST_SPREAD, half)


def _student(level_ratio: float, free: int) -> float:
    """Two-sided quantile of Student's t, by the first terms of its expansion around the normal (Fisher and Cornish)."""
    z = NormalDist().inv_cdf((1.0 + level_ratio) / 2.0)
    return z * (1.0 + (z**2 + 1.0) / (4.0 * free) + (5 * z**4 + 16 * z**2 + 3) / (96.0 * free**2))


def _by_latency(
    load: FloatColumn, minutes: CapacityMinutes, knee: Knee | None, asked: _Asked
) -> Capacity | CapacityUnknown:
    """Capacity from the knee of latency alone; its interval is the step of load in which the knee lies."""
    assert minutes.latency_s is not None
    known = int((~np.isnan(load) & ~np.isnan(minutes.latency_s)).sum())
    if known < FEWEST_CELLS * CELL_MIN:
        text = f"{known} minutes with demand, ready pods and latency; at least {FEWEST_CELLS * CELL_MIN} are needed"
        return CapacityUnknown(why=CapacityGap.TOO_FEW_MINUTES, sentence=text, minutes=known)
    if knee is None:
        most = float(np.nanquantile(load, 0.95))
        text = (
            f"latency never rose with the load of a pod: it takes at least {most:.4g}, how much more is not known "
            "without utilisation"
        )
        return CapacityUnknown(why=CapacityGap.NO_KNEE, sentence=text, minutes=known, at_least_per_pod=most)
    found = Capacity(
        at_target=knee.load * asked.target_ratio,
        lower=knee.below * asked.target_ratio, upper=knee.above * asked.target_ratio,
        level_ratio=asked.level_ratio, target_ratio=asked.target_ratio, full=knee.load, idle_ratio=None, knee=knee.load,
        highest_ratio=None, minutes=known, sentence="",
    )  # fmt: skip
    return _told(found, by_knee=True)


def _told(found: Capacity, *, by_knee: bool) -> Capacity:
    """``found`` with its sentence."""
    how = "from the load at which latency doubles" if by_knee else "from utilisation against load"
    text = (
        f"one pod takes {found.at_target:.4g} at utilisation {found.target_ratio:g} ({found.lower:.4g} to "
        f"{found.upper:.4g}, {found.level_ratio:.0%} interval), {how}, {found.minutes:,} minutes"
    )
    if not by_knee and found.highest_ratio is not None and found.highest_ratio < found.target_ratio:
        text += f"; no more than {found.highest_ratio:.2f} was seen, beyond it the line is carried on"
    return replace(found, sentence=text)
