"""How fast and how steadily replicas were asked for: pods added in the worst minute, reversals a day."""

import numpy as np

from leadtime.scorecard import windows
from leadtime.scorecard.run import FloatColumn, IntColumn, WorkloadRun

REVERSAL_WITHIN_S = 600  # DESIGN §6: up-then-down or down-then-up within 10 min
DAY_S = 86_400


def floor_pods_added_per_minute(workload: WorkloadRun) -> float:
    """Pods leadtime's own floor raises added, summed over the worst sliding 60 s. Buffers are not pods."""
    return windows.worst_minute_sum(workload.floor_added.astype(np.float64), step_s=workload.step_s)


def hpa_pods_added_per_minute(workload: WorkloadRun) -> float:
    """Pods the HPA itself added, summed over the worst sliding 60 s.

    A rise of spec.replicas up to the standing floor is the floor's doing; only what goes above both the old
    spec.replicas and the floor is the HPA's own.
    """
    before = np.concatenate((workload.wanted[:1], workload.wanted[:-1]))
    own = np.maximum(workload.wanted - np.maximum(before, workload.floor), 0)
    own[:1] = 0
    return windows.worst_minute_sum(own.astype(np.float64), step_s=workload.step_s)


def reversal_steps(wanted: IntColumn, *, step_s: int) -> IntColumn:
    """Steps at which ``wanted`` turned: a move against the move before it, at most 600 s after that one."""
    moves = np.diff(wanted)
    at = np.flatnonzero(moves)
    if len(at) < 2:
        return np.empty(0, dtype=np.int64)
    turned = np.sign(moves[at[1:]]) != np.sign(moves[at[:-1]])
    soon = np.diff(at) * step_s <= REVERSAL_WITHIN_S
    steps: IntColumn = at[1:][turned & soon] + 1
    return steps


def reversals_per_day(workload: WorkloadRun, weights: FloatColumn) -> float | None:
    """Turns at scored steps (weight 1), a day of scored time; None when nothing is scored."""
    scored_s = float(weights.sum()) * workload.step_s
    if scored_s == 0.0:
        return None
    turns = reversal_steps(workload.wanted, step_s=workload.step_s)
    return float(weights[turns].sum()) / scored_s * DAY_S
