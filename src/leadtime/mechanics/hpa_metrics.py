"""One metric and its reading → the replicas it proposes, or ``MetricFailed``.

Step 1 of the HPA. External and object metrics compare one total; pods and resource metrics compare the pods that have
samples, and fill in for those that have none in whichever way changes least.

Source: kubernetes v1.37.2, pkg/controller/podautoscaler/replica_calculator.go; checked by tests/oracles/hpa.
"""

import math
from collections.abc import Callable
from typing import Any

from leadtime.mechanics import hpa_pods
from leadtime.mechanics.hpa_arithmetic import MAX_INT32, MAX_INT64, ceiled_int32, divided, wrapped_int64
from leadtime.mechanics.hpa_pods import MetricFailed
from leadtime.mechanics.hpa_spec import (
    AverageValue,
    ContainerResourceMetric,
    ExternalMetric,
    HpaSpec,
    MetricSpec,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Value,
)
from leadtime.mechanics.hpa_types import (
    ExternalReading,
    HpaObserved,
    ObjectReading,
    PodPhase,
    PodSamples,
    Reading,
    ReadingError,
    Ready,
    ScalingActive,
)

# The condition's reason when the metric of this kind is the first that failed.
FAILURE_REASONS: dict[type[MetricSpec], ScalingActive] = {
    ExternalMetric: ScalingActive.FAILED_EXTERNAL,
    ObjectMetric: ScalingActive.FAILED_OBJECT,
    PodsMetric: ScalingActive.FAILED_PODS,
    ResourceMetric: ScalingActive.FAILED_RESOURCE,
    ContainerResourceMetric: ScalingActive.FAILED_CONTAINER_RESOURCE,
}


def propose(spec: HpaSpec, metric: MetricSpec, reading: Reading | ReadingError, observed: HpaObserved) -> int:
    """Replicas ``metric`` asks for. Raises MetricFailed where the HPA counts it as failed, TypeError where ``reading``
    is not of the metric's kind."""
    if type(reading) is ReadingError:
        raise MetricFailed(reading.message)
    reading_type, proposer = _PROPOSERS[type(metric)]
    if type(reading) is not reading_type:
        given = type(reading).__name__
        raise TypeError(f"reading {metric}: got {given}; give {reading_type.__name__} or ReadingError")
    return proposer(spec, metric, reading, observed)


def _external(spec: HpaSpec, metric: ExternalMetric, reading: ExternalReading, observed: HpaObserved) -> int:
    values = reading.values_milli
    if not values:
        raise MetricFailed(f"no values for external metric {metric.name}")
    target = metric.target
    if type(target) is AverageValue:
        total = values[0] if len(values) == 1 and values[0] >= 0 else _summed_below_zero_is_max(values)
        return min(_per_pod(spec, target.milli, total, observed.status_replicas), MAX_INT32)
    return _per_total(spec, target.milli, _summed_capped(values), observed)


def _object(spec: HpaSpec, metric: ObjectMetric, reading: ObjectReading, observed: HpaObserved) -> int:
    target = metric.target
    if type(target) is Value:
        return _per_total(spec, target.milli, reading.value_milli, observed)
    proposal = _per_pod(spec, target.milli, reading.value_milli, observed.status_replicas)
    # Unlike the external metric this one has no cap: too many pods to count turns into none.
    return ceiled_int32(proposal)


def _per_pod(spec: HpaSpec, target_milli: int, total_milli: int, status_replicas: int) -> int:
    """AverageValue: inside the tolerance status.replicas (not spec.replicas) stays, else ceil(total / target)."""
    ratio = divided(float(total_milli), float(target_milli) * status_replicas)
    if spec.lowest_ratio <= ratio <= spec.highest_ratio:
        return status_replicas
    return math.ceil(float(total_milli) / float(target_milli))


def _per_total(spec: HpaSpec, target_milli: int, total_milli: int, observed: HpaObserved) -> int:
    """Value: the ratio scales the Running and Ready pods; from zero it is the answer itself, without tolerance."""
    ratio = float(total_milli) / float(target_milli)
    if observed.spec_replicas == 0:
        return ceiled_int32(ratio)
    if spec.lowest_ratio <= ratio <= spec.highest_ratio:
        return observed.spec_replicas
    wanted = ratio * _running_and_ready(observed)
    return MAX_INT32 if wanted > MAX_INT32 else ceiled_int32(wanted)


def _running_and_ready(observed: HpaObserved) -> int:
    """Pods being deleted count as long as they are Ready."""
    if observed.ready_pods is not None:
        return observed.ready_pods
    if not observed.pods:
        raise MetricFailed("the selector matches no pods")
    return sum(1 for pod in observed.pods if pod.phase is PodPhase.RUNNING and pod.ready is Ready.TRUE)


def _summed_capped(values: tuple[int, ...]) -> int:
    total = 0
    for value in values:
        if value > 0 and total > MAX_INT64 - value:
            return MAX_INT64
        total = wrapped_int64(total + value)
    return total


def _summed_below_zero_is_max(values: tuple[int, ...]) -> int:
    """The original takes every sum below zero for an overflow: a negative metric asks for the most pods there are."""
    total = 0
    for value in values:
        total = wrapped_int64(total + value)
        if total < 0:
            return MAX_INT64
    return total


def _pods(spec: HpaSpec, metric: PodsMetric, reading: PodSamples, observed: HpaObserved) -> int:
    return hpa_pods.propose_for_average(spec, metric.target.milli, "", reading, observed)


def _resource(
    spec: HpaSpec, metric: ResourceMetric | ContainerResourceMetric, reading: PodSamples, observed: HpaObserved
) -> int:
    target = metric.target
    if type(target) is AverageValue:
        return hpa_pods.propose_for_average(spec, target.milli, metric.resource, reading, observed)
    return hpa_pods.propose_for_utilisation(spec, metric, reading, observed)


_Proposer = Callable[[HpaSpec, Any, Any, HpaObserved], int]
_PROPOSERS: dict[type[MetricSpec], tuple[type[Reading], _Proposer]] = {
    ExternalMetric: (ExternalReading, _external),
    ObjectMetric: (ObjectReading, _object),
    PodsMetric: (PodSamples, _pods),
    ResourceMetric: (PodSamples, _resource),
    ContainerResourceMetric: (PodSamples, _resource),
}
