"""One request to a Prometheus API → its answer, or RequestFailed with the kind of failure.

Asked again only where that may help (no connection, 5xx, 429, a body cut off), after growing waits with jitter, never
beyond the tick's budget. Nothing here reads the wall clock: time left is the event loop's own.
"""

import asyncio
import random
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import msgspec

from leadtime.sources.prometheus_findings import RETRIED, FailureKind, RequestFailed
from leadtime.sources.prometheus_options import Flavour, OnPartial, PrometheusOptions, without_password
from leadtime.sources.promql_check import guarded

SHOWN = 200
VICTORIAMETRICS_SAYS = "x-server-hostname"  # in every answer: its lib/httpserver
# What servers say where a smaller piece could be answered: Prometheus (11,000 points, samples in memory, time), Thanos
# and Mimir (chunks, series, length of the query), VictoriaMetrics (samples, points).
TOO_MUCH = re.compile(
    r"too many|too much|too long|exceed|maximum|limit|timed? ?out|deadline|not enough memory", re.IGNORECASE
)
NEVER_TOO_MUCH = "parse error"  # it repeats the query, in which any of these words may stand
JUDGED_BY_TEXT = frozenset({400, 422, 500, 503, 504})
BAD_REQUESTS = frozenset({400, 405, 422})
HINT = "PromQL info:"  # Prometheus 2.48 to 2.52 told hints among the warnings


class TickBudget:
    """The time one tick may spend on reading, over all its requests; it runs from the first request on.

    ``as_of``: the tick's instant, of a tick that is about now; None for reads of the past: no clocks are compared.
    """

    def __init__(self, total_s: float, *, as_of: datetime | None = None) -> None:
        self.total_s = total_s
        self.as_of = as_of
        self._began: float | None = None

    def spent_s(self) -> float:
        """Seconds since the first request."""
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
        return now - self._began

    def left_s(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.total_s - self.spent_s())

    def our_now(self) -> datetime | None:
        """What our clock should show: the tick's instant plus the time spent."""
        return None if self.as_of is None else self.as_of + timedelta(seconds=self.spent_s())


class RangeRow(msgspec.Struct, frozen=True):
    """One series of a matrix or a vector, as it came."""

    metric: dict[str, str]
    values: list[tuple[float, Any]] = []
    value: tuple[float, Any] | None = None
    histograms: list[Any] = []
    histogram: Any = None


class _Result(msgspec.Struct, frozen=True):
    resultType: str = ""  # noqa: N815 - the API's own spelling
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    errorType: str = ""  # noqa: N815
    warnings: list[str] | None = None
    infos: list[str] | None = None
    isPartial: bool = False  # noqa: N815 - VictoriaMetrics' cluster says so here


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A good answer. ``warnings``: series or samples may be lacking. ``ahead_s``: how far the server's clock is ahead
    of ours (None: not compared). ``retries``: what failed before, in words."""

    data: msgspec.Raw
    warnings: tuple[str, ...]
    infos: tuple[str, ...]
    ahead_s: float | None
    retries: tuple[str, ...]

    def rows(self) -> list[RangeRow]:
        """The series of a matrix or vector. Raises RequestFailed (not-prometheus) for another shape."""
        try:
            told = msgspec.json.decode(self.data, type=_Result)
            if told.resultType == "scalar":
                return [RangeRow(metric={}, value=msgspec.json.decode(told.result, type=tuple[float, Any]))]
            return msgspec.json.decode(told.result, type=list[RangeRow])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise RequestFailed(FailureKind.NOT_PROMETHEUS, f"its answer has not the API's form: {error}") from None

    def names(self) -> list[Any]:
        """The list of a metadata answer (series, labels, label values)."""
        try:
            return msgspec.json.decode(self.data, type=list[Any])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise RequestFailed(FailureKind.NOT_PROMETHEUS, f"its answer has not the API's form: {error}") from None


class PrometheusWire:
    """Connections to one server. Open it with ``async with``; it belongs to the event loop that opened it."""

    def __init__(
        self, options: PrometheusOptions, *, transport: httpx2.AsyncBaseTransport | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """``jitter``: in [0, 1), spreads the waits of many clients. ``transport``: for tests."""
        self.options = options
        self.requests = 0
        self._transport = transport
        self._jitter = jitter
        self._client: httpx2.AsyncClient | None = None
        self._free = asyncio.Semaphore(options.concurrency)
        self._token = options.token
        self.flavour = options.flavour or Flavour.PROMETHEUS

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        options = self.options
        verify: ssl.SSLContext | bool = True
        if options.ca_file is not None:
            verify = _authority(options.ca_file)
        auth = None if options.username is None else httpx2.BasicAuth(options.username, options.password or "")
        self._client = httpx2.AsyncClient(
            timeout=options.timeout_s, transport=self._transport, verify=verify, auth=auth,
            limits=httpx2.Limits(max_connections=options.concurrency),
            headers={} if options.tenant is None else {"X-Scope-OrgID": options.tenant},
        )  # fmt: skip
        if options.token_file is not None:
            self._token = _token_in(options)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close it."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(self, path: str, form: Mapping[str, str | list[str]], budget: TickBudget) -> Reply:
        """POST ``form`` to /api/v1/``path``. Raises RequestFailed."""
        failed: list[str] = []
        for attempt in range(self.options.attempts):
            try:
                return await self._once(path, form, budget, tuple(failed))
            except RequestFailed as failure:
                if failure.kind not in RETRIED or attempt + 1 == self.options.attempts:
                    raise
                failed.append(failure.wrong)
                wait_s = self._wait_s(attempt, failure.retry_after_s)
                if wait_s >= budget.left_s():
                    raise RequestFailed(failure.kind, f"{failure.wrong} (no time left to ask again)") from None
                await asyncio.sleep(wait_s)
        raise AssertionError("attempts is at least 1")

    def _wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """0.5 to 1 of backoff_first_s · 2^attempt, at most backoff_most_s; or what the server asked for, if longer."""
        grown = min(self.options.backoff_most_s, self.options.backoff_first_s * 2.0**attempt)
        return max(grown * (0.5 + 0.5 * self._jitter()), retry_after_s or 0.0)

    async def _once(
        self, path: str, form: Mapping[str, str | list[str]], budget: TickBudget, retries: tuple[str, ...]
    ) -> Reply:
        async with self._free:
            status, headers, body = await self._exchange(path, form, budget)
            if status == httpx2.codes.UNAUTHORIZED and self._token_renewed():
                status, headers, body = await self._exchange(path, form, budget)
            if self._other_flavour(headers):
                status, headers, body = await self._exchange(path, form, budget)
        answer = _good(status, headers, body)
        warnings = [text for text in answer.warnings or [] if not text.startswith(HINT)]
        infos = [*(answer.infos or []), *(text for text in answer.warnings or [] if text.startswith(HINT))]
        if answer.isPartial:
            warnings.append("some of its storage nodes did not answer (isPartial)")
        if warnings and self.options.on_partial is OnPartial.REFUSE:
            raise RequestFailed(FailureKind.PARTIAL, f"its answer may be incomplete: {warnings[0][:SHOWN]}")
        return Reply(
            data=answer.data, warnings=tuple(warnings), infos=tuple(infos), retries=retries,
            ahead_s=_ahead_s(headers.get("date"), budget.our_now()),
        )  # fmt: skip

    def _other_flavour(self, headers: httpx2.Headers) -> bool:
        """True where the server turns out to be a VictoriaMetrics: it must be asked as one, see ``_own``."""
        if self.options.flavour is not None or self.flavour is Flavour.VICTORIAMETRICS:
            return False
        if VICTORIAMETRICS_SAYS not in headers:
            return False
        self.flavour = Flavour.VICTORIAMETRICS
        return True

    def _token_renewed(self) -> bool:
        """True where the token file holds another token than the one that was refused."""
        if self.options.token_file is None:
            return False
        before, self._token = self._token, _token_in(self.options)
        return self._token != before

    async def _exchange(
        self, path: str, form: Mapping[str, str | list[str]], budget: TickBudget
    ) -> tuple[int, httpx2.Headers, bytes]:
        """One request and its whole body. Raises RequestFailed where there is none."""
        if self._client is None:
            raise RuntimeError("open the server with `async with` first")
        left_s = budget.left_s()
        if left_s <= 0:
            raise RequestFailed(FailureKind.OUT_OF_TIME, f"the tick's {budget.total_s:g} s for reading are spent")
        allowed_s = min(self.options.timeout_s, left_s)
        self.requests += 1
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        url = f"{self.options.base}/api/v1/{path}"
        try:
            async with (
                asyncio.timeout(allowed_s),
                self._client.stream("POST", url, data=self._own(form), headers=headers) as answer,
            ):
                return answer.status_code, answer.headers, await self._body(answer)
        except (TimeoutError, httpx2.TimeoutException):
            if allowed_s < self.options.timeout_s:
                wrong = f"no answer in the {allowed_s:.1f} s that were left of the tick's {budget.total_s:g} s"
                raise RequestFailed(FailureKind.OUT_OF_TIME, wrong) from None
            raise RequestFailed(FailureKind.TIMEOUT, f"no answer within {self.options.timeout_s:g} s") from None
        except httpx2.ConnectError as error:
            raise RequestFailed(FailureKind.UNREACHABLE, str(error) or "no connection") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            wrong = f"the connection ended in the middle ({str(error) or type(error).__name__})"
            raise RequestFailed(FailureKind.CUT, wrong) from None
        except httpx2.InvalidURL as error:
            raise RequestFailed(
                FailureKind.NOT_PROMETHEUS, f"{without_password(url)} is no address ({error})"
            ) from None

    async def _body(self, answer: httpx2.Response) -> bytes:
        """The decompressed body, read no further than the limit."""
        parts, size = [], 0
        async for part in answer.aiter_bytes():
            size += len(part)
            if size > self.options.most_bytes:
                wrong = f"its answer is larger than {self.options.most_bytes / 2**20:g} MiB"
                raise RequestFailed(FailureKind.TOO_MUCH, wrong)
            parts.append(part)
        return b"".join(parts)

    def _own(self, form: Mapping[str, str | list[str]]) -> dict[str, str | list[str]]:
        """``form`` with what only one kind of server knows, or needs."""
        match self.flavour:
            case Flavour.THANOS:
                partial = self.options.on_partial is OnPartial.KEEP
                return {**form, "dedup": "true", "partial_response": "true" if partial else "false"}
            case Flavour.VICTORIAMETRICS:
                # Without them it moves start and end to its own grid and repeats the value before in the newest 30 s.
                own = {**form, "nocache": "1", "latency_offset": "1ms"}
                return own | {"query": guarded(str(form["query"]))} if "query" in form else own
            case _:
                return dict(form)


def _authority(file: Path) -> ssl.SSLContext:
    """Trust this certificate authority and no other."""
    try:
        return ssl.create_default_context(cafile=str(file))
    except OSError as error:  # ssl.SSLError is one
        wrong = f"the CA file {file} cannot be read ({error.strerror or error})"
        raise RequestFailed(FailureKind.UNREACHABLE, wrong) from None


def _token_in(options: PrometheusOptions) -> str:
    try:
        return options.token_file.read_text(encoding="utf-8").strip() if options.token_file is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"the token file {options.token_file} cannot be read ({getattr(error, 'strerror', None) or error})"
        raise RequestFailed(FailureKind.DENIED, wrong) from None


def _ahead_s(date: str | None, ours: datetime | None) -> float | None:
    """How far the server's clock is ahead of ours; HTTP's Date is cut to seconds, half of one is added."""
    if date is None or ours is None:
        return None
    try:
        theirs: datetime = parsedate_to_datetime(date)
        ahead: timedelta = theirs - ours
        return ahead.total_seconds() + 0.5
    except (TypeError, ValueError):
        return None


def _good(status: int, headers: httpx2.Headers, body: bytes) -> _Answer:
    """The envelope of a good answer. Raises RequestFailed with the right kind for everything else."""
    try:
        told = msgspec.json.decode(body, type=_Answer)
        wrong = f"it answered {status}: {told.errorType + ': ' if told.errorType else ''}{told.error[:SHOWN]}"
    except (msgspec.DecodeError, msgspec.ValidationError):
        told, wrong = None, f"it answered {status}: {_text(body)}"
    if status in {httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN}:
        raise RequestFailed(FailureKind.DENIED, f"it answered {status}")
    if status == httpx2.codes.TOO_MANY_REQUESTS:
        raise RequestFailed(FailureKind.RATE_LIMITED, wrong, retry_after_s=_seconds(headers.get("retry-after")))
    if status == httpx2.codes.CONTENT_TOO_LARGE:
        raise RequestFailed(FailureKind.TOO_MUCH, wrong)
    if told is not None and status in JUDGED_BY_TEXT and _too_much(f"{told.errorType} {told.error}"):
        raise RequestFailed(FailureKind.TOO_MUCH, wrong)
    if status in BAD_REQUESTS:
        raise RequestFailed(FailureKind.REFUSED, wrong)
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise RequestFailed(FailureKind.SERVER_ERROR, wrong, retry_after_s=_seconds(headers.get("retry-after")))
    if status != httpx2.codes.OK:
        raise RequestFailed(FailureKind.NOT_PROMETHEUS, wrong)
    if told is None:
        if body[:1] == b"{":
            raise RequestFailed(FailureKind.CUT, f"its answer is cut off after {len(body):,} bytes")
        raise RequestFailed(FailureKind.NOT_PROMETHEUS, wrong)
    if told.status != "success":
        raise RequestFailed(FailureKind.REFUSED, wrong)
    return told


def _too_much(said: str) -> bool:
    return NEVER_TOO_MUCH not in said and TOO_MUCH.search(said) is not None


def _text(body: bytes) -> str:
    """The beginning of a body that is no answer, on one line."""
    return " ".join(body[: 4 * SHOWN].decode("utf-8", "replace").split())[:SHOWN] or "an empty body"


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; a date there is not believed."""
    return float(text) if text is not None and text.isdigit() else None
