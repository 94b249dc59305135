"""What was noticed while reading: named findings beside the values, and why a request failed.

A finding never changes a value after the fact: it says what was done (left as a gap, one of two taken) and how often.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leadtime.domain.errors import DependencyFailed, LeadtimeError, WrongUse
from leadtime.sources.prometheus_options import without_password


class FindingKind(StrEnum):
    """Everything that can be noticed. docs/prometheus.md has a line for each."""

    NOT_FINITE = "not-finite"  # NaN, ±Inf → gap
    NEGATIVE = "negative"  # below zero where nothing can be → gap
    UNREADABLE = "unreadable"  # no number → gap
    OTHER_GRID = "other-grid"  # instants nobody asked for → left out
    FUTURE = "future"  # instants after the last one asked for → left out
    BEFORE = "before"  # instants before the first one asked for → left out
    OUT_OF_ORDER = "out-of-order"  # sorted
    REPEATED = "repeated"  # the same instant twice, equal → one kept
    REPEATED_DIFFERENTLY = "repeated-differently"  # the same instant twice, not equal → gap
    GAPS = "gaps"  # instants without a value between values
    ENDED = "ended"  # no value from some instant on until the end of the window
    REPLICAS_MERGED = "replicas-merged"  # replicas of one measurement: one taken, its gaps filled from the other
    REPLICAS_DISAGREE = "replicas-disagree"  # they differ by more than 5 %
    LABELS_CHANGED = "labels-changed"  # one series ends where another begins: joined
    AMBIGUOUS = "ambiguous"  # several series at the same time for one subject → missing
    PARTIAL = "partial"  # an answer with warnings
    PIECE_FAILED = "piece-failed"  # a part of the window could not be read → gaps
    HALVED = "halved"  # asked for in smaller pieces: the server could not answer more at once
    RETRIED = "retried"  # asked again after a failure
    CLOCK_SKEW = "clock-skew"  # the server's clock is not ours
    HISTOGRAM = "histogram"  # a native histogram is no number → missing
    COUNTER_RESET = "counter-reset"  # a counter began anew; its rate goes on
    REPEATS = "repeats"  # a bare selector: its last value is repeated for minutes after the series ended
    INFO = "info"  # a hint of the server; nothing is lacking


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing noticed: ``what`` in words with numbers and units, ``count`` how often, ``subject`` of which series (""
    for the whole answer), ``at`` the first instant it concerns."""

    kind: FindingKind
    what: str
    count: int = 1
    subject: str = ""
    at: datetime | None = None

    def __str__(self) -> str:
        """One line: kind, subject, what."""
        return f"{self.kind.value}: {f'{self.subject}: ' if self.subject else ''}{self.what}"


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one kind about one subject in the same words become one, their counts added; order of first sight."""
    found: dict[tuple[FindingKind, str, str], Finding] = {}
    for each in findings:
        key = (each.kind, each.subject, each.what)
        before = found.get(key)
        count = each.count + (before.count if before else 0)
        at = before.at if before else each.at
        found[key] = Finding(kind=each.kind, what=each.what, count=count, subject=each.subject, at=at)
    return tuple(found.values())


class FailureKind(StrEnum):
    """Why there is no answer. ``retried`` and ``halved`` are told by the sets below."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TOO_MUCH = "too-much"
    TOO_MANY_SERIES = "too-many-series"
    DENIED = "denied"
    REFUSED = "refused"
    RATE_LIMITED = "rate-limited"
    SERVER_ERROR = "server-error"
    CUT = "cut"
    NOT_PROMETHEUS = "not-prometheus"
    PARTIAL = "partial"
    OUT_OF_TIME = "out-of-time"


# Asked again: what may be over in a second. A timeout is not (it would only take the time twice): the piece is halved.
RETRIED = frozenset({FailureKind.UNREACHABLE, FailureKind.RATE_LIMITED, FailureKind.SERVER_ERROR, FailureKind.CUT})
HALVED = frozenset({FailureKind.TIMEOUT, FailureKind.TOO_MUCH})

_CURES = {
    FailureKind.UNREACHABLE: "check the address, and that it can be reached",
    FailureKind.TIMEOUT: "ask for less at once, or give it more time",
    FailureKind.TOO_MUCH: "ask for fewer series (a namespace, a label), or raise the server's limits",
    FailureKind.TOO_MANY_SERIES: "group the query by fewer labels, or name a namespace",
    FailureKind.DENIED: "give a token or a user that may read (a token file, basic auth, a tenant)",
    FailureKind.REFUSED: "mend the query",
    FailureKind.RATE_LIMITED: "ask less often, or raise its limit",
    FailureKind.SERVER_ERROR: "look at the server's log, then ask again",
    FailureKind.CUT: "look at what stands between here and the server (a proxy, a limit on answers)",
    FailureKind.NOT_PROMETHEUS: "check the address and its path prefix: what answers there is no Prometheus API",
    FailureKind.PARTIAL: "bring all its stores up, or say that partial answers may be used",
    FailureKind.OUT_OF_TIME: "give the tick more time, or ask for less",
}


class RequestFailed(Exception):
    """No usable answer to one request: ``kind`` says what to do next, ``wrong`` says it in words.

    ``retry_after_s``: what the server asked to wait, if it said so.
    """

    def __init__(self, kind: FailureKind, wrong: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(wrong)
        self.kind = kind
        self.wrong = wrong
        self.retry_after_s = retry_after_s

    def error(self, url: str) -> LeadtimeError:
        """The same for a person, with a cure: DependencyFailed (exit code 3), WrongUse (2) for a refused query."""
        doing, cure = f"asking {without_password(url)}", _CURES[self.kind]
        match self.kind:
            case FailureKind.UNREACHABLE:
                return DependencyFailed("prometheus-unreachable", doing, self.wrong, cure)
            case FailureKind.DENIED:
                return DependencyFailed("prometheus-denied", doing, self.wrong, cure)
            case FailureKind.REFUSED:
                return WrongUse("prometheus-refused", doing, self.wrong, cure)
            case FailureKind.PARTIAL:
                return DependencyFailed("prometheus-partial", doing, self.wrong, cure)
            case FailureKind.NOT_PROMETHEUS:
                return DependencyFailed("prometheus-absent", doing, self.wrong, cure)
            case _:
                return DependencyFailed("prometheus-failed", doing, self.wrong, cure)
