"""The loop's shadow record of plans → does acting pay here, with which plan, and why in one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRecord:
    """One entry a step: demand, the pods the HPA wanted, and the floor each plan asked for (NaN: none)."""

    demand: FloatColumn
    hpa_wanted: FloatColumn
    plans: Mapping[str, FloatColumn]
    step_s: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScore:
    """What one plan would have given: minutes short of capacity, pod-hours against the HPA's."""

    name: str
    shortfall_minutes: int
    pod_hours_ratio_to_hpa: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """``act`` with ``plan``, or stand back; ``sentence`` says why with numbers. ``per_plan`` begins with ``hpa``."""

    act: bool
    plan: str | None
    sentence: str
    per_plan: tuple[PlanScore, ...]


MIN_FEWER_RATIO = 0.05  # a plan must save a twentieth of the shortfall …
MIN_FEWER_MINUTES = 2  # … and two minutes, or it is luck
MIN_DAYS_SHORT = 3  # two bad days are two incidents, three a pattern …
SAME_TIME_S = 1800  # … and so are two that were bad around the same time of day
DAY_S = 86_400
NOT_SERVED_RATIO = 0.001  # DESIGN §6: a minute is short when more than 0.1 % goes unserved


def judge_worth(record: ShadowRecord, *, capacity_per_pod: float, pod_lead_s: float, max_extra_ratio: float) -> Worth:
    """Whether some plan beats the HPA alone on the record within its pod-hours × (1 + ``max_extra_ratio``).

    Of the affordable plans the one with the fewest short minutes counts (then the cheaper, then by name); it must save
    at least ``MIN_FEWER_RATIO`` of them and ``MIN_FEWER_MINUTES``. Minutes without a demand value are never short.
    Raises ValueError when the columns differ in length.
    """
    for name, floor in record.plans.items():
        if len(floor) != len(record.demand) or len(record.hpa_wanted) != len(record.demand):
            raise ValueError(f"judging plan {name}: {len(floor)} floors, {len(record.demand)} minutes of demand")
    alone = _short(record, None, capacity_per_pod, pod_lead_s)
    hpa = _score("hpa", record, None, alone)
    scores = tuple(
        _score(name, record, floor, _short(record, floor, capacity_per_pod, pod_lead_s))
        for name, floor in sorted(record.plans.items())
    )
    affordable = [s for s in scores if s.pod_hours_ratio_to_hpa <= 1.0 + max_extra_ratio]
    best = min(affordable, key=lambda s: (s.shortfall_minutes, s.pod_hours_ratio_to_hpa), default=None)
    act, sentence = _verdict(hpa, best, scores, max_extra_ratio)
    if act and not recurs(alone, record.step_s):
        act = False
        sentence = (
            "prediction does not pay here: the HPA alone was short on two days at most and not around the same time, "
            f"which is no pattern ({sentence.removeprefix('prediction pays: ')})"
        )
    return Worth(act=act, plan=best.name if act and best else None, sentence=sentence, per_plan=(hpa, *scores))


def _verdict(
    hpa: PlanScore, best: PlanScore | None, scores: tuple[PlanScore, ...], max_extra_ratio: float
) -> tuple[bool, str]:
    if best is None:
        cheapest = min((s.pod_hours_ratio_to_hpa for s in scores), default=float("nan"))
        return False, (
            f"prediction does not pay here: no plan stays within {1 + max_extra_ratio:.2f} × the HPA's pod-hours "
            f"(the cheapest takes {cheapest:.2f} ×)"
        )
    fewer = hpa.shortfall_minutes - best.shortfall_minutes
    numbers = (
        f"{best.shortfall_minutes} minutes short instead of {hpa.shortfall_minutes} with the HPA alone, "
        f"at {best.pod_hours_ratio_to_hpa:.2f} × its pod-hours"
    )
    if fewer < MIN_FEWER_MINUTES or fewer < MIN_FEWER_RATIO * hpa.shortfall_minutes:
        return False, f"prediction does not pay here: the best plan, {best.name}, gives {numbers}"
    return True, f"prediction pays: plan {best.name} gives {numbers}"


def _wanted(record: ShadowRecord, floor: FloatColumn | None) -> FloatColumn:
    hpa = np.asarray(record.hpa_wanted, dtype=float)
    return hpa if floor is None else np.asarray(np.fmax(hpa, floor), dtype=float)


def _short(
    record: ShadowRecord, floor: FloatColumn | None, capacity_per_pod: float, pod_lead_s: float
) -> npt.NDArray[np.bool_]:
    """Which steps are short of capacity; a step without a demand value never is."""
    ready = ready_after(_wanted(record, floor), int(-(-pod_lead_s // record.step_s)))
    return np.asarray(record.demand * (1.0 - NOT_SERVED_RATIO) > ready * capacity_per_pod, dtype=np.bool_)


def _score(
    name: str,
    record: ShadowRecord,
    floor: FloatColumn | None,
    short: npt.NDArray[np.bool_],
) -> PlanScore:
    total = np.nansum(record.hpa_wanted)
    return PlanScore(
        name=name,
        shortfall_minutes=int(np.sum(short) * record.step_s // 60),
        pod_hours_ratio_to_hpa=float(np.nansum(_wanted(record, floor)) / total) if total > 0 else 1.0,
    )


def recurs(short: npt.NDArray[np.bool_], step_s: int) -> bool:
    """True when the shortfall is a pattern: on three days, or on two around the same time of day.

    Days of 24 hours are counted back from the record's end; a record of less than two days cannot show a pattern and
    must do with what it has. Raises nothing; an empty record shows nothing.
    """
    steps = max(1, DAY_S // step_s)
    at = np.flatnonzero(short[::-1])
    days = np.unique(at // steps)
    if len(short) < 2 * steps or len(days) >= MIN_DAYS_SHORT:
        return len(days) > 0
    if len(days) < 2:
        return False
    first, second = (at[at // steps == day] % steps for day in days)
    apart = np.abs(first[:, None] - second[None, :])
    return bool(np.minimum(apart, steps - apart).min() * step_s <= SAME_TIME_S)


def ready_after(wanted: FloatColumn, delay_steps: int) -> FloatColumn:
    """Pods ready when each comes ``delay_steps`` after it was wanted and leaves at once.

    A pod is ready now if it was wanted in every step of the last ``delay_steps``: the minimum over that window.
    """
    held = np.concatenate((np.full(delay_steps, wanted[0] if wanted.size else 0.0), wanted))
    return np.asarray(np.lib.stride_tricks.sliding_window_view(held, delay_steps + 1).min(axis=1))
