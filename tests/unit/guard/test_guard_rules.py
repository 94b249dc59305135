"""Each guard rule as a table: what is asked, what stands, what may be done, and why."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from leadtime.domain.decision import (
    Action,
    Agent,
    Answer,
    Proposal,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, WorkloadRef, workload_scope
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor
from leadtime.guard.facts import BudgetFacts, GuardFacts, WorkloadFacts
from leadtime.guard.judge import judge, judge_all
from leadtime.policy import Policy
from leadtime.testing.builders import cluster, ref

AT = datetime(2026, 3, 2, 5, 10, tzinfo=UTC)
CHAT = ref("serving/chat")
ENDS = AT + timedelta(seconds=900)
RICH = BudgetFacts(extra_pod_hours=0.0, allowed_pod_hours=1000.0)
SPENT = BudgetFacts(extra_pod_hours=1000.0, allowed_pod_hours=1000.0)


def floor(replicas: int, ends: datetime = ENDS) -> SetFloor:
    return SetFloor(workload=CHAT, replicas=replicas, expires_at=ends)


def buffer(pods: int, ends: datetime = ENDS) -> SetBuffer:
    return SetBuffer(workload=CHAT, pool="gpu", pods=pods, expires_at=ends)


def ask(
    action: Action, agent: Agent = Agent.SCALING, reason: Reason = Reason.FORECAST_ABOVE_READY, of: WorkloadRef = CHAT
) -> Proposal:
    scope = workload_scope(of)
    if isinstance(action, SetConsolidation):
        scope = Scope(kind=ScopeKind.POOL, name=action.pool)
    why = Explanation(reason=reason, sentence="because")
    return Proposal(id=f"{agent.value}/{scope.key}", agent=agent, scope=scope, action=action, why=why)


def snapshot(ours: int | None = None, room: int | None = None, nodes: int = 130) -> ClusterSnapshot:
    """480 pods on a pool with plenty of free places."""
    return (
        cluster()
        .pool("gpu", nodes=nodes)
        .workload(
            "serving/chat", ready=480, wanted=max(480, ours or 0), minimum=480, maximum=1500,
            floor=Floor(replicas=ours, expires_at=ENDS) if ours else None,
            buffer=Buffer(pods=room, expires_at=ENDS) if room else None,
        )
        .snapshot(AT)
    )  # fmt: skip


def facts(seen: ClusterSnapshot | None = None, policy: Policy | None = None, **about: Any) -> GuardFacts:
    seen = seen or snapshot()
    known: dict[str, Any] = {
        "added_last_minute": 0, "surging": False, "nothing_lower": None, "budget": RICH, "hpa_would_want": 480,
        "floor_needed_at": AT, **about,
    }  # fmt: skip
    workloads = {w.ref: WorkloadFacts(state=w, **known) for w in seen.workloads}
    return GuardFacts(as_of=AT, policy=policy or Policy(), workloads=workloads, pools={p.name: p for p in seen.pools})


def policy(**sections: dict[str, Any]) -> Policy:
    return Policy.model_validate(sections)


KILLED = policy(actuation={"kill_switch": True})
STEPWISE = policy(actuation={"floor_release": "stepwise"})


@pytest.mark.parametrize(
    ("action", "given", "answer", "left", "reason"),
    [
        pytest.param(floor(488), facts(), Answer.ALLOWED, floor(488), None, id="a small raise passes"),
        pytest.param(floor(490), facts(), Answer.ALLOWED, floor(490), None, id="exactly ten pods a minute pass"),
        pytest.param(
            floor(600), facts(), Answer.LIMITED, floor(490), Reason.RATE_LIMIT, id="more is cut to ten a minute"
        ),
        pytest.param(
            floor(600), facts(added_last_minute=7), Answer.LIMITED, floor(483), Reason.RATE_LIMIT,
            id="what was added in the last 60 s counts",
        ),
        pytest.param(
            floor(600), facts(snapshot(ours=520)), Answer.LIMITED, floor(530), Reason.RATE_LIMIT,
            id="counted above the floor that stands",
        ),
        pytest.param(
            floor(600), facts(snapshot(nodes=60)), Answer.LIMITED, floor(480), Reason.CAPACITY_NOT_READY,
            id="a raise that finds no place is not one",
        ),
        pytest.param(
            floor(486), facts(snapshot(nodes=60), hpa_would_want=480), Answer.REFUSED, None,
            Reason.CAPACITY_NOT_READY, id="with nothing left of it the raise is refused",
        ),
        pytest.param(
            floor(600), facts(snapshot(ours=590)), Answer.ALLOWED, floor(600), None, id="ten above a standing floor",
        ),
        pytest.param(
            floor(1700), facts(snapshot(ours=1495, nodes=220)), Answer.LIMITED, floor(1500), Reason.REPLICA_CAP,
            id="never above the owner's maxReplicas",
        ),
        pytest.param(
            floor(900), facts(policy=policy(scaling={"replica_cap": 485})), Answer.LIMITED, floor(485),
            Reason.REPLICA_CAP, id="never above the policy's cap",
        ),
        pytest.param(
            floor(485, AT), facts(), Answer.REFUSED, None, Reason.NO_EXPIRY, id="what has expired is not written",
        ),
        pytest.param(
            floor(485, AT + timedelta(days=1)), facts(), Answer.LIMITED, floor(485), Reason.NO_EXPIRY,
            id="a floor may stand for the policy's expiry at most",
        ),
        pytest.param(
            floor(485), facts(budget=SPENT), Answer.REFUSED, None, Reason.POD_HOUR_BUDGET,
            id="a spent budget ends raises",
        ),
        pytest.param(
            floor(500), facts(snapshot(ours=500), budget=SPENT), Answer.ALLOWED, floor(500), None,
            id="a spent budget does not lower what stands",
        ),
        pytest.param(
            floor(489), facts(budget=SPENT, hpa_would_want=495), Answer.ALLOWED, floor(489), None,
            id="what the HPA wants itself costs nothing extra",
        ),
        pytest.param(
            floor(500), facts(snapshot(ours=520), nothing_lower="demand is missing"), Answer.REFUSED, None,
            Reason.MISSING_NEVER_LOWERS, id="missing data lowers no floor",
        ),
        pytest.param(
            ReleaseFloor(workload=CHAT), facts(snapshot(ours=520), nothing_lower="demand is missing"),
            Answer.REFUSED, None, Reason.MISSING_NEVER_LOWERS, id="missing data releases no floor",
        ),
        pytest.param(
            buffer(10), facts(snapshot(room=20), nothing_lower="demand is missing"), Answer.REFUSED, None,
            Reason.MISSING_NEVER_LOWERS, id="missing data shrinks no room",
        ),
        pytest.param(
            floor(525), facts(snapshot(ours=520), nothing_lower="demand is missing"), Answer.ALLOWED, floor(525),
            None, id="missing data may still raise",
        ),
        pytest.param(
            buffer(5000), facts(), Answer.LIMITED, buffer(1520), Reason.POOL_LIMIT,
            id="room stays within the pool: 250 nodes of 8 less 480 used",
        ),
        pytest.param(
            buffer(300), facts(policy=policy(scaling={"max_buffer_pods": 50})), Answer.LIMITED, buffer(50),
            Reason.REPLICA_CAP, id="no buffer larger than the policy's largest",
        ),
        pytest.param(
            floor(485), facts(policy=KILLED), Answer.REFUSED, None, Reason.KILL_SWITCH,
            id="killed, nothing is raised",
        ),
        pytest.param(
            buffer(40), facts(policy=KILLED), Answer.REFUSED, None, Reason.KILL_SWITCH, id="killed, no room is ordered",
        ),
        pytest.param(
            ReleaseFloor(workload=CHAT), facts(snapshot(ours=520), KILLED), Answer.ALLOWED,
            ReleaseFloor(workload=CHAT), None, id="killed, a release passes",
        ),
        pytest.param(
            floor(500), facts(snapshot(ours=520), KILLED), Answer.ALLOWED, floor(500), None,
            id="killed, a step down passes",
        ),
        pytest.param(
            ReleaseFloor(workload=CHAT), facts(snapshot(ours=600), STEPWISE), Answer.LIMITED, floor(540),
            Reason.WARM_HOLD, id="stepwise, a warm floor goes down by a tenth",
        ),
        pytest.param(
            ReleaseFloor(workload=CHAT), facts(snapshot(ours=600), STEPWISE, floor_needed_at=AT - timedelta(hours=1)),
            Answer.ALLOWED, ReleaseFloor(workload=CHAT), None, id="stepwise, a cold floor goes at once",
        ),
        pytest.param(
            ReleaseFloor(workload=CHAT), facts(snapshot(ours=600)), Answer.ALLOWED, ReleaseFloor(workload=CHAT), None,
            id="at once is the owner's choice, warm or not",
        ),
    ],
)  # fmt: skip
def test_rule(action: Action, given: GuardFacts, answer: Answer, left: Action | None, reason: Reason | None) -> None:
    verdict = judge(ask(action), given)
    if isinstance(left, SetFloor) and left.replicas == 480:  # what is left is what the owner asked for: refused
        answer, left = Answer.REFUSED, None
    assert verdict.answer is answer, verdict
    assert verdict.allowed_action == left
    if reason is not None:
        assert reason in {why.reason for why in verdict.why}
    assert all(why.sentence for why in verdict.why)


def test_safety_may_use_the_surge_rate_only_while_a_surge_runs() -> None:
    surge = judge(ask(floor(900), Agent.SAFETY), facts(surging=True))
    calm = judge(ask(floor(900), Agent.SAFETY), facts(surging=False))
    assert surge.allowed_action == floor(500)
    assert calm.allowed_action == floor(490)


def test_safety_is_exempt_from_the_budget_but_it_is_put_on_record() -> None:
    verdict = judge(ask(floor(495), Agent.SAFETY), facts(surging=True, budget=SPENT))
    assert verdict.allowed_action == floor(495)
    assert Reason.POD_HOUR_BUDGET in {why.reason for why in verdict.why}


def test_a_lapse_or_kill_is_no_measurement_so_missing_data_does_not_stop_the_kill_switch() -> None:
    given = facts(snapshot(ours=520), KILLED, nothing_lower="demand is missing")
    verdict = judge(ask(ReleaseFloor(workload=CHAT), Agent.SAFETY, Reason.KILL_SWITCH), given)
    assert verdict.answer is Answer.ALLOWED


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        pytest.param(SetConsolidation(pool="gpu", offered=True), Answer.REFUSED, id="killed, no nodes are offered"),
        pytest.param(SetConsolidation(pool="gpu", offered=False), Answer.ALLOWED, id="killed, an offer ends"),
        pytest.param(SetLowPriorityAdmission(queue="q", paused=False), Answer.ALLOWED, id="killed, a pause ends"),
        pytest.param(SetLowPriorityAdmission(queue="q", paused=True), Answer.REFUSED, id="killed, no pause begins"),
    ],
)
def test_kill_switch_on_pools_and_queues(action: Action, answer: Answer) -> None:
    assert judge(ask(action, Agent.SAFETY), facts(policy=KILLED)).answer is answer


def test_two_workloads_do_not_get_the_same_free_places() -> None:
    other = ref("serving/embed")
    seen = (
        cluster().pool("gpu", nodes=2).workload("serving/chat", ready=4).workload("serving/embed", ready=4).snapshot(AT)
    )  # 8 places free
    proposals = (
        ask(SetFloor(workload=CHAT, replicas=10, expires_at=ENDS)),
        ask(SetFloor(workload=other, replicas=10, expires_at=ENDS), of=other),
    )
    verdicts = judge_all(proposals, facts(seen))
    granted = [v.allowed_action.replicas for v in verdicts if isinstance(v.allowed_action, SetFloor)]
    assert granted == [10, 6]


def test_two_proposals_for_one_workload_are_not_added_up() -> None:
    seen = cluster().pool("gpu", nodes=1).workload("serving/chat", ready=1).snapshot(AT)  # 7 places free
    proposals = (ask(floor(8), Agent.SAFETY), ask(floor(8), Agent.SCALING))
    assert [v.allowed_action for v in judge_all(proposals, facts(seen))] == [floor(8), floor(8)]
