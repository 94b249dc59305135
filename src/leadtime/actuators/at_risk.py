"""ProtectPod and AvoidNode → scale-downs held, and new pods kept from a node, self-expiring."""

from datetime import datetime

from leadtime.actuators.writes import attempt
from leadtime.domain.decision import AvoidNode, Decision, Outcome, ProtectPod
from leadtime.domain.ports import ClusterWriter
from leadtime.domain.time_window import rfc3339

NAME = "at_risk"


def protect_pod(decision: Decision, action: ProtectPod, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """No scale-down of the pod's workload until it expires, or from now on as the HPA wants."""
    ends = action.expires_at
    done = "no longer held" if ends is None else f"held until {rfc3339(ends)}"
    did = f"scale-downs of {action.workload.key} {done}, for {action.pod}"
    return attempt(
        decision, NAME, did, as_of, lambda: writer.protect_pod(action.pod, action.workload, action.expires_at)
    )


def avoid_node(decision: Decision, action: AvoidNode, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """New pods go elsewhere while there is room, or may come again."""
    ends = action.expires_at
    did = f"new pods may come to {action.node} again"
    if ends is not None:
        did = f"new pods are kept from {action.node} until {rfc3339(ends)} while other nodes have room"
    return attempt(decision, NAME, did, as_of, lambda: writer.avoid_node(action.node, action.pool, action.expires_at))
