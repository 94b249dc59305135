"""Decisions and what came after → the decisions that did harm, by the score card's own rule (scorecard/harm.py).

A decision is charged with the hour after it, against what the HPA alone had in that hour. Once there is a report, its
list is shown where it is whole. Else the rule is applied to the recorded minutes, to decisions whose hour has passed.
That one was paid for nothing is said after two hours: every raise looks like waste until the demand it was made for is
there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadtime.dashboard.clock_text import epoch, number
from leadtime.dashboard.views import DecisionView, Story, WorldMinutes, workload_of
from leadtime.scorecard.harm import (
    AFTER_S,
    EXTRA_POD_HOURS_RATIO,
    PAYS_WITHIN_S,
    PENDING_POD_MINUTES,
    SAME_EPISODE_S,
    UNSERVED_RATIO,
    HarmKind,
)

SHORTFALL_RATIO = UNSERVED_RATIO  # as shortfall_minutes of the score card
KIND_WORDS = {
    HarmKind.UNSERVED.value: "more requests unserved",
    HarmKind.PENDING.value: "more pods pending",
    HarmKind.PAID_FOR_NOTHING.value: "paid for nothing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """One mark: decisions of one scope from ``at_s`` to ``last_s``, what harm, and the sentence with the numbers."""

    at_s: int
    last_s: int
    scope: str
    kind: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hour:
    """leadtime's world minus the HPA's over [t, t + 60 min); ``…_two_hours``: over two, None before they passed."""

    unserved: float
    unserved_two_hours: float | None
    pending_min: float
    pod_hours: float
    arrived: float
    hpa_pod_hours: float

    def kinds(self) -> tuple[str, ...]:
        """Which harms it shows."""
        dearer = self.pod_hours > EXTRA_POD_HOURS_RATIO * self.hpa_pod_hours
        later = self.unserved_two_hours
        found = {
            HarmKind.UNSERVED: self.unserved > UNSERVED_RATIO * self.arrived,
            HarmKind.PENDING: self.pending_min > PENDING_POD_MINUTES,
            HarmKind.PAID_FOR_NOTHING: dearer and later is not None and later >= -UNSERVED_RATIO * self.arrived,
        }
        return tuple(kind.value for kind, holds in found.items() if holds)


def harms(story: Story, until_s: int) -> tuple[Harm, ...]:
    """All harms about this workload that show with the clock at ``until_s``, oldest first."""
    if story.report is not None and until_s >= story.full.end_s:
        all_told = story.report.get("story") or {}
        told = all_told.get("harms")
        if told is not None and all_told.get("harms_total", len(told)) == len(told):  # the report lists the first few
            return tuple(_told(h) for h in told if workload_of(h["scope"]) == story.workload)
    ours, hpa = story.worlds.get("leadtime"), story.worlds.get("hpa")
    if ours is None or hpa is None:
        return ()
    acted = [
        d for t in story.ticks for d in t.decisions if workload_of(d.scope) == story.workload and d.action is not None
    ]
    return _merged([(d, hour) for d in acted if (hour := _hour_after(d.at_s, ours, hpa, until_s)) is not None])


def shortfall(world: WorldMinutes, i: int) -> float | None:
    """Share of minute i's requests that went unserved; None when it was not measured."""
    arrived, unserved = world.arrived[i], world.unserved[i]
    if arrived is None or unserved is None:
        return None
    return unserved / arrived if arrived > 0 else 0.0


def _told(h: Mapping[str, Any]) -> Harm:
    hour = _sentence(h["extra_unserved_requests"], h["extra_pending_pod_minutes"], h["extra_pod_hours"], h["decisions"])
    first_s, last_s = epoch(h["first_at"]), epoch(h["last_at"])
    return Harm(at_s=first_s, last_s=last_s, scope=h["scope"], kind=_words(h["kinds"]), sentence=hour)


def _words(kinds: Sequence[str]) -> str:
    return ", ".join(KIND_WORDS.get(kind, kind) for kind in kinds)


def _sentence(unserved: float, pending_min: float, pod_hours: float, decisions: int) -> str:
    parts = [
        f"{number(abs(value))} {noun} {'more' if value > 0 else 'less'}"
        for value, noun in (
            (unserved, "requests unserved"),
            (pending_min, "pod-minutes pending"),
            (pod_hours, "pod-hours"),
        )
        if abs(value) >= 0.5
    ]
    several = f" (and of {decisions - 1} decisions like it)" if decisions > 1 else ""
    return f"in the hour after it{several}, beside the HPA alone: {', '.join(parts) or 'less than one of anything'}"


def _merged(found: Sequence[tuple[DecisionView, _Hour]]) -> tuple[Harm, ...]:
    """Neighbours of one scope and kind at most ten minutes apart are one, with the first one's figures."""
    merged: list[tuple[Harm, _Hour, int]] = []
    latest: dict[tuple[str, str], int] = {}  # the newest mark of a scope and kind, in ``merged``
    for decision, hour in found:
        kinds = _words(hour.kinds())
        if not kinds:
            continue
        before = latest.get((decision.scope, kinds))
        if before is not None and decision.at_s - merged[before][0].last_s <= SAME_EPISODE_S:
            first, first_hour, count = merged[before]
            merged[before] = (replace(first, last_s=decision.at_s), first_hour, count + 1)
            continue
        latest[decision.scope, kinds] = len(merged)
        mark = Harm(at_s=decision.at_s, last_s=decision.at_s, scope=decision.scope, kind=kinds, sentence="")
        merged.append((mark, hour, 1))
    return tuple(
        replace(mark, sentence=_sentence(hour.unserved, hour.pending_min, hour.pod_hours, count))
        for mark, hour, count in merged
    )


def _hour_after(at_s: int, ours: WorldMinutes, hpa: WorldMinutes, until_s: int) -> _Hour | None:
    """None while the hour has not passed, or where one of the two worlds has no minutes in it."""
    if at_s + AFTER_S > until_s:
        return None
    sums = [_sums(world, at_s) for world in (ours, hpa)]
    if sums[0] is None or sums[1] is None:
        return None
    mine, theirs = sums[0], sums[1]
    later = [_sums(world, at_s, PAYS_WITHIN_S) for world in (ours, hpa)] if at_s + PAYS_WITHIN_S <= until_s else []
    return _Hour(
        unserved=mine.unserved - theirs.unserved,
        unserved_two_hours=later[0].unserved - later[1].unserved if later and later[0] and later[1] else None,
        pending_min=mine.pending_min - theirs.pending_min,
        pod_hours=mine.pod_hours - theirs.pod_hours,
        arrived=mine.arrived,
        hpa_pod_hours=theirs.pod_hours,
    )


def _sums(world: WorldMinutes, at_s: int, span_s: int = AFTER_S) -> _Hour | None:
    hour = world.before(at_s + span_s).since(at_s)
    minutes = world.step_s / 60
    if not hour.at_s:
        return None
    pods = sum((ready or 0) + (starting or 0) for ready, starting in zip(hour.ready, hour.starting, strict=True))
    return _Hour(
        unserved=sum(v or 0.0 for v in hour.unserved),
        unserved_two_hours=None,
        pending_min=minutes * sum(v or 0 for v in hour.pending),
        pod_hours=minutes * pods / 60,
        arrived=sum(v or 0.0 for v in hour.arrived),
        hpa_pod_hours=0.0,
    )
