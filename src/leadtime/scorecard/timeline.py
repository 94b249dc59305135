"""One world's run → the four instants people ask for first: when was it noticed, when did help come."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leadtime.scorecard.compare import concerns, first_raise
from leadtime.scorecard.run import WorkloadRun, WorldRun

PENDING_AFTER_S = 900  # "pending at 06:15" of the story: 15 min after the surge began at 06:00


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Instants in epoch seconds; None fields have a sentence in ``reasons``.

    threshold_crossed_at_s: the HPA asked for more than stood. first_pod_placed_at_s: the first pod bound after that, or
    after leadtime's first raise where that came earlier. pending_at_15min: pods pending 15 min after the surge began.
    first_new_node_ready_at_s: the first node that became allocatable in the scored span.
    """

    threshold_crossed_at_s: int | None
    first_pod_placed_at_s: int | None
    pending_at_15min: int | None
    first_new_node_ready_at_s: int | None
    reasons: Mapping[str, str] = field(default_factory=dict)


def timeline(
    run: WorldRun, workload: str, *, surge_start_s: int | None = None, scored_from_s: int | None = None
) -> Timeline:
    """Read the instants from the events of ``run``.

    surge_start_s: when the surge began, for ``pending_at_15min`` (None: no single surge); events before
    ``scored_from_s`` belong to the warm-up and are passed over.
    """
    columns = run.workloads[workload]
    begin_s = columns.start_s if scored_from_s is None else scored_from_s
    threshold_s = _first(run, columns, "threshold_crossed", begin_s)
    raised = first_raise(run, workload)
    starts = [at_s for at_s in (threshold_s, raised.at_s if raised else None) if at_s is not None]
    placed_s = _first(run, columns, "pod_bound", min(starts)) if starts else None
    node_s = _first(run, columns, "node_ready", begin_s)
    pending = None if surge_start_s is None else pending_at(columns, surge_start_s + PENDING_AFTER_S)
    reasons = {}
    if threshold_s is None:
        reasons["threshold_crossed_at"] = "the HPA never asked for more replicas than stood"
    if placed_s is None:
        reasons["first_pod_placed_at"] = "no pod was placed after it" if starts else "nothing asked for more pods"
    if node_s is None:
        reasons["first_new_node_ready_at"] = "no new node became ready"
    if pending is None:
        outside = "the run ends earlier than 15 min after the surge began"
        reasons["pending_at_15min"] = "this run has no single surge start" if surge_start_s is None else outside
    return Timeline(
        threshold_crossed_at_s=threshold_s,
        first_pod_placed_at_s=placed_s,
        pending_at_15min=pending,
        first_new_node_ready_at_s=node_s,
        reasons=reasons,
    )


def pending_at(columns: WorkloadRun, at_s: int) -> int | None:
    """Pods pending at the instant ``at_s``: what the step that ends there left; None outside the run."""
    step = (at_s - columns.start_s) // columns.step_s - 1
    return int(columns.pending[step]) if 0 <= step < len(columns.pending) else None


def _first(run: WorldRun, columns: WorkloadRun, kind: str, from_s: int) -> int | None:
    found = (
        event.at_s
        for event in run.events
        if event.kind == kind and event.at_s >= from_s and concerns(event, columns.workload, columns.pool)
    )
    return min(found, default=None)
