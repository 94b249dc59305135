"""The policy a simulated world runs under: the user's file, or the defaults with the whole ladder open.

A simulated cluster may be written to without anybody's leave; shadow, the default everywhere else, would show nothing.
"""

from pathlib import Path

from leadtime.policy.files import load_policy
from leadtime.policy.schema import Policy, Stage


def simulated_policy(path: Path | None) -> Policy:
    """``path`` as it is; without one, the default thresholds with stage ``hpa_floor``. Raises BadPolicy."""
    if path is not None:
        return load_policy(path)
    default = Policy()
    actuation = default.actuation.model_copy(update={"stage": Stage.HPA_FLOOR})
    return default.model_copy(update={"actuation": actuation})
