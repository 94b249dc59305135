"""The incident of story C as demand: form, seed, vary or not → rates for the scored day and the seven before.

Calibrated in the pinned case: 0.60 of N·c all day; from 06:00 a rise to 1.30 of N·c, held to 06:40, gone by 06:45;
noise of 1 % (first-order autoregression, 0.97 per 15 s). N is the workload's minReplicas, c a ready pod's capacity.
*recurring* and *ramp* rise over 20 minutes, *sudden* over 60 seconds. In *recurring* the seven days before had a surge
around the same time; in the two others it is the first time.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from leadtime.simulate.demand_trace import DemandTrace

STEP_S = 15
DAY_S = 86_400
HISTORY_DAYS = 7
# 2026-03-02T00:00:00Z, a Monday: the scored day of every demo.
SCORED_DAY_S = 1_772_409_600
ONSET_S = 6 * 3600
HOLD_END_AFTER_ONSET_S = 40 * 60
FALL_S = 5 * 60
BASE_RATIO = 0.60
PEAK_RATIO = 1.30
RISE_S = {"recurring": 1200, "ramp": 1200, "sudden": 60}


class Form(StrEnum):
    """Three different truths about a surge."""

    RECURRING = "recurring"
    RAMP = "ramp"
    SUDDEN = "sudden"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySurge:
    """One day's surge: ``onset_s`` seconds after midnight, ``peak_ratio`` of N·c; None as a whole means a quiet day."""

    onset_s: int
    peak_ratio: float
    rise_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentDay:
    """What was drawn: the days before (oldest first), the scored day, and one word for people."""

    history: tuple[DaySurge | None, ...]
    scored: DaySurge | None
    variation: str  # pinned | ordinary | skipped | decoy


def _surge(rng: np.random.Generator, rise_s: int, jitter_s: int, height_ratio: float) -> DaySurge:
    """One day's surge around the usual time and height, uniform within the two tolerances."""
    onset = ONSET_S + int(rng.uniform(-jitter_s, jitter_s) // STEP_S) * STEP_S
    peak_ratio = PEAK_RATIO * float(rng.uniform(1 - height_ratio, 1 + height_ratio))
    return DaySurge(onset_s=onset, peak_ratio=peak_ratio, rise_s=rise_s)


def draw_day(form: Form, *, seed: int, vary: bool) -> IncidentDay:
    """Draw the scored day and the seven before it.

    Pinned (``vary`` False): the scored day is the calibrated one; in *recurring* the days before lie within ± 10 min
    and ± 10 %. Varied: onset ± 15 min and height (the peak) ± 20 % for every day; in *recurring*, one time in ten the
    scored day has no surge (``skipped``), one in five a day of the history had it at another hour (``decoy``).
    """
    rng = np.random.default_rng([seed, 6])
    rise = RISE_S[form.value]
    pinned = DaySurge(onset_s=ONSET_S, peak_ratio=PEAK_RATIO, rise_s=rise)
    jitter_s, height = (900, 0.20) if vary else (600, 0.10)
    variation = "ordinary" if vary else "pinned"
    if vary and form is Form.RECURRING:
        u = float(rng.uniform())
        variation = "skipped" if u < 0.1 else "decoy" if u < 0.3 else "ordinary"
    history: list[DaySurge | None] = [None] * HISTORY_DAYS
    if form is Form.RECURRING:
        history = [_surge(rng, rise, jitter_s, height) for _ in range(HISTORY_DAYS)]
    scored = _surge(rng, rise, jitter_s, height) if vary else pinned
    if variation == "decoy":
        which = int(rng.integers(HISTORY_DAYS))
        hour = int(rng.integers(10, 20))
        usual = history[which] or pinned
        history[which] = DaySurge(onset_s=hour * 3600, peak_ratio=usual.peak_ratio, rise_s=rise)
    return IncidentDay(history=tuple(history), scored=None if variation == "skipped" else scored, variation=variation)


def _day_shape(surge: DaySurge | None) -> npt.NDArray[np.float64]:
    """One day's level as a share of N·c, at the middle of each fifteen-second step."""
    t = np.arange(DAY_S // STEP_S) * STEP_S + STEP_S / 2
    if surge is None:
        return np.full(t.shape, BASE_RATIO)
    end_hold = surge.onset_s + HOLD_END_AFTER_ONSET_S
    level = np.interp(
        t,
        [surge.onset_s, surge.onset_s + surge.rise_s, end_hold, end_hold + FALL_S],
        [BASE_RATIO, surge.peak_ratio, surge.peak_ratio, BASE_RATIO],
    )
    return np.asarray(level, dtype=np.float64)


def _noise(steps: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Multiplicative noise with standard deviation 1 % and autocorrelation 0.97 per step."""
    rho, sigma = 0.97, 0.01
    shocks = rng.normal(0.0, sigma * np.sqrt(1 - rho**2), steps)
    out = np.empty(steps)
    level = float(rng.normal(0.0, sigma))
    for i in range(steps):
        level = rho * level + shocks[i]
        out[i] = level
    return 1.0 + out


def incident_demand(day: IncidentDay, *, seed: int, min_replicas: int, capacity_per_pod_rps: float) -> DemandTrace:
    """Rates in requests/s for the seven days before and the scored day; fifteen-second steps from midnight on."""
    shape = np.concatenate([_day_shape(surge) for surge in (*day.history, day.scored)])
    noise = _noise(len(shape), np.random.default_rng([seed, 7]))
    rps = shape * noise * min_replicas * capacity_per_pod_rps
    return DemandTrace(
        start_s=SCORED_DAY_S - HISTORY_DAYS * DAY_S, step_s=STEP_S, rps=np.asarray(rps, dtype=np.float64)
    )
