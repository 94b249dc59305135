"""Forecasts and what came → the worst forecasts that missed, one per episode."""

from dataclasses import dataclass

import numpy as np

from leadtime.scorecard.forecasts import ForecastPoints, MinuteSeries, value_at

SAME_EPISODE_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """The worst forecast of an episode of misses: the actual value lay outside [lower, upper].

    ``misses`` counts the forecasts of the episode; ``error_ratio`` = (expected − actual) / actual, None for actual 0.
    """

    issued_at_s: int
    about_s: int
    expected: float
    lower: float
    upper: float
    actual: float
    error_ratio: float | None
    misses: int


def worst_misses(points: ForecastPoints, actual: MinuteSeries, *, at_most: int) -> tuple[Miss, ...]:
    """The ``at_most`` worst episodes by distance outside the interval, oldest first.

    Misses whose instants lie at most 30 min apart are one episode.
    """
    about_s = points.issued_at_s + points.horizon_s
    truth = value_at(actual.values, (about_s - actual.start_s) // 60)
    outside = np.maximum(points.lower - truth, truth - points.upper)
    missed = np.flatnonzero(outside > 0)  # NaN compares as False: a gap is no miss
    if not len(missed):
        return ()
    breaks = np.flatnonzero(np.diff(about_s[missed]) > SAME_EPISODE_S) + 1
    worst = [(group[np.argmax(outside[group])], len(group)) for group in np.split(missed, breaks)]
    kept = sorted(sorted(worst, key=lambda found: (-outside[found[0]], found[0]))[:at_most])
    return tuple(
        Miss(
            issued_at_s=int(points.issued_at_s[i]), about_s=int(about_s[i]), expected=float(points.expected[i]),
            lower=float(points.lower[i]), upper=float(points.upper[i]), actual=float(truth[i]),
            error_ratio=float((points.expected[i] - truth[i]) / truth[i]) if truth[i] > 0 else None, misses=misses,
        )
        for i, misses in kept
    )  # fmt: skip
