"""What leadtime did and what it brought → one sentence a person can act on, and whether leadtime should act here."""

from collections.abc import Sequence

from leadtime.domain.reasons import Reason
from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.measures import WorkloadScore
from leadtime.simulate.report import Conclusion, WarmPods

RAISES = frozenset({"SetFloor", "SetBuffer"})
STOOD_BACK = (
    Reason.PREDICTION_DOES_NOT_PAY.value,
    Reason.MODEL_LOSES_TO_LAST_VALUE.value,
    Reason.HISTORY_TOO_SHORT.value,
)


def conclude(ticks: Sequence[TickDigest], hpa: WorkloadScore, ours: WorkloadScore, equal: WorkloadScore) -> Conclusion:
    """``act``: leadtime asked for capacity at least once. The sentence compares minutes of shortfall and pod-hours.

    Where leadtime stood back the sentence is the reason it gave most often.
    """
    asked = sum(1 for tick in ticks for decision in tick.decisions if decision.action in RAISES and decision.pods)
    if not asked:
        return Conclusion(act=False, sentence=_why_not(ticks))
    ratio = ours.pod_hours / hpa.pod_hours if hpa.pod_hours else 1.0
    words = (
        f"{_minutes(ours.shortfall_minutes)} of shortfall with leadtime, {_minutes(hpa.shortfall_minutes)} under the "
        f"HPA alone, at {ratio:.2f} times its pod-hours; an HPA with a lower target at the same cost has "
        f"{_minutes(equal.shortfall_minutes)}"
    )
    if ours.shortfall_minutes > hpa.shortfall_minutes:
        return Conclusion(act=True, sentence=f"leadtime made it worse here: {words}.")
    if ours.shortfall_minutes == hpa.shortfall_minutes and ours.unserved_requests >= hpa.unserved_requests:
        return Conclusion(act=True, sentence=f"leadtime acted and changed nothing for the users: {words}.")
    steady = sum(1 for tick in ticks for d in tick.decisions if d.reason == Reason.STEADY_HEADROOM.value)
    foreseen = sum(1 for tick in ticks for d in tick.decisions if d.reason == Reason.FORECAST_ABOVE_READY.value)
    if steady > foreseen:
        return Conclusion(act=True, sentence=f"A steady headroom is what pays here, and leadtime chooses it: {words}.")
    return Conclusion(act=True, sentence=f"leadtime acted: {words}.")


def with_warm_pods(said: Conclusion, warm: WarmPods | None) -> Conclusion:
    """A sudden surge leaves nothing to foresee: say what would have helped, and what that costs."""
    if warm is None or not warm.pods_needed or warm.gpu_hours_per_day is None:
        return said
    cure = (
        f"No forecast could know this surge and no node comes in time: only warm pods help, {warm.pods_needed:,} of "
        f"them ({warm.gpu_hours_per_day:,.0f} GPU-hours a day)."
    )
    return Conclusion(act=said.act, sentence=f"{cure} {said.sentence[0].upper()}{said.sentence[1:]}")


def _minutes(count: int) -> str:
    return f"{count:,} minute" if count == 1 else f"{count:,} minutes"


def _why_not(ticks: Sequence[TickDigest]) -> str:
    found: dict[str, int] = {}
    last: dict[str, str] = {}
    for tick in ticks:
        for decision in tick.decisions:
            if decision.reason in STOOD_BACK:
                found[decision.reason] = found.get(decision.reason, 0) + 1
                last[decision.reason] = decision.sentence
    if not found:
        return "leadtime stood back: there was always enough capacity for what it expected."
    return f"leadtime stood back: {last[max(found, key=lambda reason: (found[reason], reason))]}"
