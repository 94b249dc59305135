"""Paths of several models, each champion at some horizon → one calibrated path that passes from one to the next."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leadtime.forecast.model import Band, FloatColumn, TooShort
from leadtime.forecast.race import HORIZONS_MIN, LOWER, UPPER


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blend:
    """0 ≤ lower ≤ expected ≤ upper, one element a minute ahead."""

    expected: FloatColumn
    lower: FloatColumn
    upper: FloatColumn


def blend(bands: tuple[Band | TooShort, ...], models: tuple[int, ...], shift: FloatColumn, level: float) -> Blend:
    """Weigh the champions' calibrated bands by horizon; a champion that refused is replaced by model 0."""
    used = tuple(m if isinstance(bands[m], Band) else 0 for m in models)
    base = bands[0]
    assert isinstance(base, Band)
    steps = len(base.expected)
    expected, lower, upper = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    near, growth = _nearness(steps)
    for m in sorted(set(used)):
        band = bands[m]
        assert isinstance(band, Band)
        weight = near[[h for h, u in enumerate(used) if u == m]].sum(axis=0)
        widen = (shift[:, m] @ near) * growth * level
        expected += weight * band.expected
        lower += weight * (band.lower - widen[LOWER])
        upper += weight * (band.upper + widen[UPPER])
    expected = np.maximum(expected, 0.0)
    return Blend(
        expected=expected,
        lower=np.minimum(np.maximum(lower, 0.0), expected),
        upper=np.maximum(upper, expected),
    )


@lru_cache(maxsize=64)
def _nearness(steps: int) -> tuple[FloatColumn, FloatColumn]:
    """(horizon, minute) weights that sum to 1: the nearest horizons share, linearly; and how bounds grow with time.

    Beyond the last scored horizon bounds widen as a random walk's do.
    """
    minutes = np.arange(steps)
    near = np.stack([np.interp(minutes, HORIZONS_MIN, row) for row in np.eye(len(HORIZONS_MIN))])
    return near, np.sqrt(np.maximum(1.0, minutes / HORIZONS_MIN[-1]))
