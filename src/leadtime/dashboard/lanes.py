"""A story → the tracks that show states, not numbers: queue rule, agents, decisions. Each lane holds bars and marks.

A bar's shape tells what it is without colour: full height = raised or won, lower half = lowered, thin = renewed,
outline = lost, hatched = refused or unhealthy, hairline = nothing.
"""

from dataclasses import dataclass
from urllib.parse import quote

from leadtime.dashboard.answers import Told
from leadtime.dashboard.clock_text import clock, instant
from leadtime.dashboard.runs import DecisionRun, proposal_runs
from leadtime.dashboard.views import DecisionView, Direction, Fate, QueueView, workload_of

AGENTS = ("safety", "admission", "unblock", "scaling", "efficiency")
LANE_HEIGHT = 20
SHAPES = {
    Direction.RAISE: "full",
    Direction.LOWER: "low",
    Direction.RENEW: "thin",
    Direction.QUEUE: "full",
    Direction.NOTHING: "hair",
}
FATE_SHAPES = {Fate.WON: "full", Fate.LIMITED: "low", Fate.LOST: "outline", Fate.REFUSED: "hatch"}
FATE_WORDS = {Fate.WON: "won", Fate.LIMITED: "won in a smaller form", Fate.LOST: "lost", Fate.REFUSED: "refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A sign at an instant; ``value`` places it on the y axis of a numeric track (None: at the top)."""

    at_s: int
    shape: str
    colour: str
    label: str
    value: float | None = None
    bound: float | None = None  # a stroke is drawn from ``value`` to here
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A state over [start_s, end_s)."""

    start_s: int
    end_s: int
    shape: str
    colour: str
    label: str
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row."""

    label: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTrack:
    """Rows of states on the common time axis. ``key`` explains shapes: (shape, colour, words)."""

    id: str
    title: str
    lanes: tuple[Lane, ...]
    key: tuple[tuple[str, str, str], ...]
    said: str = ""
    absent: str = ""


def decision_href(ledger: str, decision: DecisionView) -> str:
    """The decision's own URL."""
    return f"/ledgers/{quote(ledger)}/decisions/{instant(decision.at_s)}/{quote(decision.scope, safe=':/')}"


def lane_name(label: str) -> str:
    """A scope in few letters: ``serving/chat``, ``room serving/chat``, ``pool gpu``; agents as they are."""
    workload = workload_of(label)
    if workload is not None:
        return workload if label.startswith("workload:") else f"room {workload}"
    return label.replace(":", " ")


def queue_lanes(told: Told) -> LaneTrack:
    """The queue rule's state, one lane a queue."""
    states: dict[str, list[tuple[int, QueueView]]] = {}
    for tick in told.story.ticks:
        for queue in tick.queues:
            states.setdefault(queue.queue, []).append((tick.at_s, queue))
    found = [Lane(label=name, bars=_queue_bars(seen)) for name, seen in sorted(states.items())]
    window = told.story.window
    ill = [b for lane in found for b in lane.bars if b.shape == "hatch" and b.end_s > window.start_s < told.until_s]
    ill = [b for b in ill if b.start_s < min(window.end_s, told.until_s)]
    said = f"unhealthy {clock(ill[0].start_s)}–{clock(ill[0].end_s)}: {ill[0].label}" if ill else "healthy throughout"
    return LaneTrack(
        id="queue", title="Queue rule", lanes=tuple(found), said=said if found else "",
        key=(("hair", "quiet", "healthy"), ("hatch", "harm", "unhealthy"), ("outline", "harm", "clearing")),
        absent="" if found else "no tick names a queue",
    )  # fmt: skip


def _queue_bars(seen: list[tuple[int, QueueView]]) -> tuple[Bar, ...]:
    bars: list[Bar] = []
    for at_s, queue in seen:
        shape = "hair" if queue.healthy else "outline" if queue.clean_ticks else "hatch"
        label = "healthy" if queue.healthy else "; ".join(w.sentence for w in queue.because) or "clearing"
        last = bars[-1] if bars else None
        if last and last.shape == shape and at_s - last.end_s <= 90:
            bars[-1] = Bar(start_s=last.start_s, end_s=at_s + 60, shape=shape, colour=last.colour, label=last.label)
        else:
            colour = "quiet" if queue.healthy else "harm"
            bars.append(Bar(start_s=at_s, end_s=at_s + 60, shape=shape, colour=colour, label=label))
    return tuple(bars)


def agent_lanes(told: Told) -> LaneTrack:
    """What each agent proposed, and its fate; every agent has a lane, silent ones too."""
    by_agent: dict[str, list[Bar]] = {agent: [] for agent in AGENTS}
    for run in proposal_runs(told.story.ticks):
        p = run.first
        why = f"; {p.fate_why.reason}: {p.fate_why.sentence}" if p.fate_why else ""
        label = (
            f"{clock(run.start_s)}–{clock(run.end_s)} {p.scope}: {p.action.words} ({p.why.reason}), "
            f"{FATE_WORDS[p.fate]}{why}"
        )
        href = f"/ledgers/{quote(told.story.ledger)}/decisions/{instant(run.start_s)}/{quote(p.scope, safe=':/')}"
        bar = Bar(start_s=run.start_s, end_s=run.end_s, shape=FATE_SHAPES[p.fate], colour="leadtime", label=label,
                  href=href)  # fmt: skip
        by_agent.setdefault(run.agent, []).append(bar)
    spoke = [agent for agent, bars in by_agent.items() if bars]
    return LaneTrack(
        id="agents", title="What each agent proposed",
        lanes=tuple(Lane(label=agent, bars=tuple(bars)) for agent, bars in by_agent.items()),
        said=f"{', '.join(spoke)} spoke" if spoke else "no agent spoke",
        key=tuple((FATE_SHAPES[fate], "leadtime", FATE_WORDS[fate]) for fate in Fate),
    )  # fmt: skip


def decision_lanes(told: Told) -> LaneTrack:
    """What won, one lane a scope; harm as marks on the decision that bears it."""
    by_scope: dict[str, list[DecisionRun]] = {}
    for run in told.runs:
        by_scope.setdefault(run.scope, []).append(run)
    found = []
    for scope, runs in sorted(by_scope.items(), key=lambda item: (workload_of(item[0]) is None, item[0])):
        bars = tuple(_decision_bar(told.story.ledger, run) for run in runs)
        marks = tuple(
            Mark(at_s=h.at_s, shape="harm", colour="harm", label=f"{h.kind}: {h.sentence}",
                 href=f"/ledgers/{quote(told.story.ledger)}/decisions/{instant(h.at_s)}/{quote(scope, safe=':/')}")
            for h in told.harms if h.scope == scope
        )  # fmt: skip
        found.append(Lane(label=scope, bars=bars, marks=marks))
    changes = sum(1 for runs in by_scope.values() for run in runs if run.first.action)
    return LaneTrack(
        id="decisions", title="Decisions", lanes=tuple(found),
        said=f"{changes} stretches of acting; {len(told.harms)} marked as harm",
        key=(("full", "leadtime", "raise"), ("low", "leadtime", "lower, give back"), ("thin", "leadtime", "renew"),
             ("hair", "quiet", "nothing"), ("harm", "harm", "did harm")),
        absent="" if found else "no decision is on record",
    )  # fmt: skip


def _decision_bar(ledger: str, run: DecisionRun) -> Bar:
    label = f"{clock(run.start_s)}–{clock(run.end_s)} {run.words} ({run.first.why.reason}): {run.first.why.sentence}"
    colour = "quiet" if run.first.action is None else "leadtime"
    shape = SHAPES[run.first.direction]
    href = decision_href(ledger, run.first)
    return Bar(start_s=run.start_s, end_s=run.end_s, shape=shape, colour=colour, label=label, href=href)
