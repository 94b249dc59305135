"""Labels and scores → the numbers of an honest evaluation: average precision, calibration error, Brier score.

Every function takes plain arrays: ``y`` 0 or 1, ``score`` or ``p`` finite, ``weight`` at least 0 (None: all 1; rows
of a sample of the negatives stand for 1/f rows each). What cannot be said of the rows given (no positives, no rows) is
NaN, never 0. An average precision is nothing without the base rate beside it, so callers print both.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Short = npt.NDArray[np.int32]
ECE_BINS = 20
EQUAL_LOG_ODDS = 1e-3  # nearer ones are one probability
SMALLEST_EQUAL = 1e-12
CURVE_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Rows put in order once, so that a bootstrap need not sort again: what AP asks of rows, by step and group.

    Rows of equal score, and all rows down to the next score that holds a positive, are one step: precision is only read
    where a positive stands. ``group``, ``total``: group and summed weight of each pair (step, group), steps in order;
    ``first``: where each step's pairs begin; ``found_*``: the same for positives alone.
    """

    group: Short
    total: Array
    first: Whole
    found_group: Short
    found: Array
    found_first: Whole

    @property
    def steps(self) -> int:
        """Scores at which a positive stands."""
        return len(self.first)

    def found_and_seen(self, times: Array | None = None) -> tuple[Array, Array]:
        """Positives found in each step, and rows seen down to its end, when group g is drawn ``times[g]`` times."""
        if not self.steps:
            return np.empty(0), np.empty(0)
        found = self.found if times is None else self.found * times[self.found_group]
        total = self.total if times is None else self.total * times[self.group]
        return np.add.reduceat(found, self.found_first), np.cumsum(np.add.reduceat(total, self.first))

    def average_precision(self, times: Array | None = None) -> float:
        """AP when group g is drawn ``times[g]`` times (None: each once); NaN without positives."""
        found, seen = self.found_and_seen(times)
        hits = np.cumsum(found)
        if not len(hits) or hits[-1] <= 0:
            return float("nan")
        precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0)
        return float(np.dot(found, precision) / hits[-1])


def ranked(
    y: npt.ArrayLike, score: npt.ArrayLike, weight: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
) -> Ranked:
    """Put rows in falling order of score. ``group``: whole numbers from 0, what a bootstrap draws (None: one group)."""
    labels, scores, weights = _columns(y, score, weight)
    order = np.argsort(-scores, kind="stable")
    labels, scores, weights = labels[order], scores[order], weights[order]
    groups = np.zeros(len(labels), np.int64) if group is None else np.asarray(group, dtype=np.int64)[order]
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], [True])[: len(scores)])
    found = np.add.reduceat(labels * weights, np.concatenate(([0], ends[:-1] + 1))) if len(ends) else np.empty(0)
    kept = ends[found > 0]  # last row of each run of equal scores that holds a positive
    rows = int(kept[-1]) + 1 if len(kept) else 0  # below the last positive nothing counts
    step = np.searchsorted(kept, np.arange(rows))
    positive = labels[:rows] * weights[:rows]
    of, total, first = _pairs(step, groups[:rows], weights[:rows])
    is_found = positive > 0
    found_of, found, found_first = _pairs(step[is_found], groups[:rows][is_found], positive[is_found])
    return Ranked(group=of, total=total, first=first, found_group=found_of, found=found, found_first=found_first)


def _pairs(step: Whole, group: Whole, weight: Array) -> tuple[Short, Array, Whole]:
    """Rows in order of step → group and summed weight of each (step, group), and where each step begins."""
    if not len(step):
        return np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64)
    groups = int(group.max()) + 1
    pair, place = np.unique(step * groups + group, return_inverse=True)
    first = np.flatnonzero(np.diff(pair // groups, prepend=-1))
    return (pair % groups).astype(np.int32), sums(place, weight, len(pair)), first.astype(np.int64)


def average_precision(y: npt.ArrayLike, score: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Step-wise average precision, sum of (recall gained x precision); rows of equal score are one step.

    The definition of scikit-learn's ``average_precision_score``; NaN without positives.
    """
    return ranked(y, score, weight).average_precision()


def base_rate(y: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Weighted share of positives; what a score that knows nothing has as its average precision."""
    labels, _, weights = _columns(y, y, weight)
    return _mean(labels, weights)


def brier(y: npt.ArrayLike, p: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Mean of (p - y)², a proper score: lower is better, base (1 - base) is what the base rate itself gets."""
    labels, probabilities, weights = _columns(y, p, weight)
    return _mean((probabilities - labels) ** 2, weights)


def calibration_in_the_large(y: npt.ArrayLike, p: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Mean probability over base rate; 1 = as many failures as foretold, NaN without positives."""
    labels, probabilities, weights = _columns(y, p, weight)
    base = _mean(labels, weights)
    return _mean(probabilities, weights) / base if base > 0 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Equal-mass bins, rising in p: summed weight, summed weight x p, summed weight x y, each [bins]."""

    weight: Array
    foretold: Array
    happened: Array

    def ece(self) -> float:
        """Mean over rows of |mean p - share of positives| of the row's bin; NaN without rows."""
        total = float(self.weight.sum())
        return float(np.abs(self.foretold - self.happened).sum() / total) if total > 0 else float("nan")


def equal_mass_bins(
    y: npt.ArrayLike, p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, bins: int = ECE_BINS
) -> Bins:
    """Rows cut into ``bins`` of equal weight by p. Equal p stay in one bin: by the middle of the weight they hold.

    Equal means: to a thousandth of the odds. Scores that all but say the base rate are judged as one group, as those of
    an optimum that says just that.
    """
    labels, probabilities, weights = _columns(y, p, weight)
    place = bin_of(probabilities, weights, bins=bins)
    return Bins(
        weight=sums(place, weights, bins),
        foretold=sums(place, weights * probabilities, bins),
        happened=sums(place, weights * labels, bins),
    )


def bin_of(p: Array, weight: Array, *, bins: int = ECE_BINS) -> Whole:
    """The bin, 0 … bins - 1, of each row [rows], as ``equal_mass_bins`` cuts them."""
    if not len(p):
        return np.empty(0, dtype=np.int64)
    held = np.clip(p, SMALLEST_EQUAL, 1 - SMALLEST_EQUAL)
    _, place = np.unique(np.round((np.log(held) - np.log1p(-held)) / EQUAL_LOG_ODDS), return_inverse=True)
    mass = np.bincount(place, weights=weight)
    middle = np.cumsum(mass) - mass / 2
    cut = np.minimum((middle / max(float(mass.sum()), 1e-300) * bins).astype(np.int64), bins - 1)
    return cut[place]


def ece_equal_mass(
    y: npt.ArrayLike, p: npt.ArrayLike, bins: int = ECE_BINS, weight: npt.ArrayLike | None = None
) -> float:
    """Expected calibration error on ``bins`` bins of equal weight, in units of probability."""
    return equal_mass_bins(y, p, weight, bins=bins).ece()


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Precision against recall, falling in score, each [points]; thinned to what an eye can see."""

    recall: tuple[float, ...]
    precision: tuple[float, ...]


def precision_recall_curve(
    y: npt.ArrayLike, score: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, points: int = CURVE_POINTS
) -> Curve:
    """Precision at each recall where a positive is found, at most ``points`` of them; empty without positives."""
    rows = ranked(y, score, weight)
    if not rows.steps:
        return Curve(recall=(), precision=())
    found, seen = rows.found_and_seen()
    hits = np.cumsum(found)
    chosen = np.unique(np.searchsorted(hits, np.linspace(0, hits[-1], points)).clip(0, rows.steps - 1))
    recall = hits[chosen] / hits[-1]
    return Curve(recall=tuple(recall.tolist()), precision=tuple((hits[chosen] / seen[chosen]).tolist()))


def sums(place: Whole, values: Array, count: int) -> Array:
    """Values [rows] summed by place [rows], 0 … count - 1: [count]."""
    return np.asarray(np.bincount(place, weights=values, minlength=count), dtype=np.float64)


def _columns(y: npt.ArrayLike, score: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Array, Array, Array]:
    labels = np.asarray(y, dtype=np.float64)
    scores = np.asarray(score, dtype=np.float64)
    weights = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not len(labels) == len(scores) == len(weights):
        raise ValueError(f"{len(labels)} labels, {len(scores)} scores and {len(weights)} weights: must be equally many")
    if not np.isfinite(scores).all():
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(scores))} scores are not finite: a row without one has no rank"
        )
    return labels, scores, weights


def _mean(values: Array, weights: Array) -> float:
    total = float(weights.sum())
    return float(np.dot(values, weights) / total) if total > 0 else float("nan")
