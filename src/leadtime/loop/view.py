"""LoopState and source → everything one tick sees and believes: the reads, then the context for agents and guard."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.ports import Source
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import RiskScorer, UsageSource
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import ClusterSnapshot, PoolState, WorkloadState
from leadtime.domain.tick import LoopState
from leadtime.forecast import lead_time
from leadtime.guard.facts import BudgetFacts, GuardFacts, WorkloadFacts
from leadtime.loop import assess as assessing
from leadtime.loop import evidence as evidences
from leadtime.loop import observe as observing
from leadtime.loop import queues as queueing
from leadtime.loop import risks
from leadtime.loop.assess import Assessed
from leadtime.loop.evidence import EvidenceBook
from leadtime.loop.memory import CLUSTER_KEY, LOOP_KEY, LoopMemory, PoolMemory, RaiseLog, WorkloadMemory, pool_key
from leadtime.loop.observe import Observed
from leadtime.loop.queues import QueuesJudged
from leadtime.loop.risks import RISK_KEY, RiskMemory, RiskSeen
from leadtime.policy.schema import Policy
from leadtime.propose import wording as say
from leadtime.propose.context import DataStanding, PoolView, TickContext, WorkloadView

NO_POOL_STAGES: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read: snapshot, new buckets by workload, stage samples learned, and since when inputs are missing."""

    as_of: datetime
    snapshot: ClusterSnapshot
    observed: Mapping[WorkloadRef, Observed]
    lead_state: Any
    missing_since: Mapping[str, datetime]
    missing_inputs: str | None
    risk: RiskSeen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPorts:
    """Where usage is read, and the model that scores it."""

    source: UsageSource
    scorer: RiskScorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """What follows from it: context for the agents, facts for the guard, evidence, and what must be remembered."""

    context: TickContext
    guard_facts: GuardFacts
    evidence: tuple[Evidence, ...]
    workloads: Mapping[WorkloadRef, Assessed]
    pools: Mapping[str, PoolMemory]
    queues: QueuesJudged


def observe(as_of: datetime, source: Source, policy: Policy, state: LoopState, risk: RiskPorts | None = None) -> Seen:
    """All reads of a tick: the snapshot, each workload's new buckets, the stage samples since the last tick, and, with
    a risk model, usage and pod ends."""
    snapshot = source.snapshot(as_of)
    since = {m.source: state.missing_since.get(m.source) or m.since or as_of for m in snapshot.missing}
    absent = observing.missing_inputs(snapshot, since, as_of, policy)
    observed: dict[WorkloadRef, Observed] = {}
    for workload in snapshot.workloads:
        one = _read(source, workload, state, as_of, policy, snapshot_is_missing=absent is not None)
        observed[workload.ref] = one
        if one.reading.missing_since is not None:
            since[demand_source(workload.ref)] = one.reading.missing_since
    loop: LoopMemory = state.scaling.get(LOOP_KEY, LoopMemory())
    learned = state.lead_times.get(CLUSTER_KEY) or lead_time.start()
    samples = source.stage_samples(loop.last_as_of, as_of)
    learned = lead_time.observe(learned, samples, policy)
    return Seen(
        as_of=as_of, snapshot=snapshot, observed=observed, lead_state=learned, missing_since=since,
        missing_inputs=absent, risk=None if risk is None else _risk(risk, state, as_of, policy),
    )  # fmt: skip


def _risk(ports: RiskPorts, state: LoopState, as_of: datetime, policy: Policy) -> RiskSeen:
    memory: RiskMemory = state.scaling.get(RISK_KEY, RiskMemory())
    return risks.read(ports.source, ports.scorer, memory, as_of, policy.risk)


def demand_source(ref: WorkloadRef) -> str:
    """The name under which missing demand of ``ref`` is remembered."""
    return f"demand:{ref.key}"


def _read(
    source: Source,
    workload: WorkloadState,
    state: LoopState,
    as_of: datetime,
    policy: Policy,
    *,
    snapshot_is_missing: bool,
) -> Observed:
    memory: WorkloadMemory = state.scaling.get(workload.ref.key) or observing.first_memory(workload)
    series = observing.read_new(source, workload, memory, as_of, policy)
    memory = observing.take(memory, series)
    missing = observing.missing_now(memory, series, as_of) or snapshot_is_missing
    since = state.missing_since.get(demand_source(workload.ref))
    if since is None and isinstance(series, Missing):
        since = series.since
    read = observing.reading(memory, missing=missing, since=since, as_of=as_of, policy=policy)
    return Observed(series=None if isinstance(series, Missing) else series, memory=memory, reading=read)


def assess(seen: Seen, policy: Policy, state: LoopState) -> Believed:
    """Forecast and plan every workload, judge every queue, and put it all where agents and guard can read it."""
    book = EvidenceBook(seen.as_of)
    pools = {pool.name: pool for pool in seen.snapshot.pools}
    believed: dict[WorkloadRef, Assessed] = {}
    views: list[WorkloadView] = []
    for workload in seen.snapshot.workloads:
        pool = pools.get(workload.pool) or _unknown_pool(workload)
        one = _assess_one(workload, pool, seen, policy, state)
        believed[workload.ref] = one
        views.append(_view(book, workload, pool, seen, one))
    queues = queueing.judge_all(
        book,
        snapshot=seen.snapshot,
        observed=seen.observed,
        believed=believed,
        state=state,
        policy=policy,
        missing_inputs=seen.missing_inputs,
    )
    pool_memories = {name: _pool_memory(pool, state, seen.as_of) for name, pool in pools.items()}
    pool_views = {name: _pool_view(book, pool, pool_memories[name], seen.as_of) for name, pool in pools.items()}
    risk = None if seen.risk is None else risks.standing(book, seen.risk, views, seen.as_of, policy.risk)
    context = TickContext(
        as_of=seen.as_of, policy=policy, snapshot=seen.snapshot, workloads=tuple(views), pools=pool_views,
        queues=queues.views, risk=risk,
    )  # fmt: skip
    judged = {view.state.ref: _facts(view, believed[view.state.ref], state, policy, seen.as_of) for view in views}
    facts = GuardFacts(
        as_of=seen.as_of,
        policy=policy,
        workloads=judged,
        pools=pools,
        missing=seen.missing_inputs,
        risk=risk,
    )
    return Believed(
        context=context, guard_facts=facts, evidence=book.entries(), workloads=believed, pools=pool_memories,
        queues=queues,
    )  # fmt: skip


def _assess_one(workload: WorkloadState, pool: PoolState, seen: Seen, policy: Policy, state: LoopState) -> Assessed:
    raises: RaiseLog = state.rate.get(workload.ref.key, RaiseLog())
    return assessing.workload(
        state=workload,
        pool=pool,
        observed=seen.observed[workload.ref],
        forecast_state=state.forecast.get(workload.ref.key),
        lead=lead_time.learn(seen.lead_state, workload.ref, workload.pool, policy),
        added_last_minute=raises.added(seen.as_of),
        as_of=seen.as_of,
        policy=policy,
    )


def _view(book: EvidenceBook, workload: WorkloadState, pool: PoolState, seen: Seen, one: Assessed) -> WorkloadView:
    reading = seen.observed[workload.ref].reading
    return WorkloadView(
        state=workload,
        pool=pool,
        assessment=one.assessment,
        reading=reading,
        targets=one.targets,
        evidence=evidences.of_workload(
            book,
            state=workload,
            pool=pool,
            assessment=one.assessment,
            reading=reading,
            memory=one.memory,
            goal=one.targets,
        ),
        lapse=_lapse(workload, one.memory, seen),
    )


def _lapse(workload: WorkloadState, memory: WorkloadMemory, seen: Seen) -> Explanation | None:
    """A floor of ours that stood at the last tick, is gone, and had run out: told once, apart from any lowering."""
    floor = memory.floor_seen
    if floor is None or workload.floor is not None or floor.expires_at > seen.as_of:
        return None
    since = seen.observed[workload.ref].reading.missing_since
    cause = "it was not renewed" if since is None else f"demand is missing since {say.clock(since)}"
    text = (
        f"{workload.ref.key}: LAPSED: our floor of {floor.replicas:,} ran out at {say.clock(floor.expires_at)} "
        f"because {cause}; the owner's minimum of {workload.owner_min_replicas:,} counts again. Nobody decided to lower"
    )
    return Explanation(reason=Reason.LAPSED, sentence=text)


def _facts(view: WorkloadView, one: Assessed, state: LoopState, policy: Policy, as_of: datetime) -> WorkloadFacts:
    raises: RaiseLog = state.rate.get(view.state.ref.key, RaiseLog())
    missing = None
    if view.reading.standing is not DataStanding.COMPLETE and view.reading.missing_since is not None:
        missing = f"demand of {view.state.ref.key} is missing since {say.clock(view.reading.missing_since)}"
    scaling = policy.scaling
    account = one.memory.account
    return WorkloadFacts(
        state=view.state,
        added_last_minute=raises.added(as_of),
        surging=view.assessment.surge is not None,
        nothing_lower=missing,
        budget=BudgetFacts(
            extra_pod_hours=account.extra,
            allowed_pod_hours=account.allowed(scaling.max_extra_pod_hours_ratio, scaling.budget_window_s),
        ),
        hpa_would_want=view.assessment.hpa_would_want,
        floor_needed_at=one.memory.floor_needed_at,
    )


def _unknown_pool(workload: WorkloadState) -> PoolState:
    """A pool the snapshot does not know has no room: nothing is raised into it, and the sentences can still be said."""
    return PoolState(
        name=workload.pool, gpus_per_node=0, max_nodes=0, nodes_by_stage=NO_POOL_STAGES, allocatable_gpus=0,
        used_gpus=0, arriving_gpus=0, empty_nodes=0, consolidation_offered=False,
    )  # fmt: skip


def _pool_memory(pool: PoolState, state: LoopState, as_of: datetime) -> PoolMemory:
    memory: PoolMemory = state.scaling.get(pool_key(pool.name), PoolMemory())
    if pool.empty_nodes <= 0:
        return replace(memory, empty_since=None)
    return memory if memory.empty_since is not None else replace(memory, empty_since=as_of)


def _pool_view(book: EvidenceBook, pool: PoolState, memory: PoolMemory, as_of: datetime) -> PoolView:
    empty_for = as_of - memory.empty_since if memory.empty_since is not None else timedelta(0)
    return PoolView(
        state=pool,
        empty_for_s=empty_for.total_seconds(),
        evidence=evidences.of_pool(book, pool),
    )
