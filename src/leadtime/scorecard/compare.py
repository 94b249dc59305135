"""Several worlds' runs and scores of one workload → what leadtime changed, and how much room it left.

Every field needs leadtime's world and one rival; where one of them is absent, or the question has no answer (the HPA
had nothing to mend, demand never outgrew what stood), the field is None and ``reasons`` says which.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from leadtime.scorecard.measures import WorkloadScore
from leadtime.scorecard.run import RunEvent, WorkloadRun, WorldRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The fields of DESIGN §6 that need two worlds; None fields have a sentence in ``reasons``."""

    workload: str
    oracle_gap_closed: float | None
    early_warning_s: float | None
    ready_ahead_s: float | None
    learned_lead_p90_s: float | None
    first_request_ahead_s: float | None
    pod_hours_ratio_to_oracle: float | None
    gpu_node_hours_ratio_to_oracle: float | None
    pod_hours_ratio_to_hpa: float | None
    max_pods_added_per_minute: float | None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """Leadtime's first raise of one workload: the step it fell in, what was ready then, how much was asked on top."""

    at_s: int
    step: int
    ready_pods: int
    asked_pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A value, or why there is none."""

    value: float | None
    why_none: str = ""


def compare(
    runs: Mapping[str, WorldRun],
    scores: Mapping[str, WorkloadScore],
    workload: str,
    *,
    learned_lead_p90_s: float | None,
) -> Comparison:
    """Compare leadtime's world with the others; both mappings by world name (hpa, leadtime, oracle, …)."""
    known = {
        "oracle_gap_closed": _oracle_gap_closed(scores),
        "early_warning_s": _early_warning_s(runs, workload),
        "ready_ahead_s": _ready_ahead_s(runs, workload),
        "learned_lead_p90_s": _Known(
            value=learned_lead_p90_s, why_none="no lead time was learned before the scored span"
        ),
        "first_request_ahead_s": _first_request_ahead_s(runs, workload),
        "pod_hours_ratio_to_oracle": _cost_ratio(scores, "oracle", "pod_hours"),
        "gpu_node_hours_ratio_to_oracle": _cost_ratio(scores, "oracle", "gpu_node_hours"),
        "pod_hours_ratio_to_hpa": _cost_ratio(scores, "hpa", "pod_hours"),
        "max_pods_added_per_minute": _score_of(scores, "leadtime", "max_pods_added_per_minute"),
    }
    return Comparison(
        workload=workload,
        reasons={name: found.why_none for name, found in known.items() if found.value is None},
        **{name: found.value for name, found in known.items()},
    )


def first_raise(run: WorldRun, workload: str) -> Raise | None:
    """The first buffer set, or the first floor above the spec.replicas that stood; None when there was none."""
    columns = run.workloads[workload]
    floors = np.flatnonzero(columns.floor_added > 0)
    floor_step = int(floors[0]) if len(floors) else None
    buffers = [
        event for event in run.events if event.kind == "buffer_set" and event.workload == workload and event.count
    ]
    buffer = min(buffers, key=lambda event: event.at_s, default=None)
    if buffer is not None and (floor_step is None or step_of(columns, buffer.at_s) <= floor_step):
        return _raise_at(columns, step_of(columns, buffer.at_s), buffer.at_s, buffer.count)
    if floor_step is None:
        return None
    return _raise_at(
        columns, floor_step, columns.start_s + floor_step * columns.step_s, int(columns.floor_added[floor_step])
    )


def step_of(columns: WorkloadRun, at_s: int) -> int:
    """The step that holds ``at_s``, kept within the run."""
    return min(max((at_s - columns.start_s) // columns.step_s, 0), len(columns.demand_rps) - 1)


def outgrown_at_s(columns: WorkloadRun, raised: Raise) -> int | None:
    """From the raise on, the first step whose demand exceeds what the pods ready at the raise serve at 100 %."""
    capacity_rps = raised.ready_pods * columns.capacity_per_pod_rps
    above = np.flatnonzero(columns.demand_rps[raised.step :] > capacity_rps)  # NaN compares as False: not known
    if not len(above):
        return None
    return max(columns.start_s + (raised.step + int(above[0])) * columns.step_s, raised.at_s)


def _raise_at(columns: WorkloadRun, step: int, at_s: int, asked_pods: int) -> Raise:
    # What is ready *at* the raise is what the step before it left; the raise's own step may already bring pods.
    return Raise(at_s=at_s, step=step, ready_pods=int(columns.ready[max(step - 1, 0)]), asked_pods=asked_pods)


def _early_warning_s(runs: Mapping[str, WorldRun], workload: str) -> _Known:
    if "leadtime" not in runs:
        return _Known(value=None, why_none="there is no leadtime world in this run")
    raised = first_raise(runs["leadtime"], workload)
    if raised is None:
        return _Known(value=None, why_none="leadtime never raised a floor or set a buffer")
    outgrown_s = outgrown_at_s(runs["leadtime"].workloads[workload], raised)
    if outgrown_s is None:
        return _Known(value=None, why_none="demand never exceeded the capacity that was ready at the first raise")
    return _Known(value=float(outgrown_s - raised.at_s))


def _ready_ahead_s(runs: Mapping[str, WorldRun], workload: str) -> _Known:
    """The pods of the first raise count as ready once ready ≥ ready at the raise + pods asked for by it."""
    warning = _early_warning_s(runs, workload)
    if warning.value is None:
        return warning
    columns = runs["leadtime"].workloads[workload]
    raised = first_raise(runs["leadtime"], workload)
    assert raised is not None  # _early_warning_s found one
    enough = np.flatnonzero(columns.ready[raised.step :] >= raised.ready_pods + raised.asked_pods)
    if not len(enough):
        return _Known(value=None, why_none="the capacity of the first raise was never all ready at once")
    ready_s = columns.start_s + (raised.step + int(enough[0]) + 1) * columns.step_s
    return _Known(value=raised.at_s + warning.value - ready_s)


def first_node_request_s(run: WorldRun, workload: str) -> int | None:
    """The first node_requested event for ``workload`` (or for its pool, where the event names no workload)."""
    pool = run.workloads[workload].pool
    mine = (event.at_s for event in run.events if event.kind == "node_requested" and concerns(event, workload, pool))
    return min(mine, default=None)


def concerns(event: RunEvent, workload: str, pool: str | None) -> bool:
    """True for an event of ``workload``, or one without a workload on its pool."""
    if event.workload is not None:
        return event.workload == workload
    return pool is None or event.pool in (None, pool)


def _first_request_ahead_s(runs: Mapping[str, WorldRun], workload: str) -> _Known:
    for world in ("hpa", "leadtime"):
        if world not in runs:
            return _Known(value=None, why_none=f"there is no {world} world in this run")
        if first_node_request_s(runs[world], workload) is None:
            return _Known(value=None, why_none=f"no node was ever requested in the {world} world")
    theirs, ours = (first_node_request_s(runs[world], workload) or 0 for world in ("hpa", "leadtime"))
    return _Known(value=float(theirs - ours))


def _oracle_gap_closed(scores: Mapping[str, WorkloadScore]) -> _Known:
    for world in ("hpa", "leadtime", "oracle"):
        if world not in scores:
            return _Known(value=None, why_none=f"there is no {world} world in this run")
    hpa, ours, oracle = (scores[world].unserved_requests for world in ("hpa", "leadtime", "oracle"))
    if hpa <= oracle:
        return _Known(value=None, why_none="the HPA alone left no more requests unserved than the oracle")
    return _Known(value=(hpa - ours) / (hpa - oracle))


def _score_of(scores: Mapping[str, WorkloadScore], world: str, name: str) -> _Known:
    if world not in scores:
        return _Known(value=None, why_none=f"there is no {world} world in this run")
    return _Known(
        value=getattr(scores[world], name), why_none=scores[world].reasons.get(name, f"{name} is not known there")
    )


def _cost_ratio(scores: Mapping[str, WorkloadScore], rival: str, name: str) -> _Known:
    ours, theirs = _score_of(scores, "leadtime", name), _score_of(scores, rival, name)
    if ours.value is None or theirs.value is None:
        return ours if ours.value is None else theirs
    if theirs.value == 0:
        return _Known(value=None, why_none=f"the {rival} world used no {name}")
    return replace(ours, value=ours.value / theirs.value)
