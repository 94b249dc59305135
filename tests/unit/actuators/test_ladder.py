"""The ladder: what each stage writes, what the kill switch leaves, and how each write is undone."""

from datetime import UTC, datetime, timedelta

import pytest

from leadtime.actuators.ladder import LadderActuator
from leadtime.domain.decision import (
    Action,
    Decision,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import workload_scope
from leadtime.policy.schema import ActuationPolicy, Stage
from leadtime.testing.builders import ref
from leadtime.testing.fakes import RecordingWriter

AT = datetime(2026, 3, 2, 5, 10, tzinfo=UTC)
ENDS = AT + timedelta(seconds=900)
CHAT = ref("serving/chat")
FLOOR = SetFloor(workload=CHAT, replicas=500, expires_at=ENDS)
RELEASE = ReleaseFloor(workload=CHAT)
ROOM = SetBuffer(workload=CHAT, pool="gpu", pods=40, expires_at=ENDS)
NO_ROOM = SetBuffer(workload=CHAT, pool="gpu", pods=0, expires_at=ENDS)
PAUSE = SetLowPriorityAdmission(queue="online", paused=True)
RESUME = SetLowPriorityAdmission(queue="online", paused=False)
OFFER = SetConsolidation(pool="gpu", offered=True)
LEAVE = SetConsolidation(pool="gpu", offered=False)


def decided(action: Action | None) -> Decision:
    why = Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence="because", because=("ev-1",))
    return Decision(scope=workload_scope(CHAT), proposal_id="scaling/x", action=action, why=why)


def act(action: Action | None, policy: ActuationPolicy, writer: RecordingWriter) -> list[Reason]:
    return [outcome.why.reason for outcome in LadderActuator(policy, writer).act([decided(action)], AT)]


@pytest.mark.parametrize(
    ("stage", "action", "written", "reason"),
    [
        pytest.param(Stage.SHADOW, FLOOR, False, Reason.SHADOW_ONLY, id="shadow records a floor"),
        pytest.param(Stage.SHADOW, ROOM, False, Reason.SHADOW_ONLY, id="shadow records room"),
        pytest.param(Stage.OFF, ROOM, False, Reason.NOT_ON_LADDER, id="off writes nothing"),
        pytest.param(Stage.CAPACITY_BUFFER, ROOM, True, Reason.APPLIED, id="the buffer rung orders room"),
        pytest.param(Stage.CAPACITY_BUFFER, OFFER, True, Reason.APPLIED, id="the buffer rung offers nodes"),
        pytest.param(Stage.CAPACITY_BUFFER, FLOOR, False, Reason.NOT_ON_LADDER, id="the buffer rung sets no floor"),
        pytest.param(Stage.CAPACITY_BUFFER, PAUSE, False, Reason.NOT_ON_LADDER, id="the buffer rung pauses no queue"),
        pytest.param(Stage.HPA_FLOOR, FLOOR, True, Reason.APPLIED, id="the top rung sets floors"),
        pytest.param(Stage.HPA_FLOOR, RELEASE, True, Reason.APPLIED, id="the top rung releases floors"),
        pytest.param(Stage.HPA_FLOOR, ROOM, True, Reason.APPLIED, id="the top rung includes the one below"),
        pytest.param(Stage.HPA_FLOOR, PAUSE, True, Reason.APPLIED, id="the top rung pauses queues"),
    ],
)
def test_stage(stage: Stage, action: Action, written: bool, reason: Reason) -> None:
    writer = RecordingWriter()
    assert act(action, ActuationPolicy(stage=stage), writer) == [reason]
    assert bool(writer.calls) is written


@pytest.mark.parametrize("stage", [Stage.SHADOW, Stage.HPA_FLOOR])
@pytest.mark.parametrize(
    ("action", "written"),
    [
        pytest.param(RELEASE, True, id="floors are released"),
        pytest.param(NO_ROOM, True, id="room is given back"),
        pytest.param(RESUME, True, id="queues are resumed"),
        pytest.param(LEAVE, True, id="nodes are left to the autoscaler"),
        pytest.param(FLOOR, False, id="no floor is set"),
        pytest.param(ROOM, False, id="no room is ordered"),
        pytest.param(PAUSE, False, id="no queue is paused"),
        pytest.param(OFFER, False, id="no node is offered"),
    ],
)
def test_killed_only_releases_are_written_on_any_rung(stage: Stage, action: Action, written: bool) -> None:
    writer = RecordingWriter()
    act(action, ActuationPolicy(stage=stage, kill_switch=True), writer)
    assert bool(writer.calls) is written


def test_killed_a_stepwise_release_may_still_write_its_lower_floors() -> None:
    writer = RecordingWriter()
    act(FLOOR, ActuationPolicy(stage=Stage.HPA_FLOOR, kill_switch=True, floor_release="stepwise"), writer)
    assert writer.calls == ["set_floor serving/chat 500 until 05:25"]


def test_a_failed_write_is_an_outcome_and_not_an_exception() -> None:
    (outcome,) = LadderActuator(ActuationPolicy(stage=Stage.HPA_FLOOR), RecordingWriter(fail=True)).act(
        [decided(FLOOR)], AT
    )
    assert not outcome.applied
    assert outcome.why.reason is Reason.WRITE_FAILED
    assert "connection refused" in outcome.why.sentence


def test_a_decision_to_do_nothing_has_no_outcome() -> None:
    assert act(None, ActuationPolicy(stage=Stage.HPA_FLOOR), RecordingWriter()) == []


@pytest.mark.parametrize(
    ("action", "undo"),
    [
        (FLOOR, "release_floor serving/chat, or wait until 2026-03-02T05:25:00Z: it expires by itself"),
        (ROOM, "set_buffer serving/chat on gpu to 0, or wait until 2026-03-02T05:25:00Z: it expires by itself"),
        (PAUSE, "admit low-priority pods of queue online"),
        (LEAVE, "offer empty nodes of pool gpu"),
    ],
)
def test_every_outcome_says_how_it_is_undone(action: Action, undo: str) -> None:
    (outcome,) = LadderActuator(ActuationPolicy(stage=Stage.HPA_FLOOR), RecordingWriter()).act([decided(action)], AT)
    assert outcome.rollback == undo
    assert outcome.why.because == ("ev-1",)
