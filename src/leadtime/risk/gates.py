"""Measured numbers → verdicts on a trace or a data set. A gate says what was measured, the limit, and what to do.

Nothing passes in silence: what could not be examined carries its reason. A failed gate stops training; a gate allowed
by name still shows what it measured, in every later report.

How each trap of the reference (borg-trace.md §6.4) is met; "by construction": the pipeline's result does not move.

| trap | what meets it |
|---|---|
| T1 leaked whole-trace columns | by construction: only canonical columns are read; ``leaked-columns`` names the rest |
| T2 a shard in ms or s | ``time-unit``, per file |
| T3 last window cut at the event | ``terminal-timing``; a window that ends at the event is not running: excluded |
| T4 horizon edges | by construction: whole microseconds, (p, p + H] |
| T5 terminal event before the window's end | by construction: ``not_running``; ``rows-after-end`` counts them |
| T6 event of another run | by construction: the next terminal event after p; ``enum-proof`` needs windows inside runs |
| T7 sort order by task when rolling over a machine | by construction: features roll in time order (leak battery) |
| T8 v2 codes in a v3 file | ``enum-proof``, per cell and per shard |
| T9 negatives sampled without weights | ``negative-sampling`` |
| T10 a collection on both sides of a split | by construction: a view split by collection |
| T11 machine 0, -1 or null joined as one | by construction: 0 is null, -1 never joins; ``machine-sentinels`` |
| T12 ids equal across cells | by construction: the cell is part of every key; ``id-overlap`` counts them |
| T13 placebo | by result: average precision equals the base rate |
| T14 drift inside the trace | ``drift`` reports the positive rate of the first and the second half |
| T15 acted-on rows | not visible in events; the run's report tells of it |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

RATIO = "ratio"  # units of a measured number: ratio, factor, us, or a noun that is counted


class Standing(StrEnum):
    """How a gate came out."""

    PASSED = "passed"
    FAILED = "failed"
    ALLOWED = "allowed"  # it failed, and the user allowed it by name
    NOT_EXAMINED = "not_examined"


class Bound(StrEnum):
    """Which side of the limit is good; both sides include the limit itself."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    EXACTLY = "exactly"
    NONE = "none"  # reported only


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One verdict. ``where``: cell, file or column it is about ("" = all). ``figures``: further numbers behind it."""

    name: str
    standing: Standing
    where: str = ""
    measured: float | None = None
    unit: str = RATIO
    limit: float | None = None
    bound: Bound = Bound.NONE
    sentence: str
    cure: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Field names as they are; enums as their words."""
        return {
            "name": self.name, "standing": self.standing.value, "where": self.where, "measured": self.measured,
            "unit": self.unit, "limit": self.limit, "bound": self.bound.value, "sentence": self.sentence,
            "cure": self.cure, "figures": dict(self.figures),
        }  # fmt: skip

    @property
    def measured_words(self) -> str:
        """The measured value with its unit, for people."""
        return written(self.measured, self.unit)

    @property
    def limit_words(self) -> str:
        """``at most 2 %``, or nothing."""
        if self.limit is None or self.bound is Bound.NONE:
            return ""
        return f"{self.bound.value.replace('_', ' ')} {written(self.limit, self.unit)}"


def written(value: float | None, unit: str) -> str:
    """A number with its unit: shares in percent, times in seconds where that is readable.

    >>> written(0.0031, "ratio"), written(300_000_000, "us"), written(12, "rows"), written(None, "ratio")
    ('0.31 %', '300 s', '12 rows', '–')
    """
    if value is None:
        return "–"
    if unit == "ratio":
        return f"{100 * value:.3g} %" if value < 0.995 else f"{100 * value:.4g} %"
    if unit == "us":
        return f"{value / 1e6:,.6g} s" if abs(value) >= 1_000_000 or value == 0 else f"{value:,.6g} µs"
    if unit == "factor":
        return f"{value:.3g} ×"
    return f"{value:,.6g} {unit}".strip()


def at_least(
    name: str, measured: float, limit: float, *, sentence: str, cure: str, where: str = "", unit: str = RATIO,
    figures: Mapping[str, Any] | None = None,
) -> Gate:  # fmt: skip
    """Passed iff ``measured`` ≥ ``limit``."""
    standing = Standing.PASSED if measured >= limit else Standing.FAILED
    return Gate(
        name=name, standing=standing, where=where, measured=measured, unit=unit, limit=limit, bound=Bound.AT_LEAST,
        sentence=sentence, cure="" if standing is Standing.PASSED else cure, figures=figures or {},
    )  # fmt: skip


def at_most(
    name: str, measured: float, limit: float, *, sentence: str, cure: str, where: str = "", unit: str = RATIO,
    figures: Mapping[str, Any] | None = None,
) -> Gate:  # fmt: skip
    """Passed iff ``measured`` ≤ ``limit``."""
    standing = Standing.PASSED if measured <= limit else Standing.FAILED
    return Gate(
        name=name, standing=standing, where=where, measured=measured, unit=unit, limit=limit, bound=Bound.AT_MOST,
        sentence=sentence, cure="" if standing is Standing.PASSED else cure, figures=figures or {},
    )  # fmt: skip


def failed(name: str, *, sentence: str, cure: str, where: str = "", figures: Mapping[str, Any] | None = None) -> Gate:
    """A gate that fails on evidence rather than on one number."""
    return Gate(
        name=name, standing=Standing.FAILED, where=where, sentence=sentence, cure=cure, unit="", figures=figures or {}
    )


def reported(
    name: str, measured: float | None, *, sentence: str, where: str = "", unit: str = RATIO,
    figures: Mapping[str, Any] | None = None,
) -> Gate:  # fmt: skip
    """A number that is told and cannot fail: the pipeline is immune by construction."""
    return Gate(
        name=name, standing=Standing.PASSED, where=where, measured=measured, unit=unit, sentence=sentence,
        figures=figures or {},
    )  # fmt: skip


def not_examined(name: str, reason: str, *, where: str = "") -> Gate:
    """A gate that had nothing to measure, with the reason; never a silent pass."""
    return Gate(name=name, standing=Standing.NOT_EXAMINED, where=where, unit="", sentence=f"not examined: {reason}")


def too_few(name: str, rows: int, needed: int, *, of: str = "rows", where: str = "", also: str = "") -> Gate:
    """A gate that needs more rows than there are to be judged at all: "not examined: 12 rows, 20 needed"."""
    return Gate(
        name=name, standing=Standing.NOT_EXAMINED, where=where, unit="", figures={"rows": rows, "needed": needed},
        sentence=f"not examined: {rows:,} {of}, {needed:,} needed{also}",
    )  # fmt: skip


def too_small(gates: Iterable[Mapping[str, Any]]) -> str | None:
    """One sentence where a cell has too few rows for a gate that must be able to fail, from gates as JSON; else None.

    Files and tables of machines and collections may well be short in a trace that is large enough: they don't count.
    """
    short: dict[str, list[str]] = {}
    for gate in gates:
        cell = str(gate.get("where", ""))
        if _must_speak(str(gate["name"]), cell) and "needed" in gate["figures"]:
            figures = gate["figures"]
            said = f"{gate['name']} {figures['rows']:,} of {figures['needed']:,} rows needed"
            short.setdefault(" ".join(cell.split()[:2]), []).append(said)
    if not short:
        return None
    cells = "; ".join(f"{cell}: {', '.join(dict.fromkeys(said))}" for cell, said in short.items())
    return f"Too small to judge, so nothing that did not fail is proved ({cells}): bring more hours or more shards."


def _must_speak(name: str, where: str) -> bool:
    """Gates on a cell as a whole, and on the columns of its usage and instance events."""
    if not where.startswith("cell "):
        return False
    if name in {"null-rate", "sentinel-rate"}:
        return where.endswith((" instance_usage", " instance_events"))
    return name in {"enum-proof", "coverage", "terminal-timing", "rows-after-end"}


def allowing(gates: Iterable[Gate], names: Iterable[str]) -> tuple[Gate, ...]:
    """Failed gates whose name is in ``names`` become allowed; all else stays as it is."""
    wanted = frozenset(names)
    return tuple(
        replace(gate, standing=Standing.ALLOWED) if gate.standing is Standing.FAILED and gate.name in wanted else gate
        for gate in gates
    )


def failed_in(gates: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Names of failed gates among gates read back from JSON, each once, in order."""
    return tuple(dict.fromkeys(str(gate["name"]) for gate in gates if gate.get("standing") == Standing.FAILED))


GATES: Mapping[str, str] = {
    "readable": "Can every row group of every file be read, and does a row have a key?",
    "enum-proof": "Do the event codes mean what the file declares? Proved from the data: v3 (2019) or v2 (2011).",
    "separate-events": "Do usage and events come as tables of their own? A joined slice cannot carry labels.",
    "time-unit": "Are times microseconds? The modal usage window must be 300 s, event times must lie in the trace.",
    "rows-accounted": "Rows in = rows out + rejected rows, per file.",
    "reject-rate": "Share of rows that no rule could read, per file.",
    "null-rate": "Share of missing values, per column.",
    "sentinel-rate": "Share of zeros that stand for missing values, per column; keys that are all zero.",
    "machine-sentinels": "Machines 0 and -1 are no machines: the machine table must not hold them.",
    "leaked-columns": "Columns outside the canonical tables, ignored when reading.",
    "join-match": "Share of usage rows that find an event, of events that find usage; per cell and file.",
    "coverage": "Share of joined usage rows that know their request; share that find their machine.",
    "duplicate-events": "Share of event rows that stand there twice.",
    "id-overlap": "Collections whose id occurs in more than one cell.",
    "terminal-timing": "Does the window before an end give the end away by its length or sample count?",
    "rows-after-end": "Share of usage rows whose window ends after their run ended.",
    "negative-sampling": "Are windows far from failures as complete as those before failures?",
    "positive-rate": "Share of rows whose next end is a failure within the horizon.",
    "positive-rate-change": "That share against the last build's.",
    "drift": "That share in the first and second half of the trace.",
}  # every name a gate can have; --allow takes these
