"""The page's facts as JSON, for people with other tools: the same views, the same clock, no second truth."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from leadtime.dashboard import answers, pages, tracks
from leadtime.dashboard.clock_text import instant
from leadtime.dashboard.drawer import DecisionDetail
from leadtime.dashboard.lanes import decision_href
from leadtime.dashboard.risk import RiskPart
from leadtime.dashboard.shelf import Asked, NotHere, Room, Shelf
from leadtime.domain.errors import LeadtimeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What went wrong, and the cure."""

    slug: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One ledger that is served."""

    name: str
    kind: str
    scenario: str
    seed: int
    policy_hash: str
    workloads: tuple[str, ...]
    worlds: tuple[str, ...]
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLine:
    """A question and its answer; ``decision`` is the address of the decision it points at."""

    id: str
    question: str
    text: str
    decision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldJson:
    """The verdict, the answers and the score card up to ``now``. Scores: world → measure → figure or null."""

    ledger: str
    workload: str
    now: str
    verdict: str
    answers: tuple[AnswerLine, ...]
    scores: dict[str, dict[str, float | None]]
    scores_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """Consecutive equal decisions of one scope over [start, end)."""

    start: str
    end: str
    scope: str
    agent: str | None
    decisions: int
    what: str
    reason: str
    sentence: str
    losers: str
    harm: str
    href: str


PROBLEMS: dict[int | str, dict[str, Any]] = {400: {"model": Problem}, 404: {"model": Problem}}


def error_response(error: Exception, status: int) -> Response:
    """A LeadtimeError as JSON."""
    slug = error.slug if isinstance(error, LeadtimeError) else "page-error"
    return JSONResponse({"slug": slug, "message": str(error)}, status_code=status)


router = APIRouter(prefix="/api/ledgers", responses=PROBLEMS)


@router.get("")
def ledgers(room: Room) -> list[LedgerLine]:
    """The ledgers that are served, in the order of the tabs."""
    return [_ledger_line(room, name) for name in room.books]


@router.get("/{ledger}/told")
def told(ledger: str, room: Room, wish: Asked) -> ToldJson:
    """The verdict, the plain answers and the score card up to the clock."""
    return _told(room, ledger, wish)


@router.get("/{ledger}/tracks")
def board(ledger: str, room: Room, wish: Asked) -> tracks.Board:
    """The tracks on one minute grid, as they are drawn."""
    _, known = room.told(ledger, wish)
    return tracks.board(known, wish.worlds)


@router.get("/{ledger}/risk")
def risk(ledger: str, room: Room, wish: Asked) -> RiskPart:
    """Alerts of a failure model up to the clock, what was done for each, and what came of it."""
    _, known = room.told(ledger, wish)
    return known.risk


@router.get("/{ledger}/decisions")
def decisions(ledger: str, room: Room, wish: Asked) -> list[RunLine]:
    """Changes of decision: consecutive equal ones are one line."""
    story, known = room.told(ledger, wish)
    return [_run_line(ledger, row) for row in pages.decision_rows(known, story.window, with_nothing=True)]


@router.get("/{ledger}/decisions/{at}/{scope:path}")
def decision(ledger: str, at: str, scope: str, room: Room) -> DecisionDetail:
    """One decision, whole."""
    detail: DecisionDetail = room.decision(ledger, at, scope)["detail"]
    return detail


@router.get("/{ledger}/report")
def report(ledger: str, room: Room) -> Response:
    """report.json as the run wrote it."""
    text = room.book(ledger).reader.document("report")
    if text is None:
        raise NotHere(
            "page-no-report", f"reading the report of {ledger}", "none is on record", "wait for the run's end"
        )
    return Response(text, media_type="application/json")


def _ledger_line(room: Shelf, name: str) -> LedgerLine:
    meta = room.books[name].meta
    return LedgerLine(
        name=name, kind=meta.kind, scenario=meta.scenario, seed=meta.seed, policy_hash=meta.policy_hash,
        workloads=tuple(meta.workloads), worlds=tuple(meta.worlds), live=room.live,
    )  # fmt: skip


def _told(room: Shelf, ledger: str, wish: pages.Wish) -> ToldJson:
    story, known = room.told(ledger, wish)
    keys = [m.key for m in known.scores.measures]
    lines = tuple(
        AnswerLine(id=a.id, question=a.question, text=a.text,
                   decision=decision_href(ledger, a.decision) if a.decision else None)
        for a in answers.answers(known)
    )  # fmt: skip
    return ToldJson(
        ledger=ledger,
        workload=story.workload,
        now=instant(known.until_s),
        verdict=answers.verdict(known),
        answers=lines,
        scores={r.world: {k: c.value for k, c in zip(keys, r.cells, strict=True)} for r in known.scores.rows},
        scores_source=known.scores.source,
    )


def _run_line(ledger: str, row: pages.DecisionRow) -> RunLine:
    run = row.run
    return RunLine(
        start=instant(run.start_s), end=instant(run.end_s), scope=run.scope, agent=run.first.agent,
        decisions=len(run.decisions), what=row.words, reason=run.first.why.reason, sentence=run.first.why.sentence,
        losers=row.losers, harm=row.harm, href=decision_href(ledger, run.first),
    )  # fmt: skip
