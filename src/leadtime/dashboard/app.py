"""Ledgers → the page and its JSON, as one ASGI application. Reads ledgers, writes nothing, calls nobody.

Every page is whole without scripts; ``/part/…`` gives the pieces that htmx swaps in while the clock runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from leadtime.dashboard import api, clock_text, scores, shelf, svg_tracks
from leadtime.dashboard.lanes import LaneTrack, decision_href, lane_name
from leadtime.dashboard.shelf import Asked, Room
from leadtime.dashboard.story import LedgerBook
from leadtime.dashboard.stream import tick_events
from leadtime.domain.errors import LeadtimeError

HERE = Path(__file__).parent
STATIC = HERE / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
LOCAL_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
PARTS = frozenset({"told", "tracks", "risk", "decisions"})


def create_app(ledgers: Mapping[str, Path], *, live: bool, speed: int = 300) -> FastAPI:
    """The page over ``ledgers`` (name → file; the names become tabs, in order).

    live: the ledgers may still grow; the page then follows them. speed: recorded seconds per second when the page
    plays. Raises BadLedger when a file is no ledger.
    """
    books = {name: LedgerBook(name, path) for name, path in ledgers.items()}
    app = FastAPI(title="leadtime", description="Why capacity decisions were made.", docs_url=None, redoc_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=1024)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOCAL_HOSTS)
    app.middleware("http")(_headers)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(LeadtimeError, _user_error)
    app.state.shelf = shelf.Shelf(books=books, live=live, speed=speed, templates=_templates())
    app.include_router(pages_router)
    app.include_router(api.router)
    return app


def vendor_files() -> bool:
    """True when htmx and uPlot were put in place at build time."""
    return all((STATIC / "vendor" / name).is_file() for name in ("htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css"))


def _templates() -> Jinja2Templates:
    env = Environment(
        loader=PackageLoader("leadtime.dashboard"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        clock=clock_text.clock, day=clock_text.day, day_clock=clock_text.day_clock, instant=clock_text.instant,
        number=clock_text.number, svg=svg_tracks, href=decision_href, world_title=scores.world_title,
        lane_name=lane_name,
        vendored=vendor_files(), is_lanes=lambda track: isinstance(track, LaneTrack),
    )  # fmt: skip
    return Jinja2Templates(env=env)


async def _headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    if not request.url.path.startswith("/static/vendor"):
        response.headers.setdefault("Cache-Control", "no-cache")
    return response


async def _user_error(request: Request, error: Exception) -> Response:
    """A user's mistake: one sentence that names the cure, never a traceback."""
    status = 404 if isinstance(error, shelf.NotHere) else 400
    if request.url.path.startswith("/api/"):
        return api.error_response(error, status)
    room = shelf.shelf_of(request)
    view = {"message": str(error), "shelf": room, "ledger": "", "waiting": False}
    return room.templates.TemplateResponse(request, "message.html", view, status_code=status)


pages_router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@pages_router.get("/")
def first_ledger(room: Room) -> RedirectResponse:
    """The first tab."""
    return RedirectResponse(f"/ledgers/{next(iter(room.books))}")


@pages_router.get("/openapi")
def openapi() -> RedirectResponse:
    """The description of the JSON routes."""
    return RedirectResponse("/openapi.json")


@pages_router.get("/ledgers/{ledger}")
def page(request: Request, ledger: str, room: Room, wish: Asked) -> Response:
    """One ledger, whole."""
    view = room.view(ledger, wish)
    return room.templates.TemplateResponse(request, "ledger.html" if view["story"] else "message.html", view)


@pages_router.get("/ledgers/{ledger}/part/{name}")
def part(request: Request, ledger: str, name: str, room: Room, wish: Asked) -> Response:
    """One piece of the page, for htmx."""
    if name not in PARTS:
        raise shelf.NotHere("page-no-such-part", f"looking up part {name!r}", "there is none", "reload the page")
    view = room.view(ledger, wish)
    return room.templates.TemplateResponse(request, f"parts/{name if view['story'] else 'nothing_yet'}.html", view)


@pages_router.get("/ledgers/{ledger}/events")
def events(ledger: str, room: Room) -> Response:
    """New ticks, as they come."""
    return tick_events(room.book(ledger))


@pages_router.get("/ledgers/{ledger}/decisions/{at}/{scope:path}")
def decision(request: Request, ledger: str, at: str, scope: str, room: Room) -> Response:
    """One decision: a page of its own, or the drawer's body when htmx asks."""
    name = "parts/decision.html" if request.headers.get("HX-Request") else "decision.html"
    return room.templates.TemplateResponse(
        request, name, room.decision(ledger, at, scope), headers={"Vary": "HX-Request"}
    )
