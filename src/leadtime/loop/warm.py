"""A span of the past → LoopState: forecast, HPA shadow and shadow record learn from it, nothing is decided.

For warm-up: one call may cover weeks. What lies before the shadow record's seven days goes to the models in one piece;
within them the plans are sized every five minutes, which is as often as they change by more than noise.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil, isfinite
from typing import Any

from leadtime.domain.lead_time import LeadTime
from leadtime.domain.ports import Source
from leadtime.domain.series import Missing, Series
from leadtime.domain.snapshot import WorkloadState
from leadtime.domain.tick import LoopState
from leadtime.forecast import assess as forecast
from leadtime.forecast import lead_time
from leadtime.loop import assess as assessing
from leadtime.loop import observe as observing
from leadtime.loop.choose import choose
from leadtime.loop.hpa_shadow import follow
from leadtime.loop.memory import CLUSTER_KEY, LOOP_KEY, RECORD_DAYS, HpaShadow, LoopMemory, WorkloadMemory
from leadtime.loop.places import PoolShape
from leadtime.policy.schema import Policy

STRIDE = 5  # buckets between two sizings of the plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One workload after the span."""

    forecast_state: Any
    memory: WorkloadMemory


def learn(as_of: datetime, source: Source, policy: Policy, state: LoopState) -> LoopState:
    """Observe, assess and plan everything up to ``as_of`` that ``state`` has not seen; decide nothing.

    At the end the plans are judged on the record, if it holds a day. ``state`` is not changed.
    """
    snapshot = source.snapshot(as_of)
    loop: LoopMemory = state.scaling.get(LOOP_KEY, LoopMemory())
    learned = state.lead_times.get(CLUSTER_KEY) or lead_time.start()
    learned = lead_time.observe(learned, source.stage_samples(loop.last_as_of, as_of), policy)
    scaling: dict[str, Any] = {**state.scaling, LOOP_KEY: LoopMemory(last_as_of=as_of)}
    beliefs: dict[str, Any] = dict(state.forecast)
    for workload in snapshot.workloads:
        key = workload.ref.key
        lead = lead_time.learn(learned, workload.ref, workload.pool, policy)
        memory: WorkloadMemory = state.scaling.get(key) or observing.first_memory(workload)
        series = observing.read_new(source, workload, memory, as_of, policy)
        memory = observing.take(memory, series)
        if isinstance(series, Missing) or not len(series.values):
            scaling[key] = memory
            continue
        one = _workload(workload, memory, series, state.forecast.get(key), lead, policy=policy)
        pool = next((p for p in snapshot.pools if p.name == workload.pool), None)
        shape = assessing.pool_shape(workload, pool) if pool is not None else PoolShape()
        scaling[key] = _judged(workload, one, lead, as_of=as_of, policy=policy, shape=shape)
        beliefs[key] = one.forecast_state
    return replace(state, forecast=beliefs, lead_times={**state.lead_times, CLUSTER_KEY: learned}, scaling=scaling)


def _workload(
    workload: WorkloadState,
    memory: WorkloadMemory,
    series: Series,
    believed: Any,
    lead: LeadTime,
    *,
    policy: Policy,
) -> Learned:
    if believed is None:
        believed, memory = forecast.start(), _begun(workload, memory, series)
    record_from = max(0, len(series.values) - RECORD_DAYS * 86_400 // series.step_s)
    if record_from > 0:
        believed = forecast.warm_up(believed, _part(series, 0, record_from), policy)
    for first in range(record_from, len(series.values), STRIDE):
        part = _part(series, first, first + STRIDE)
        believed = forecast.observe(believed, part, policy)
        memory = _shadowed(workload, memory, part, believed, lead, policy=policy)
    return Learned(forecast_state=believed, memory=memory)


def _begun(workload: WorkloadState, memory: WorkloadMemory, series: Series) -> WorkloadMemory:
    """The HPA's shadow at the past's first value: what stands today says nothing about the replicas of a week ago."""
    first = next((value for value in series.values if value is not None and isfinite(value)), None)
    if first is None:
        return memory
    wanted = ceil(first / (workload.hpa_target_ratio * workload.capacity_per_pod) - 1e-9)
    replicas = min(workload.max_replicas, max(workload.owner_min_replicas, wanted))
    return replace(memory, hpa=HpaShadow(replicas=replicas))


def _part(series: Series, first: int, last: int) -> Series:
    start = series.start + timedelta(seconds=first * series.step_s)
    return replace(series, start=start, values=series.values[first:last])


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaMinute:
    """Demand of one bucket (None: missing) and the pods the HPA alone would then want."""

    value: float | None
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaSpan:
    """The HPA's shadow after a few buckets, and what it wanted in each."""

    shadow: HpaShadow
    minutes: tuple[HpaMinute, ...]


def _follow(workload: WorkloadState, shadow: HpaShadow, part: Series) -> HpaSpan:
    """One sync a bucket: within a bucket demand is constant, and so is what three more syncs would say."""
    minutes: list[HpaMinute] = []
    end_s = part.start.timestamp()
    for raw in part.values:
        end_s += part.step_s
        value = raw if raw is not None and isfinite(raw) else None
        shadow = follow(shadow, workload, value, end_s=end_s, span_s=part.step_s, syncs=1)
        minutes.append(HpaMinute(value=value, pods=shadow.replicas))
    return HpaSpan(shadow=shadow, minutes=tuple(minutes))


def _shadowed(
    workload: WorkloadState, memory: WorkloadMemory, part: Series, believed: Any, lead: LeadTime, *, policy: Policy
) -> WorkloadMemory:
    """Size the plans at the part's end and write a row of the record for each of its buckets."""
    span = _follow(workload, memory.hpa, part)
    horizon_s, size = assessing.horizon_s(workload, lead, policy), assessing.sizing(workload, lead, policy)
    path = forecast.predict(believed, workload.ref, part.end, horizon_s, workload.unit, policy)
    plans, may_act = None, False
    if not isinstance(path, Missing):
        plans, may_act = assessing.candidates(path, workload, span.shadow.replicas, size, part.end), path.may_act
    end_s, scaling = int(part.end.timestamp()), policy.scaling
    recent = memory.recent.after(end_s, plans, 0, scaling.floor_hold_s)
    account = memory.account.after(
        end_s,
        hpa_pods=sum(minute.pods for minute in span.minutes) / len(span.minutes),
        extra_pods=0,
        seconds=part.step_s * len(span.minutes),
        window_s=scaling.budget_window_s,
    )
    log = memory.log
    for minute in span.minutes:
        row = assessing.record_row(minute.value, minute.pods, recent, may_act=may_act)
        log = log.after(row, policy.loop.tick_s, may_act=may_act)
    return replace(memory, recent=recent, hpa=span.shadow, log=log, account=account)


def _judged(
    workload: WorkloadState, one: Learned, lead: LeadTime, *, as_of: datetime, policy: Policy, shape: PoolShape
) -> WorkloadMemory:
    path = forecast.predict(one.forecast_state, workload.ref, as_of, 60, workload.unit, policy)
    if isinstance(path, Missing):
        return one.memory
    return choose(workload, one.memory, path, lead, as_of=as_of, policy=policy, shape=shape).memory
