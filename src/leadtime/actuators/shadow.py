"""Shadow: a decision → the record of what would have been written. Nothing is."""

from datetime import datetime

from leadtime.actuators.writes import outcome
from leadtime.domain.decision import Decision, Outcome
from leadtime.domain.reasons import Reason

NAME = "shadow"


def act(decision: Decision, as_of: datetime) -> Outcome:
    """Record ``decision`` as not written."""
    return outcome(decision, NAME, Reason.SHADOW_ONLY, "recorded only: policy.actuation.stage is shadow", as_of)
