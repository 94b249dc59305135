"""One full tick in the ledger's tests: every noun that a tick can hold is in it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from leadtime.domain.decision import (
    Agent,
    Answer,
    Decision,
    Outcome,
    Proposal,
    Rejection,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    Verdict,
)
from leadtime.domain.demand import DemandForecast, Surge
from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.lead_time import LeadTime, StageLead
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, WorkloadRef, workload_scope
from leadtime.domain.series import Missing, Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor, PoolState, QueueState, WorkloadState
from leadtime.domain.tick import QueueHealth, Tick, WorkloadAssessment
from leadtime.domain.time_window import TimeWindow

T0 = datetime(2026, 3, 2, 5, 10, tzinfo=UTC)
REF = WorkloadRef(namespace="serving", name="chat")
POOL = Scope(kind=ScopeKind.POOL, name="h100")


def _why(reason: Reason, sentence: str) -> Explanation:
    return Explanation(reason=reason, sentence=sentence, because=("ev-1",))


def _snapshot(as_of: datetime) -> ClusterSnapshot:
    expires = as_of + timedelta(minutes=15)
    workload = WorkloadState(
        ref=REF, pool="h100", queue="serving", unit=Unit.REQUESTS_PER_S, gpus_per_pod=1, capacity_per_pod=2.0,
        hpa_target_ratio=0.7, owner_min_replicas=480, max_replicas=2000, floor=Floor(replicas=500, expires_at=expires),
        buffer=Buffer(pods=20, expires_at=expires), wanted_replicas=500, ready_pods=480, starting_pods=15,
        pending_pods=5, oldest_pending_s=30.0,
    )  # fmt: skip
    pool = PoolState(
        name="h100", gpus_per_node=8, max_nodes=200, nodes_by_stage={"request": 0, "boot": 3, "ready": 65},
        allocatable_gpus=520, used_gpus=495, arriving_gpus=24, empty_nodes=1, consolidation_offered=False,
    )  # fmt: skip
    queue = QueueState(
        name="serving", pool="h100", pending_pods=5, covered_pending_pods=5, oldest_uncovered_pending_s=0.0,
        low_priority_paused=False,
    )  # fmt: skip
    return ClusterSnapshot(
        as_of=as_of, workloads=(workload,), pools=(pool,), queues=(queue,),
        missing=(Missing(source="prometheus", reason="no answer in 5 s", since=T0),),
    )  # fmt: skip


def _assessment(as_of: datetime, demand: float | Missing) -> WorkloadAssessment:
    forecast = DemandForecast(
        subject=REF, issued_at=as_of, horizon=timedelta(minutes=14), expected=640.0, lower=600.0, upper=700.0,
        level_ratio=0.9, unit=Unit.REQUESTS_PER_S, model="seasonal_ratio",
    )  # fmt: skip
    surge = Surge(
        subject=REF, detected_at=as_of, began_at=as_of - timedelta(minutes=2), actual=660.0, forecast=600.0,
        excess_ratio=0.1, threshold_ratio=0.08, rise_per_min=30.0, extrapolated=900.0,
    )  # fmt: skip
    stage = StageLead(stage="boot", p50_s=2400.0, p90_s=2600.0, samples=41, censored=0, episodes=7, from_prior=False)
    lead = LeadTime(
        workload=REF, pool="h100", node_p50_s=2400.0, node_p90_s=2600.0, pod_p50_s=570.0, pod_p90_s=640.0,
        total_p90_s=3240.0, stages=(stage,), learned_from="7 episodes, 41 nodes (0 censored)",
    )  # fmt: skip
    return WorkloadAssessment(
        ref=REF, demand=demand, forecasts=(forecast,), path_step_s=300, path_expected=(600.0, 640.0),
        path_lower=(580.0, 600.0), path_upper=(620.0, 700.0), model="seasonal_ratio", may_act=True,
        standing=_why(Reason.FORECAST_ABOVE_READY, "beats last value by 12 %"), surge=surge, lead=lead,
        needed_pods_at_pod_lead=500, needed_pods_at_node_lead=540, hpa_would_want=480,
    )  # fmt: skip


def _decisions(as_of: datetime) -> tuple[tuple[Proposal, ...], tuple[Verdict, ...], tuple[Decision, ...]]:
    expires = as_of + timedelta(minutes=15)
    floor = SetFloor(workload=REF, replicas=520, expires_at=expires)
    limited = SetFloor(workload=REF, replicas=510, expires_at=expires)
    buffer = SetBuffer(workload=REF, pool="h100", pods=20, expires_at=expires)
    offer = SetConsolidation(pool="h100", offered=True)
    scope = workload_scope(REF)
    raise_why = _why(Reason.FORECAST_ABOVE_READY, "500 pods needed at 05:24, 480 ready")
    rate_why = _why(Reason.RATE_LIMIT, "at most 10 pods a minute")
    proposals = (
        Proposal(id="scaling/a", agent=Agent.SCALING, scope=scope, action=floor, why=raise_why),
        Proposal(id="scaling/b", agent=Agent.SCALING, scope=scope, action=buffer, why=raise_why),
        Proposal(id="efficiency/c", agent=Agent.EFFICIENCY, scope=POOL, action=offer, why=raise_why),
    )
    verdicts = (
        Verdict(proposal_id="scaling/a", answer=Answer.LIMITED, allowed_action=limited, why=(rate_why,)),
        Verdict(proposal_id="efficiency/c", answer=Answer.REFUSED, allowed_action=None, why=(rate_why,)),
    )
    lost = Rejection(proposal_id="scaling/b", why=_why(Reason.SERVED_BY_WINNER, "the floor orders the same nodes"))
    decisions = (
        Decision(scope=scope, proposal_id="scaling/a", action=limited, why=raise_why, rejections=(lost,)),
        Decision(scope=POOL, proposal_id=None, action=None, why=_why(Reason.ENOUGH_CAPACITY, "no node is empty")),
    )
    return proposals, verdicts, decisions


@pytest.fixture
def build_tick() -> Callable[..., Tick]:
    def build(as_of: datetime = T0, demand: float | Missing = 576.0) -> Tick:
        proposals, verdicts, decisions = _decisions(as_of)
        outcome = Outcome(
            scope=workload_scope(REF), actuator="shadow", applied=False,
            why=_why(Reason.SHADOW_ONLY, "shadow mode"), rollback="expires by itself", written_at=as_of,
        )  # fmt: skip
        window = TimeWindow(start=as_of - timedelta(hours=1), end=as_of)
        evidence = Evidence(
            id="ev-1", source="simulated", query="demand", window=window, value=576.0, unit="requests/s"
        )
        health = QueueHealth(queue="serving", healthy=True, clean_ticks=2, because=())
        return Tick(
            as_of=as_of, recorded_at=as_of, policy_hash="0123456789abcdef", snapshot=_snapshot(as_of),
            assessments=(_assessment(as_of, demand),), queue_health=(health,), evidence=(evidence,),
            proposals=proposals, verdicts=verdicts, decisions=decisions, outcomes=(outcome,),
        )  # fmt: skip

    return build
