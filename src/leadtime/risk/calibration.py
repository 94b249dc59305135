"""Scores → probabilities: the prior put right after sampling, a fitted map applied, horizons kept in order.

A fitted map is a small frozen value with a JSON form. In log-odds it is a line (Platt), a line through log p and
log(1 - p) (beta), or straight pieces between knots (isotonic); strictly rising, so that it never makes ties and never
changes a rank. Fitting is training's work (``training.calibrate``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leadtime.risk.measures import Array

SMALLEST = 1e-12  # a probability nearer to 0 or 1 is read as this far from it


class Kind(StrEnum):
    """Forms of a map."""

    IDENTITY = "identity"
    PLATT = "platt"
    BETA = "beta"
    ISOTONIC = "isotonic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """p' → p. In log-odds: platt ``intercept + slope·logit(p')``; beta ``intercept + slope·log p' - slope_below·log(1 -
    p')`` (Kull et al. 2017); isotonic through (``knots_from``, ``knots_to``), both rising, slope 1 outside
    """

    kind: Kind
    intercept: float = 0.0
    slope: float = 1.0
    slope_below: float = 1.0
    knots_from: tuple[float, ...] = ()
    knots_to: tuple[float, ...] = ()

    def apply(self, p: npt.ArrayLike) -> Array:
        """Probabilities [rows] in (0, 1) → calibrated ones, in the same order."""
        given = np.clip(np.asarray(p, dtype=np.float64), SMALLEST, 1 - SMALLEST)
        if self.kind is Kind.IDENTITY:
            return given
        if self.kind is Kind.BETA:
            return expit(self.intercept + self.slope * np.log(given) - self.slope_below * np.log1p(-given))
        if self.kind is Kind.PLATT:
            return expit(self.intercept + self.slope * logit(given))
        return expit(self._pieces(logit(given)))

    def shifted(self, by: float) -> "Calibration":
        """The same map with ``by`` added in log-odds: the repair between two trainings when the base rate drifts."""
        knots = tuple(knot + by for knot in self.knots_to)
        if self.kind is Kind.IDENTITY:
            return Calibration(kind=Kind.PLATT, intercept=by)
        return Calibration(
            kind=self.kind, intercept=self.intercept + by, slope=self.slope, slope_below=self.slope_below,
            knots_from=self.knots_from, knots_to=knots,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """As it stands in a model's card."""
        return {
            "kind": self.kind.value, "intercept": self.intercept, "slope": self.slope, "slope_below": self.slope_below,
            "knots_from": list(self.knots_from), "knots_to": list(self.knots_to),
        }  # fmt: skip

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "Calibration":
        """Read what ``to_json`` wrote. Raises KeyError or ValueError on anything else."""
        return cls(
            kind=Kind(written["kind"]), intercept=float(written["intercept"]), slope=float(written["slope"]),
            slope_below=float(written["slope_below"]), knots_from=tuple(map(float, written["knots_from"])),
            knots_to=tuple(map(float, written["knots_to"])),
        )  # fmt: skip

    def _pieces(self, at: Array) -> Array:
        knots, to = np.asarray(self.knots_from), np.asarray(self.knots_to)
        inside = np.interp(at, knots, to)
        return np.asarray(inside + np.minimum(at - knots[0], 0.0) + np.maximum(at - knots[-1], 0.0), dtype=np.float64)


IDENTITY = Calibration(kind=Kind.IDENTITY)


def prior_corrected(p: npt.ArrayLike, *, kept_negatives: float = 1.0, positive_weight: float = 1.0) -> Array:
    """p' of a model that saw only a share of the negatives → p of the full stream: p = p'f / (p'f + 1 - p').

    ``kept_negatives``: share (0–1] of the negatives it saw at weight 1; ``positive_weight``: what each positive weighed
    (scale_pos_weight w acts as f = 1/w). Rows that carried the weight 1/f need no correction (both 1).
    """
    if not (0 < kept_negatives <= 1 and positive_weight > 0):
        raise ValueError(
            f"kept_negatives {kept_negatives:g} must be in (0, 1], positive_weight {positive_weight:g} > 0"
        )
    given = np.asarray(p, dtype=np.float64)
    odds_factor = kept_negatives / positive_weight
    return given * odds_factor / (given * odds_factor + 1 - given)


class Monotone(NamedTuple):
    """Probabilities by horizon that never fall with the horizon, and the share (0–1) of rows that had to be changed."""

    probabilities: Mapping[int, Array]
    share_changed: float


def monotone_across_horizons(probabilities: Mapping[int, npt.ArrayLike]) -> Monotone:
    """Horizon (minutes) → p [rows], each raised to the largest of a shorter horizon, whose interval lies in its own."""
    horizons = sorted(probabilities)
    if not horizons:
        return Monotone({}, 0.0)
    given = np.stack([np.asarray(probabilities[horizon], dtype=np.float64) for horizon in horizons])
    fixed = np.maximum.accumulate(given, axis=0)
    changed = float((fixed != given).any(axis=0).mean()) if given.shape[1] else 0.0
    return Monotone(dict(zip(horizons, fixed, strict=True)), changed)


def logit(p: npt.ArrayLike) -> Array:
    """Log-odds of p, held away from 0 and 1 by SMALLEST."""
    clipped = np.clip(np.asarray(p, dtype=np.float64), SMALLEST, 1 - SMALLEST)
    return np.log(clipped) - np.log1p(-clipped)


def expit(log_odds: npt.ArrayLike) -> Array:
    """The probability of given log-odds."""
    given = np.asarray(log_odds, dtype=np.float64)
    small = np.exp(-np.abs(given))
    return np.where(given >= 0, 1 / (1 + small), small / (1 + small))
