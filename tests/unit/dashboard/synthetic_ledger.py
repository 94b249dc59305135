# ruff: noqa: E501 - a table of numbers reads better wide
"""A small ledger with the shape of the incident, drawn by hand: six hours, three worlds, every kind of decision.

Not a simulation: the curves are simple on purpose, so that a test can say beforehand what the page must show.
"""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from leadtime.domain.decision import (
    Action,
    Agent,
    Answer,
    Decision,
    Outcome,
    Proposal,
    Rejection,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
    Verdict,
)
from leadtime.domain.demand import DemandForecast, Surge
from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.lead_time import LeadTime, StageLead
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, WorkloadRef, workload_scope
from leadtime.domain.series import Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor, PoolState, QueueState, WorkloadState
from leadtime.domain.tick import QueueHealth, Tick, WorkloadAssessment
from leadtime.domain.time_window import TimeWindow, rfc3339
from leadtime.ledger.records import LedgerMeta, MinuteRow
from leadtime.ledger.sqlite import SqliteLedger

CHAT = WorkloadRef(namespace="serving", name="chat")
DAY = datetime(2026, 3, 2, tzinfo=UTC)
BEGIN, END = 180, 540  # minutes of the day: 03:00 to 09:00
CAPACITY = 10.0  # requests/s a pod
LEAD_MIN = 54
WORLDS = ("hpa", "leadtime", "oracle")
STAGES = ("requested", "booting", "driver", "ready")


def at(minute: float) -> datetime:
    """The instant of a minute of the day."""
    return DAY + timedelta(minutes=minute)


def demand(minute: float) -> float:
    """Requests/s: 2,880, from 06:00 up to 6,240 within 20 min, held to 06:40, gone by 06:45; a little noise."""
    base, top = 2880.0, 6240.0
    noise = 1 + 0.008 * math.sin(minute * 1.7) + 0.006 * math.sin(minute * 0.31)
    if 360 <= minute < 380:
        base += (top - base) * (minute - 360) / 20
    elif 380 <= minute < 400:
        base = top
    elif 400 <= minute < 405:
        base += (top - base) * (405 - minute) / 5
    return base * noise


def expected(minute: float) -> float:
    """What the model said one lead earlier: the same surge, five minutes early and a little lower."""
    return demand(minute + 5) * 0.98 if minute < 400 else demand(minute)


def pods(world: str, minute: int) -> tuple[int, int, int, int]:
    """(wanted, ready, starting, pending) at a minute."""
    need = max(480, math.ceil(demand(minute) / (0.7 * CAPACITY)))
    if world == "hpa":
        if minute < 365 or minute >= 412:
            return 480, 480, 0, 0
        wanted = min(892, 480 + 28 * (minute - 364))
        ready = 480 if minute < 373 else 520
        pending = max(0, wanted - 520)
        return wanted, ready, max(0, min(wanted, 520) - ready), pending
    if world == "oracle":
        return need, need, 0, 0
    wanted = 480 if minute < 340 or minute >= 420 else min(900, 480 + 20 * (minute - 339))
    ready = 480 if minute < 350 or minute >= 420 else min(900, 480 + 20 * max(0, minute - 349))
    return wanted, min(ready, wanted), max(0, wanted - ready), 0


def nodes(world: str, minute: int) -> dict[str, int]:
    """Nodes by stage at a minute."""
    asked_at = {"hpa": 368, "leadtime": 307, "oracle": 312}[world]
    age = minute - asked_at
    extra = 48
    if age < 0 or minute >= 440:
        return {"requested": 0, "booting": 0, "driver": 0, "ready": 65}
    if age < 3:
        return {"requested": extra, "booting": 0, "driver": 0, "ready": 65}
    if age < 30:
        return {"requested": 0, "booting": extra, "driver": 0, "ready": 65}
    if age < 40:
        return {"requested": 0, "booting": 0, "driver": extra, "ready": 65}
    return {"requested": 0, "booting": 0, "driver": 0, "ready": 65 + extra}


def minute_row(world: str, minute: int) -> MinuteRow:
    """One minute of one world."""
    wanted, ready, starting, pending = pods(world, minute)
    rate = demand(minute)
    served = min(rate, ready * CAPACITY)
    return MinuteRow(
        at=at(minute), demand=rate, served=served * 60, unserved=(rate - served) * 60, wanted=wanted, ready=ready,
        starting=starting, pending=pending, floor=480, nodes_by_stage=nodes(world, minute),
    )  # fmt: skip


def _why(reason: Reason, sentence: str, *because: str) -> Explanation:
    return Explanation(reason=reason, sentence=sentence, because=because)


def snapshot(minute: int) -> ClusterSnapshot:
    """The cluster as leadtime's world had it."""
    wanted, ready, starting, pending = pods("leadtime", minute)
    by_stage = nodes("leadtime", minute)
    floor = Floor(replicas=pods("leadtime", minute - 1)[0], expires_at=at(minute + 14)) if 340 < minute < 420 else None
    buffer = Buffer(pods=420, expires_at=at(minute + 14)) if 306 < minute < 360 else None
    return ClusterSnapshot(
        as_of=at(minute),
        workloads=(
            WorkloadState(
                ref=CHAT, pool="gpu", queue="serving", unit=Unit.REQUESTS_PER_S, gpus_per_pod=1,
                capacity_per_pod=CAPACITY, hpa_target_ratio=0.7, owner_min_replicas=480, max_replicas=2000,
                floor=floor, buffer=buffer, wanted_replicas=wanted, ready_pods=ready, starting_pods=starting,
                pending_pods=pending, oldest_pending_s=0.0,
            ),
        ),
        pools=(
            PoolState(
                name="gpu", gpus_per_node=8, max_nodes=200, nodes_by_stage=by_stage,
                allocatable_gpus=8 * by_stage["ready"], used_gpus=wanted,
                arriving_gpus=8 * (sum(by_stage.values()) - by_stage["ready"]), empty_nodes=0,
                consolidation_offered=False,
            ),
        ),
        queues=(
            QueueState(name="serving", pool="gpu", pending_pods=pending, covered_pending_pods=pending,
                       oldest_uncovered_pending_s=0.0, low_priority_paused=372 <= minute < 380),
        ),
    )  # fmt: skip


def proposals(minute: int) -> list[tuple[Proposal, Answer, Explanation | None]]:
    """What the agents wish at a minute, with the guard's answer and (when it is not a plain yes) its reason."""
    scope, pool, queue = (
        workload_scope(CHAT),
        Scope(kind=ScopeKind.POOL, name="gpu"),
        Scope(kind=ScopeKind.QUEUE, name="serving"),
    )
    found: list[tuple[Proposal, Answer, Explanation | None]] = []

    def say(agent: Agent, of: Scope, action: Action, why: Explanation, *guarded: Any) -> None:
        answer, guard = guarded or (Answer.ALLOWED, None)
        found.append(
            (Proposal(id=f"{agent.value}/{of.key}", agent=agent, scope=of, action=action, why=why), answer, guard)
        )

    if 306 <= minute < 345:
        say(Agent.SCALING, scope, SetBuffer(workload=CHAT, pool="gpu", pods=420, expires_at=at(minute + 15)),
            _why(Reason.NODES_NEEDED_AHEAD, "upper forecast for 06:00 needs 892 pods; nodes take 54 min, so 420 more "
                 "pods need room now", "ev-demand", "ev-lead"))  # fmt: skip
    if 340 <= minute < 345:
        say(Agent.SAFETY, scope, SetFloor(workload=CHAT, replicas=480 + 20 * (minute - 339), expires_at=at(minute + 15)),
            _why(Reason.FORECAST_ABOVE_READY, "forecast 14 min ahead needs 892 pods, 480 are ready", "ev-demand"),
            Answer.LIMITED, _why(Reason.RATE_LIMIT, "asked 900, at most +20 pods a minute pass", "ev-rate"))  # fmt: skip
    if 345 <= minute < 361:
        say(Agent.SCALING, scope, SetFloor(workload=CHAT, replicas=480 + 20 * (minute - 339), expires_at=at(minute + 15)),
            _why(Reason.FORECAST_ABOVE_READY, "forecast 14 min ahead needs 892 pods", "ev-demand"))  # fmt: skip
    if 361 <= minute < 420:
        say(Agent.SCALING, scope, SetFloor(workload=CHAT, replicas=900, expires_at=at(minute + 15)),
            _why(Reason.RENEWED, "need still stands", "ev-demand"))  # fmt: skip
    if minute == 420:
        say(
            Agent.EFFICIENCY,
            scope,
            ReleaseFloor(workload=CHAT),
            _why(
                Reason.FORECAST_BELOW_FLOOR, "forecast needs 412 pods for 15 min, below the floor of 900", "ev-demand"
            ),
        )
    if 366 <= minute < 376:
        say(Agent.EFFICIENCY, pool, SetConsolidation(pool="gpu", offered=True),
            _why(Reason.EMPTY_NODES, "2 nodes stood empty for 10 min", "ev-nodes"))  # fmt: skip
    if 372 <= minute < 380:
        say(Agent.ADMISSION, queue, SetLowPriorityAdmission(queue="serving", paused=True),
            _why(Reason.QUEUE_UNHEALTHY, "pending grew from 0 to 12 over 5 min", "ev-queue"))  # fmt: skip
    return found


def decide(minute: int, wishes: list[tuple[Proposal, Answer, Explanation | None]]) -> tuple[Decision, ...]:
    """One winner a scope; workload and pool always have a decision."""
    scopes = [workload_scope(CHAT), Scope(kind=ScopeKind.POOL, name="gpu"), Scope(kind=ScopeKind.QUEUE, name="serving")]
    made = []
    for scope in scopes:
        own = [p for p, _, _ in wishes if p.scope == scope]
        own.sort(key=lambda p: list(Agent).index(p.agent))
        if scope.kind is ScopeKind.POOL and own and minute >= 372:
            lost = (Rejection(proposal_id=own[0].id, why=_why(
                Reason.QUEUE_BEFORE_COST, "queue serving is unhealthy: admission goes before power saving")),)  # fmt: skip
            made.append(Decision(scope=scope, proposal_id=None, action=None, rejections=lost,
                                 why=_why(Reason.QUEUE_UNHEALTHY, "no node is offered while the queue is unhealthy")))  # fmt: skip
        elif own:
            lost = tuple(Rejection(proposal_id=p.id, why=_why(
                Reason.OUTRANKED, f"{own[0].agent.value} goes before {p.agent.value}")) for p in own[1:])  # fmt: skip
            made.append(
                Decision(scope=scope, proposal_id=own[0].id, action=own[0].action, why=own[0].why, rejections=lost)
            )
        else:
            why = _why(Reason.ENOUGH_CAPACITY, "upper forecast needs 431 pods, 480 stand", "ev-demand")
            made.append(Decision(scope=scope, proposal_id=None, action=None, why=why))
    return tuple(made)


def _assessment(minute: int) -> WorkloadAssessment:
    def forecast(lead_min: int) -> DemandForecast:
        value = expected(minute + lead_min)
        return DemandForecast(
            subject=CHAT, issued_at=at(minute), horizon=timedelta(minutes=lead_min), expected=value, lower=value * 0.95,
            upper=value * 1.06, level_ratio=0.9, unit=Unit.REQUESTS_PER_S, model="seasonal-ratio",
        )  # fmt: skip

    lead = LeadTime(
        workload=CHAT, pool="gpu", node_p50_s=2400, node_p90_s=2520, pod_p50_s=570, pod_p90_s=741, total_p90_s=3240,
        learned_from="7 episodes, 41 nodes (0 censored)",
        stages=(StageLead(stage="request", p50_s=60, p90_s=90, samples=41, censored=0, episodes=7, from_prior=False),),
    )  # fmt: skip
    surge = None
    if 366 <= minute < 372:
        surge = Surge(subject=CHAT, detected_at=at(minute), began_at=at(362), actual=demand(minute), forecast=3000.0,
                      excess_ratio=demand(minute) / 3000 - 1, threshold_ratio=0.08, rise_per_min=168, extrapolated=5000.0)  # fmt: skip
    return WorkloadAssessment(
        ref=CHAT, demand=demand(minute - 1), forecasts=(forecast(14), forecast(LEAD_MIN)), path_step_s=300,
        path_expected=(), path_lower=(), path_upper=(), model="seasonal-ratio", may_act=True,
        standing=_why(Reason.FORECAST_ABOVE_READY, "seasonal-ratio loses 41 % less than last value over 7 days"),
        surge=surge, lead=lead, needed_pods_at_pod_lead=500, needed_pods_at_node_lead=892,
        hpa_would_want=pods("hpa", minute)[0],
    )  # fmt: skip


def _evidence(minute: int) -> tuple[Evidence, ...]:
    newest = TimeWindow(start=at(minute - 1), end=at(minute))
    hour = TimeWindow(start=at(minute - 60), end=at(minute))
    now = TimeWindow(start=at(minute), end=at(minute))
    return (
        Evidence(id="ev-demand", source="demand", query="sum(rate(requests_total[1m]))", window=newest,
                 value=demand(minute - 1), unit="requests/s"),
        Evidence(id="ev-lead", source="lead times", query="request → Ready on gpu, P90", window=hour, value=3240.0, unit="s"),
        Evidence(id="ev-rate", source="policy", query="scaling.surge_pods_added_per_min", window=now, value=20.0, unit="pods/min"),
        Evidence(id="ev-nodes", source="cluster", query="empty nodes of gpu", window=now, value=2.0, unit="nodes"),
        Evidence(id="ev-queue", source="cluster", query="pending pods of queue serving", window=now, value=None, unit="pods"),
    )  # fmt: skip


def tick(minute: int) -> Tick:
    """The tick of one minute."""
    wishes = proposals(minute)
    decisions = decide(minute, wishes)
    ill = 372 <= minute < 380
    because = (_why(Reason.QUEUE_UNHEALTHY, "pending grew from 0 to 12 over 5 min", "ev-queue"),) if ill else ()
    return Tick(
        as_of=at(minute), recorded_at=at(minute), policy_hash="0123456789abcdef", snapshot=snapshot(minute),
        assessments=(_assessment(minute),), evidence=_evidence(minute),
        queue_health=(QueueHealth(queue="serving", healthy=not 372 <= minute < 382, clean_ticks=max(0, minute - 379)
                                  if 372 <= minute < 382 else 0, because=because),),
        proposals=tuple(p for p, _, _ in wishes),
        verdicts=tuple(Verdict(proposal_id=p.id, answer=answer, allowed_action=p.action, why=(guard,) if guard else ())
                       for p, answer, guard in wishes),
        decisions=decisions,
        outcomes=tuple(Outcome(scope=d.scope, actuator="hpa_floor", applied=True, rollback="expires by itself after 15 min",
                               why=_why(Reason.APPLIED, "written"), written_at=at(minute)) for d in decisions if d.action),
    )  # fmt: skip


def report() -> dict[str, Any]:
    """A report.json with the fields the page reads; some are null with their reason."""
    fields = {
        "hpa": {"unserved_ratio": 0.0312, "unserved_ratio_peak": 0.176, "shortfall_minutes": 31, "pod_hours": 3012.0,
                "gpu_node_hours": 404.0, "pending_pod_minutes": 9120.0, "churn_pods_per_hour": 4.0, "busy_pods_killed": 0,
                "reversals": 0.0, "latency_p95_s": 31.2},
        "leadtime": {"unserved_ratio": 0.0, "unserved_ratio_peak": 0.0, "shortfall_minutes": 0, "pod_hours": 3381.0,
                     "gpu_node_hours": 441.0, "pending_pod_minutes": 0.0, "churn_pods_per_hour": 3.0,
                     "busy_pods_killed": 0, "reversals": 0.0, "latency_p95_s": None,
                     "latency_p95_s_reason": "no request was late"},
        "oracle": {"unserved_ratio": 0.0, "unserved_ratio_peak": 0.0, "shortfall_minutes": 0, "pod_hours": 3103.0,
                   "gpu_node_hours": 421.0, "pending_pod_minutes": 0.0, "churn_pods_per_hour": 2.0,
                   "busy_pods_killed": 0, "reversals": 0.0, "latency_p95_s": 1.1},
    }  # fmt: skip
    key = CHAT.key
    return {
        "schema": "leadtime.report/1", "class": "simulated", "scenario": "recurring", "seed": 1,
        "policy_hash": "0123456789abcdef",
        "verdict": {"act": True, "sentence": "Prediction pays here: leadtime left 0.0 % of requests unserved where the "
                    "HPA alone left 3.1 %, at 1.12 × its pod-hours."},
        "worlds": {world: {key: {**values, "minutes": []}} for world, values in fields.items()},
        "comparison": {key: {"oracle_gap_closed": 1.0, "early_warning_s": 3660, "ready_ahead_s": 600,
                             "learned_lead_p90_s": 3240, "first_request_ahead_s": 3660, "pod_hours_ratio_to_oracle": 1.09,
                             "gpu_node_hours_ratio_to_oracle": 1.05, "pod_hours_ratio_to_hpa": 1.12,
                             "max_pods_added_per_minute": 20}},
        "timeline": {"hpa": {key: {"threshold_crossed_at": rfc3339(at(365)), "first_pod_placed_at": rfc3339(at(366)),
                                   "pending_at_15min": 197, "first_new_node_ready_at": rfc3339(at(408))}},
                     "leadtime": {key: {"threshold_crossed_at": None, "threshold_crossed_at_reason": "never crossed"}}},
    }  # fmt: skip


def write_ledger(path: Path, *, end: int = END, with_report: bool = True) -> Path:
    """Write the ledger up to minute ``end`` (open)."""
    meta = LedgerMeta(kind="demo", scenario=path.stem, seed=1, policy_hash="0123456789abcdef", workloads=(CHAT.key,),
                      worlds=WORLDS)  # fmt: skip
    with SqliteLedger.create(path, meta) as ledger:
        for minute in range(BEGIN, end):
            ledger.append(tick(minute))
        for world in WORLDS:
            ledger.put_world_minutes(world, CHAT.key, [minute_row(world, m) for m in range(BEGIN, end)])
        if with_report:
            ledger.put_document("report", json.dumps(report()))
    return path
