"""A Prometheus server's range queries → long tables of samples, in pieces the server can answer.

API: prometheus.io/docs, HTTP API, range queries: at most 11,000 points a series in one answer. What is a value, what a
gap and what an error: NaN and ±Inf are gaps (staleness markers never reach an answer); an answer with warnings may
lack series, and a lacking series looks like a pod that ended, so it is an error; so is every status but 200.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx2
import msgspec
import polars as pl

from leadtime.domain.errors import BadTrace, DependencyFailed

MOST_POINTS = 11_000
SMALLEST_SPAN_S = 3_600  # a piece that cannot be answered is halved down to this
TOO_MUCH = frozenset({413, 422, 503, 504})  # too large, too many samples, query timed out
DENIED = frozenset({401, 403})
SHOWN = 160


class _Answer(msgspec.Struct, frozen=True):
    """The envelope of the HTTP API; ``infos`` are hints and no sign of anything missing."""

    status: str
    data: Any = None
    error: str = ""
    warnings: tuple[str, ...] = ()


class _TooMuchError(Exception):
    """The server could not answer so long a piece."""


@dataclass(slots=True, kw_only=True)
class Prometheus:
    """One server. ``token``: sent as bearer token. ``gaps``: values that were NaN or infinite, left out so far."""

    url: str
    token: str | None = None
    timeout_s: float = 60.0
    transport: httpx2.BaseTransport | None = None
    gaps: int = 0
    queries: int = 0
    _client: httpx2.Client | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Open the connection pool."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        self._client = httpx2.Client(timeout=self.timeout_s, headers=headers, transport=self.transport)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        if self._client is not None:
            self._client.close()

    def range(self, query: str, labels: Sequence[str], *, start_s: int, end_s: int, step_s: int) -> pl.DataFrame:
        """``query`` at start, start + step, … ≤ end (both closed) → ``labels`` (text, "" where absent), at_s, value.

        Raises DependencyFailed (prometheus-unreachable, -denied, -failed, -partial), BadTrace (prometheus-refused) for
        a query the server calls wrong.
        """
        parts = []
        at, span = start_s, (MOST_POINTS - 1) * step_s
        while at <= end_s:
            until = min(end_s, at + span // step_s * step_s)
            try:
                parts.append(self._piece(query, labels, at, until, step_s))
            except _TooMuchError as error:
                span = (until - at) // 2
                if span < max(SMALLEST_SPAN_S, step_s):
                    raise _failed(
                        "prometheus-failed", self.url, str(error), "narrow --namespace, or raise its limits"
                    ) from None
                continue
            at = until + step_s
        return pl.concat(parts) if parts else _table(labels, [])

    def _piece(self, query: str, labels: Sequence[str], start_s: int, end_s: int, step_s: int) -> pl.DataFrame:
        form = {"query": query, "start": str(start_s), "end": str(end_s), "step": str(step_s)}
        rows: list[tuple[Any, ...]] = []
        for series in self._result(self._post(form)):
            named = [str(series["metric"].get(label, "")) for label in labels]
            for at, text in series["values"]:
                value = float(text)
                if math.isfinite(value):
                    rows.append((*named, round(float(at)), value))
                else:
                    self.gaps += 1
        return _table(labels, rows)

    def _post(self, form: dict[str, str]) -> httpx2.Response:
        if self._client is None:
            raise RuntimeError("open the server with `with` first")
        self.queries += 1
        try:
            return self._client.post(f"{self.url.rstrip('/')}/api/v1/query_range", data=form)
        except httpx2.TimeoutException:
            raise _TooMuchError(f"no answer within {self.timeout_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            said = str(error) or type(error).__name__
            raise _failed(
                "prometheus-unreachable", self.url, said, "check the address, and that it can be reached"
            ) from None

    def _result(self, answer: httpx2.Response) -> list[dict[str, Any]]:
        """The series of a good answer; anything else raises."""
        status = answer.status_code
        if status in DENIED:
            raise _failed("prometheus-denied", self.url, f"it answered {status}", "give a token with --token-file")
        try:
            told = msgspec.json.decode(answer.content, type=_Answer)
        except msgspec.DecodeError:
            told = _Answer(status="error", error=answer.text[:SHOWN].strip() or "an empty body")
        if status in TOO_MUCH:
            raise _TooMuchError(f"it answered {status}: {told.error}")
        if status == httpx2.codes.BAD_REQUEST:
            raise BadTrace(
                "prometheus-refused", f"asking {self.url}", f"it refused the query: {told.error}",
                "check --namespace (a regular expression) and --step",
            )  # fmt: skip
        if status != httpx2.codes.OK or told.status != "success":
            said = f"it answered {status}: {told.error}"
            raise _failed(
                "prometheus-failed", self.url, said, "look at the server's log, then run the same command again"
            )
        if told.warnings:
            said = f"its answer may be incomplete: {told.warnings[0]}"
            raise _failed(
                "prometheus-partial",
                self.url,
                said,
                "bring all its stores up: lacking series look like pods that ended",
            )
        return list(told.data["result"])


def _failed(slug: str, url: str, wrong: str, cure: str) -> DependencyFailed:
    return DependencyFailed(slug, f"asking {url}", wrong, cure)


def _table(labels: Sequence[str], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    schema = dict.fromkeys(labels, pl.String) | {"at_s": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
