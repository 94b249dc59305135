"""A request for a page → the view it needs: which story, up to which instant, which worlds. No HTTP in here.

``now`` is the virtual clock: everything the page says lies before it. It is clamped into the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from leadtime.dashboard.answers import Told
from leadtime.dashboard.clock_text import epoch, instant
from leadtime.dashboard.forecast_check import check_forecasts
from leadtime.dashboard.harm import harms
from leadtime.dashboard.risk import risk_part
from leadtime.dashboard.runs import DecisionRun, decision_runs
from leadtime.dashboard.scores import score_table
from leadtime.dashboard.story import DAY_S, Choice
from leadtime.dashboard.tracks import DEFAULT_WORLDS
from leadtime.dashboard.views import DecisionView, Direction, ProposalView, Span, Story
from leadtime.domain.errors import WrongUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the address asks for."""

    choice: Choice
    now_s: int | None
    worlds: tuple[str, ...]


def wish_of(
    workload: str | None, start: str | None, end: str | None, now: str | None, worlds: Iterable[str] | None
) -> Wish:
    """Read the query. Raises WrongUse for a time that cannot be read."""
    return Wish(
        choice=Choice(workload=workload or None, start_s=_time("from", start), end_s=_time("to", end)),
        now_s=_time("now", now),
        worlds=tuple(worlds or ()) or DEFAULT_WORLDS,
    )


def _time(name: str, text: str | None) -> int | None:
    if not text:
        return None
    try:
        return epoch(text)
    except ValueError as error:
        raise WrongUse(
            "page-bad-time", f"reading ?{name}={text}", str(error), "write it as 2026-03-02T06:05:00Z"
        ) from error


def now_of(story: Story, wish: Wish) -> int:
    """The clock: as asked, inside the ledger; the ledger's end by default."""
    if wish.now_s is None:
        return story.full.end_s
    return max(story.full.start_s, min(story.full.end_s, wish.now_s))


def told_until(story: Story, until_s: int) -> Told:
    """Everything the page says about ``story`` with the clock at ``until_s``."""
    cut_s = min(until_s, story.loaded.end_s)
    seen = replace(
        story,
        ticks=tuple(t for t in story.ticks if t.at_s < cut_s),
        worlds={world: minutes.before(cut_s) for world, minutes in story.worlds.items()},
    )
    return Told(
        story=seen,
        whole=story,
        until_s=until_s,
        runs=decision_runs(seen.ticks),
        check=check_forecasts(seen, cut_s),
        harms=harms(seen, cut_s),
        scores=score_table(seen, until_s),
        risk=risk_part(seen, until_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A row of the decisions table: one run, its harm if any, its losers' reasons."""

    run: DecisionRun
    scope: str
    words: str
    shape: str
    losers: str
    loser: ProposalView | None
    harm: str


def decision_rows(told: Told, window: Span, *, with_nothing: bool) -> tuple[DecisionRow, ...]:
    """Runs that touch ``window`` and began before the clock, oldest first."""
    marked: dict[tuple[str, int], list[str]] = {}
    for harm in told.harms:
        marked.setdefault((harm.scope, harm.at_s), []).append(f"{harm.kind}: {harm.sentence}")
    rows = []
    for run in told.runs:
        if run.end_s <= window.start_s or run.start_s >= window.end_s:
            continue
        if not with_nothing and run.first.action is None:
            continue
        found = [text for d in run.decisions for text in marked.get((run.scope, d.at_s), [])]
        losers = ", ".join(f"{reason} {n}×" if n > 1 else reason for reason, n in run.loser_reasons)
        rows.append(
            DecisionRow(
                run=run,
                scope=run.scope,
                words=run.words,
                shape=_shape(run.first),
                losers=losers,
                loser=_first_loser(run),
                harm="; ".join(found),
            )
        )
    return tuple(rows)


def _first_loser(run: DecisionRun) -> ProposalView | None:
    return next((p for d in run.decisions for p in d.losers), None)


def _shape(decision: DecisionView) -> str:
    return {
        Direction.RAISE: "▲",
        Direction.LOWER: "▼",
        Direction.RENEW: "↻",
        Direction.QUEUE: "■",
        Direction.NOTHING: "·",
    }[decision.direction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A link to another window or clock."""

    title: str
    href: str
    current: bool = False


def windows(story: Story, wish: Wish, focus: Span | None) -> tuple[Jump, ...]:
    """Zoom links: the whole ledger or day, the incident, closer, earlier, later."""
    w, loaded = story.window, story.full
    length = w.end_s - w.start_s
    middle = (w.start_s + w.end_s) // 2
    jumps = []
    if story.loaded == story.full:
        jumps.append(_jump("whole record", story, wish, loaded.start_s, loaded.end_s))
    else:
        start_s = story.loaded.start_s // DAY_S * DAY_S
        jumps.append(_jump("← day", story, wish, start_s - DAY_S, start_s))
        jumps.append(_jump("whole day", story, wish, story.loaded.start_s, story.loaded.end_s))
        jumps.append(_jump("day →", story, wish, start_s + DAY_S, start_s + 2 * DAY_S))
    if focus:
        jumps.append(_jump("the incident", story, wish, focus.start_s, focus.end_s))
    jumps.append(_jump("closer", story, wish, middle - length // 4, middle + length // 4))
    jumps.append(_jump("wider", story, wish, middle - length, middle + length))
    jumps.append(_jump("← earlier", story, wish, w.start_s - length, w.start_s))
    jumps.append(_jump("later →", story, wish, w.end_s, w.end_s + length))
    return tuple(j for j in jumps if j.href)


def _jump(title: str, story: Story, wish: Wish, start_s: int, end_s: int) -> Jump:
    start_s, end_s = max(story.full.start_s, start_s), min(story.full.end_s, end_s)
    if end_s - start_s < 600:
        return Jump(title=title, href="")
    href = address(story, wish, {"from": instant(start_s), "to": instant(end_s)})
    return Jump(title=title, href=href, current=Span(start_s=start_s, end_s=end_s) == story.window)


def clock_links(story: Story, wish: Wish, now_s: int) -> tuple[Jump, ...]:
    """The player without scripts."""
    w = story.window
    stops = (
        ("|◀ start", w.start_s), ("−1 h", now_s - 3600), ("−15 min", now_s - 900), ("−1 min", now_s - 60),
        ("+1 min", now_s + 60), ("+15 min", now_s + 900), ("+1 h", now_s + 3600),
    )  # fmt: skip
    inside = [(title, max(w.start_s, min(w.end_s, at_s))) for title, at_s in stops]
    links = [Jump(title=title, href=address(story, wish, {"now": instant(at_s)})) for title, at_s in inside]
    return (*links, Jump(title="end ▶|", href=address(story, wish, {"now": ""})))


def address(story: Story, wish: Wish, changes: Mapping[str, str]) -> str:
    """The page's address with some parts of the query changed (empty: left out)."""
    query: dict[str, str | tuple[str, ...]] = {
        "workload": story.workload if len(story.workloads) > 1 else "",
        "from": instant(wish.choice.start_s) if wish.choice.start_s is not None else "",
        "to": instant(wish.choice.end_s) if wish.choice.end_s is not None else "",
        "now": instant(wish.now_s) if wish.now_s is not None else "",
        "worlds": wish.worlds if wish.worlds != DEFAULT_WORLDS else (),
    }
    query |= changes
    text = urlencode({k: v for k, v in query.items() if v}, doseq=True, safe=":")
    return f"/ledgers/{story.ledger}" + (f"?{text}" if text else "")
