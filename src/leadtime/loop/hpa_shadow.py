"""Demand of the last minute → what the owner's HPA alone would have now, kept beside the real one.

An external metric with an AverageValue target of hpa_target_ratio × capacity per pod, default behaviour. The shadow's
pods are always there at once: it answers what the HPA would *ask for*, not what would be Ready.
"""

from dataclasses import replace
from functools import lru_cache

from leadtime.domain.snapshot import WorkloadState
from leadtime.loop.memory import HpaShadow
from leadtime.mechanics import hpa


@lru_cache(maxsize=4096)
def _spec(target_milli: int, min_replicas: int, max_replicas: int) -> hpa.HpaSpec:
    metric = hpa.ExternalMetric(name="demand", target=hpa.AverageValue(milli=target_milli))
    return hpa.HpaSpec(min_replicas=min_replicas, max_replicas=max_replicas, metrics=(metric,))


def follow(
    shadow: HpaShadow, workload: WorkloadState, demand: float | None, *, end_s: float, span_s: float, syncs: int
) -> HpaShadow:
    """``syncs`` syncs spread over (end_s − span_s, end_s], each seeing ``demand`` (None: the metric fails)."""
    target = max(1, round(workload.hpa_target_ratio * workload.capacity_per_pod * 1000))
    spec = _spec(target, workload.owner_min_replicas, workload.max_replicas)
    reading: hpa.Reading | hpa.ReadingError
    if demand is None:
        reading = hpa.ReadingError(message="no value")
    else:
        reading = hpa.ExternalReading(values_milli=(round(demand * 1000),))
    state, replicas = shadow.state, shadow.replicas
    for i in range(syncs):
        now_s = end_s - span_s * (syncs - 1 - i) / syncs
        seen = hpa.HpaObserved(now_s=now_s, spec_replicas=replicas, status_replicas=replicas, readings=(reading,))
        answer = hpa.sync(spec, state, seen)
        state, replicas = answer.state, answer.desired
    return replace(shadow, state=state, replicas=replicas)
