"""HorizontalPodAutoscaler v2, one sync: spec + memory + what is seen → desired replicas, new memory, and why.

Bit for bit what kubernetes v1.37.2 does: cut-off percents, float noise that reaches a ceiling, integers that overflow,
lists whose slots are used again. ``tests/oracles/hpa`` runs the original beside it. Pure: the caller brings the time,
calls once a ``flags.sync_period_s`` after the last sync, and writes ``desired`` to the target.
"""

from dataclasses import replace

from leadtime.mechanics import hpa_behavior, hpa_metrics
from leadtime.mechanics.hpa_pods import MetricFailed
from leadtime.mechanics.hpa_spec import (
    AverageValue,
    Behavior,
    ContainerResourceMetric,
    ExternalMetric,
    HpaFlags,
    HpaSpec,
    MetricSpec,
    ObjectMetric,
    PodsMetric,
    PolicyType,
    RatePolicy,
    ResourceMetric,
    ScalingRules,
    SelectPolicy,
    Utilisation,
    Value,
)
from leadtime.mechanics.hpa_types import (
    AbleToScale,
    ContainerRequests,
    ExternalReading,
    HpaObserved,
    HpaState,
    HpaSync,
    ObjectReading,
    PodPhase,
    PodReading,
    PodSample,
    PodSamples,
    Reading,
    ReadingError,
    Ready,
    Recommendation,
    ScaleEvent,
    ScalingActive,
    ScalingLimited,
    SelectorProblem,
    SyncReason,
)

__all__ = [
    "AbleToScale",
    "AverageValue",
    "Behavior",
    "ContainerRequests",
    "ContainerResourceMetric",
    "ExternalMetric",
    "ExternalReading",
    "HpaFlags",
    "HpaObserved",
    "HpaSpec",
    "HpaState",
    "HpaSync",
    "MetricSpec",
    "ObjectMetric",
    "ObjectReading",
    "PodPhase",
    "PodReading",
    "PodSample",
    "PodSamples",
    "PodsMetric",
    "PolicyType",
    "RatePolicy",
    "Reading",
    "ReadingError",
    "Ready",
    "Recommendation",
    "ResourceMetric",
    "ScaleEvent",
    "ScalingActive",
    "ScalingLimited",
    "ScalingRules",
    "SelectPolicy",
    "SelectorProblem",
    "SyncReason",
    "Utilisation",
    "Value",
    "sync",
]


def sync(spec: HpaSpec, state: HpaState, observed: HpaObserved) -> HpaSync:
    """One pass of the controller over one HPA.

    Replicas above max or below min are moved at once: no metric is read, no tolerance, window or rate limit holds.
    Raises TypeError where a reading is not of its metric's kind, ValueError where their numbers differ.
    """
    current = observed.spec_replicas
    if not state.recommendations:
        state = replace(state, recommendations=(Recommendation(observed.now_s, current),))
    if current == 0:
        if not (state.scaled_to_zero and (spec.min_replicas != 0 or spec.wakes_on_metrics)):
            paused = SyncReason.SCALING_DISABLED
            return HpaSync(desired=0, state=state, reason=paused, scaling_active=ScalingActive.SCALING_DISABLED)
    elif current > spec.max_replicas:
        return _moved_into_bounds(spec, state, observed, spec.max_replicas, SyncReason.ABOVE_MAX)
    elif current < spec.min_replicas:
        return _moved_into_bounds(spec, state, observed, spec.min_replicas, SyncReason.BELOW_MIN)
    return _by_metrics(spec, state, observed)


def _moved_into_bounds(
    spec: HpaSpec, state: HpaState, observed: HpaObserved, bound: int, reason: SyncReason
) -> HpaSync:
    """The move counts as an event all the same, and so uses up the allowance of the rate policies."""
    return HpaSync(
        desired=bound,
        state=_remembered(spec, state, observed, bound, state.recommendations),
        reason=reason,
        able_to_scale=AbleToScale.SUCCEEDED_RESCALE,
    )


def _by_metrics(spec: HpaSpec, state: HpaState, observed: HpaObserved) -> HpaSync:
    current = observed.spec_replicas
    proposals, failed_as, failure = _proposals(spec, observed)
    highest = _highest(proposals)
    if failed_as is not None and (highest is None or highest < current):
        # All failed, or one did and the others would scale down: on missing data the HPA holds.
        return HpaSync(
            desired=current,
            state=state,
            reason=SyncReason.METRICS_FAILED,
            proposals=proposals,
            scaling_active=failed_as,
            failure=failure,
        )
    asked = highest if highest is not None and highest > 0 else 0
    stabilised, limited = _normalised(spec, state, observed, asked)
    desired = limited.replicas
    if current == 0 and desired < spec.min_replicas:
        desired = spec.min_replicas  # minReplicas was raised while the HPA held the workload at zero
    able = stabilised.able_to_scale if desired == current else AbleToScale.SUCCEEDED_RESCALE
    return HpaSync(
        desired=desired,
        state=_remembered(spec, state, observed, desired, stabilised.recommendations),
        reason=_why(current, asked, desired),
        proposals=proposals,
        stabilised=stabilised.replicas,
        able_to_scale=able,
        scaling_limited=limited.reason,
        scaling_active=ScalingActive.VALID_METRIC_FOUND,
        failure=failure,
    )


def _proposals(spec: HpaSpec, observed: HpaObserved) -> tuple[tuple[int | None, ...], ScalingActive | None, str | None]:
    """Each metric's proposal (None: failed), and what is told of the first that failed."""
    if observed.selector_problem is not None:
        problem = observed.selector_problem
        return (None,) * len(spec.metrics), ScalingActive(problem.value), problem.value
    failed_as: ScalingActive | None = None
    failure: str | None = None
    proposals: list[int | None] = []
    for metric, reading in zip(spec.metrics, observed.readings, strict=True):
        try:
            proposals.append(hpa_metrics.propose(spec, metric, reading, observed))
        except MetricFailed as failed:
            proposals.append(None)
            if failed_as is None:
                failed_as, failure = hpa_metrics.FAILURE_REASONS[type(metric)], str(failed)
    return tuple(proposals), failed_as, failure


def _highest(proposals: tuple[int | None, ...]) -> int | None:
    """The largest good proposal. A zero gives way to whatever follows, a negative one too, as in the original."""
    highest: int | None = None
    for proposal in proposals:
        if proposal is not None and (not highest or proposal > highest):
            highest = proposal
    return highest


def _normalised(
    spec: HpaSpec, state: HpaState, observed: HpaObserved, asked: int
) -> tuple[hpa_behavior.Stabilised, hpa_behavior.Limited]:
    current, now_s = observed.spec_replicas, observed.now_s
    if spec.up is None or spec.down is None:
        window_s = spec.flags.downscale_stabilisation_s
        stabilised = hpa_behavior.stabilise(state.recommendations, asked, now_s, window_s)
        return stabilised, hpa_behavior.limit(spec, current, stabilised.replicas)
    stabilised = hpa_behavior.stabilise_both_ways(
        state.recommendations,
        asked,
        current,
        now_s=now_s,
        up_window_s=spec.up.window_s,
        down_window_s=spec.down.window_s,
    )
    return stabilised, hpa_behavior.limit_rate(spec, state, current, stabilised.replicas, now_s)


def _remembered(
    spec: HpaSpec,
    state: HpaState,
    observed: HpaObserved,
    desired: int,
    recommendations: tuple[Recommendation, ...],
) -> HpaState:
    """The memory after this sync: events only where replicas are written and ``behavior`` is set."""
    current, now_s = observed.spec_replicas, observed.now_s
    up_events, down_events, scaled_to_zero = state.up_events, state.down_events, state.scaled_to_zero
    if desired != current:
        if spec.up is not None and desired > current:
            up_events = hpa_behavior.with_event(up_events, now_s, desired - current, spec.up.longest_period_s)
        elif spec.down is not None and desired < current:
            down_events = hpa_behavior.with_event(down_events, now_s, current - desired, spec.down.longest_period_s)
        scaled_to_zero = current > 0 and desired == 0 and spec.min_replicas == 0 and spec.wakes_on_metrics
    return HpaState(
        recommendations=recommendations,
        up_events=up_events,
        down_events=down_events,
        scaled_to_zero=scaled_to_zero,
    )


def _why(current: int, asked: int, desired: int) -> SyncReason:
    if desired == current:
        return SyncReason.UNCHANGED
    if desired < current:
        return SyncReason.METRICS_BELOW_TARGET if asked < current else SyncReason.EARLIER_RECOMMENDATION
    if asked > current:
        return SyncReason.METRIC_ABOVE_TARGET
    return SyncReason.BELOW_MIN if current == 0 else SyncReason.EARLIER_RECOMMENDATION
