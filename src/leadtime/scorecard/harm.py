"""Leadtime's decisions, its world and the HPA's → the decisions that did harm.

A decision is charged with the 60 minutes after it, [t, t + 60 min). It did harm when in them its workload had, beyond
what the HPA alone would have had: requests unserved, pods pending, or pod-hours that bought nothing (the HPA alone left
no more requests unserved than leadtime did). Worlds drift apart, so an hour may be charged to more than one decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.measures import scored_weights
from leadtime.scorecard.run import FloatColumn, IntColumn, WorkloadRun

AFTER_S = 3600
UNSERVED_RATIO = 0.001  # of the arrivals of the hour, as for a shortfall minute
PENDING_POD_MINUTES = 5.0  # one pod for the five minutes after which the queue rule speaks
EXTRA_POD_HOURS_RATIO = 0.05  # of the HPA's own pod-hours in the hour
SAME_EPISODE_S = 600


class HarmKind(StrEnum):
    """What the harm was."""

    UNSERVED = "unserved"
    PENDING = "pending"
    PAID_FOR_NOTHING = "paid_for_nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """One harmful decision, or several of one kind on one scope at most 10 min apart. Amounts are those of the hour
    after the first of them, leadtime's minus the HPA's."""

    first_at_s: int
    last_at_s: int
    decisions: int
    scope: str
    reason: str
    asks: str
    kinds: tuple[HarmKind, ...]
    extra_unserved_requests: float
    extra_pending_pod_minutes: float
    extra_pod_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hours:
    """Sums over [t, t + 60 min) for each decision."""

    extra_unserved: FloatColumn
    extra_pending_min: FloatColumn
    extra_pod_hours: FloatColumn
    arrived: FloatColumn
    hpa_pod_hours: FloatColumn

    def kinds(self, i: int) -> tuple[HarmKind, ...]:
        """Which harms the i-th decision did."""
        dearer = self.extra_pod_hours[i] > EXTRA_POD_HOURS_RATIO * self.hpa_pod_hours[i]
        found = {
            HarmKind.UNSERVED: self.extra_unserved[i] > UNSERVED_RATIO * self.arrived[i],
            HarmKind.PENDING: self.extra_pending_min[i] > PENDING_POD_MINUTES,
            HarmKind.PAID_FOR_NOTHING: dearer and self.extra_unserved[i] >= -UNSERVED_RATIO * self.arrived[i],
        }
        return tuple(kind for kind, holds in found.items() if holds)


def find_harm(ticks: Sequence[TickDigest], ours: WorkloadRun, hpa: WorkloadRun) -> tuple[Harm, ...]:
    """Harmful decisions about the workload of ``ours``, oldest first. Both runs need equal steps, or ValueError."""
    if (ours.start_s, ours.step_s, len(ours.ready)) != (hpa.start_s, hpa.step_s, len(hpa.ready)):
        raise ValueError(f"finding harm to {ours.workload}: the two worlds do not have the same steps")
    scope = f"workload:{ours.workload}"
    acted = [
        (tick.as_of_s, decision)
        for tick in ticks
        for decision in tick.decisions
        if decision.scope == scope and decision.action is not None
    ]
    hours = _hours_after(np.array([at_s for at_s, _ in acted], dtype=np.int64), ours, hpa)
    harms: list[Harm] = []
    for i, (at_s, decision) in enumerate(acted):
        kinds = hours.kinds(i)
        if not kinds:
            continue
        if harms and harms[-1].kinds == kinds and at_s - harms[-1].last_at_s <= SAME_EPISODE_S:
            harms[-1] = replace(harms[-1], last_at_s=at_s, decisions=harms[-1].decisions + 1)
            continue
        harms.append(
            Harm(
                first_at_s=at_s, last_at_s=at_s, decisions=1, scope=scope, reason=decision.reason, asks=decision.asks,
                kinds=kinds, extra_unserved_requests=float(hours.extra_unserved[i]),
                extra_pending_pod_minutes=float(hours.extra_pending_min[i]),
                extra_pod_hours=float(hours.extra_pod_hours[i]),
            )
        )  # fmt: skip
    return tuple(harms)


def _hours_after(at_s: IntColumn, ours: WorkloadRun, hpa: WorkloadRun) -> _Hours:
    weights = scored_weights(ours)
    steps = len(weights)
    first = np.clip(-(-(at_s - ours.start_s) // ours.step_s), 0, steps)
    until = np.clip(first + AFTER_S // ours.step_s, 0, steps)

    def hour(column: FloatColumn) -> FloatColumn:
        total = np.concatenate(([0.0], np.cumsum(np.where(weights > 0, column, 0.0))))
        sums: FloatColumn = total[until] - total[first]
        return sums

    return _Hours(
        extra_unserved=hour(ours.unserved - hpa.unserved),
        extra_pending_min=hour(ours.pending_pod_seconds - hpa.pending_pod_seconds) / 60,
        extra_pod_hours=hour(ours.pod_seconds - hpa.pod_seconds) / 3600,
        arrived=hour(ours.arrived),
        hpa_pod_hours=hour(hpa.pod_seconds) / 3600,
    )
