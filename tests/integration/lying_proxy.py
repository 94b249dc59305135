"""A proxy in front of a real server that alters its real answers: each lie is a function of one exchange."""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode

import httpx2


@dataclass
class Exchange:
    """What was asked, and how the real server can be asked the same."""

    path: str
    form: dict[str, list[str]]
    headers: dict[str, str]
    number: int  # 1 is the first
    upstream: Callable[["Exchange"], "Answer"] = field(repr=False)

    def honest(self) -> "Answer":
        """The real server's answer to (what is now in) ``form``."""
        return self.upstream(self)

    def one(self, name: str) -> str:
        """One field of the form."""
        return self.form[name][0]


@dataclass
class Answer:
    """An answer to be sent. ``cut``: send only so many bytes of it, then break off. ``dropped``: send nothing."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    dropped: bool = False

    def altered(self, change: Callable[[dict[str, Any]], None]) -> "Answer":
        """The JSON body changed in place."""
        told = json.loads(self.body)
        change(told)
        return Answer(self.status, json.dumps(told).encode(), self.headers)


Lie = Callable[[Exchange], Answer]


def honest(exchange: Exchange) -> Answer:
    """No lie."""
    return exchange.honest()


class _Quiet(ThreadingHTTPServer):
    """A client that hangs up, because it waited long enough, is no news."""

    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of broken connections."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LyingProxy:
    """Open it with ``with``; set ``lie`` at any time. ``seen``: every exchange since the lie was set."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.seen: list[Exchange] = []
        self.released = threading.Event()  # set at the end, so that no lie waits for ever
        self._lie: Lie = honest
        self._client = httpx2.Client(timeout=60)
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                proxy.answer(self)

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def tell(self, lie: Lie) -> None:
        """From now on answer so."""
        self._lie, self.seen = lie, []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._client.close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Serve one request."""
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0)).decode()
        with self._lock:
            form = parse_qs(body, keep_blank_values=True)
            headers = {name.lower(): value for name, value in handler.headers.items()}
            exchange = Exchange(handler.path, form, headers, len(self.seen) + 1, self._ask)
            self.seen.append(exchange)
        try:
            self._send(handler, self._lie(exchange))
        except (httpx2.HTTPError, OSError):  # the server is gone, or the client is: both see a broken connection
            handler.close_connection = True

    def _ask(self, exchange: Exchange) -> Answer:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        content = urlencode(exchange.form, doseq=True).encode()
        told = self._client.post(f"{self.target}{exchange.path}", content=content, headers=kind)
        return Answer(told.status_code, told.content, {"date": told.headers.get("date", "")})

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        if answer.dropped:
            handler.close_connection = True
            return
        handler.send_response_only(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body[: answer.cut])
        if answer.cut is not None:
            handler.close_connection = True
