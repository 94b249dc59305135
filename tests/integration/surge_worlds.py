"""Seeded minutes in the story's form: 500 hours of service, ten surges that begin without warning within minutes."""

import numpy as np
import numpy.typing as npt

HOURS = 500
SURGES = 10
DAY_MIN = 1440
T0 = 1_772_409_600  # 2026-03-02T00:00:00Z


def shadow_weeks(seed: int, *, swing: float = 0.25, noise: float = 0.03) -> npt.NDArray[np.float64]:
    """30,000 minutes: a course of the day, weekends at 0.8, drift, autocorrelated noise; ten surges by chance.

    A surge rises in 1 to 8 minutes to 1.7 to 2.6 times what stood, and to 1.25 times the mean at least (by night a
    doubling may stay below a usual day), stays 20 to 60 minutes, falls in 5 to 10; none in the first day, two at least
    five hours apart, at any time of day and never at a usual one.
    """
    rng = np.random.default_rng([seed, 5])
    minutes = HOURS * 60
    t = np.arange(minutes)
    course = 1.0 - swing * np.cos(2 * np.pi * (t / DAY_MIN - 0.1)) + 0.1 * swing * np.sin(4 * np.pi * t / DAY_MIN)
    weekend = np.where((t // DAY_MIN) % 7 >= 5, 0.8, 1.0)
    weekend = np.convolve(weekend, np.full(120, 1 / 120), "same") / np.convolve(
        np.ones(minutes), np.full(120, 1 / 120), "same"
    )
    drift = 1.0 + 0.2 * np.sin(2 * np.pi * t / minutes + rng.uniform(0, 6))
    shocks = rng.normal(0.0, noise, minutes)
    slow = np.empty(minutes)
    slow[0] = 0.0
    for i in range(1, minutes):
        slow[i] = 0.9 * slow[i - 1] + 0.3 * shocks[i]
    base = course * weekend * drift
    level = 600.0 * base * (1.0 + slow + rng.normal(0.0, noise, minutes))
    return np.maximum(0.0, level * _surges(rng, base))


def _surges(rng: np.random.Generator, base: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    minutes, factor = len(base), np.ones(len(base))
    slot = (minutes - DAY_MIN) // SURGES
    for i in range(SURGES):
        start = DAY_MIN + i * slot + int(rng.integers(0, slot - 300))
        rise, hold, fall = int(rng.integers(1, 9)), int(rng.integers(20, 61)), int(rng.integers(5, 11))
        peak = max(float(rng.uniform(1.7, 2.6)), 1.25 * float(base.mean()) / float(base[start]))
        edges = np.cumsum([start, rise, hold, fall])
        factor *= np.interp(np.arange(minutes), edges, [1.0, peak, peak, 1.0])
    return factor
