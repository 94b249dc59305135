"""A server that speaks Prometheus' HTTP API → series on a grid: gaps are None, Missing has its reason, findings names.

Range queries go out in pieces of at most 11,000 points, newest first (where time runs out, the newest is there); a
piece that is too much is halved. Evaluated at t a query with a range of r looks at samples in (t - r, t]: so a value
at t belongs to the bucket [t - step, t), and no instant after as_of - lag is ever asked for.
"""

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import httpx2

from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow, from_epoch
from leadtime.sources import prometheus_grid as gridded
from leadtime.sources.prometheus_absence import why_empty
from leadtime.sources.prometheus_findings import HALVED, FailureKind, Finding, FindingKind, RequestFailed, merged
from leadtime.sources.prometheus_grid import Grid, Line
from leadtime.sources.prometheus_options import PrometheusOptions
from leadtime.sources.prometheus_wire import PrometheusWire, RangeRow, Reply, TickBudget
from leadtime.sources.promql_check import CheckedQuery

_Found = dict[tuple[tuple[str, str], ...], list[float | None]]
MOST_SAMPLES = 400_000  # in one piece, by the number of series that is expected
FOR_ALL = frozenset(
    {FailureKind.DENIED, FailureKind.REFUSED, FailureKind.OUT_OF_TIME, FailureKind.UNREACHABLE,
     FailureKind.NOT_PROMETHEUS, FailureKind.TOO_MANY_SERIES}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAnswer:
    """``lines``: series on ``grid`` as the query gave them, replicas made one. ``failed``: pieces that could not be
    read, oldest first, with why; their instants are None in every line."""

    grid: Grid
    lines: tuple[Line, ...]
    failed: tuple[tuple[Grid, RequestFailed], ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One query to read: buckets of ``step_s`` that lie in ``window`` and are visible (end + ``lag_s`` ≤ as_of).

    ``non_negative``: a value below zero cannot be and is a gap. ``series_hint``: how many series are expected.
    """

    query: CheckedQuery
    window: TimeWindow
    unit: Unit
    step_s: int = 60
    lag_s: float = 0.0
    name: str = ""
    non_negative: bool = True
    series_hint: int = 1

    def grid(self, as_of: datetime) -> Grid:
        """The instants to ask for: ends of whole buckets, multiples of the step since 1970. None of them: count 0."""
        first = math.ceil(_seconds(self.window.start) / self.step_s) * self.step_s
        last = math.floor(min(_seconds(self.window.end), _seconds(as_of) - self.lag_s) / self.step_s) * self.step_s
        return Grid(start_s=first + self.step_s, step_s=self.step_s, count=max(0, (last - first) // self.step_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSeries:
    """One series. ``missing``: set where the newest buckets have no value: since when and why."""

    labels: Mapping[str, str]
    values: Series
    missing: Missing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The answer to one Ask: series, or ``missing`` where there is none at all. Both empty: no bucket was due yet."""

    ask: Ask
    series: tuple[ReadSeries, ...]
    missing: Missing | None
    findings: tuple[Finding, ...]

    def one(self) -> Series | Missing:
        """The only series; Missing where there is none, or several at the same time (add them up in the query)."""
        if self.missing is not None:
            return self.missing
        return self.series[0].values if self.series else _no_bucket(self.ask)


class Prometheus:
    """One server; open it with ``async with``. Safe for any number of tasks of the same event loop."""

    def __init__(self, options: PrometheusOptions, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """``transport``: for tests."""
        self.options = options
        self.wire = PrometheusWire(options, transport=transport)

    async def __aenter__(self) -> Self:
        """Open the connection pool. Raises DependencyFailed where the token file or the CA file cannot be read."""
        try:
            await self.wire.__aenter__()
        except RequestFailed as failure:
            raise failure.error(self.options.url) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close it."""
        await self.wire.__aexit__(kind, error, at)

    async def range(
        self, query: CheckedQuery, grid: Grid, budget: TickBudget, *, non_negative: bool = False, series_hint: int = 1
    ) -> RangeAnswer:
        """``query`` at every instant of ``grid``. Never raises for what a server does: see ``failed``, ``findings``."""
        piece_points = max(1, min(self.options.most_points, MOST_SAMPLES // max(1, series_hint)))
        waiting = deque(reversed(list(grid.pieces(piece_points))))
        found: _Found = {}
        failed: list[tuple[Grid, RequestFailed]] = []
        findings: list[Finding] = []
        while waiting:
            piece = waiting.popleft()
            try:
                reply = await self._piece(query, piece, budget)
                findings += self._reply_findings(reply)
                findings += self._take(reply.rows(), piece, grid, found, non_negative=non_negative)
            except RequestFailed as failure:
                halves = self._halves(piece, failure)
                if halves:
                    findings.append(
                        Finding(kind=FindingKind.HALVED, what=f"asked for in smaller pieces: {failure.wrong}")
                    )
                    smaller = [part for rest in waiting for part in reversed(list(rest.pieces(halves[0].count)))]
                    waiting = deque([*reversed(halves), *smaller])
                    continue
                failed.append((piece, failure))
                if failure.kind in FOR_ALL:
                    failed += [(rest, failure) for rest in waiting]
                    break
        lines = [Line(labels=dict(labels), values=tuple(values)) for labels, values in found.items()]
        taken, replicas = gridded.one_of_replicas(lines, self.options.replica_labels, grid)
        findings += [_piece_failed(piece, failure) for piece, failure in failed]
        return RangeAnswer(
            grid=grid, lines=tuple(taken), findings=merged([*findings, *replicas]),
            failed=tuple(sorted(failed, key=lambda each: each[0].start_s)),
        )  # fmt: skip

    async def read(self, ask: Ask, as_of: datetime, budget: TickBudget) -> Read:
        """One query → its series. Never raises for what a server does: then ``missing`` says why, and since when."""
        grid = ask.grid(as_of)
        if grid.count == 0:
            return Read(ask=ask, series=(), missing=None, findings=())
        answer = await self.range(
            ask.query, grid, budget, non_negative=ask.non_negative, series_hint=ask.series_hint
        )  # fmt: skip
        lines = [line for line in answer.lines if line.known]
        if not lines:
            missing = await self._why_none(ask, answer, budget)
            return Read(ask=ask, series=(), missing=missing, findings=answer.findings)
        findings = [
            *answer.findings,
            *_repeating(ask.query),
            *(each for line in lines for each in gridded.gap_findings(line, grid)),
        ]
        series = tuple(self._series(ask, line, answer) for line in lines)
        return Read(ask=ask, series=series, missing=None, findings=merged(findings))

    async def read_many(self, asks: Sequence[Ask], as_of: datetime, budget: TickBudget) -> tuple[Read, ...]:
        """Each of ``asks``, at most ``options.concurrency`` requests at a time; in the order asked."""
        return tuple(await asyncio.gather(*(self.read(ask, as_of, budget) for ask in asks)))

    async def instant(
        self, query: CheckedQuery, at: datetime, budget: TickBudget
    ) -> dict[str, tuple[Mapping[str, str], float]]:
        """``query`` at one instant: subject → labels and value, without what is not finite. Raises RequestFailed."""
        reply = await self.wire.ask("query", {"query": query.text, "time": f"{_seconds(at):.3f}"}, budget)
        found: dict[str, tuple[Mapping[str, str], float]] = {}
        for row in reply.rows():
            value = float(row.value[1]) if row.value is not None else math.nan
            if math.isfinite(value):
                found[gridded.subject(row.metric)] = (row.metric, value)
        return found

    async def exists(self, selectors: Sequence[str], start: datetime, end: datetime, budget: TickBudget) -> bool:
        """True where any of the series selectors has a series with samples about [start, end]. Raises RequestFailed."""
        form: dict[str, str | list[str]] = {
            "match[]": list(selectors), "start": f"{_seconds(start):.0f}", "end": f"{_seconds(end):.0f}", "limit": "1"
        }  # fmt: skip
        return bool((await self.wire.ask("series", form, budget)).names())

    async def _piece(self, query: CheckedQuery, piece: Grid, budget: TickBudget) -> Reply:
        form = {
            "query": query.text,
            "start": str(piece.start_s),
            "end": str(piece.end_s),
            "step": str(piece.step_s),
        }
        return await self.wire.ask("query_range", form, budget)

    def _take(
        self, rows: list[RangeRow], piece: Grid, grid: Grid, found: _Found, *, non_negative: bool
    ) -> list[Finding]:  # fmt: skip
        """Put one piece's samples where they belong. Raises RequestFailed for what has not the API's form."""
        if len(rows) > self.options.most_series:
            wrong = f"its answer has {len(rows):,} series, more than {self.options.most_series:,}"
            raise RequestFailed(FailureKind.TOO_MANY_SERIES, wrong)
        findings: list[Finding] = []
        told: set[tuple[tuple[str, str], ...]] = set()
        first = (piece.start_s - grid.start_s) // grid.step_s
        for row in rows:
            name = gridded.subject(row.metric)
            if row.histograms and not row.values:
                what = "native histograms are no numbers; ask for histogram_quantile() or histogram_count() of them"
                findings.append(Finding(kind=FindingKind.HISTOGRAM, what=what, subject=name))
                continue
            values, noticed = gridded.on_grid(row.values, piece, non_negative=non_negative)
            findings += gridded.told(noticed, name)
            key = tuple(sorted(row.metric.items()))
            if key in told:
                what = "one series stands twice in one answer; the first is taken"
                findings.append(Finding(kind=FindingKind.REPEATED_DIFFERENTLY, what=what, subject=name))
                continue
            told.add(key)
            found.setdefault(key, [None] * grid.count)[first : first + piece.count] = values
        return findings

    def _halves(self, piece: Grid, failure: RequestFailed) -> list[Grid]:
        """Two pieces instead of one, oldest first; none where it would not help or is small enough."""
        small = piece.count < 2 or piece.count * piece.step_s // 2 < self.options.smallest_piece_s
        if failure.kind not in HALVED or small:
            return []
        return list(piece.pieces(-(-piece.count // 2)))

    def _reply_findings(self, reply: Reply) -> list[Finding]:
        findings = [Finding(kind=FindingKind.PARTIAL, what=f"may be incomplete: {text}") for text in reply.warnings]
        findings += [Finding(kind=FindingKind.INFO, what=text) for text in reply.infos]
        findings += [Finding(kind=FindingKind.RETRIED, what=f"asked again after: {text}") for text in reply.retries]
        if reply.ahead_s is not None and abs(reply.ahead_s) > self.options.skew_tolerance_s:
            side = "ahead of" if reply.ahead_s > 0 else "behind"
            what = f"the server's clock is {abs(reply.ahead_s):.0f} s {side} ours; the tick's instant is what counts"
            findings.append(Finding(kind=FindingKind.CLOCK_SKEW, what=what))
        return findings

    def _series(self, ask: Ask, line: Line, answer: RangeAnswer) -> ReadSeries:
        grid = answer.grid
        start = from_epoch(grid.start_s - grid.step_s)
        name = ask.name or gridded.subject(line.labels)
        series = Series(
            name=name, start=start, step_s=grid.step_s, values=line.values, unit=ask.unit, lag_s=ask.lag_s
        )  # fmt: skip
        if line.values[-1] is not None:
            return ReadSeries(labels=line.labels, values=series)
        newest = max(i for i, value in enumerate(line.values) if value is not None)
        since = start + timedelta(seconds=(newest + 1) * grid.step_s)
        why = next(
            (failure.wrong for piece, failure in answer.failed if piece.end_s == grid.end_s), "no samples any more"
        )
        missing = Missing(source=self._source(name), reason=why, since=since)
        return ReadSeries(labels=line.labels, values=series, missing=missing)

    def _source(self, name: str) -> str:
        return f"{name} ({self.options.shown})"

    async def _why_none(self, ask: Ask, answer: RangeAnswer, budget: TickBudget) -> Missing:
        """No value at all: the server failed, the series has no samples in the window, or there is no such series."""
        source = self._source(ask.name or ask.query.text)
        start = from_epoch(answer.grid.start_s - answer.grid.step_s)
        if answer.failed:
            failure = answer.failed[-1][1]
            return Missing(source=source, reason=f"{failure.kind.value}: {failure.wrong}", since=start)
        if answer.lines or any(each.kind is FindingKind.HISTOGRAM for each in answer.findings):
            first = answer.findings[0].what if answer.findings else "its values are all gaps"
            return Missing(source=source, reason=f"no usable value: {first}", since=start)
        window = TimeWindow(start=start, end=from_epoch(answer.grid.end_s))
        return await why_empty(self, ask.query, source, window, budget)


def _repeating(query: CheckedQuery) -> list[Finding]:
    """Said of a query that looks at no range: the server repeats the last sample after a series ended."""
    what = "a selector without a range: after a series ended its last value may repeat for up to 5 min"
    return [Finding(kind=FindingKind.REPEATS, what=what)] if query.repeats else []


def _piece_failed(piece: Grid, failure: RequestFailed) -> Finding:
    what = f"{piece.count:,} instants could not be read: {failure.kind.value}: {failure.wrong}"
    return Finding(kind=FindingKind.PIECE_FAILED, what=what, at=from_epoch(piece.start_s - piece.step_s))


def _no_bucket(ask: Ask) -> Series:
    """Nothing is due yet, which is not missing."""
    first = math.ceil(_seconds(ask.window.start) / ask.step_s) * ask.step_s
    return Series(
        name=ask.name, start=from_epoch(first), step_s=ask.step_s, values=(), unit=ask.unit, lag_s=ask.lag_s
    )  # fmt: skip


def _seconds(at: datetime) -> float:
    return at.timestamp()
