"""SetBuffer and SetConsolidation → the cluster's node side: room ordered ahead, empty nodes offered or left alone."""

from datetime import datetime

from leadtime.actuators.writes import attempt
from leadtime.domain.decision import Decision, Outcome, SetBuffer, SetConsolidation
from leadtime.domain.ports import ClusterWriter

NAME = "capacity_buffer"


def set_buffer(decision: Decision, action: SetBuffer, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """Room for ``action.pods`` more pods; 0 gives it back."""
    did = f"room for {action.pods:,} pods of {action.workload.key} on pool {action.pool}"
    return attempt(
        decision,
        NAME,
        did,
        as_of,
        lambda: writer.set_buffer(action.workload, action.pool, action.pods, action.expires_at),
    )


def set_consolidation(decision: Decision, action: SetConsolidation, writer: ClusterWriter, as_of: datetime) -> Outcome:
    """Offer the pool's empty nodes for removal at once, or leave them to the node autoscaler."""
    did = f"empty nodes of pool {action.pool} {'offered' if action.offered else 'left to the node autoscaler'}"
    return attempt(decision, NAME, did, as_of, lambda: writer.set_consolidation(action.pool, offered=action.offered))
