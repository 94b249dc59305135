"""What this tick saw, decided and did → the LoopState for the next one. Nothing it was given is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from leadtime.domain.decision import (
    Decision,
    Outcome,
    ReleaseFloor,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.refs import Scope
from leadtime.domain.snapshot import Floor
from leadtime.domain.tick import LoopState
from leadtime.guard.facts import raise_base, spare_base
from leadtime.loop import risks
from leadtime.loop.memory import CLUSTER_KEY, LOOP_KEY, LoopMemory, RaiseLog, pool_key, with_floor, with_written_floor
from leadtime.loop.view import Believed, Seen


def after(
    state: LoopState, seen: Seen, believed: Believed, decisions: Sequence[Decision], outcomes: Sequence[Outcome]
) -> LoopState:
    """The state after a tick. A write that was not applied leaves no trace in it."""
    applied = {outcome.scope for outcome in outcomes if outcome.applied}
    done = {d.scope: d for d in decisions if d.scope in applied}
    scaling: dict[str, Any] = {**state.scaling, LOOP_KEY: LoopMemory(last_as_of=seen.as_of)}
    rate: dict[str, Any] = dict(state.rate)
    forecast: dict[str, Any] = dict(state.forecast)
    added = _added(believed, done)
    for workload in seen.snapshot.workloads:
        key, one = workload.ref.key, believed.workloads[workload.ref]
        scaling[key] = with_floor(one.memory, workload.floor)
        forecast[key] = one.forecast_state
        log: RaiseLog = state.rate.get(key, RaiseLog())
        rate[key] = log.after(seen.as_of, added.get(key, 0))
    for name, pool in believed.pools.items():
        scaling[pool_key(name)] = pool
    queues: dict[str, Any] = {**state.queue_health, **believed.queues.records}
    _apply(done, scaling, queues, seen.as_of)
    if seen.risk is not None and believed.context.risk is not None:
        bases = {ref: spare_base(facts) for ref, facts in believed.guard_facts.workloads.items()}
        scaling[risks.RISK_KEY] = risks.after(
            seen.risk.memory, believed.context.risk, tuple(done.values()),
            bases=bases, as_of=seen.as_of, policy=believed.context.policy.risk,
        )  # fmt: skip
    return LoopState(
        format=state.format,
        ticks=state.ticks + 1,
        forecast=forecast,
        lead_times={**state.lead_times, CLUSTER_KEY: seen.lead_state},
        scaling=scaling,
        queue_health=queues,
        rate=rate,
        missing_since=dict(seen.missing_since),
    )


def _added(believed: Believed, done: Mapping[Scope, Decision]) -> dict[str, int]:
    """Pods each floor written in this tick adds above what stood anyway, by workload key."""
    added: dict[str, int] = {}
    for decision in done.values():
        action = decision.action
        if isinstance(action, SetFloor):
            base = raise_base(believed.guard_facts.workloads[action.workload])
            added[action.workload.key] = max(0, action.replicas - base)
    return added


def _apply(done: Mapping[Scope, Decision], scaling: dict[str, Any], queues: dict[str, Any], as_of: datetime) -> None:
    """Remember what is ours now: floors, paused queues."""
    for decision in done.values():
        match decision.action:
            case SetFloor(workload=ref, replicas=replicas, expires_at=ends):
                floor = Floor(replicas=replicas, expires_at=ends)
                scaling[ref.key] = with_written_floor(scaling[ref.key], floor, as_of)
            case ReleaseFloor(workload=ref):
                scaling[ref.key] = with_written_floor(scaling[ref.key], None, as_of)
            case SetLowPriorityAdmission(queue=name, paused=paused):
                queues[name] = replace(queues[name], paused_by_us=paused)
            case _:
                pass
