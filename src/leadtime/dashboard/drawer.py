"""One decision of one tick, whole: evidence, what lost, the guard, what the HPA would have done, what came of it.

Built from the full tick (as the ledger wrote it) and the minutes of the worlds after it. Figures that lie after the
end of the record are not guessed; the row says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadtime.dashboard.clock_text import clock, duration, epoch, number, percent
from leadtime.dashboard.runs import DecisionRun
from leadtime.dashboard.scores import world_title
from leadtime.dashboard.tick_view import action_view, scope_key, tick_view, why_view
from leadtime.dashboard.views import ActionView, DecisionView, ProposalView, Story, WhyView, WorldMinutes, workload_of

AFTER_S = (300, 900, 3600)
AFTER_WORLDS = ("leadtime", "hpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One observation. ``points_here`` is True when this decision's own sentence stands on it."""

    id: str
    source: str
    query: str
    window: str
    value: str
    unit: str
    points_here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The guard on one proposal of this scope."""

    proposal_id: str
    answer: str
    allowed: str
    why: tuple[WhyView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """What the actuator did, and how it is undone."""

    actuator: str
    applied: bool
    why: WhyView
    rollback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterRow:
    """One world, ``after_s`` later. ``absent`` says why there are no figures."""

    after: str
    at: str
    world: str
    title: str
    demand: str
    wanted: str
    ready: str
    pending: str
    nodes: str
    unserved: str
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDetail:
    """Everything the drawer shows. ``workload`` parts are None when the scope is no workload."""

    decision: DecisionView
    winner: ProposalView | None
    evidence: tuple[EvidenceRow, ...]
    verdicts: tuple[VerdictRow, ...]
    outcomes: tuple[OutcomeRow, ...]
    hpa_words: str
    forecast_words: tuple[str, ...]
    after: tuple[AfterRow, ...]
    previous_s: int | None
    next_s: int | None
    run: DecisionRun | None


def decision_detail(
    tick: Mapping[str, Any], scope: str, story: Story, runs: Sequence[DecisionRun]
) -> DecisionDetail | None:
    """The detail of ``scope``'s decision in ``tick``; None when that tick decided nothing about it."""
    view = tick_view(tick)
    decision = next((d for d in view.decisions if d.scope == scope), None)
    if decision is None:
        return None
    raw = next(d for d in tick["decisions"] if scope_key(d["scope"]) == scope)
    of_scope = [p for p in view.proposals if p.scope == scope]
    times = [t.at_s for t in story.ticks if any(d.scope == scope for d in t.decisions)]
    return DecisionDetail(
        decision=decision,
        winner=next((p for p in view.proposals if p.id == raw["proposal_id"]), None),
        evidence=_evidence(tick, decision, of_scope),
        verdicts=_verdicts(tick, {p.id for p in of_scope}),
        outcomes=_outcomes(tick, scope),
        hpa_words=_hpa_words(tick, scope),
        forecast_words=_forecast_words(tick, scope, story),
        after=_after(story, decision.at_s),
        previous_s=max((t for t in times if t < decision.at_s), default=None),
        next_s=min((t for t in times if t > decision.at_s), default=None),
        run=next((r for r in runs if r.scope == scope and r.start_s <= decision.at_s < r.end_s), None),
    )


def _evidence(
    tick: Mapping[str, Any], decision: DecisionView, of_scope: Sequence[ProposalView]
) -> tuple[EvidenceRow, ...]:
    own = set(decision.why.because)
    for proposal in of_scope:
        own |= set(proposal.why.because) | set(proposal.fate_why.because if proposal.fate_why else ())
    rows = []
    for e in tick["evidence"]:
        start_s, end_s = epoch(e["window"]["start"]), epoch(e["window"]["end"])
        value = e["value"]
        text = "missing" if value is None else number(value, 2).rstrip("0").rstrip(".") if _is_number(value) else value
        rows.append(
            EvidenceRow(
                id=e["id"],
                source=e["source"],
                query=e["query"],
                value=str(text),
                unit=e["unit"],
                window=f"[{clock(start_s)}, {clock(end_s)})" if end_s > start_s else f"at {clock(start_s)}",
                points_here=e["id"] in own,
            )
        )
    return tuple(sorted(rows, key=lambda row: not row.points_here))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _verdicts(tick: Mapping[str, Any], ids: set[str]) -> tuple[VerdictRow, ...]:
    rows = []
    for v in tick["verdicts"]:
        if v["proposal_id"] in ids:
            allowed: ActionView | None = (
                action_view(v["allowed_action"], tick["snapshot"]) if v["allowed_action"] else None
            )
            rows.append(
                VerdictRow(
                    proposal_id=v["proposal_id"],
                    answer=v["answer"],
                    allowed=allowed.words if allowed else "nothing",
                    why=tuple(why_view(w) for w in v["why"]),
                )
            )
    return tuple(rows)


def _outcomes(tick: Mapping[str, Any], scope: str) -> tuple[OutcomeRow, ...]:
    return tuple(
        OutcomeRow(actuator=o["actuator"], applied=o["applied"], why=why_view(o["why"]), rollback=o["rollback"])
        for o in tick["outcomes"]
        if scope_key(o["scope"]) == scope
    )


def _hpa_words(tick: Mapping[str, Any], scope: str) -> str:
    """What the HPA would have wanted without our floor: recomputed at that tick from its own arithmetic."""
    for a in tick["assessments"]:
        key = f"{a['ref']['namespace']}/{a['ref']['name']}"
        if workload_of(scope) == key:
            stands: Mapping[str, Any] = next(
                (s for s in tick["snapshot"]["workloads"] if f"{s['ref']['namespace']}/{s['ref']['name']}" == key), {}
            )
            wanted = stands.get("wanted_replicas")
            beside = f"; {number(wanted)} were wanted with leadtime's floor" if wanted is not None else ""
            return f"Without leadtime's floor the HPA would have wanted {number(a['hpa_would_want'])} pods{beside}."
    return "The HPA has no say about this scope: it scales workloads, not queues or pools."


def _forecast_words(tick: Mapping[str, Any], scope: str, story: Story) -> tuple[str, ...]:
    """Each forecast of the tick, and what came."""
    view = tick_view(tick)
    name = workload_of(scope) or ""
    seen = view.workloads.get(name)
    if seen is None:
        return ()
    world = story.worlds.get("leadtime")
    words = []
    for f in seen.forecasts:
        at = world.index_at(f.target_s) if world and name == story.workload else None
        actual = world.demand[at] if world and at is not None else None
        level = percent(f.level_ratio, 0)
        text = (
            f"for {clock(f.target_s)} (in {duration(f.horizon_s)}): {number(f.expected)} {seen.unit}, "
            f"{level} band {number(f.lower)}–{number(f.upper)} ({f.model})"
        )
        if actual is None:
            came = "what came is not on record"
        else:
            inside = f.lower <= actual <= f.upper
            came = f"{number(actual)} came, {'inside' if inside else 'OUTSIDE'} the band"
        words.append(f"{text}; {came}")
    return tuple(words)


def _after(story: Story, at_s: int) -> tuple[AfterRow, ...]:
    rows = []
    for after_s in AFTER_S:
        for world in AFTER_WORLDS:
            minutes = story.worlds.get(world)
            rows.append(_after_row(minutes, world, at_s, after_s))
    return tuple(rows)


def _after_row(minutes: WorldMinutes | None, world: str, at_s: int, after_s: int) -> AfterRow:
    then_s = at_s + after_s
    i = minutes.index_at(then_s) if minutes else None
    absent = ""
    if minutes is None:
        absent = f"no minutes of this world ({world}) are on record"
    elif i is None:
        absent = f"the record ends at {clock(minutes.at_s[-1] + 60)}" if minutes.at_s else "nothing on record"
    if minutes is None or i is None:
        return AfterRow(
            after=duration(after_s), at=clock(then_s), world=world, title=world_title(world), demand="–", wanted="–",
            ready="–", pending="–", nodes="–", unserved="–", absent=absent,
        )  # fmt: skip
    span = [k for k in range(len(minutes.at_s)) if at_s <= minutes.at_s[k] < then_s]
    known = [k for k in span if minutes.arrived[k] is not None and minutes.unserved[k] is not None]
    arrived = sum(minutes.arrived[k] or 0.0 for k in known)
    lost = sum(minutes.unserved[k] or 0.0 for k in known)
    return AfterRow(
        after=duration(after_s), at=clock(then_s), world=world, title=world_title(world),
        demand=number(minutes.demand[i]), wanted=number(minutes.wanted[i]), ready=number(minutes.ready[i]),
        pending=number(minutes.pending[i]), nodes=number(sum(minutes.nodes[i].values())) if minutes.nodes[i] else "–",
        unserved=percent(lost / arrived if arrived else 0.0) if known else "–",
    )  # fmt: skip
