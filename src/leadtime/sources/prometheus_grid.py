"""Samples as a server told them → one value an instant of the grid that was asked for, and what was noticed on the way.

Pure. What is no number, stands elsewhere or contradicts itself is a gap (None) with a finding; nothing becomes zero.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadtime.domain.time_window import from_epoch
from leadtime.sources.prometheus_findings import Finding, FindingKind

OFF_S = 0.002  # servers write instants with milliseconds
DIFFERENT_RATIO = 0.05  # replicas scrape at different moments: below 5 % they agree
_WORDS = {
    FindingKind.NOT_FINITE: "values that are NaN or infinite became gaps",
    FindingKind.NEGATIVE: "values below zero became gaps",
    FindingKind.UNREADABLE: "values that are no numbers became gaps",
    FindingKind.OTHER_GRID: "samples between the instants asked for were left out",
    FindingKind.FUTURE: "samples after the last instant asked for were left out",
    FindingKind.BEFORE: "samples before the first instant asked for were left out",
    FindingKind.OUT_OF_ORDER: "samples stood out of order and were sorted",
    FindingKind.REPEATED: "samples came twice, equal, and count once",
    FindingKind.REPEATED_DIFFERENTLY: "instants came twice with different values and became gaps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Instants ``start_s``, start + step, … (``count`` of them), whole seconds since 1970."""

    start_s: int
    step_s: int
    count: int

    @property
    def end_s(self) -> int:
        """The last instant (closed)."""
        return self.start_s + (self.count - 1) * self.step_s

    def instants(self) -> range:
        """All of them, in seconds since 1970."""
        return range(self.start_s, self.start_s + self.count * self.step_s, self.step_s)

    def pieces(self, most: int) -> Iterator["Grid"]:
        """The same instants in pieces of at most ``most``, oldest first; no instant twice."""
        for first in range(0, self.count, most):
            yield Grid(
                start_s=self.start_s + first * self.step_s, step_s=self.step_s, count=min(most, self.count - first)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series on a grid: ``values[i]`` is what the query gave at the grid's instant i."""

    labels: Mapping[str, str]
    values: tuple[float | None, ...]

    @property
    def known(self) -> int:
        """How many values there are."""
        return len(self.values) - self.values.count(None)


def subject(labels: Mapping[str, str]) -> str:
    """``{namespace="shop",pod="web-1"}``: a series in a message, labels in order."""
    inside = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    return f"{labels.get('__name__', '')}{{{inside}}}"


def on_grid(
    samples: Sequence[Any], grid: Grid, *, non_negative: bool
) -> tuple[list[float | None], Counter[FindingKind]]:
    """``[[instant_s, "text"], …]`` → a value an instant (None: none), and how often what was noticed.

    Raises ValueError where a sample is no pair: then this is no Prometheus answer at all.
    """
    values: list[float | None] = [None] * grid.count
    seen: dict[int, float | None] = {}
    noticed: Counter[FindingKind] = Counter()
    newest = -math.inf
    for at, text in samples:
        at_s = float(at)
        if at_s < newest:
            noticed[FindingKind.OUT_OF_ORDER] += 1
        newest = max(newest, at_s)
        place = (at_s - grid.start_s) / grid.step_s
        i = round(place)
        if abs(place - i) * grid.step_s > OFF_S:
            noticed[_elsewhere(at_s, grid) or FindingKind.OTHER_GRID] += 1
            continue
        if not 0 <= i < grid.count:
            noticed[_elsewhere(at_s, grid) or FindingKind.OTHER_GRID] += 1
            continue
        value = _number(text, noticed, non_negative=non_negative)
        if i in seen:
            value = _twice(seen[i], value, noticed)
        seen[i] = values[i] = value
    return values, noticed


def _elsewhere(at_s: float, grid: Grid) -> FindingKind | None:
    if at_s > grid.end_s + OFF_S:
        return FindingKind.FUTURE
    return FindingKind.BEFORE if at_s < grid.start_s - OFF_S else None


def _number(text: Any, noticed: Counter[FindingKind], *, non_negative: bool) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        noticed[FindingKind.UNREADABLE] += 1
        return None
    if not math.isfinite(value):
        noticed[FindingKind.NOT_FINITE] += 1
        return None
    if non_negative and value < 0:
        noticed[FindingKind.NEGATIVE] += 1
        return None
    return value


def _twice(before: float | None, value: float | None, noticed: Counter[FindingKind]) -> float | None:
    """Which of two is right cannot be known when they differ; a third time it stays so."""
    if value == before:
        noticed[FindingKind.REPEATED] += 1
        return value
    noticed[FindingKind.REPEATED_DIFFERENTLY] += 1
    return None


def told(noticed: Mapping[FindingKind, int], of: str) -> Iterator[Finding]:
    """Counts → findings of the series ``of``."""
    for kind, count in noticed.items():
        yield Finding(kind=kind, what=_WORDS[kind], count=count, subject=of)


def gap_findings(line: Line, grid: Grid) -> Iterator[Finding]:
    """Gaps between values, and a series that ended within the window (its staleness is not its last value for ever)."""
    known = [i for i, value in enumerate(line.values) if value is not None]
    if not known:
        return
    inside = known[-1] - known[0] + 1 - len(known)
    if inside:
        what = f"instants without a value between values, of {grid.count:,} every {grid.step_s} s"
        yield Finding(kind=FindingKind.GAPS, what=what, count=inside, subject=subject(line.labels))
    if known[-1] < grid.count - 1:
        since_s = grid.start_s + (known[-1] + 1) * grid.step_s
        what = f"no value for the last {(grid.end_s - since_s + grid.step_s):,} s of the window"
        yield Finding(
            kind=FindingKind.ENDED, what=what, count=grid.count - 1 - known[-1], subject=subject(line.labels),
            at=from_epoch(since_s),
        )  # fmt: skip


def one_of_replicas(
    lines: Sequence[Line], replica_labels: Sequence[str], grid: Grid
) -> tuple[list[Line], list[Finding]]:
    """Series that differ only in ``replica_labels`` measure the same: one is taken, never their sum.

    The one with the most values is taken (of equals the first by its labels) and its gaps are filled from the others in
    that order. Where two have values that differ by more than 5 % the taken one stands and the finding says how many.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Line]] = {}
    for line in lines:
        same = tuple(sorted((name, value) for name, value in line.labels.items() if name not in replica_labels))
        groups.setdefault(same, []).append(line)
    taken, findings = [], []
    for same, group in groups.items():
        if len(group) == 1:
            taken.append(Line(labels=dict(same), values=group[0].values))
            continue
        first, *others = sorted(group, key=lambda line: (-line.known, sorted(line.labels.items())))
        line = Line(labels=dict(same), values=first.values)
        for other in others:
            findings += _disagreement(first, other, grid)
            line = Line(labels=line.labels, values=_filled(line.values, other.values))
        taken.append(line)
        what = f"{len(group)} replicas: {subject(first.labels)} taken"
        count = line.known - first.known
        findings.append(
            Finding(
                kind=FindingKind.REPLICAS_MERGED, what=f"{what}, {count:,} of its gaps filled", count=len(group),
                subject=subject(line.labels),
            )
        )  # fmt: skip
    return taken, findings


def _filled(values: Sequence[float | None], other: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(b if a is None else a for a, b in zip(values, other, strict=True))


def _disagreement(first: Line, other: Line, grid: Grid) -> list[Finding]:
    apart = [
        (abs(a - b) / max(abs(a), abs(b)), i)
        for i, (a, b) in enumerate(zip(first.values, other.values, strict=True))
        if a is not None and b is not None and abs(a - b) > DIFFERENT_RATIO * max(abs(a), abs(b))
    ]
    if not apart:
        return []
    worst, i = max(apart, key=lambda each: each[0])
    both = f"{first.values[i]:.6g} and {other.values[i]:.6g}"
    what = f"{subject(other.labels)} says otherwise, by up to {worst:.0%} ({both}); {subject(first.labels)} is taken"
    at = from_epoch(grid.start_s + min(place for _, place in apart) * grid.step_s)
    return [
        Finding(kind=FindingKind.REPLICAS_DISAGREE, what=what, count=len(apart), subject=subject(first.labels), at=at)
    ]


def joined(lines: Sequence[Line]) -> Line | None:
    """Series that follow one another in time (a pod restarted under another name) as one; None where two have a value
    at the same instant: whether to add or to choose cannot be known here. The newest one's labels stand."""
    values: list[float | None] = [None] * len(lines[0].values)
    newest, labels = -1, lines[0].labels
    for line in lines:
        for i, value in enumerate(line.values):
            if value is None:
                continue
            if values[i] is not None:
                return None
            values[i] = value
            if i > newest:
                newest, labels = i, line.labels
    return Line(labels=labels, values=tuple(values))
