"""One battery for every actuator: one outcome a decision, no exception for a failed write, and always a way back."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from leadtime.actuators.ladder import RUNGS, LadderActuator, rung_of
from leadtime.domain.decision import (
    Action,
    AvoidNode,
    Decision,
    ProtectPod,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.evidence import Explanation
from leadtime.domain.ports import Actuator
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, WorkloadRef, buffer_scope, node_scope, pod_scope, workload_scope
from leadtime.policy.schema import ActuationPolicy, Stage
from leadtime.testing.fakes import RecordingActuator, RecordingWriter

AT = datetime(2026, 3, 2, 5, 10, tzinfo=UTC)
ENDS = AT + timedelta(minutes=15)
CHAT = WorkloadRef(namespace="serving", name="chat")
OTHER = WorkloadRef(namespace="serving", name="search")
WHY = Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence="500 pods are needed and 480 ready", because=("ev-1",))


def decided(scope: Scope, action: Action | None) -> Decision:
    return Decision(scope=scope, proposal_id=None if action is None else f"scaling/{scope.key}", action=action, why=WHY)


QUEUE, POOL = Scope(kind=ScopeKind.QUEUE, name="online"), Scope(kind=ScopeKind.POOL, name="gpu")
RAISES = (
    decided(workload_scope(CHAT), SetFloor(workload=CHAT, replicas=500, expires_at=ENDS)),
    decided(buffer_scope("gpu", CHAT), SetBuffer(workload=CHAT, pool="gpu", pods=80, expires_at=ENDS)),
    decided(QUEUE, SetLowPriorityAdmission(queue="online", paused=True)),
    decided(POOL, SetConsolidation(pool="gpu", offered=True)),
    decided(pod_scope("serving/chat-7"), ProtectPod(pod="serving/chat-7", workload=CHAT, expires_at=ENDS)),
    decided(node_scope("gpu-3"), AvoidNode(node="gpu-3", pool="gpu", expires_at=ENDS)),
)
RELEASES = (
    decided(workload_scope(OTHER), ReleaseFloor(workload=OTHER)),
    decided(buffer_scope("gpu", OTHER), SetBuffer(workload=OTHER, pool="gpu", pods=0, expires_at=ENDS)),
    decided(QUEUE, SetLowPriorityAdmission(queue="online", paused=False)),
    decided(POOL, SetConsolidation(pool="gpu", offered=False)),
    decided(pod_scope("serving/chat-8"), ProtectPod(pod="serving/chat-8", workload=CHAT, expires_at=None)),
    decided(node_scope("gpu-4"), AvoidNode(node="gpu-4", pool="gpu", expires_at=None)),
)
NOTHING = decided(workload_scope(OTHER), None)
ALL = (*RAISES, NOTHING, *RELEASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """An actuator, the policy it was built with (None: the fake has none), and the writer behind it."""

    actuator: Actuator
    policy: ActuationPolicy | None
    writer: RecordingWriter


def ladder(stage: Stage, *, kill: bool = False, release: str = "at_once") -> Callable[[bool], Seam]:
    def build(fail: bool) -> Seam:
        policy = ActuationPolicy.model_validate({"stage": stage, "kill_switch": kill, "floor_release": release})
        writer = RecordingWriter(fail=fail)
        return Seam(actuator=LadderActuator(policy, writer), policy=policy, writer=writer)

    return build


def recording(fail: bool) -> Seam:
    return Seam(actuator=RecordingActuator(), policy=None, writer=RecordingWriter(fail=fail))


BUILDERS = {
    "fake": recording,
    "off": ladder(Stage.OFF),
    "shadow": ladder(Stage.SHADOW),
    "capacity_buffer": ladder(Stage.CAPACITY_BUFFER),
    "hpa_floor": ladder(Stage.HPA_FLOOR),
    "shadow, killed": ladder(Stage.SHADOW, kill=True),
    "hpa_floor, killed": ladder(Stage.HPA_FLOOR, kill=True),
    "hpa_floor, killed, stepwise": ladder(Stage.HPA_FLOOR, kill=True, release="stepwise"),
}


@pytest.fixture(params=list(BUILDERS))
def build(request: pytest.FixtureRequest) -> Callable[[bool], Seam]:
    found: Callable[[bool], Seam] = BUILDERS[request.param]
    return found


@pytest.mark.parametrize("fail", [False, True], ids=["writes work", "writes fail"])
def test_every_decision_with_an_action_has_one_outcome_in_the_same_order(
    build: Callable[[bool], Seam], fail: bool
) -> None:
    outcomes = build(fail).actuator.act(ALL, AT)
    assert [outcome.scope for outcome in outcomes] == [d.scope for d in ALL if d.action is not None]
    assert all(outcome.written_at == AT for outcome in outcomes)


def test_every_outcome_says_who_why_and_how_it_is_undone(build: Callable[[bool], Seam]) -> None:
    for outcome in build(False).actuator.act(ALL, AT):
        assert outcome.actuator
        assert outcome.why.sentence
        assert outcome.rollback


def test_without_decisions_there_is_nothing_to_do(build: Callable[[bool], Seam]) -> None:
    seam = build(False)
    assert list(seam.actuator.act((), AT)) == []
    assert list(seam.actuator.act((NOTHING,), AT)) == []
    assert seam.writer.calls == []


def test_equal_decisions_have_equal_outcomes(build: Callable[[bool], Seam]) -> None:
    seam = build(False)
    assert list(seam.actuator.act(ALL, AT)) == list(seam.actuator.act(ALL, AT))
    assert list(build(False).actuator.act(ALL, AT)) == list(seam.actuator.act(ALL, AT))


def test_what_was_applied_was_written_and_nothing_else(build: Callable[[bool], Seam]) -> None:
    seam = build(False)
    outcomes = seam.actuator.act(ALL, AT)
    applied = [outcome for outcome in outcomes if outcome.applied]
    assert all((outcome.why.reason is Reason.APPLIED) is outcome.applied for outcome in outcomes)
    if seam.policy is not None:
        assert len(seam.writer.calls) == len(applied)


def test_a_failed_write_is_told_as_failed_and_the_others_go_on(build: Callable[[bool], Seam]) -> None:
    seam = build(True)
    worked = {outcome.scope: outcome for outcome in build(False).actuator.act(RAISES, AT)}
    for outcome in seam.actuator.act(RAISES, AT):
        if seam.policy is None or not worked[outcome.scope].applied:
            assert outcome == worked[outcome.scope]
            continue
        assert not outcome.applied
        assert outcome.why.reason is Reason.WRITE_FAILED
        assert "connection refused" in outcome.why.sentence
    assert seam.writer.calls == []


def test_only_what_stands_on_the_ladder_is_raised(build: Callable[[bool], Seam]) -> None:
    """Off and shadow write nothing; killed, nothing is raised on any rung but a stepwise release's lower floors."""
    seam = build(False)
    if seam.policy is None:
        return
    outcomes = seam.actuator.act(RAISES, AT)
    for decision, outcome in zip(RAISES, outcomes, strict=True):
        assert decision.action is not None
        rung = RUNGS.index(rung_of(decision.action)) <= RUNGS.index(seam.policy.stage)
        lower = isinstance(decision.action, SetFloor) and seam.policy.floor_release == "stepwise"
        assert outcome.applied is (lower if seam.policy.kill_switch else rung)


def test_the_kill_switch_gives_everything_back_whatever_the_rung(build: Callable[[bool], Seam]) -> None:
    seam = build(False)
    if seam.policy is None or not seam.policy.kill_switch:
        return
    assert all(outcome.applied for outcome in seam.actuator.act(RELEASES, AT))
    assert len(seam.writer.calls) == len(RELEASES)


def test_shadow_writes_nothing_and_says_what_it_would_have_undone() -> None:
    seam = BUILDERS["shadow"](False)
    outcomes = seam.actuator.act(ALL, AT)
    assert seam.writer.calls == []
    assert {outcome.why.reason for outcome in outcomes} == {Reason.SHADOW_ONLY}
    assert all(outcome.why.because == WHY.because for outcome in outcomes)


@pytest.mark.parametrize("decision", [*RAISES, *RELEASES], ids=lambda d: type(d.action).__name__)
def test_every_rollback_names_what_it_is_about(decision: Decision) -> None:
    (outcome,) = BUILDERS["hpa_floor"](False).actuator.act((decision,), AT)
    about = {SetFloor: "serving/", ReleaseFloor: "serving/", SetBuffer: "gpu", SetConsolidation: "gpu",
             SetLowPriorityAdmission: "online", ProtectPod: "serving/chat-", AvoidNode: "gpu-"}  # fmt: skip
    assert about[type(decision.action)] in outcome.rollback
    if isinstance(decision.action, (SetFloor, SetBuffer)):
        assert "2026-03-02T05:25:00Z: it expires by itself" in outcome.rollback
