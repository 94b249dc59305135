"""What is kept of a tick, and the counts made of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leadtime.domain.decision import (
    Agent,
    Decision,
    Proposal,
    Rejection,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.demand import DemandForecast, SurgeAlarm
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, WorkloadRef, workload_scope
from leadtime.domain.series import Unit
from leadtime.domain.snapshot import ClusterSnapshot, WorkloadState
from leadtime.domain.tick import Tick, WorkloadAssessment
from leadtime.scorecard.digest import Bounds, DecisionDigest, LostProposal, TickDigest, WorkloadDigest, digest, in_words
from leadtime.scorecard.tallies import tally

T0 = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
REF = WorkloadRef(namespace="serving", name="chat")
WHY = Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence="500 needed, 480 ready")
FLOOR = SetFloor(workload=REF, replicas=500, expires_at=T0 + timedelta(minutes=15))


def assessment(*, demand=100.0, path=(100.0, 110.0, 120.0, 130.0), may_act=True, forecasts=()):
    lead = LeadTime(
        workload=REF, pool="h100", node_p50_s=1, node_p90_s=1, pod_p50_s=1, pod_p90_s=1, total_p90_s=1, stages=(),
        learned_from="",
    )  # fmt: skip
    return WorkloadAssessment(
        ref=REF, demand=demand, forecasts=forecasts, path_step_s=300, path_expected=path, path_lower=path,
        path_upper=path, model="m", may_act=may_act, standing=WHY, surge=None, lead=lead, needed_pods_at_pod_lead=1,
        needed_pods_at_node_lead=1, hpa_would_want=1,
    )  # fmt: skip


def tick(assessed, *, decisions=(), proposals=()):
    state = WorkloadState(
        ref=REF, pool="h100", queue="q", unit=Unit.REQUESTS_PER_S, gpus_per_pod=1, capacity_per_pod=1.0,
        hpa_target_ratio=0.7, owner_min_replicas=1, max_replicas=9, floor=None, buffer=None, wanted_replicas=1,
        ready_pods=1, starting_pods=0, pending_pods=0, oldest_pending_s=0.0,
    )  # fmt: skip
    snapshot = ClusterSnapshot(as_of=T0, workloads=(state,), pools=(), queues=())
    return Tick(
        as_of=T0, recorded_at=T0, policy_hash="x", snapshot=snapshot, assessments=(assessed,), queue_health=(),
        evidence=(), proposals=proposals, verdicts=(), decisions=decisions, outcomes=(),
    )  # fmt: skip


def test_the_ten_minute_forecast_is_the_third_element_of_a_five_minute_path():
    kept = digest(tick(assessment())).workloads[0]
    assert kept.forecast == Bounds(expected=120.0, lower=120.0, upper=120.0)
    assert (kept.workload, kept.pool, kept.queue) == ("serving/chat", "h100", "q")


def test_a_forecast_made_for_ten_minutes_goes_before_the_path():
    made = DemandForecast(
        subject=REF, issued_at=T0, horizon=timedelta(minutes=10), expected=7, lower=6, upper=8, level_ratio=0.9,
        unit=Unit.REQUESTS_PER_S, model="m",
    )  # fmt: skip
    assert digest(tick(assessment(forecasts=(made,)))).workloads[0].forecast == Bounds(expected=7, lower=6, upper=8)


def test_a_path_that_ends_earlier_gives_no_forecast():
    assert digest(tick(assessment(path=(100.0, 110.0)))).workloads[0].forecast is None


def test_a_standing_alarm_is_a_warning():
    assert not digest(tick(assessment())).workloads[0].warned
    alarm = SurgeAlarm(raised_at=T0, kind="rise", ratio=1.6)
    assert digest(tick(replace(assessment(), alarm=alarm))).workloads[0].warned


def test_a_decision_keeps_its_agent_and_what_lost():
    scope = workload_scope(REF)
    proposals = (
        Proposal(id="a", agent=Agent.SCALING, scope=scope, action=FLOOR, why=WHY),
        Proposal(id="b", agent=Agent.EFFICIENCY, scope=scope, action=ReleaseFloor(workload=REF), why=WHY),
    )
    lost = Rejection(proposal_id="b", why=Explanation(reason=Reason.OUTRANKED, sentence="cost comes last"))
    decision = Decision(scope=scope, proposal_id="a", action=FLOOR, why=WHY, rejections=(lost,))
    kept = digest(tick(assessment(), proposals=proposals, decisions=(decision,))).decisions[0]
    assert (kept.scope, kept.agent, kept.action, kept.pods) == ("workload:serving/chat", "scaling", "SetFloor", 500)
    assert kept.lost == (
        LostProposal(proposal_id="b", agent="efficiency", reason="Outranked", sentence="cost comes last"),
    )


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (None, "nothing"),
        (FLOOR, "floor 500 until 06:15Z"),
        (ReleaseFloor(workload=REF), "floor released"),
        (SetBuffer(workload=REF, pool="h100", pods=9, expires_at=T0), "buffer for 9 pods on h100 until 06:00Z"),
        (SetConsolidation(pool="h100", offered=True), "empty nodes of h100 offered"),
        (SetConsolidation(pool="h100", offered=False), "empty nodes of h100 left to the node autoscaler"),
        (SetLowPriorityAdmission(queue="q", paused=True), "low-priority pods of q held back"),
        (SetLowPriorityAdmission(queue="q", paused=False), "low-priority pods of q admitted"),
    ],
)
def test_actions_in_words(action, words):
    assert in_words(action) == words


def decided(scope, reason, *lost):
    return DecisionDigest(
        scope=scope, reason=reason, sentence="", action=None, asks="nothing", pods=None, agent=None,
        lost=tuple(LostProposal(proposal_id="p", agent=None, reason=name, sentence="") for name in lost),
    )  # fmt: skip


def test_a_workload_is_charged_with_its_own_its_pools_and_its_queues_decisions():
    state = WorkloadDigest(workload="serving/chat", pool="h100", queue="q", forecast=None, warned=False)
    ticks = [
        TickDigest(
            as_of_s=0, workloads=(state,),
            decisions=(
                decided("workload:serving/chat", "RateLimit", "Outranked", "Outranked"),
                decided("pool:h100", "EmptyNodes"),
                decided("pool:h100/serving/chat", "NodesNeededAhead"),
                decided("pool:h100/serving/other", "NodesNeededAhead"),
                decided("queue:q", "QueueUnhealthy", "Duplicate"),
                decided("workload:serving/other", "RateLimit", "Outranked"),
                decided("pool:cpu", "EmptyNodes"),
            ),
        )
    ] * 2  # fmt: skip
    counted = tally(ticks, "serving/chat")
    assert counted.decisions == {"EmptyNodes": 2, "NodesNeededAhead": 2, "QueueUnhealthy": 2, "RateLimit": 2}
    assert counted.rejections == {"Duplicate": 2, "Outranked": 4}


def test_a_pool_scope_is_named_by_its_kind():
    assert Scope(kind=ScopeKind.POOL, name="h100").key == "pool:h100"
