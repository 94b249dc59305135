"""A weighted sample of rows → a logistic regression of P(failure within the horizon), as a small frozen value.

A sanity instrument: every number in it can be read. Features are centred and scaled, held within five standard
deviations, a missing value stands at the centre and has a flag of its own where it is neither rare nor the rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leadtime.risk.calibration import expit
from leadtime.training.sampling import Array, Rows

HELD = 5.0  # standard deviations; one odd ratio must not outvote every other feature
FLAGGED = 0.001  # a missing share from here to 1 - here gets a flag
PENALTY = 1.0  # scikit-learn's C on standardised features


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """``log-odds = intercept + sum coefficient x standardised feature + sum flag x missing``."""

    features: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    coefficients: tuple[float, ...]
    flags: tuple[float, ...]  # what a missing value adds; 0 where missing is rare or the rule
    intercept: float

    def parts(self, x: Array) -> Array:
        """Each feature's part of the log-odds, [rows, features], from x [rows, features] (NaN = missing)."""
        missing = np.isnan(x)
        standard = _standard(x, self.centre, self.scale)
        return np.asarray(standard * np.asarray(self.coefficients) + missing * np.asarray(self.flags), dtype=np.float64)

    def probabilities(self, x: Array) -> Array:
        """P [rows], not calibrated."""
        return expit(self.intercept + self.parts(x).sum(axis=1))

    def to_json(self) -> dict[str, Any]:
        """As it stands in the model's file."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def logistic_from(written: Mapping[str, Any]) -> Logistic:
    """Read what ``to_json`` wrote."""
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in written.items()
    }
    return Logistic(**plain)


def fit_logistic(rows: Rows, features: Sequence[str], *, columns: Sequence[int] | None = None) -> Logistic:
    """Fit on ``rows`` (weights included); ``columns``: places in the matrix of ``features``, all where left out.

    A constant feature gets no weight. Raises ValueError where there is no failure, or nothing but failures.
    """
    if not 0 < rows.positives < len(rows.index):
        raise ValueError(f"{rows.positives} failures among {len(rows.index)} rows: nothing to tell apart")
    places = list(range(rows.x.shape[1])) if columns is None else list(columns)
    x = np.asarray(rows.x[rows.index][:, places], dtype=np.float64)
    missing = np.isnan(x)
    centre, scale = _moments(x, rows.weight.astype(np.float64))
    share = missing.mean(axis=0)
    flagged = np.flatnonzero((share > FLAGGED) & (share < 1 - FLAGGED))
    design = np.hstack([_standard(x, centre, scale), missing[:, flagged]])
    model = LogisticRegression(C=PENALTY, solver="newton-cholesky")
    with threadpool_limits(limits=1):  # equal sums on any number of cores, and no threads that wait for each other
        fitted = model.fit(design, rows.y, sample_weight=rows.weight)
    weights = fitted.coef_[0]
    flags = np.zeros(len(places))
    flags[flagged] = weights[len(places) :]
    return Logistic(
        features=tuple(features), centre=tuple(centre.tolist()), scale=tuple(scale.tolist()),
        coefficients=tuple(float(w) for w in weights[: len(places)]), flags=tuple(flags.tolist()),
        intercept=float(fitted.intercept_[0]),
    )  # fmt: skip


def _moments(x: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of the known values of each column; 0 and 1 where nothing is known."""
    known = np.isfinite(x)
    mass = (known * weight[:, None]).sum(axis=0)
    filled = np.where(known, x, 0.0)
    centre = np.divide(weight @ filled, mass, out=np.zeros(x.shape[1]), where=mass > 0)
    squared = weight @ (np.where(known, x - centre, 0.0) ** 2)
    scale = np.sqrt(np.divide(squared, mass, out=np.zeros(x.shape[1]), where=mass > 0))
    return centre, np.where(scale > 1e-12, scale, 1.0)


def _standard(x: Array, centre: Sequence[float] | Array, scale: Sequence[float] | Array) -> Array:
    standard = (np.asarray(x, dtype=np.float64) - np.asarray(centre)) / np.asarray(scale)
    return np.clip(np.where(np.isnan(standard), 0.0, standard), -HELD, HELD)
