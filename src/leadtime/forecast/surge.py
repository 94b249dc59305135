"""Demand beside what was forecast for it minutes before → a surge no forecast knew of, and how fast it rises.

The reference is the path issued at least five minutes earlier: a ramp has then had time to show against it, and a
forecast that follows the demand cannot hide it. What the path's upper bound expected is no surge. The threshold moves
with a robust deviation, so noisy series are not alarmed by their noise. A ramp shows in its steps before it shows in
its height: a minute that climbs more than steps of this series do counts too, while what is alarmed stays the height.
A gap restarts persistence: the first value after one is never counted.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from leadtime.domain.demand import Surge
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.time_window import from_epoch
from leadtime.policy.schema import SurgePolicy

REFERENCE_AGE_MIN = 5
EDGE_MIN = 5
PATH_MIN = 40  # kept of each issued path: bridges a gap of half an hour
SLOPE_MINUTES = 6
DEVIATION_OF_MEDIAN = 1.4826  # standard deviation of a normal ÷ its median absolute deviation
DEVIATION_GAIN = 0.02  # a week of noise settles it; three quarters of an hour of surge would at most double it
START_DEVIATION = 0.2  # from above: until the noise is known, nothing is taken for a surge
LEAST_DEVIATION = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Expected and upper demand per minute from ``at_min`` (epoch minutes) on."""

    at_min: int
    expected: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A surge that runs: its numbers at the newest minute."""

    began_s: int
    detected_s: int
    actual: float
    forecast: float
    threshold_ratio: float
    quiet: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeState:
    """``over``: consecutive minutes over the threshold; ``seen``: values so far; ``deviation``: tracked median of
    |actual ÷ forecast − 1|; ``step_deviation``: the same of |actual ÷ the minute before − 1|."""

    references: tuple[Reference, ...] = ()
    deviation: float = START_DEVIATION
    step_deviation: float = START_DEVIATION
    over: int = 0
    seen: int = 0
    in_gap: bool = True
    newest: tuple[float, ...] = ()
    running: Running | None = None


def refer(state: SurgeState, reference: Reference) -> SurgeState:
    """Keep a newly issued path as a later reference."""
    return replace(state, references=(*state.references[-1:], reference))


def watch(state: SurgeState, at_min: int, actual: float | None, least: float, policy: SurgePolicy) -> SurgeState:
    """The state after the minute ``at_min``. ``least``: demand below it is never a surge.

    A minute counts towards persistence when it leaves the noise and the upper bound, or climbs from the one before by
    more than the noise of steps; a surge begins when enough minutes in a row did and the newest is
    ``min_excess_ratio`` above the forecast: a ramp's first minute need not be.
    """
    if actual is None:
        return replace(state, over=0, in_gap=True, newest=())
    newest = (*state.newest[-(SLOPE_MINUTES - 1) :], actual)
    expected, upper = reference_at(state.references, at_min)
    if state.in_gap or expected is None or upper is None:
        return replace(state, in_gap=False, over=0, newest=newest, seen=state.seen + 1)
    off = actual / expected - 1.0 if expected > 0 else 0.0
    noise = policy.deviations * DEVIATION_OF_MEDIAN * state.deviation
    threshold = max(policy.min_excess_ratio, noise)
    step = _step(state.newest, actual)
    climbs = off > 0.0 and step > policy.deviations * DEVIATION_OF_MEDIAN * state.step_deviation
    over = state.over + 1 if actual >= least and (climbs or (off > noise and actual > upper)) else 0
    large = over > 0 and off > threshold and actual > upper * (1.0 + policy.min_excess_ratio / 2.0)
    settled = state.seen >= policy.settle_minutes
    running = _carry(state.running, large=large and settled, over=over, at_min=at_min, policy=policy)
    if running is not None:
        running = replace(running, actual=actual, forecast=expected, threshold_ratio=threshold)
    calm = running is None
    return SurgeState(
        references=state.references,
        deviation=_followed(state.deviation, off) if calm else state.deviation,
        step_deviation=_followed(state.step_deviation, step) if calm else state.step_deviation,
        over=over,
        seen=state.seen + 1,
        in_gap=False,
        newest=newest,
        running=running,
    )


def _step(before: tuple[float, ...], actual: float) -> float:
    """How far this minute lies from the one before it, as a share of that one; 0 without one."""
    return actual / before[-1] - 1.0 if before and before[-1] > 0 else 0.0


def _followed(deviation: float, off: float) -> float:
    """The tracked median moves a little towards |off|: up when it was larger, down when it was not."""
    grow = 1.0 + DEVIATION_GAIN if abs(off) > deviation else 1.0 / (1.0 + DEVIATION_GAIN)
    return max(LEAST_DEVIATION, deviation * grow)


def reference_at(references: tuple[Reference, ...], at_min: int) -> tuple[float | None, float | None]:
    """(expected, upper) for ``at_min`` from the newest path that is old enough; Nones without one.

    The upper bound is the highest within five minutes either side: models of five-minute cells know no finer edge.
    """
    for path in reversed(references):
        i = at_min - path.at_min
        if REFERENCE_AGE_MIN <= i < len(path.expected):
            return path.expected[i], max(path.upper[i - EDGE_MIN : i + EDGE_MIN + 1])
    return None, None


def _carry(running: Running | None, *, large: bool, over: int, at_min: int, policy: SurgePolicy) -> Running | None:
    """Begin, keep or end the surge."""
    now_s = at_min * 60 + 60
    if running is None:
        if over < policy.persistence_ticks or not large:
            return None
        began_s = now_s - over * 60
        return Running(began_s=began_s, detected_s=now_s, actual=0.0, forecast=0.0, threshold_ratio=0.0)
    quiet = 0 if large else running.quiet + 1
    return replace(running, quiet=quiet) if quiet < policy.clear_ticks else None


def current(state: SurgeState, ref: WorkloadRef, policy: SurgePolicy, pod_lead_s: float) -> Surge | None:
    """The surge that runs, with the demand one pod lead ahead if the rise goes on (at most ``extrapolate_s``)."""
    running = state.running
    if running is None:
        return None
    rise = rise_per_min(state.newest)
    ahead_min = min(pod_lead_s, policy.extrapolate_s) / 60.0
    most = running.actual * (1.0 + policy.max_extrapolation_ratio)
    return Surge(
        subject=ref,
        detected_at=from_epoch(running.detected_s),
        began_at=from_epoch(running.began_s),
        actual=running.actual,
        forecast=running.forecast,
        excess_ratio=running.actual / running.forecast - 1.0 if running.forecast > 0 else 0.0,
        threshold_ratio=running.threshold_ratio,
        rise_per_min=rise,
        extrapolated=min(running.actual + rise * ahead_min, most),
    )


def rise_per_min(newest: tuple[float, ...]) -> float:
    """How fast demand rises now, never below 0: Theil–Sen slope, held down by the newest steps.

    Without the newest steps a jump that is already over would be carried on as if it were a ramp.
    """
    if len(newest) < 3:
        return 0.0
    slopes = [(b - a) / (j - i) for i, a in enumerate(newest) for j, b in enumerate(newest) if j > i]
    last = [b - a for a, b in pairwise(newest[-3:])]
    return max(0.0, min(median(slopes), sum(last) / 2.0, 1.25 * last[-1]))
