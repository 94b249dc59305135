"""Events and usage windows → what the event codes mean, proved: v3 (2019), v2 (2011), or neither.

Six of the seven codes that matter are shifted between the two numberings, and a reader that takes one for the other
trains on ENABLE or FINISH instead of FAIL. Nothing in a file says which it is, but the world does: a task has a machine
from SCHEDULE on and not before, usage is measured after SCHEDULE, and after an end only a new beginning follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from leadtime.domain.borg import TERMINAL, TRACE_START_US, V2_TO_V3, EventType
from leadtime.risk.gates import Gate, failed, not_examined, reported, too_few, written
from leadtime.risk.gates_tally import INSTANCE

READINGS: Mapping[str, Mapping[int, EventType]] = {"v3": {kind.value: kind for kind in EventType}, "v2": V2_TO_V3}
MIN_EVIDENCE = 20  # rows behind one piece of evidence
UNKNOWN_LIMIT = 0.0  # one code that a numbering does not have refutes it (readers reject what is no code at all)
PLACED_FLOOR = 0.80  # SCHEDULE rows with a machine; the trace has them all, 2 % of machine ids may be lost
EARLY_LIMIT = 0.20  # rows before placement with a machine; the trace has none
USAGE_FLOOR = 0.70  # windows whose last event is SCHEDULE; late and cut windows miss it
AFTER_END_FLOOR = 0.90  # events after an end that begin something new; late event shards break a few
PLACED = "SCHEDULE rows with a machine"
ENDED = "ends that follow a SCHEDULE"
_BEFORE = frozenset({EventType.SUBMIT, EventType.QUEUE, EventType.ENABLE})
_OWN_ENDS = frozenset({EventType.EVICT, EventType.FAIL, EventType.FINISH})  # KILL and LOST also come while pending
_AFTER_END = _BEFORE | {EventType.SCHEDULE, EventType.UPDATE_PENDING}
_UPDATES = frozenset({EventType.UPDATE_PENDING, EventType.UPDATE_RUNNING})
_TIE = {kind: 0 if kind in TERMINAL else 1 + kind.value for kind in EventType}  # at equal times an end comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured share under one reading: ``holds`` says whether the reading survives it."""

    name: str
    measured: float
    limit: float
    rows: int
    holds: bool

    def words(self) -> str:
        """As it stands in a sentence."""
        return f"{self.name} {written(self.measured, 'ratio')} (limit {written(self.limit, 'ratio')})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All evidence about one numbering."""

    version: str
    evidence: tuple[Evidence, ...]

    @property
    def stands(self) -> bool:
        """Nothing refutes it, and the machines of its SCHEDULE rows, or what stands before ends, support it."""
        return all(one.holds for one in self.evidence) and any(one.name in {PLACED, ENDED} for one in self.evidence)

    def refuted_by(self) -> str:
        """The evidence against it."""
        against = [one.words() for one in self.evidence if not one.holds]
        return ", ".join(against) or "too little evidence"


def reading(events: pl.DataFrame, windows: pl.DataFrame | None, version: str) -> Reading:
    """Measure one numbering on whole histories.

    ``events``: time_us, type, collection_id, instance_index, machine_id of instance events. ``windows``: start_time_us
    and the instance; None leaves out what needs usage (and what needs whole histories), as for a single file.
    """
    codes = READINGS[version]
    known = events.with_columns(pl.col("type").replace_strict(codes, default=None, return_dtype=pl.Int8).alias("kind"))
    found = [_unknown(known), *_placement(known)]
    if windows is not None:
        known = known.unique(["time_us", "type", *INSTANCE])
        tie = pl.col("kind").replace_strict(_TIE, default=99, return_dtype=pl.Int8)
        known = known.drop_nulls("kind").with_columns(tie.alias("tie")).sort(*INSTANCE, "time_us", "tie")
        found += [_after_end(known), _usage(known, windows)]
    return Reading(version=version, evidence=tuple(one for one in found if one is not None))


def _evidence(name: str, hits: pl.Series, limit: float, *, at_least: bool) -> Evidence | None:
    """A share of rows; None where there are too few of them."""
    if hits.len() < MIN_EVIDENCE:
        return None
    measured = float(hits.sum()) / hits.len()
    holds = measured >= limit if at_least else measured <= limit
    return Evidence(name=name, measured=measured, limit=limit, rows=hits.len(), holds=holds)


def _unknown(known: pl.DataFrame) -> Evidence | None:
    return _evidence("codes outside the numbering", known["kind"].is_null(), UNKNOWN_LIMIT, at_least=False)


def _placement(known: pl.DataFrame) -> list[Evidence | None]:
    """A machine at SCHEDULE, none before. Time-0 rows are states, but the same holds for them."""
    placed = pl.col("machine_id").is_not_null() & (pl.col("machine_id") != 0)
    at = known.filter(pl.col("kind") == EventType.SCHEDULE).select(placed).to_series()
    before = known.filter(pl.col("kind").is_in(list(_BEFORE))).select(placed).to_series()
    return [
        _evidence(PLACED, at, PLACED_FLOOR, at_least=True),
        _evidence("rows before placement with a machine", before, EARLY_LIMIT, at_least=False),
    ]


def _after_end(known: pl.DataFrame) -> Evidence | None:
    """Of the events that follow an end in the same instance: the share that begins something new."""
    last = pl.col("kind").shift(1).over(INSTANCE)
    later = known.select("kind", last.alias("last")).filter(pl.col("last").is_in(list(TERMINAL)))
    begins = later.select(pl.col("kind").is_in(list(_AFTER_END))).to_series()
    return _evidence("events after an end that begin anew", begins, AFTER_END_FLOOR, at_least=True)


def _usage(known: pl.DataFrame, windows: pl.DataFrame) -> Evidence | None:
    """Of the windows that find an event at or before their start: the share whose last one is SCHEDULE."""
    events = known.filter(~pl.col("kind").is_in(list(_UPDATES))).select("time_us", *INSTANCE, "kind").sort(
        "time_us", maintain_order=True
    )  # fmt: skip
    inside = windows.filter(pl.col("start_time_us") > TRACE_START_US).select("start_time_us", *INSTANCE)
    joined = inside.sort("start_time_us").join_asof(
        events, left_on="start_time_us", right_on="time_us", by=list(INSTANCE), check_sortedness=False
    )
    found = joined.drop_nulls("kind").select(pl.col("kind") == EventType.SCHEDULE).to_series()
    return _evidence("windows whose last event is SCHEDULE", found, USAGE_FLOOR, at_least=True)


def collection_reading(collections: pl.DataFrame, version: str) -> Reading:
    """The same on collection events (time_us, type, collection_id), which name no machine: ends follow a SCHEDULE."""
    codes = READINGS[version]
    known = collections.select("time_us", "type", "collection_id").unique().with_columns(
        pl.col("type").replace_strict(codes, default=None, return_dtype=pl.Int8).alias("kind")
    )  # fmt: skip
    unknown = _unknown(known)
    tie = pl.col("kind").replace_strict(_TIE, default=99, return_dtype=pl.Int8)
    known = known.drop_nulls("kind").with_columns(tie.alias("tie")).sort("collection_id", "time_us", "tie")
    last = pl.col("kind").shift(1).over("collection_id")
    ends = known.select("kind", last.alias("last")).drop_nulls().filter(pl.col("kind").is_in(list(_OWN_ENDS)))
    after = ends.select(pl.col("last").is_in([EventType.SCHEDULE, *_UPDATES])).to_series()
    placed = _evidence(ENDED, after, USAGE_FLOOR, at_least=True)
    return Reading(version=version, evidence=tuple(one for one in (unknown, placed) if one is not None))


def collection_proof(collections: pl.DataFrame, *, where: str, declared: str | None) -> Gate:
    """Which numbering collection events speak; not examined where too few collections end on their own."""
    readings = {version: collection_reading(collections, version) for version in READINGS}
    standing = [version for version, found in readings.items() if found.stands]
    figures: dict[str, Any] = {
        version: {one.name: round(one.measured, 6) for one in found.evidence} for version, found in readings.items()
    }
    figures["stands"] = standing
    if standing == ["v3"]:
        support = ", ".join(one.words() for one in readings["v3"].evidence)
        return reported(
            "enum-proof", None, unit="", where=where, sentence=f"codes are v3's: {support}", figures=figures
        )
    if all(one.holds for one in readings["v3"].evidence):
        reason = f"{collections.height:,} collection events: too few of them are ends to tell v3 from v2"
        return not_examined("enum-proof", reason, where=where)
    refused = _refused(readings, standing, declared, "v3", collections)
    return failed("enum-proof", where=where, figures=figures, **refused)


def enum_proof(
    events: pl.DataFrame, windows: pl.DataFrame | None, *, where: str, declared: str | None, codes_as: str = "v3"
) -> Gate:
    """Which numbering ``events`` speak; fails when none or both stand, or when it is not ``codes_as``.

    ``declared``: what trace.json says; ``codes_as``: the numbering the reader has brought the codes to (v3).
    Too few SCHEDULE rows and nothing against ``codes_as`` is not examined. ``windows`` None: the events of one file.
    """
    name = "enum-proof"
    if events.height == 0:
        return not_examined(name, "there are no instance events", where=where)
    readings = {version: reading(events, windows, version) for version in READINGS}
    figures: dict[str, Any] = {
        version: {one.name: round(one.measured, 6) for one in found.evidence} for version, found in readings.items()
    }
    standing = [version for version, found in readings.items() if found.stands]
    figures |= {"declared": declared, "events": events.height, "stands": standing}
    if not standing and all(one.holds for one in readings[codes_as].evidence):
        schedule = [code for code, kind in READINGS[codes_as].items() if kind is EventType.SCHEDULE]
        placed = int(events["type"].is_in(schedule).sum())
        also = f" to prove the codes; nothing speaks against {codes_as}"
        return too_few(name, placed, MIN_EVIDENCE, of="SCHEDULE rows", where=where, also=also)
    if standing != [codes_as]:
        return failed(name, where=where, figures=figures, **_refused(readings, standing, declared, codes_as, events))
    support = ", ".join(one.words() for one in readings[codes_as].evidence)
    proved = f"codes are {codes_as}'s: {support}"
    told = "; no declaration is known" if declared is None else f"; trace.json declares {declared}"
    return reported(name, None, unit="", where=where, sentence=proved + told, figures=figures | {"proved": codes_as})


def _refused(
    readings: Mapping[str, Reading], standing: list[str], declared: str | None, codes_as: str, events: pl.DataFrame
) -> dict[str, str]:
    """Sentence and cure of a proof that did not come out as wanted."""
    against = readings[codes_as].refuted_by()
    if len(standing) == 1:
        sentence = f"codes are {standing[0]}'s, read as {codes_as}'s (declared: {declared or 'not known'}): {against}"
        if standing[0] == "v2":
            return {
                "sentence": sentence,
                "cure": "mend it with `leadtime borg repair` (rule enum-v2-to-v3), or declare v2 in trace.json",
            }
        return {"sentence": sentence, "cure": "declare clusterdata v3 in trace.json"}
    if standing:
        sentence = f"{events.height:,} events fit both numberings: too little evidence to prove {codes_as}"
        return {"sentence": sentence, "cure": f"add shards until the codes are proved ({MIN_EVIDENCE} rows a piece)"}
    other = ", ".join(f"{version}: {found.refuted_by()}" for version, found in readings.items())
    sentence = f"codes are neither v3's nor v2's; {other}"
    return {
        "sentence": sentence,
        "cure": "events and usage may be of different cells or units; see the other gates first",
    }
