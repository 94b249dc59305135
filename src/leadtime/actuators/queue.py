"""SetLowPriorityAdmission → the queue: new low-priority pods held back or admitted again."""

from datetime import datetime

from leadtime.actuators.writes import attempt
from leadtime.domain.decision import Decision, Outcome, SetLowPriorityAdmission
from leadtime.domain.ports import ClusterWriter

NAME = "queue"


def set_admission(
    decision: Decision, action: SetLowPriorityAdmission, writer: ClusterWriter, as_of: datetime
) -> Outcome:
    """Pause or resume low-priority admission of one queue."""
    did = f"new low-priority pods of queue {action.queue} {'held back' if action.paused else 'admitted'}"
    return attempt(
        decision, NAME, did, as_of, lambda: writer.set_low_priority_admission(action.queue, paused=action.paused)
    )
