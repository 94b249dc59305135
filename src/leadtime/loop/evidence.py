"""Evidence of one tick, numbered ev-1, ev-2, …: where each number came from, over which window, in which unit."""

from datetime import datetime, timedelta

from leadtime.domain.evidence import Evidence
from leadtime.domain.snapshot import PoolState, QueueState, WorkloadState
from leadtime.domain.tick import WorkloadAssessment
from leadtime.domain.time_window import TimeWindow
from leadtime.loop.memory import WorkloadMemory
from leadtime.propose.context import DemandReading, WorkloadEvidence
from leadtime.propose.targets import Targets


class EvidenceBook:
    """Collects evidence while a tick is assessed; lives for that tick only."""

    def __init__(self, as_of: datetime) -> None:
        self._now = TimeWindow(start=as_of, end=as_of)
        self._entries: list[Evidence] = []

    def add(
        self, source: str, query: str, value: float | str | None, unit: str, window: TimeWindow | None = None
    ) -> str:
        """Enter one observation at this instant (or over ``window``); returns its id."""
        entry_id = f"ev-{len(self._entries) + 1}"
        self._entries.append(
            Evidence(id=entry_id, source=source, query=query, window=window or self._now, value=value, unit=unit)
        )
        return entry_id

    def entries(self) -> tuple[Evidence, ...]:
        """Everything entered, in order."""
        return tuple(self._entries)


def of_workload(
    book: EvidenceBook,
    *,
    state: WorkloadState,
    pool: PoolState,
    assessment: WorkloadAssessment,
    reading: DemandReading,
    memory: WorkloadMemory,
    goal: Targets,
) -> WorkloadEvidence:
    """Enter what the explanations about one workload stand on."""
    name, unit = state.ref.key, state.unit.value
    bucket = None
    if memory.known_until is not None:
        bucket = TimeWindow(start=memory.known_until - timedelta(seconds=60), end=memory.known_until)
    near, far = (assessment.forecasts[0], assessment.forecasts[-1]) if assessment.forecasts else (None, None)
    demand = book.add("demand", f"mean demand of {name} in the newest minute", reading.value, unit, bucket)
    counts = f"{state.wanted_replicas} wanted, {state.ready_pods} ready, {state.starting_pods} starting, "
    pods = book.add("kubernetes", f"pods of {name}", f"{counts}{state.pending_pods} pending", "pods")
    forecast_pod = book.add(
        assessment.model, f"upper forecast of {name} at the pod lead", near.upper if near else None, unit
    )
    forecast_node = book.add(
        assessment.model, f"upper forecast of {name} at node lead + pod lead", far.upper if far else None, unit
    )
    lead = book.add(
        "lead times", f"P90 request → pod Ready of {name} on {state.pool}", assessment.lead.total_p90_s, "s"
    )
    slots = book.add("kubernetes", f"pods of {name} that fit on {pool.name} now", float(goal.free_slots), "pods")
    hpa = book.add("hpa", f"what the HPA of {name} alone would want", float(assessment.hpa_would_want), "pods")
    surge = None
    if assessment.surge is not None:
        query = f"demand of {name} above its forecast"
        surge = book.add("surge detector", query, assessment.surge.excess_ratio, "share of the forecast")
    return WorkloadEvidence(
        demand=demand, pods=pods, forecast_pod=forecast_pod, forecast_node=forecast_node, lead=lead, slots=slots,
        hpa=hpa, surge=surge,
    )  # fmt: skip


def of_pool(book: EvidenceBook, pool: PoolState) -> str:
    """Enter a pool's nodes and GPUs."""
    stages = ", ".join(f"{count} {stage}" for stage, count in pool.nodes_by_stage.items() if count) or "no nodes"
    value = f"{stages}; {pool.used_gpus} of {pool.allocatable_gpus} GPUs used; {pool.empty_nodes} nodes empty"
    return book.add("kubernetes", f"nodes of pool {pool.name}", value, "nodes")


def of_queue(book: EvidenceBook, queue: QueueState) -> str:
    """Enter a queue's waiting pods."""
    value = (
        f"{queue.pending_pods} pending, {queue.covered_pending_pods} of them covered; "
        f"oldest uncovered {queue.oldest_uncovered_pending_s:.0f} s"
    )
    return book.add("queue", f"waiting pods of {queue.name}", value, "pods")
