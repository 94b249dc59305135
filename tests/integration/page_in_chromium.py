"""What tests of the page share: a server, a browser page that is watched, and the sizes it is looked at in."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from leadtime.dashboard.app import vendor_files
from leadtime.dashboard.serve import listen

CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
needs_vendor = pytest.mark.skipif(not vendor_files(), reason="npm was absent at build: htmx and uPlot are not there")


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The application on a free port, in a thread, until the block ends."""
    listener = listen(0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


@contextmanager
def looking(browser: Any, site: str, **options: Any) -> Iterator[Any]:
    """A page whose console and requests are watched: any complaint, and any call elsewhere, fails the test."""
    context = browser.new_context(reduced_motion="reduce", **options)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(site) else complaints.append(f"asked elsewhere: {r.url}"))
    page.on("response", lambda r: complaints.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


def wide(**more: Any) -> dict[str, Any]:
    return {"viewport": {"width": 1280, "height": 800}, **more}


def phone(**more: Any) -> dict[str, Any]:
    return {"viewport": {"width": 390, "height": 844}, **more}


EVERYWHERE = [
    pytest.param(size(color_scheme=scheme, java_script_enabled=scripts), id=f"{name}, {scheme}, {word}")
    for name, size in (("1280 px", wide), ("390 px", phone))
    for scheme in ("light", "dark")
    for scripts, word in ((True, "scripts"), (False, "no scripts"))
]
