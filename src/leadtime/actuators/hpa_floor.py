"""SetFloor and ReleaseFloor → the HPA's minReplicas, self-expiring."""

from datetime import datetime

from leadtime.actuators.writes import attempt
from leadtime.domain.decision import Decision, Outcome, ReleaseFloor, SetFloor
from leadtime.domain.ports import ClusterWriter

NAME = "hpa_floor"


def set_floor(decision: Decision, action: SetFloor, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """minReplicas at least ``action.replicas`` until it expires."""
    did = f"minReplicas of {action.workload.key} at least {action.replicas:,}"
    return attempt(
        decision, NAME, did, as_of, lambda: writer.set_floor(action.workload, action.replicas, action.expires_at)
    )


def release_floor(decision: Decision, action: ReleaseFloor, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """The owner's minReplicas again."""
    did = f"minReplicas of {action.workload.key} is the owner's again"
    return attempt(decision, NAME, did, as_of, lambda: writer.release_floor(action.workload))
