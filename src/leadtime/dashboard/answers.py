"""A story → the questions a reader has, each answered in one or two sentences from the record.

The report's figures are used where it has them; a question the record cannot answer says what is missing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leadtime.dashboard.clock_text import clock, day_clock, duration, epoch, number, percent
from leadtime.dashboard.forecast_check import ForecastCheck, MissStretch
from leadtime.dashboard.harm import Harm
from leadtime.dashboard.risk import RiskPart
from leadtime.dashboard.runs import DecisionRun
from leadtime.dashboard.scores import ScoreTable, minute_sums, signed_duration
from leadtime.dashboard.story import report_value
from leadtime.dashboard.views import DecisionView, Direction, Fate, ProposalView, Story, WorldMinutes, workload_of

NONE_LOST = "Nothing lost: no two proposals stood against each other."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question, its answer, and the decision it points at (None: about no single one)."""

    id: str
    question: str
    text: str
    decision: DecisionView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the answers are made of; everything lies before ``until_s``."""

    story: Story  # cut at the clock
    whole: Story  # not cut: only scales and links may look at it
    until_s: int
    runs: tuple[DecisionRun, ...]
    check: ForecastCheck
    harms: tuple[Harm, ...]
    scores: ScoreTable
    risk: RiskPart

    @property
    def at_end(self) -> bool:
        """True when the clock stands at the end of the ledger: the report may speak."""
        return self.until_s >= self.story.full.end_s

    def compared(self, field: str) -> Any:
        """A figure of the report's comparison, only where the page tells the whole run: it is about no single day."""
        whole = self.story.loaded == self.story.full
        return self.report("comparison", self.story.workload, field) if whole else None

    def report(self, *path: str) -> Any:
        """A value of report.json, only when the clock stands at the end."""
        return report_value(self.story.report, *path) if self.at_end else None


def verdict(told: Told) -> str:
    """The sentence on top: the report's verdict at the end, else where things stand."""
    sentence = told.report("verdict", "sentence")
    if isinstance(sentence, str):
        return sentence
    parts = []
    for world, name in (("leadtime", "leadtime"), ("hpa", "the HPA alone"), ("oracle", "the oracle")):
        minutes = told.story.worlds.get(world)
        ratio = minute_sums(minutes, told.until_s).get("unserved_ratio") if minutes else None
        if ratio is not None:
            parts.append(f"{name} left {percent(ratio)} of requests unserved")
    if not parts:
        return "Nothing measured yet: no minute of any world is on record."
    return f"So far, up to {clock(told.until_s)}: " + ", ".join(parts) + "."


def answers(told: Told) -> tuple[Answer, ...]:
    """All answers, in the order they are read."""
    first = first_raise(told)
    warm = _warm_pods(told)
    return (
        _hpa_reacted(told),
        _leadtime_reacted(told, first),
        _why(told, first),
        _what_lost(told),
        _cost(told),
        _forecast_wrong(told),
        _first_request(told),
        _harm(told),
        *((warm,) if warm else ()),
    )


def first_raise(told: Told) -> DecisionRun | None:
    """The first run that raised a floor or ordered room for this workload inside the window, or None."""
    for run in told.runs:
        if (
            workload_of(run.scope) == told.story.workload
            and run.first.direction is Direction.RAISE
            and run.start_s >= told.story.window.start_s
        ):
            return run
    return None


def _hpa_reacted(told: Told) -> Answer:
    crossed = _time(told, "hpa", "threshold_crossed_at")
    minutes = told.story.worlds.get("hpa")
    raised = _first_rise(minutes, told, from_s=crossed) if minutes else None
    parts = []
    if crossed is not None:
        parts.append(f"Its threshold was crossed at {clock(crossed)}")
    if raised is not None and minutes is not None:
        before, after = minutes.wanted[raised - 1], minutes.wanted[raised]
        parts.append(f"it asked for {number(before)} → {number(after)} pods by {clock(minutes.at_s[raised])}")
    ready = _time(told, "hpa", "first_new_node_ready_at")
    if ready is not None:
        parts.append(f"its first new node was ready at {clock(ready)}")
    pending = told.report("timeline", "hpa", told.story.workload, "pending_at_15min")
    if crossed is not None and isinstance(pending, int | float) and pending:
        parts.append(f"{number(pending)} pods were pending 15 min after the surge began")
    text = _sentence(parts) or "Not in this window: the HPA's wanted replicas never rose."
    return Answer(id="hpa-reacted", question="When did the HPA react?", text=text)


def _leadtime_reacted(told: Told, run: DecisionRun | None) -> Answer:
    question = "When did leadtime react?"
    if run is None:
        return Answer(id="leadtime-reacted", question=question, text=_why_nothing(told))
    first = run.first
    text = f"At {clock(first.at_s)}: {run.words}"
    if len(run.decisions) > 1:
        text += f" until {clock(run.end_s)}"
    crossed = _time(told, "hpa", "threshold_crossed_at")
    if crossed is not None:
        text += f", {signed_duration(crossed - first.at_s, 'before the HPA', 'after the HPA')}'s threshold was crossed"
    early = told.compared("early_warning_s")
    lead = told.compared("learned_lead_p90_s")
    if isinstance(early, int | float):
        text += (
            f". Demand outgrew what stood {duration(early)} later"
            if early > 0
            else ". Demand outgrew what stood at once"
        )
        if isinstance(lead, int | float):
            text += f"; a new node and its pod take at most {duration(lead)}, nine times of ten"
    return Answer(id="leadtime-reacted", question=question, text=f"{text}.", decision=first)


def _why(told: Told, run: DecisionRun | None) -> Answer:
    question = "Why?"
    if run is not None:
        first = run.first
        text = f"{_capital(first.why.sentence)} ({first.why.reason})."
        return Answer(id="why", question=question, text=text, decision=first)
    own = f"workload:{told.story.workload}"
    last = next((run.decisions[-1] for run in reversed(told.runs) if run.scope == own), None)
    text = (
        f"{_capital(last.why.sentence)} ({last.why.reason})."
        if last
        else "No decision about this workload is on record."
    )
    return Answer(id="why", question=question, text=text, decision=last)


def _why_nothing(told: Told) -> str:
    may_not = [t for t in told.story.ticks if t.at_s < told.until_s and told.story.workload in t.workloads]
    if not may_not:
        return "No tick of leadtime is on record yet."
    view = may_not[-1].workloads[told.story.workload]
    if view.may_act:
        return "It raised nothing in this window."
    return f"It stood back: {view.standing.sentence}"


def _what_lost(told: Told) -> Answer:
    window = told.story.window
    losing: list[tuple[DecisionView, ProposalView]] = [
        (d, p)
        for run in told.runs
        for d in run.decisions
        if window.start_s <= d.at_s < window.end_s
        for p in d.losers
        if p.fate_why
    ]
    question = "What lost, and why?"
    if not losing:
        return Answer(
            id="what-lost", question=question, text="Nothing lost: no two proposals stood against each other."
        )
    counted = Counter(p.fate_why.reason for _, p in losing if p.fate_why)
    parts = [f"{reason} {number(n)}×" for reason, n in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    decision, example = losing[0]
    why = example.fate_why.sentence.rstrip(".") if example.fate_why else "no reason is on record"
    text = (
        f"{number(len(losing))} proposals lost: {', '.join(parts[:4])}. First, at {clock(decision.at_s)}: "
        f"{example.agent} wanted “{example.action.words}”; {why}. {_cut_by_guard(told)}"
    )
    return Answer(id="what-lost", question=question, text=text.strip(), decision=decision)


def _cut_by_guard(told: Told) -> str:
    """Proposals of the window that the guard refused or let pass in a smaller form only."""
    window = told.story.window
    ticks = [t for t in told.story.ticks if window.start_s <= t.at_s < window.end_s]
    found = [p for t in ticks for p in t.proposals if p.fate in {Fate.LIMITED, Fate.REFUSED} and p.fate_why]
    if not found:
        return ""
    counted = Counter(p.fate_why.reason for p in found if p.fate_why)
    reasons = ", ".join(f"{reason} {number(n)}×" for reason, n in sorted(counted.items(), key=lambda i: (-i[1], i[0])))
    return f"The guard cut {number(len(found))} proposals short or refused them: {reasons}."


def _cost(told: Told) -> Answer:
    rows = {row.world: row for row in told.scores.rows}
    keys = [m.key for m in told.scores.measures]
    parts = []
    for key, noun in (("pod_hours", "pod-hours"), ("gpu_node_hours", "GPU-node-hours")):
        i = keys.index(key)
        values = {world: row.cells[i].value for world, row in rows.items()}
        mine = values.get("leadtime")
        if mine is None:
            continue
        ratios = [
            f"{mine / other:.2f} × {name}"
            for world, name in (("hpa", "HPA alone"), ("oracle", "the oracle"))
            if (other := values.get(world))
        ]
        parts.append(f"{number(mine)} {noun}" + (f" ({', '.join(ratios)})" if ratios else ""))
    if parts and told.story.loaded != told.story.full and told.at_end and told.story.report is not None:
        parts.append("all over the whole run")
    text = _sentence(parts) or "No minute of leadtime's world is on record, so its cost is not known."
    return Answer(id="cost", question="What did it cost?", text=text)


def _forecast_wrong(told: Told) -> Answer:
    check, question = told.check, "Where was the forecast wrong?"
    if not check.checked or check.level_ratio is None:
        text = "Not known: no minute has both a forecast issued one lead earlier and a measured demand."
        return Answer(id="forecast-wrong", question=question, text=text)
    expected = round((1 - check.level_ratio) * check.checked)
    text = (
        f"{number(len(check.misses))} of {number(check.checked)} minutes fell outside the band "
        f"({number(expected)} would be usual at {percent(check.level_ratio, 0)})"
    )
    worst = sorted(check.stretches, key=lambda s: -abs(s.worst.excess_ratio) * s.minutes)[:2]
    text += "; no stretch of five minutes or more" if not worst else "; worst " + " and ".join(map(_stretch, worst))
    if check.surges:
        first = check.surges[0][0]
        text += f". The surge detector spoke {len(check.surges)}×, first at {clock(first.at_s)} "
        text += f"({percent(first.excess_ratio, 0)} above the forecast)"
    return Answer(id="forecast-wrong", question=question, text=f"{text}.{_ten_minutes_ahead(told)}")


def _ten_minutes_ahead(told: Told) -> str:
    """What the report measured at its own short horizon."""
    fields = told.report("worlds", "leadtime", told.story.workload) or {}
    near, inside, horizon_s = (fields.get(k) for k in ("within_10pct_ratio", "coverage_ratio", "forecast_horizon_s"))
    if not isinstance(near, int | float) or not isinstance(inside, int | float):
        return ""
    ahead = duration(horizon_s) if isinstance(horizon_s, int | float) else "a short time"
    return (
        f" {_capital(ahead)} ahead, {percent(near, 0)} came within ±10 % and {percent(inside, 0)} inside the interval."
    )


def _stretch(stretch: MissStretch) -> str:
    side = "above" if stretch.worst.excess_ratio > 0 else "below"
    share = percent(abs(stretch.worst.excess_ratio), 0)
    return f"{clock(stretch.start_s)}–{clock(stretch.end_s)}, up to {share} {side} it"


def _first_request(told: Told) -> Answer:
    question = "When did the first capacity request come?"
    ahead = told.compared("first_request_ahead_s")
    found = []
    for world, name in (("leadtime", "leadtime's world"), ("hpa", "the HPA's")):
        minutes = told.story.worlds.get(world)
        at_s = _first_node(minutes, told) if minutes else None
        if at_s is not None:
            found.append(f"at {clock(at_s)} in {name}")
    parts = ["the first new node was requested " + " and ".join(found)] if found else []
    if isinstance(ahead, int | float):
        parts.append(signed_duration(ahead, "earlier than the HPA alone", "later than the HPA alone"))
    else:
        reason = told.compared("first_request_ahead_s_reason")
        if isinstance(reason, str):
            parts.append(f"no comparison: {reason}")
    text = _sentence(parts) or "No node was requested in this window, in any world."
    return Answer(id="first-request", question=question, text=text)


def _warm_pods(told: Told) -> Answer | None:
    """Only where the report says that nothing but warm pods would have helped (a surge without warning)."""
    pods, hours = told.report("warm_pods_needed"), told.report("warm_gpu_hours_per_day")
    reason = told.report("warm_pods_needed_reason")
    if not isinstance(pods, int | float):
        text = f"How many warm pods would have served everything is not known: {reason}." if reason else ""
        return Answer(id="warm-pods", question="What would have helped?", text=text) if text else None
    cost = f"; they cost {number(hours)} GPU-hours a day" if isinstance(hours, int | float) else ""
    text = (
        "Nobody could foresee it, and new nodes come too late. Only warm pods help: "
        f"{number(pods)} more would have served everything{cost}."
    )
    return Answer(id="warm-pods", question="What would have helped?", text=text)


def gap_closed(told: Told) -> str:
    """How much of the way from HPA alone to the oracle leadtime went, as the report says; empty before the end."""
    ratio = told.report("comparison", told.story.workload, "oracle_gap_closed")
    if isinstance(ratio, int | float):
        return f"leadtime closes {percent(ratio, 0)} of the gap between HPA alone and the oracle"
    reason = told.report("comparison", told.story.workload, "oracle_gap_closed_reason")
    return f"no gap to close: {reason}" if isinstance(reason, str) else ""


def _harm(told: Told) -> Answer:
    question = "Which decisions did harm?"
    if not told.harms:
        return Answer(id="harm", question=question, text=_no_harm(told))
    shown = told.harms[:2]
    sentences = "; ".join(f"{clock(h.at_s)} {_asked(h)} {h.kind}: {h.sentence}" for h in shown)
    more = f"; and {len(told.harms) - len(shown)} more, marked below" if len(told.harms) > len(shown) else ""
    first = told.harms[0]
    decision = next(
        (d for run in told.runs if run.scope == first.scope for d in run.decisions if d.at_s == first.at_s), None
    )
    return Answer(id="harm", question=question, text=f"{sentences}{more}.", decision=decision)


def _asked(harm: Harm) -> str:
    """What a harmful decision was about; one instant may bear both."""
    return "a floor" if harm.scope.startswith("workload:") else "room ahead"


def _no_harm(told: Told) -> str:
    if "leadtime" not in told.story.worlds or "hpa" not in told.story.worlds:
        return "Not known: harm is measured beside the HPA alone, and one of the two worlds is not on record."
    judged = (
        "" if told.at_end else " Decisions of the last hour are not judged yet, nor whether those of the last two paid."
    )
    return f"None: in the hour after each, nothing was lost, pending or paid for in vain beside the HPA alone.{judged}"


def _first_rise(minutes: WorldMinutes, told: Told, from_s: int | None) -> int | None:
    """Index of the first minute in the window whose wanted replicas exceed the minute before."""
    begin_s = max(told.story.window.start_s, (from_s or 0) - 60)
    for i in range(1, len(minutes.at_s)):
        now, before = minutes.wanted[i], minutes.wanted[i - 1]
        inside = begin_s <= minutes.at_s[i] < min(told.until_s, told.story.window.end_s)
        if inside and now is not None and before is not None and now > before:
            return i
    return None


def _first_node(minutes: WorldMinutes, told: Told) -> int | None:
    """The first minute in the window with more nodes (any stage) than the minute before."""
    for i in range(1, len(minutes.at_s)):
        inside = told.story.window.start_s <= minutes.at_s[i] < min(told.until_s, told.story.window.end_s)
        if inside and sum(minutes.nodes[i].values()) > sum(minutes.nodes[i - 1].values()):
            return minutes.at_s[i]
    return None


def _time(told: Told, world: str, field: str) -> int | None:
    """A time of the report's timeline, once the clock has passed it (it is a fact of the record, not a forecast)."""
    value = report_value(told.story.report, "timeline", world, told.story.workload, field)
    at_s = epoch(value) if isinstance(value, str) else None
    inside = at_s is not None and told.story.loaded.start_s <= at_s < min(told.until_s, told.story.loaded.end_s)
    return at_s if inside else None


def _sentence(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return _capital(", ".join(parts)) + "."


def _capital(text: str) -> str:
    """The first letter large, but names (``leadtime``, ``serving/chat``) stay as they are."""
    first_word = text.split(" ", 1)[0]
    is_name = first_word == "leadtime" or first_word.startswith("leadtime'") or "/" in first_word
    return text if is_name else text[:1].upper() + text[1:]


def title_of_window(story: Story) -> str:
    """``2 Mar 04:15 – 07:45 UTC``."""
    same_day = story.window.start_s // 86_400 == (story.window.end_s - 1) // 86_400
    end = clock(story.window.end_s) if same_day else day_clock(story.window.end_s)
    return f"{day_clock(story.window.start_s)} – {end} UTC"
