"""What every actuator answers: an Outcome for a write done, recorded only, not on the ladder, or failed."""

from collections.abc import Callable
from datetime import datetime

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
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.time_window import rfc3339


def rollback(action: Action) -> str:
    """The command or the expiry that undoes ``action``."""
    match action:
        case SetFloor(workload=ref, expires_at=ends):
            return f"release_floor {ref.key}, or wait until {rfc3339(ends)}: it expires by itself"
        case ReleaseFloor(workload=ref):
            return f"set_floor {ref.key} with the replicas it had"
        case SetBuffer(workload=ref, pool=pool, expires_at=ends):
            return f"set_buffer {ref.key} on {pool} to 0, or wait until {rfc3339(ends)}: it expires by itself"
        case SetLowPriorityAdmission(queue=queue, paused=paused):
            return f"{'admit' if paused else 'hold back'} low-priority pods of queue {queue}"
        case ProtectPod(pod=pod, expires_at=ends):
            if ends is None:
                return f"protect_pod {pod} until an instant"
            return f"protect_pod {pod} until none, or wait until {rfc3339(ends)}: it expires by itself"
        case AvoidNode(node=node, expires_at=ends):
            if ends is None:
                return f"avoid_node {node} until an instant"
            return f"avoid_node {node} until none, or wait until {rfc3339(ends)}: it expires by itself"
        case SetConsolidation(pool=pool, offered=offered):
            left = f"leave empty nodes of pool {pool} to the node autoscaler"
            return left if offered else f"offer empty nodes of pool {pool}"


def outcome(decision: Decision, actuator: str, reason: Reason, sentence: str, at: datetime) -> Outcome:
    """An outcome; ``applied`` exactly when the reason is Applied."""
    undo = rollback(decision.action) if decision.action is not None else ""
    return Outcome(
        scope=decision.scope,
        actuator=actuator,
        applied=reason is Reason.APPLIED,
        why=Explanation(reason=reason, sentence=sentence, because=decision.why.because),
        rollback=undo,
        written_at=at,
    )


def attempt(decision: Decision, actuator: str, did: str, at: datetime, write: Callable[[], None]) -> Outcome:
    """Run ``write``; a failure becomes an outcome, never an exception."""
    try:
        write()
    except Exception as failed:  # noqa: BLE001 -- the loop must go on whatever a cluster client raises
        text = f"{did}: {type(failed).__name__}: {failed}; nothing was changed, the next tick decides anew"
        return outcome(decision, actuator, Reason.WRITE_FAILED, text, at)
    return outcome(decision, actuator, Reason.APPLIED, did, at)
