"""A proposal and what was done lately → what may be done now: windows first, then rate limits and bounds.

Step 2 of the HPA, in its two forms. Without ``behavior`` one flag damps scale-down and one fixed limit damps scale-up.
With it each direction has a window and rate policies. The ends differ: without, a recommendation exactly as old as the
window still counts; with, it does not.

Source: kubernetes v1.37.2, pkg/controller/podautoscaler/horizontal.go; checked by tests/oracles/hpa.
"""

from typing import NamedTuple

from leadtime.mechanics.hpa_arithmetic import MAX_INT32, MIN_INT32, ceiled_int32, truncated_int32, wrapped_int32
from leadtime.mechanics.hpa_spec import EffectiveRules, HpaSpec, PolicyType, SelectPolicy
from leadtime.mechanics.hpa_types import AbleToScale, HpaState, Recommendation, ScaleEvent, ScalingLimited


class Stabilised(NamedTuple):
    """After the windows. A named tuple because one is made in every sync."""

    replicas: int
    able_to_scale: AbleToScale
    recommendations: tuple[Recommendation, ...]


class Limited(NamedTuple):
    """After rate limits and bounds."""

    replicas: int
    reason: ScalingLimited


def stabilise(recommendations: tuple[Recommendation, ...], proposal: int, now_s: float, window_s: float) -> Stabilised:
    """Without ``behavior``: the highest recommendation of the last ``window_s`` (both ends included)."""
    cutoff_s = now_s - window_s
    highest = proposal
    expired = -1
    for index, (at_s, replicas) in enumerate(recommendations):
        if at_s < cutoff_s:
            expired = index
        elif replicas > highest:
            highest = replicas
    able = AbleToScale.READY_FOR_NEW_SCALE if highest == proposal else AbleToScale.SCALE_DOWN_STABILISED
    return Stabilised(highest, able, _recorded(recommendations, Recommendation(now_s, proposal), expired))


def stabilise_both_ways(
    recommendations: tuple[Recommendation, ...],
    proposal: int,
    current: int,
    *,
    now_s: float,
    up_window_s: float,
    down_window_s: float,
) -> Stabilised:
    """With ``behavior``: ``current`` moved only as far as every recommendation of the windows (older end open) agrees.

    Raised to the lowest of the up window first, then lowered to the highest of the down window.
    """
    up_cutoff_s = now_s - up_window_s
    down_cutoff_s = now_s - down_window_s
    lowest = highest = proposal
    expired = -1
    for index, (at_s, replicas) in enumerate(recommendations):
        if at_s > up_cutoff_s and replicas < lowest:
            lowest = replicas
        if at_s > down_cutoff_s and replicas > highest:
            highest = replicas
        if at_s < up_cutoff_s and at_s < down_cutoff_s:
            expired = index
    stabilised = min(max(current, lowest), highest)
    if stabilised == proposal:
        able = AbleToScale.READY_FOR_NEW_SCALE
    elif proposal >= current:
        able = AbleToScale.SCALE_UP_STABILISED
    else:
        able = AbleToScale.SCALE_DOWN_STABILISED
    return Stabilised(stabilised, able, _recorded(recommendations, Recommendation(now_s, proposal), expired))


def _recorded(
    recommendations: tuple[Recommendation, ...], new: Recommendation, expired: int
) -> tuple[Recommendation, ...]:
    """The list with ``new`` in the slot of the last expired one, or at its end: so it never outgrows its window."""
    if expired < 0:
        return (*recommendations, new)
    return (*recommendations[:expired], new, *recommendations[expired + 1 :])


def limit(spec: HpaSpec, current: int, stabilised: int) -> Limited:
    """Without ``behavior``: at most twice the current replicas (but 4 are always allowed), within min and max."""
    fastest = max(2 * current, 4)
    if fastest > MAX_INT32:
        fastest = MIN_INT32  # the original's conversion from float: a count the API server then refuses
    highest, reason = spec.max_replicas, ScalingLimited.TOO_MANY
    if highest > fastest:
        highest, reason = fastest, ScalingLimited.SCALE_UP_LIMIT
    if stabilised < spec.min_replicas:
        return Limited(spec.min_replicas, ScalingLimited.TOO_FEW)
    if stabilised > highest:
        return Limited(highest, reason)
    return Limited(stabilised, ScalingLimited.WITHIN_RANGE)


def limit_rate(spec: HpaSpec, state: HpaState, current: int, stabilised: int, now_s: float) -> Limited:
    """With ``behavior``: the rate policies of the direction moved in, then max (upwards) or min (downwards)."""
    if spec.up is not None and stabilised > current:
        fastest = max(_up_limit(spec.up, state, current, now_s), current)
        highest, reason = spec.max_replicas, ScalingLimited.TOO_MANY
        if highest > fastest:
            highest, reason = fastest, ScalingLimited.SCALE_UP_LIMIT
        if stabilised > highest:
            return Limited(highest, reason)
    elif spec.down is not None and stabilised < current:
        fastest = min(_down_limit(spec.down, state, current, now_s), current)
        lowest, reason = spec.min_replicas, ScalingLimited.TOO_FEW
        if lowest < fastest:
            lowest, reason = fastest, ScalingLimited.SCALE_DOWN_LIMIT
        if stabilised < lowest:
            return Limited(lowest, reason)
    return Limited(stabilised, ScalingLimited.WITHIN_RANGE)


def _up_limit(rules: EffectiveRules, state: HpaState, current: int, now_s: float) -> int:
    if rules.select is SelectPolicy.DISABLED:
        return current
    limits: list[int] = []
    for policy in rules.policies:
        base = _at_period_start(state, current, now_s - policy.period_s)
        if policy.type is PolicyType.PODS:
            limits.append(wrapped_int32(base + policy.value))
        else:
            # Rounded up, or a small workload could never grow. 100 × (1 + 10/100) is 110.00000000000001, so 111.
            limits.append(ceiled_int32(base * (1 + policy.value / 100)))
    return min(limits) if rules.select is SelectPolicy.MIN else max(limits)


def _down_limit(rules: EffectiveRules, state: HpaState, current: int, now_s: float) -> int:
    if rules.select is SelectPolicy.DISABLED:
        return current
    limits: list[int] = []
    for policy in rules.policies:
        base = _at_period_start(state, current, now_s - policy.period_s)
        if policy.type is PolicyType.PODS:
            limits.append(wrapped_int32(base - policy.value))
        else:
            limits.append(truncated_int32(base * (1 - policy.value / 100)))
    # "Min" is the smallest change, which downwards is the largest number.
    return max(limits) if rules.select is SelectPolicy.MIN else min(limits)


def _at_period_start(state: HpaState, current: int, cutoff_s: float) -> int:
    """Replicas at the period's start: events strictly younger than the period are undone."""
    added = sum(event.change for event in state.up_events if event.at_s > cutoff_s)
    removed = sum(event.change for event in state.down_events if event.at_s > cutoff_s)
    return wrapped_int32(current - added + removed)


def with_event(
    events: tuple[ScaleEvent, ...], now_s: float, change: int, longest_period_s: int
) -> tuple[ScaleEvent, ...]:
    """``events`` plus this write. Those older than the longest period lose their slot to the next ones."""
    cutoff_s = now_s - longest_period_s
    marked = [event._replace(outdated=True) if event.at_s < cutoff_s else event for event in events]
    new = ScaleEvent(now_s, change, outdated=False)
    for index in range(len(marked) - 1, -1, -1):
        if marked[index].outdated:
            marked[index] = new
            return tuple(marked)
    return (*marked, new)
