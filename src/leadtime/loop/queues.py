"""Queues of the snapshot + assessed workloads → each queue's health by the exact rule, and its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isnan

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.snapshot import ClusterSnapshot, QueueState, WorkloadState
from leadtime.domain.tick import LoopState
from leadtime.loop import evidence as evidences
from leadtime.loop.assess import Assessed
from leadtime.loop.evidence import EvidenceBook
from leadtime.loop.memory import QueueRecord
from leadtime.loop.observe import Observed
from leadtime.policy.schema import Policy
from leadtime.propose import queue_rule
from leadtime.propose.context import DataStanding, QueueView
from leadtime.propose.queue_rule import QueueLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesJudged:
    """Views for the agents, and what must be remembered by queue name."""

    views: tuple[QueueView, ...]
    records: Mapping[str, QueueRecord]


def judge_all(
    book: EvidenceBook,
    *,
    snapshot: ClusterSnapshot,
    observed: Mapping[WorkloadRef, Observed],
    believed: Mapping[WorkloadRef, Assessed],
    state: LoopState,
    policy: Policy,
    missing_inputs: str | None,
) -> QueuesJudged:
    """Apply the queue rule to every queue of the snapshot."""
    views: list[QueueView] = []
    records: dict[str, QueueRecord] = {}
    users: dict[str, list[WorkloadState]] = {}
    for workload in snapshot.workloads:
        users.setdefault(workload.queue, []).append(workload)
    for queue in snapshot.queues:
        record: QueueRecord = state.queue_health.get(queue.name, QueueRecord())
        load = _load(
            queue,
            users=users.get(queue.name, []),
            snapshot=snapshot,
            observed=observed,
            believed=believed,
            missing_inputs=missing_inputs,
        )
        judged = queue_rule.judge(queue, load, record.rule, policy.queue, snapshot.as_of)
        records[queue.name] = replace(record, rule=judged.memory)
        views.append(
            QueueView(
                name=queue.name,
                pool=queue.pool,
                low_priority_paused=queue.low_priority_paused,
                paused_by_us=record.paused_by_us,
                health=judged.health,
                evidence=evidences.of_queue(book, queue),
            )
        )
    return QueuesJudged(views=tuple(views), records=records)


def _load(
    queue: QueueState,
    *,
    users: Sequence[WorkloadState],
    snapshot: ClusterSnapshot,
    observed: Mapping[WorkloadRef, Observed],
    believed: Mapping[WorkloadRef, Assessed],
    missing_inputs: str | None,
) -> QueueLoad:
    """Forecast demand at full use of a pod against the pods that are there or will be.

    Free places and arriving nodes are the pool's: queues that share it are each shown all of them. Capped by
    maxReplicas: pods the owner forbids are no missing capacity. A workload without any forecast adds nothing.
    """
    stale = missing_inputs
    forecast = covered = 0
    gpus = 1
    for workload in users:
        if observed[workload.ref].reading.standing in {DataStanding.HOLD, DataStanding.EXPIRED}:
            stale = stale or f"demand of {workload.ref.key} is missing"
        peak = believed[workload.ref].path_peak
        if not isnan(peak):
            forecast += min(workload.max_replicas, max(0, ceil(peak / workload.capacity_per_pod - 1e-9)))
        covered += workload.ready_pods + workload.starting_pods
        gpus = max(gpus, workload.gpus_per_pod)
    pool = next((p for p in snapshot.pools if p.name == queue.pool), None)
    if pool is not None:
        covered += max(0, pool.allocatable_gpus - pool.used_gpus + pool.arriving_gpus) // gpus
    return QueueLoad(forecast_pods=forecast, covered_pods=covered, stale=stale)
