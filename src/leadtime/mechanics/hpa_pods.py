"""Samples of single pods → replicas. Pods are sorted into ready, unready, missing and ignored first.

Missing pods are filled in against the direction of the move: at the full target where the load is below it, at zero
where it is above. So a gap in the data can slow a move or stop it, never turn it round.

Source: kubernetes v1.37.2, pkg/controller/podautoscaler/replica_calculator.go (groupPods, GetResourceReplicas,
calcPlainMetricReplicas) and metrics/utilization.go; checked by tests/oracles/hpa.
"""

from collections.abc import Callable
from dataclasses import dataclass

from leadtime.mechanics.hpa_arithmetic import ceiled_int32, divided_toward_zero, wrapped_int32, wrapped_int64
from leadtime.mechanics.hpa_spec import ContainerResourceMetric, HpaSpec, ResourceMetric, Utilisation
from leadtime.mechanics.hpa_types import HpaObserved, PodPhase, PodReading, PodSample, PodSamples, Ready


class MetricFailed(Exception):
    """The HPA counts this metric as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClasses:
    """``counted`` keeps the samples that may speak; it holds those of pods the selector no longer matches, too."""

    ready: int
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    counted: dict[str, int]  # pod → milli


def classify(spec: HpaSpec, resource: str, samples: PodSamples, observed: HpaObserved) -> PodClasses:
    """Sort the pods. ``resource`` is "" for a pods metric; only "cpu" looks at readiness.

    Raises MetricFailed when no pod is selected or no sample is left.
    """
    if not observed.pods:
        raise MetricFailed("the selector matches no pods")
    by_pod = {sample.pod: sample for sample in samples.samples}
    counted = {sample.pod: sample.value_milli for sample in samples.samples}
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    for pod in observed.pods:
        if pod.deleting or pod.phase is PodPhase.FAILED:
            counted.pop(pod.name, None)
        elif pod.phase is PodPhase.PENDING:
            unready.append(pod.name)
            counted.pop(pod.name, None)
        elif (sample := by_pod.get(pod.name)) is None:
            missing.append(pod.name)
        elif resource == "cpu" and _still_starting(spec, pod, sample, observed.now_s):
            unready.append(pod.name)
            del counted[pod.name]
        else:
            ready += 1
    if not counted:
        raise MetricFailed("no sample of a pod that counts; pods may be unready")
    return PodClasses(ready=ready, unready=tuple(unready), missing=tuple(missing), counted=counted)


def _still_starting(spec: HpaSpec, pod: PodReading, sample: PodSample, now_s: float) -> bool:
    """Is this cpu sample start-up noise? A pod that was Ready once and lost it later still counts."""
    if pod.ready is Ready.ABSENT or pod.started_at_s is None:
        return True
    flags = spec.flags
    if pod.started_at_s + flags.cpu_initialisation_s > now_s:
        return pod.ready is Ready.FALSE or sample.at_s < pod.ready_changed_at_s + sample.window_s
    never_ready = pod.started_at_s + flags.initial_readiness_delay_s > pod.ready_changed_at_s
    return pod.ready is Ready.FALSE and never_ready


def propose_for_average(
    spec: HpaSpec, target_milli: int, resource: str, samples: PodSamples, observed: HpaObserved
) -> int:
    """AverageValue over pods: the average is an integer division, so 2.9 thousandths are 2.

    Raises MetricFailed as ``classify`` does.
    """

    def ratio_of(counted: dict[str, int]) -> float:
        total = wrapped_int64(sum(counted.values()))
        return float(divided_toward_zero(total, len(counted))) / float(target_milli)

    classes = classify(spec, resource, samples, observed)
    return _replicas(spec, classes, ratio_of, dict.fromkeys(classes.missing, target_milli), observed.spec_replicas)


def propose_for_utilisation(
    spec: HpaSpec, metric: ResourceMetric | ContainerResourceMetric, samples: PodSamples, observed: HpaObserved
) -> int:
    """Utilisation: whole percent of the requests, cut off, not rounded.

    Raises MetricFailed as ``classify`` does, and when any selected pod lacks the request.
    """
    target = metric.target
    assert isinstance(target, Utilisation)
    classes = classify(spec, metric.resource, samples, observed)
    container = metric.container if isinstance(metric, ContainerResourceMetric) else None
    requests = {pod.name: _request_milli(pod, metric.resource, container) for pod in observed.pods}

    def ratio_of(counted: dict[str, int]) -> float:
        known = [name for name in counted if name in requests]
        used = wrapped_int64(sum(counted[name] for name in known))
        requested = wrapped_int64(sum(requests[name] for name in known))
        if requested == 0:
            raise MetricFailed("no sample belongs to a selected pod with a request")
        percent = wrapped_int32(divided_toward_zero(wrapped_int64(used * 100), requested))
        return float(percent) / float(target.percent)

    full_percent = max(100, target.percent)
    full = {name: divided_toward_zero(wrapped_int64(requests[name] * full_percent), 100) for name in classes.missing}
    return _replicas(spec, classes, ratio_of, full, observed.spec_replicas)


def _request_milli(pod: PodReading, resource: str, container: str | None) -> int:
    """The pod's request, or that of one container. Raises MetricFailed when there is none."""
    total = 0
    for one in pod.containers:
        if container is not None and one.container != container:
            continue
        if resource not in one.requests_milli:
            raise MetricFailed(f"container {one.container} of pod {pod.name} requests no {resource}")
        total += one.requests_milli[resource]
        if container is not None:
            return total
    if container is not None:
        raise MetricFailed(f"pod {pod.name} has no container {container}")
    return wrapped_int64(total)


def _replicas(
    spec: HpaSpec,
    classes: PodClasses,
    ratio_of: Callable[[dict[str, int]], float],
    full: dict[str, int],
    current: int,
) -> int:
    """From the ratio over the samples that count to replicas, filling in for pods without one."""
    ratio = ratio_of(classes.counted)
    waiting_for_unready = bool(classes.unready) and ratio > 1.0
    if not waiting_for_unready and not classes.missing:
        if spec.lowest_ratio <= ratio <= spec.highest_ratio:
            return current
        return ceiled_int32(ratio * classes.ready)  # the pods that are ready, not the replicas that are wanted
    counted = dict(classes.counted)
    if ratio < 1.0:
        counted.update(full)
    elif ratio > 1.0:
        counted.update(dict.fromkeys(classes.missing, 0))
    if waiting_for_unready:
        counted.update(dict.fromkeys(classes.unready, 0))
    filled_ratio = ratio_of(counted)
    turned = ratio < 1.0 < filled_ratio or filled_ratio < 1.0 < ratio
    if turned or spec.lowest_ratio <= filled_ratio <= spec.highest_ratio:
        return current
    replicas = ceiled_int32(filled_ratio * len(counted))
    against = (filled_ratio < 1.0 and replicas > current) or (filled_ratio > 1.0 and replicas < current)
    return current if against else replicas
