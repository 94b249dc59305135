"""The policy a simulated world runs under: the user's file or the defaults, the whole ladder open unless it says no.

A simulated cluster may be written to without anybody's leave; shadow, the default everywhere else, would show nothing.
"""

from pathlib import Path

from leadtime.policy.files import load_policy
from leadtime.policy.schema import Policy, Stage


def simulated_policy(path: Path | None) -> Policy:
    """``path``, or the default thresholds; stage ``hpa_floor`` where none is written. Raises BadPolicy."""
    policy = Policy() if path is None else load_policy(path)
    if "stage" in policy.actuation.model_fields_set:
        return policy
    actuation = policy.actuation.model_copy(update={"stage": Stage.HPA_FLOOR})
    return policy.model_copy(update={"actuation": actuation})
