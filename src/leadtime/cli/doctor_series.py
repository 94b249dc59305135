"""One demand series + what is known of its lead and capacity → everything the doctor says about it, as one value."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadtime.cli.doctor_hpa import Plans, Sized, hpa_alone
from leadtime.forecast.capacity import Capacity, CapacityMinutes, CapacityUnknown, learn_capacity
from leadtime.forecast.explained import explained
from leadtime.forecast.fits_here import FitsHere, Lead, Observed, is_random, judge_fit
from leadtime.forecast.foresight import Recorded, Served, foresee, horizons_for, walk
from leadtime.forecast.lead_buffer import BufferAsk, LeadBuffer, size_buffer
from leadtime.policy.schema import Policy

DAY_S = 86_400
PODS_AT_PEAK = 100  # what a pod serves when nobody says: a hundredth of the peak, as the backtest has it
Note = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patient:
    """What is looked at: a series with its lead, and minute columns to learn the capacity of a pod from (or None).

    ``capacity_per_pod`` None: learned where it can be, else a hundredth of the peak.
    """

    name: str
    source: str
    series: Recorded
    lead: Lead | None
    capacity_per_pod: float | None
    capacity_minutes: CapacityMinutes | None
    gpus_per_pod: int
    cost_first: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkup:
    """The findings on one series. ``buffer_kind``: ``nodes`` or ``warm pods``, None without a buffer.

    ``capacity`` None: there was nothing to learn it from. ``notes``: what was left out or taken for granted.
    """

    name: str
    source: str
    observed: Observed
    verdict: FitsHere
    sized: Sized
    capacity: Capacity | CapacityUnknown | None
    plans: Plans | None
    buffer: LeadBuffer | None
    buffer_kind: str | None
    notes: tuple[str, ...]


def examine(patient: Patient, policy: Policy, note: Note) -> Checkup:
    """Look at the newest ``policy.forecast.max_history_days``; ``note`` hears what is done now and its share done."""
    whole = _trimmed(patient.series)
    series = _newest(whole, policy.forecast.max_history_days * DAY_S)
    notes = (
        []
        if series is whole
        else [f"all but the history is judged on the newest {policy.forecast.max_history_days} days"]
    )
    target = policy.scaling.target_utilisation_ratio
    capacity = None
    if patient.capacity_minutes is not None:
        note("capacity of a pod", 0.0)
        capacity = learn_capacity(patient.capacity_minutes, target_ratio=target)
    sized = _sized(patient, series, capacity)
    served = _served(patient, series, policy, note)
    note("the HPA alone", 0.0)
    plans = None if patient.lead is None else hpa_alone(series, served, sized, patient.lead.total_s, policy)
    until_s = whole.start_s + len(whole.values) * whole.step_s
    observed = Observed(
        name=patient.name, from_s=whole.start_s, until_s=until_s, step_s=whole.step_s,
        gap_ratio=float(np.isnan(whole.values).mean()), explained=explained(series),
        foresight=None if served is None else foresee(series, served), lead=patient.lead,
        hpa=None if plans is None else plans.alone, cost_first=patient.cost_first,
    )  # fmt: skip
    buffer, kind = _buffer(patient, observed, series, sized, policy)
    return Checkup(
        name=patient.name, source=patient.source, observed=observed, verdict=judge_fit(observed), sized=sized,
        capacity=capacity, plans=plans, buffer=buffer, buffer_kind=kind, notes=tuple(notes),
    )  # fmt: skip


def _trimmed(series: Recorded) -> Recorded:
    """Without buckets before the first value and after the last: no history is claimed that is not there."""
    known = np.flatnonzero(~np.isnan(series.values))
    if not len(known):
        return series
    first, last = int(known[0]), int(known[-1]) + 1
    return Recorded(
        start_s=series.start_s + first * series.step_s, step_s=series.step_s, values=series.values[first:last]
    )


def _newest(series: Recorded, span_s: int) -> Recorded:
    """The last ``span_s`` of a longer series."""
    keep = span_s // series.step_s
    if len(series.values) <= keep:
        return series
    skipped = len(series.values) - keep
    return Recorded(
        start_s=series.start_s + skipped * series.step_s, step_s=series.step_s, values=series.values[skipped:]
    )


def _sized(patient: Patient, series: Recorded, capacity: Capacity | CapacityUnknown | None) -> Sized:
    if patient.capacity_per_pod is not None:
        return Sized(per_pod=patient.capacity_per_pod, told_by="as given")
    if isinstance(capacity, Capacity):
        return Sized(per_pod=capacity.per_pod, told_by="learned")
    peak = float(np.nanmax(series.values)) if len(series.values) else 0.0
    return Sized(per_pod=max(peak, 1e-9) / PODS_AT_PEAK, told_by="peak/100")


def _served(patient: Patient, series: Recorded, policy: Policy, note: Note) -> Served | None:
    """What the forecast would have said; None where the series is too short to judge it."""
    span_s = len(series.values) * series.step_s
    if span_s < 2 * policy.forecast.min_history_s:
        return None
    leads = [] if patient.lead is None else [patient.lead.total_s, patient.lead.pod_s or 0.0]
    first_s = series.start_s + policy.forecast.min_history_s
    horizons = horizons_for(series.step_s, leads)
    return walk(series, policy, horizons, first_s=first_s, note=lambda share: note("the forecast", share))


def _buffer(
    patient: Patient, seen: Observed, series: Recorded, sized: Sized, policy: Policy
) -> tuple[LeadBuffer | None, str | None]:
    """A buffer where the lead is not foreseen. Nodes alone help only where the pods' own lead is foreseen."""
    lead, found = patient.lead, seen.foresight
    chance = is_random(seen.explained)
    if lead is None or (found is not None and found.foreseen_at(lead.total_s) and not chance):
        return None, None
    pod_s = lead.total_s if lead.pod_s is None else lead.pod_s
    warm = chance or found is None or not found.foreseen_at(pod_s)
    ask = BufferAsk(
        lead_s=lead.total_s, per_pod=sized.per_pod * policy.scaling.target_utilisation_ratio,
        quantile_ratio=(1.0 + policy.forecast.level_ratio) / 2.0, gpus_per_pod=patient.gpus_per_pod,
        zone=policy.forecast.time_zone,
    )  # fmt: skip
    buffer = size_buffer(series, ask)
    return buffer, None if buffer is None else ("warm pods" if warm else "nodes")
