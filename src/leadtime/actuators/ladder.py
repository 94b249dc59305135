"""Decisions → writes, as far up the ladder as policy.actuation.stage allows: shadow < capacity_buffer < hpa_floor.

Room and consolidation are on the rung capacity_buffer; floors, low-priority admission and what is done for a pod at
risk, which touch what users run, on hpa_floor. Under the kill switch every release is written, on any rung, and
nothing else is.
"""

from collections.abc import Sequence
from datetime import datetime

from leadtime.actuators import at_risk, capacity_buffer, hpa_floor, queue, shadow
from leadtime.actuators.writes import outcome
from leadtime.domain.decision import (
    Action,
    AvoidNode,
    Decision,
    Outcome,
    ProtectPod,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.ports import ClusterWriter
from leadtime.domain.reasons import Reason
from leadtime.policy.schema import ActuationPolicy, Stage

RUNGS = (Stage.OFF, Stage.SHADOW, Stage.CAPACITY_BUFFER, Stage.HPA_FLOOR)


def rung_of(action: Action) -> Stage:
    """The rung an action needs."""
    return Stage.CAPACITY_BUFFER if isinstance(action, SetBuffer | SetConsolidation) else Stage.HPA_FLOOR


class LadderActuator:
    """The Actuator of live runs and simulation. Holds the policy and the cluster's writer, and no other state."""

    def __init__(self, policy: ActuationPolicy, writer: ClusterWriter) -> None:
        self._policy = policy
        self._writer = writer

    def act(self, decisions: Sequence[Decision], as_of: datetime) -> Sequence[Outcome]:
        """Carry out every decision that has an action; never raises for a failed write."""
        return tuple(
            self._one(decision, decision.action, as_of) for decision in decisions if decision.action is not None
        )

    def _one(self, decision: Decision, action: Action, as_of: datetime) -> Outcome:
        if self._policy.kill_switch:
            if _gives_back(action, self._policy):
                return self._write(decision, action, as_of)
            return outcome(
                decision, "ladder", Reason.KILL_SWITCH, "the kill switch is on: only releases are written", as_of
            )
        stage = self._policy.stage
        if stage is Stage.SHADOW:
            return shadow.act(decision, as_of)
        if RUNGS.index(stage) < RUNGS.index(rung_of(action)):
            text = f"policy.actuation.stage is {stage.value}, this needs {rung_of(action).value}; recorded only"
            return outcome(decision, "ladder", Reason.NOT_ON_LADDER, text, as_of)
        return self._write(decision, action, as_of)

    def _write(self, decision: Decision, action: Action, as_of: datetime) -> Outcome:
        writer = self._writer
        match action:
            case SetFloor():
                return hpa_floor.set_floor(decision, action, writer, as_of)
            case ReleaseFloor():
                return hpa_floor.release_floor(decision, action, writer, as_of)
            case SetBuffer():
                return capacity_buffer.set_buffer(decision, action, writer, as_of)
            case SetConsolidation():
                return capacity_buffer.set_consolidation(decision, action, writer, as_of)
            case SetLowPriorityAdmission():
                return queue.set_admission(decision, action, writer, as_of)
            case ProtectPod():
                return at_risk.protect_pod(decision, action, writer, as_of)
            case AvoidNode():
                return at_risk.avoid_node(decision, action, writer, as_of)


def _gives_back(action: Action, policy: ActuationPolicy) -> bool:
    """Releases, and the lower floors of a stepwise release (the guard has seen to it that they are lower)."""
    match action:
        case ReleaseFloor() | SetBuffer(pods=0) | SetConsolidation(offered=False):
            return True
        case SetLowPriorityAdmission(paused=False) | ProtectPod(expires_at=None) | AvoidNode(expires_at=None):
            return True
        case SetFloor():
            return policy.floor_release == "stepwise"
    return False
