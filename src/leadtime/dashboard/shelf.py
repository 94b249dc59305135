"""The ledgers on show, and what every page needs from them: the room that routes share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.templating import Jinja2Templates

from leadtime.dashboard import answers, clock_text, pages, tracks
from leadtime.dashboard.answers import Told
from leadtime.dashboard.drawer import decision_detail
from leadtime.dashboard.story import LedgerBook, focus_span
from leadtime.dashboard.views import Story, workload_of
from leadtime.domain.errors import WrongUse

SPEEDS = (1, 10, 60, 300, 900, 3600)


class NotHere(WrongUse):
    """The address names a ledger, a tick or a decision that is not there."""


class NothingYet(NotHere):
    """The ledger holds neither a tick nor a minute yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Open ledgers by name, and how they are shown."""

    books: Mapping[str, LedgerBook]
    live: bool
    speed: int
    templates: Jinja2Templates

    @property
    def speeds(self) -> tuple[int, ...]:
        """What the player offers."""
        return tuple(sorted({*SPEEDS, self.speed}))

    def book(self, ledger: str) -> LedgerBook:
        """Raises NotHere for an unknown name."""
        if ledger not in self.books:
            known = ", ".join(self.books)
            raise NotHere(
                "page-no-such-ledger", f"looking up ledger {ledger!r}", "it is not served", f"open one of {known}"
            )
        return self.books[ledger]

    def instant(self, text: str) -> int:
        """Epoch seconds of an address's time. Raises NotHere when it is none."""
        try:
            return clock_text.epoch(text)
        except ValueError as error:
            raise NotHere("page-bad-time", f"reading {text}", str(error), "write it as 2026-03-02T06:05:00Z") from error

    def told(self, ledger: str, wish: pages.Wish, *, whole: bool = False) -> tuple[Story, Told]:
        """The story, and what is told of it up to the clock (``whole``: up to its end).

        Raises NothingYet when nothing is on record.
        """
        story = self.book(ledger).story(wish.choice)
        if story is None:
            raise NothingYet("page-nothing-yet", f"showing {ledger}", "no tick is on record yet", "wait a moment")
        return story, pages.told_until(story, story.full.end_s if whole else pages.now_of(story, wish))

    def decision(self, ledger: str, at: str, scope: str) -> dict[str, Any]:
        """One decision, whole, for the drawer, the page and the JSON. Raises NotHere when there is none."""
        at_s = self.instant(at)
        story, told = self.told(
            ledger, pages.wish_of(workload_of(scope), clock_text.instant(at_s), None, None, None), whole=True
        )
        detail = decision_detail(self.book(ledger).tick(at_s), scope, story, told.runs)
        if detail is None:
            wrong = "that tick decided nothing about this scope"
            raise NotHere("page-no-such-decision", f"looking up {scope} at {at}", wrong, "follow a link of the table")
        harms = [h for h in told.harms if h.scope == scope and h.at_s <= at_s <= h.last_s]
        return {"detail": detail, "story": story, "harms": harms, "ledger": ledger, "shelf": self}

    def view(self, ledger: str, wish: pages.Wish) -> dict[str, Any]:
        """Everything the page's templates read; ``story`` is None while nothing is on record."""
        try:
            story, told = self.told(ledger, wish)
        except NothingYet as error:
            return {"story": None, "shelf": self, "ledger": ledger, "message": str(error), "waiting": self.live}
        until_s = told.until_s
        focus = focus_span(story.full, story.report, story.workload)
        return {
            "shelf": self,
            "ledger": ledger,
            "story": story,
            "told": told,
            "risk": told.risk,
            "until_s": until_s,
            "wish": wish,
            "live": self.live and story.report is None,
            "verdict": answers.verdict(told),
            "answers": answers.answers(told),
            "gap": answers.gap_closed(told),
            "window_title": answers.title_of_window(story),
            "board": tracks.board(told, wish.worlds),
            "rows": pages.decision_rows(told, story.window, with_nothing=True),
            "windows": pages.windows(story, wish, focus),
            "clock_links": pages.clock_links(story, wish, until_s),
            "address": lambda **changes: pages.address(story, wish, changes),
        }


def shelf_of(request: Request) -> Shelf:
    """The shelf of the application that serves ``request``."""
    found: Shelf = request.app.state.shelf
    return found


def asked(
    workload: Annotated[str | None, Query(description="which workload; default: the first")] = None,
    start: Annotated[str | None, Query(alias="from", description="start of the window, RFC 3339")] = None,
    end: Annotated[str | None, Query(alias="to", description="end of the window (open), RFC 3339")] = None,
    now: Annotated[str | None, Query(description="the virtual clock: nothing at or after it is told")] = None,
    worlds: Annotated[list[str] | None, Query(description="worlds whose replicas are drawn")] = None,
) -> pages.Wish:
    """The query that every page, part and JSON route understands. Raises WrongUse for a time that cannot be read."""
    return pages.wish_of(workload, start, end, now, worlds)


Room = Annotated[Shelf, Depends(shelf_of)]
Asked = Annotated[pages.Wish, Depends(asked)]
