"""Scores and labels of a block nobody trained on → the map that makes probabilities of the scores.

Isotonic where at least 1,000 positives hold it up (borg-trace §3.3), made strictly rising by running straight lines
through the blocks' centres (Oron & Flournoy 2017), beta down to 100, Platt below; the identity without positives. Of
the forms the positives allow, the simplest that foretells unseen groups no worse than the best one: scores that tell
nothing would otherwise be stretched along the noise of a few rows at either end.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leadtime.risk.calibration import IDENTITY, Calibration, Kind, expit, logit
from leadtime.risk.measures import Array

ISOTONIC_POSITIVES = 1000
BETA_POSITIVES = 100
SMALLEST_STEP = 1e-9  # log-odds between two knots; nearer ones are one knot
FLAT_SLOPE = 1e-6  # scores that tell nothing: all but equal probabilities, in the order of the scores
FOLDS = 5
SMALLEST_LOSS_P = 1e-7

Fit = Callable[[Array, Array, Array], Calibration]


def fit_calibration(
    p: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
) -> Calibration:
    """Fit on p [rows] in (0, 1), labels 0/1, weights (1/f of sampled negatives; None: 1).

    ``group`` [rows]: whole numbers; rows of one group (a collection) fail together, so forms are compared on groups
    they have not seen. None: every row is its own.
    """
    given = np.asarray(p, dtype=np.float64)
    labels = np.asarray(y, dtype=np.float64)
    weights = np.ones(len(given)) if weight is None else np.asarray(weight, dtype=np.float64)
    positives = int((labels > 0).sum())
    if positives == 0 or positives == len(labels):
        return IDENTITY
    forms: list[Fit] = [_flat, _platt]
    if positives >= BETA_POSITIVES:
        forms.append(_beta)
    if positives >= ISOTONIC_POSITIVES:
        forms.append(_isotonic)
    groups = np.arange(len(given)) if group is None else np.asarray(group)
    return _simplest(forms, given, labels, weights, groups)(given, labels, weights)


def _simplest(forms: list[Fit], p: Array, y: Array, weight: Array, group: npt.NDArray[Any]) -> Fit:
    """The first form whose log loss on unseen groups lies within one standard error (over the folds) of the least."""
    _, code = np.unique(group, return_inverse=True)
    fold = np.random.default_rng(0).permutation(int(code.max()) + 1)[code] % FOLDS
    loss = np.zeros((len(forms), FOLDS))
    for k in range(FOLDS):
        out = fold == k
        if not out.any() or not 0 < y[~out].sum() < len(y[~out]):
            return forms[min(1, len(forms) - 1)]  # too few groups to compare anything
        for i, form in enumerate(forms):
            foretold = np.clip(form(p[~out], y[~out], weight[~out]).apply(p[out]), SMALLEST_LOSS_P, 1 - SMALLEST_LOSS_P)
            each = y[out] * np.log(foretold) + (1 - y[out]) * np.log1p(-foretold)
            loss[i, k] = -np.average(each, weights=weight[out])
    best = int(loss.mean(axis=1).argmin())
    behind = loss - loss[best]
    within = behind.mean(axis=1) <= behind.std(axis=1, ddof=1) / np.sqrt(FOLDS)
    return forms[int(np.argmax(within))]


def _flat(p: Array, y: Array, weight: Array) -> Calibration:
    """The base rate for everybody."""
    del p
    return Calibration(kind=Kind.PLATT, intercept=float(logit([np.average(y, weights=weight)])[0]), slope=FLAT_SLOPE)


def _isotonic(p: Array, y: Array, weight: Array) -> Calibration:
    at = logit(p)
    level = IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(at, y, sample_weight=weight)
    _, block = np.unique(level, return_inverse=True)
    block = _ends_joined(block, y, weight)
    mass = np.bincount(block, weights=weight)
    centre = np.bincount(block, weights=weight * at) / mass
    half = 0.5 / mass  # a block without (with only) positives is not impossible (certain): half a row more
    to = logit(np.clip(np.bincount(block, weights=weight * y) / mass, half, 1 - half))
    kept = np.concatenate(([True], (np.diff(centre) > SMALLEST_STEP) & (to[1:] > np.maximum.accumulate(to)[:-1])))
    return Calibration(kind=Kind.ISOTONIC, knots_from=tuple(centre[kept].tolist()), knots_to=tuple(to[kept].tolist()))


def _ends_joined(block: npt.NDArray[np.intp], y: Array, weight: Array) -> npt.NDArray[np.intp]:
    """Blocks, numbered by rising level: a first one without positives (a last one of nothing else) joins its neighbour
    where it is too small to be told from it. Half a row more would else lift it above the blocks that follow."""
    mass, positive = np.bincount(block, weights=weight), np.bincount(block, weights=weight * y)
    if len(mass) > 1 and positive[0] == 0 and 0.5 / mass[0] >= positive[1] / mass[1]:
        block = np.maximum(block, 1) - 1
        mass, positive = np.bincount(block, weights=weight), np.bincount(block, weights=weight * y)
    negative = mass - positive
    if len(mass) > 1 and negative[-1] == 0 and 0.5 / mass[-1] >= negative[-2] / mass[-2]:
        block = np.minimum(block, len(mass) - 2)
    return block


def _beta(p: Array, y: Array, weight: Array) -> Calibration:
    held = expit(logit(p))
    intercept, slopes = _logistic(np.column_stack([np.log(held), -np.log1p(-held)]), y, weight)
    if min(slopes) <= 0:  # not rising: two slopes are more than these rows hold up
        return _platt(p, y, weight)
    return Calibration(kind=Kind.BETA, intercept=intercept, slope=float(slopes[0]), slope_below=float(slopes[1]))


def _platt(p: Array, y: Array, weight: Array) -> Calibration:
    intercept, slopes = _logistic(logit(p)[:, None], y, weight)
    if slopes[0] <= 0:  # the scores rank the wrong way round; turning them would hide that
        return _flat(p, y, weight)
    return Calibration(kind=Kind.PLATT, intercept=intercept, slope=float(slopes[0]))


def _logistic(x: Array, y: Array, weight: Array) -> tuple[float, Array]:
    """Intercept and slopes of an all but unpenalised logistic regression."""
    model = LogisticRegression(C=1e6, solver="newton-cholesky", max_iter=200, tol=1e-8)
    with threadpool_limits(limits=1), warnings.catch_warnings():  # one: equal sums on any number of cores
        # Scores that part the labels (a leak) have no finite best slope; the solver then goes on with another method.
        warnings.filterwarnings("ignore", message="The inner solver of NewtonCholeskySolver")
        fitted = model.fit(x, y, sample_weight=weight)
    return float(fitted.intercept_[0]), np.asarray(fitted.coef_[0], dtype=np.float64)
