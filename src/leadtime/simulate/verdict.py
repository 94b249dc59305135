"""What leadtime did and what it brought → one sentence a person can act on, and whether leadtime should act here."""

import re
from collections.abc import Sequence

from leadtime.domain.reasons import Reason
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.policy.schema import Policy, Stage
from leadtime.scorecard.digest import TickDigest
from leadtime.scorecard.measures import WorkloadScore
from leadtime.simulate.report import Conclusion, WarmPods

FORESEEN = frozenset({Reason.FORECAST_ABOVE_READY.value, Reason.NODES_NEEDED_AHEAD.value, Reason.STEADY_HEADROOM.value})
_KEPT = re.compile(r"^\S+: kept at [\d,]+; ")  # how a quiet decision begins; the verdict is about the whole span
SURGED = frozenset({Reason.SURGE_ABOVE_FORECAST.value})
RAISES = frozenset({"SetFloor", "SetBuffer"})
STOOD_BACK = (
    Reason.PREDICTION_DOES_NOT_PAY.value,
    Reason.MODEL_LOSES_TO_LAST_VALUE.value,
    Reason.HISTORY_TOO_SHORT.value,
)


def conclude(ticks: Sequence[TickDigest], hpa: WorkloadScore, ours: WorkloadScore, equal: WorkloadScore) -> Conclusion:
    """``act``: leadtime asked for capacity by a forecast, or answered surges to the users' good.

    The sentence compares minutes of shortfall and pod-hours; where leadtime stood back it is the reason it gave most
    often. Answering a surge is a safety net, not prediction: where nobody was short it does not count as acting.
    """
    foreseen, surged = _asked(ticks, FORESEEN), _asked(ticks, SURGED)
    helped = ours.unserved_requests < hpa.unserved_requests or ours.shortfall_minutes < hpa.shortfall_minutes
    anybody_short = hpa.shortfall_minutes or ours.shortfall_minutes
    if not foreseen and not (surged and (helped or anybody_short)):
        return Conclusion(act=False, sentence=_why_not(ticks))
    ratio = ours.pod_hours / hpa.pod_hours if hpa.pod_hours else 1.0
    words = (
        f"{_minutes(ours.shortfall_minutes)} of shortfall with leadtime, {_minutes(hpa.shortfall_minutes)} under the "
        f"HPA alone, at {ratio:.2f} times its pod-hours; an HPA with a lower target at the same cost has "
        f"{_minutes(equal.shortfall_minutes)}"
    )
    if ours.shortfall_minutes > hpa.shortfall_minutes:
        return Conclusion(act=True, sentence=f"leadtime made it worse here: {words}.")
    if not helped:
        how = "acted" if foreseen else "answered surges as it saw them"
        return Conclusion(act=True, sentence=f"leadtime {how} and changed nothing for the users: {words}.")
    if _count(ticks, Reason.STEADY_HEADROOM) > _count(ticks, Reason.FORECAST_ABOVE_READY):
        return Conclusion(act=True, sentence=f"A steady headroom is what pays here, and leadtime chooses it: {words}.")
    return Conclusion(act=True, sentence=f"leadtime acted: {words}.")


def _asked(ticks: Sequence[TickDigest], reasons: frozenset[str]) -> bool:
    """True when capacity was asked for with one of ``reasons``."""
    return any(d.reason in reasons and d.action in RAISES and d.pods for tick in ticks for d in tick.decisions)


def _count(ticks: Sequence[TickDigest], reason: Reason) -> int:
    return sum(1 for tick in ticks for d in tick.decisions if d.reason == reason.value)


def writes(policy: Policy) -> bool:
    """True when the policy lets leadtime write anything at all."""
    return policy.actuation.stage not in {Stage.OFF, Stage.SHADOW} and not policy.actuation.kill_switch


def in_shadow(said: Conclusion) -> Conclusion:
    """Nothing was written, so the world is the HPA's: say that, and whether leadtime would have asked for capacity."""
    would = "it would have asked for capacity" if said.act else "it would not have asked for capacity either"
    return Conclusion(act=False, sentence=f"leadtime only watched (policy.actuation): nothing was written; {would}.")


def with_kill(said: Conclusion, kill_at_s: int | None, scored_from_s: int) -> Conclusion:
    """What the kill switch did to the run stands before anything else."""
    if kill_at_s is None:
        return said
    if kill_at_s <= scored_from_s:
        text = "The kill switch was on from the first tick: leadtime wrote nothing, the HPA alone ruled."
        return Conclusion(act=False, sentence=text)
    at = rfc3339(from_epoch(kill_at_s))
    text = f"The kill switch was on from {at}: from then on the HPA alone ruled. Over the whole span, {said.sentence}"
    return Conclusion(act=said.act, sentence=text)


def with_warm_pods(said: Conclusion, warm: WarmPods | None) -> Conclusion:
    """A sudden surge leaves nothing to foresee: say what would have helped, and what that costs."""
    if warm is None or not warm.pods_needed or warm.gpu_hours_per_day is None:
        return said
    cure = (
        f"No forecast could know this surge and no node comes in time: only warm pods help, {warm.pods_needed:,} of "
        f"them ({warm.gpu_hours_per_day:,.0f} GPU-hours a day)."
    )
    return Conclusion(act=said.act, sentence=f"{cure} {said.sentence}")


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
    said = last[max(found, key=lambda reason: (found[reason], reason))]
    return f"leadtime stood back, judging by the days before: {_KEPT.sub('', said)}"
