"""Leadtime's decisions, its world and the HPA's → the decisions that did harm.

A decision is charged with the 60 minutes after it, [t, t + 60 min). It did harm when in them its workload had, beyond
what the HPA alone would have had: requests unserved, pods pending, or pod-hours that bought nothing (neither in that
hour nor in the next did the HPA alone leave more requests unserved than leadtime; capacity is there before its demand).
Worlds drift apart, so an hour may be charged to more than one decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.measures import scored_weights
from leadtime.scorecard.run import FloatColumn, IntColumn, WorkloadRun

AFTER_S = 3600
PAYS_WITHIN_S = 7200
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
    """Sums over [t, t + 60 min) for each decision; ``*_two_hours`` over [t, t + 120 min)."""

    extra_unserved: FloatColumn
    extra_unserved_two_hours: FloatColumn
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
            HarmKind.PAID_FOR_NOTHING: dearer and self.extra_unserved_two_hours[i] >= -UNSERVED_RATIO * self.arrived[i],
        }
        return tuple(kind for kind, holds in found.items() if holds)


def find_harm(ticks: Sequence[TickDigest], ours: WorkloadRun, hpa: WorkloadRun) -> tuple[Harm, ...]:
    """Harmful decisions about the workload of ``ours``, oldest first. Both runs need equal steps, or ValueError."""
    if (ours.start_s, ours.step_s, len(ours.ready)) != (hpa.start_s, hpa.step_s, len(hpa.ready)):
        raise ValueError(f"finding harm to {ours.workload}: the two worlds do not have the same steps")
    acted = [
        (tick.as_of_s, decision)
        for tick in ticks
        for decision in tick.decisions
        if decision.action is not None and decision.scope in tick.own_scopes(ours.workload)
    ]
    hours = _hours_after(np.array([at_s for at_s, _ in acted], dtype=np.int64), ours, hpa)
    harms: list[Harm] = []
    latest: dict[tuple[str, tuple[HarmKind, ...]], int] = {}  # the newest episode of a scope and kind, in ``harms``
    for i, (at_s, decision) in enumerate(acted):
        kinds = hours.kinds(i)
        if not kinds:
            continue
        before = latest.get((decision.scope, kinds))
        if before is not None and at_s - harms[before].last_at_s <= SAME_EPISODE_S:
            harms[before] = replace(harms[before], last_at_s=at_s, decisions=harms[before].decisions + 1)
            continue
        latest[decision.scope, kinds] = len(harms)
        harms.append(
            Harm(
                first_at_s=at_s, last_at_s=at_s, decisions=1, scope=decision.scope, reason=decision.reason,
                asks=decision.asks, kinds=kinds, extra_unserved_requests=float(hours.extra_unserved[i]),
                extra_pending_pod_minutes=float(hours.extra_pending_min[i]),
                extra_pod_hours=float(hours.extra_pod_hours[i]),
            )
        )  # fmt: skip
    return tuple(harms)


def _hours_after(at_s: IntColumn, ours: WorkloadRun, hpa: WorkloadRun) -> _Hours:
    weights = scored_weights(ours)
    first = -(-(at_s - ours.start_s) // ours.step_s)

    def after(column: FloatColumn, span_s: int) -> FloatColumn:
        total = np.concatenate(([0.0], np.cumsum(np.where(weights > 0, column, 0.0))))
        begin, end = (np.clip(step, 0, len(weights)) for step in (first, first + span_s // ours.step_s))
        sums: FloatColumn = total[end] - total[begin]
        return sums

    return _Hours(
        extra_unserved=after(ours.unserved - hpa.unserved, AFTER_S),
        extra_unserved_two_hours=after(ours.unserved - hpa.unserved, PAYS_WITHIN_S),
        extra_pending_min=after(ours.pending_pod_seconds - hpa.pending_pod_seconds, AFTER_S) / 60,
        extra_pod_hours=after(ours.pod_seconds - hpa.pod_seconds, AFTER_S) / 3600,
        arrived=after(ours.arrived, AFTER_S),
        hpa_pod_hours=after(hpa.pod_seconds, AFTER_S) / 3600,
    )
