"""Every knob of the generator: name, default, unit, bounds, reason. TOML or options → one checked, frozen record."""

import tomllib
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from leadtime.domain.borg import TRACE_START_US, WINDOW_US, Dialect
from leadtime.domain.errors import BadTrace

DOING = "reading the generator's knobs"
ROWS_PER_SHARD = 500_000  # a shard of this size is drawn, scored and written in well under 1 GB
EVENT_TYPES = ("code", "text", "name")
FEWEST_SHARDS = 2  # even a small trace has more than one shard: readers must not rely on one


class Trap(StrEnum):
    """Faults a trace can carry on purpose. T7, T9, T10 and T13 are settings of a clean trace or of training."""

    T1 = "T1"  # leaked columns: whole-trace event_count, final_type, last_event_time, max request
    T2 = "T2"  # one usage shard counts milliseconds
    T3 = "T3"  # every last window is cut exactly at the end of its run
    T4 = "T4"  # ends at exactly p + 1 us and p + H
    T5 = "T5"  # every last window runs past the end of its run
    T6 = "T6"  # every failed or evicted run is followed by another: most events belong to another run
    T7 = "T7"  # shards sorted by task, not by time
    T8 = "T8"  # event codes of v2 in v3 files
    T9 = "T9"  # negatives sampled without weights: a setting of training, nothing in the trace
    T10 = "T10"  # hidden bad collections: Level 2 on, four times as many
    T11 = "T11"  # a third of the usage rows on machine 0, -1 or null
    T12 = "T12"  # collection ids are the same in every cell
    T13 = "T13"  # placebo: mu = 0
    T14 = "T14"  # signal falls and failures rise in the middle of the trace
    T15 = "T15"  # a toy controller prevents 30 % of the failures of tasks it was warned of


def _knob(default: float, unit: str, why: str, low: float = 0.0, high: float = 1.0) -> Any:
    return field(default=default, metadata={"unit": unit, "why": why, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What to draw. Rates are per 300 s window where the unit says so; shares are 0–1. Equal knobs, equal bytes.

    ``mu`` is the distance of the degrading from the healthy state in standard deviations of the usage ratio; 0 is the
    placebo, in which nothing tells a failing task from another: no bad collections, no meaning in a run's age.
    """

    cell: str = "c"
    dialects: tuple[Dialect, ...] = (Dialect.PARQUET,)  # shard i speaks dialect i mod n
    traps: tuple[Trap, ...] = ()
    event_types: str = "code"  # how files spell event types: code (5), text ("5"), name ("FAIL")
    rows: int = _knob(100_000, "usage windows of tasks", "at least so many; the last collection is kept whole", 1, 1e10)
    seed: int = _knob(0, "", "which draw", 0, 2**63 - 1)
    mu: float = _knob(1.5, "standard deviations", "signal of the degrading state", 0, 6)
    base_rate: float = _knob(0.01, "share of rows", "failures within 15 min; real traces: 0.0003-0.0025", 1e-5, 0.2)
    days: int = _knob(2, "days", "one to three days hold every daily effect drawn here", 1, 31)
    rows_per_shard: int = _knob(0, "rows", "0: half the rows, at most 500,000", 0, 5_000_000)
    # Level 1: the hidden chain of a run
    degrading_fails: float = _knob(0.25, "a window", "D to F: 56 % of them within 15 min", 0.001, 0.9)
    degrading_heals: float = _knob(0.02, "a window", "D to H", 0, 0.5)
    other_ends: float = _knob(0.012, "a window", "H or D to any end but failure: mean run about 6 h", 0.0005, 0.5)
    unpredictable: float = _knob(0.05, "share of failures", "H to F without warning; sets h0 from base_rate", 0, 0.95)
    degrades: float = _knob(0.0, "a window", "H to D; 0: solved from base_rate", 0, 0.5)
    # Level 2: bad collections
    bad_collections: float = _knob(0.03, "share of collections", "z = 1", 0, 0.5)
    bad_factor: float = _knob(20.0, "times", "z = 1 multiplies H to D", 1, 100)
    # population
    tasks_most: int = _knob(5_000, "tasks of a collection", "heavy tail, 1-5,000", 1, 100_000)
    largest_share: float = _knob(0.002, "share of rows", "most that one collection may hold", 1e-4, 1)  # fmt: skip
    alive_at_start: float = _knob(0.3, "share of collections", "run since before the trace; events at time 0")
    parents: float = _knob(0.35, "share of collections", "Vu5e: 35.6 % of collection events name a parent", 0, 0.9)
    killed_a_day: float = _knob(0.25, "a collection and day", "its user ends it; so end its children", 0, 10)
    alloc_sets: float = _knob(0.09, "share of collections", "alloc sets are 9 % of collections", 0, 0.5)
    in_alloc: float = _knob(0.15, "share of collections", "jobs that run inside an alloc set", 0, 0.9)
    on_grid: float = _knob(0.72, "share of rows", "windows that begin and end on the 300 s grid")
    # lives
    resubmitted: float = _knob(0.7, "share of failures", "start again")
    resubmitted_evicted: float = _knob(0.9, "share of evictions", "start again")
    resubmit_delay_s: float = _knob(60.0, "s", "mean of the exponential delay", 0.1, 3600)
    same_instant: float = _knob(0.5, "share of resubmissions", "SUBMIT in the microsecond of the failure")
    crash_loops: float = _knob(0.01, "share of tasks", "2-30 runs that die before their first full window")
    evicted: float = _knob(0.0002, "a window", "EVICT, of other_ends; ten times in low tiers", 0, 0.001)  # fmt: skip
    removals_a_day: float = _knob(0.02, "a machine and day", "REMOVE", 0, 2)
    flapping: float = _knob(0.05, "share of machines", "one REMOVE a day")
    machine_updates_a_day: float = _knob(0.02, "a machine and day", "UPDATE changes the capacity", 0, 2)
    updated: float = _knob(0.1, "share of runs", "UPDATE_RUNNING changes the request")
    queued: float = _knob(0.05, "share of runs", "QUEUE before ENABLE")
    lost: float = _knob(0.0001, "share of ends", "LOST instead of the real end", 0, 0.5)
    ends_after_trace: float = _knob(0.5, "share of runs alive at the end", "an end at 2^63-1")
    # windows
    overrun: float = _knob(0.2, "share of ends", "the last window runs 5-60 s past the end")
    overrun_long: float = _knob(0.005, "share of ends", "the last window runs 60-300 s past the end")
    no_machine_usage: float = _knob(0.02, "share of usage rows", "machine_id missing")
    dedicated_usage: float = _knob(0.005, "share of usage rows", "machine_id -1")
    no_vectors: float = _knob(0.04, "share of usage rows", "both CPU histograms empty")
    no_max_memory: float = _knob(0.05, "share of usage rows", "maximum_usage.memory missing")
    no_counters: float = _knob(0.31, "share of machines", "platforms that report no CPI and MAI")
    # events
    zero_request: float = _knob(
        0.001, "share of tasks", "request of exactly zero; usage then counts 0.01 as the request"
    )
    null_request: float = _knob(0.002, "share of events", "request missing")
    missing_type: float = _knob(0.002, "share of events", "missing_type not 0")
    duplicated: float = _knob(0.003, "share of events", "exact copies")
    duplicated_otherwise: float = _knob(0.001, "share of events", "copies with another missing_type")
    late: float = _knob(0.01, "share of events", "in a later shard")
    # drift (T14 sets them)
    drift_mu: float = _knob(1.0, "times", "mu in the second half of the trace", 0, 5)
    drift_degrades: float = _knob(1.0, "times", "H to D in the second half of the trace", 0.05, 10)
    prevented: float = _knob(0.0, "share of failures of flagged tasks", "T15 sets 0.3")

    @property
    def observed_until_us(self) -> int:
        """End of observation (closed): nothing after it is known."""
        return TRACE_START_US + self.days * 288 * WINDOW_US

    @property
    def shard_rows(self) -> int:
        """Usage rows drawn together and written as one shard."""
        return self.rows_per_shard or max(1, min(ROWS_PER_SHARD, -(-self.rows // FEWEST_SHARDS)))

    @property
    def placebo(self) -> bool:
        """True where nothing may tell a failing task from another."""
        return self.mu == 0


def checked(knobs: Knobs) -> Knobs:
    """The same knobs with the settings of their traps applied; BadTrace where one is out of bounds."""
    for knob in fields(knobs):
        if knob.metadata:
            _in_bounds(knob, getattr(knobs, knob.name))
    if not knobs.cell.isalnum() or not knobs.cell.isascii():
        raise BadTrace("knob-out-of-range", DOING, f"cell is {knobs.cell!r}", "name it by ASCII letters and digits")
    if knobs.event_types not in EVENT_TYPES:
        raise BadTrace(
            "knob-out-of-range", DOING, f"event_types is {knobs.event_types!r}", f"choose from {', '.join(EVENT_TYPES)}"
        )
    if not knobs.dialects:
        raise BadTrace("knob-out-of-range", DOING, "no dialect is named", "name at least one")
    changes: dict[str, Any] = {}
    for trap in knobs.traps:
        changes |= _settings(knobs, trap)
    if changes.get("mu", knobs.mu) == 0:
        changes["bad_collections"] = 0.0
    return replace(knobs, **changes)


def _settings(knobs: Knobs, trap: Trap) -> dict[str, Any]:
    """What a trap changes of the other knobs; most traps change the files only (traps.py)."""
    return {
        Trap.T3: {"overrun": 0.0, "overrun_long": 0.0},
        Trap.T5: {"overrun": 1.0, "overrun_long": 0.05},
        Trap.T6: {"resubmitted": 1.0, "resubmitted_evicted": 1.0, "resubmit_delay_s": 5.0},
        Trap.T10: {"bad_collections": min(0.5, 4 * knobs.bad_collections)},
        Trap.T11: {"no_machine_usage": 0.2, "dedicated_usage": 0.15},
        Trap.T13: {"mu": 0.0},
        Trap.T14: {"drift_mu": 0.6, "drift_degrades": 2.0},
        Trap.T15: {"prevented": 0.3},
    }.get(trap, {})


def _in_bounds(knob: Field[Any], value: object) -> None:
    low, high = knob.metadata["low"], knob.metadata["high"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        unit = f" {knob.metadata['unit']}" if knob.metadata["unit"] else ""
        raise BadTrace(
            "knob-out-of-range", DOING, f"{knob.name} is {value!r}", f"give a number from {low:g} to {high:g}{unit}"
        )
    if knob.type is int and not isinstance(value, int):
        raise BadTrace("knob-out-of-range", DOING, f"{knob.name} is {value!r}", "give a whole number")


def from_toml(text: str, given: Mapping[str, object]) -> Knobs:
    """Knobs of a TOML text (top-level ``name = value``), with ``given`` (command line) above it. Checked.

    Raises BadTrace: no TOML, an unknown name, a value out of bounds.
    """
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadTrace("knobs-not-toml", DOING, f"not TOML: {error}", "write one knob = value a line") from None
    chosen: dict[str, Any] = {**read, **given}
    names = {knob.name for knob in fields(Knobs)}
    if unknown := sorted(set(chosen) - names):
        raise BadTrace(
            "knob-unknown", DOING, f"no knob is called {', '.join(unknown)}",
            "take names from 'leadtime borg generate --list-knobs'",
        )  # fmt: skip
    for name, kind in (("dialects", Dialect), ("traps", Trap)):
        if name in chosen:
            chosen[name] = _members(name, kind, chosen[name])
    if not isinstance(chosen.get("cell", ""), str):
        raise BadTrace("knob-out-of-range", DOING, f"cell is {chosen['cell']!r}", "give it in quotes")
    return checked(Knobs(**chosen))


def _members(name: str, kind: type[StrEnum], values: object) -> tuple[StrEnum, ...]:
    try:
        return tuple(kind(str(value)) for value in (values if isinstance(values, list | tuple) else [values]))
    except ValueError:
        known = ", ".join(kind)
        raise BadTrace("knob-out-of-range", DOING, f"{name} is {values!r}", f"choose from {known}") from None


def as_json(knobs: Knobs) -> dict[str, object]:
    """Every knob by name, as the truth file keeps it."""
    return {
        **asdict(knobs),
        "dialects": [str(one) for one in knobs.dialects],
        "traps": [str(one) for one in knobs.traps],
    }


def described() -> list[tuple[str, float, str, str]]:
    """(name, default, unit, reason) of every numeric knob, for a list a person reads."""
    return [
        (one.name, float(getattr(DEFAULT, one.name)), one.metadata["unit"], one.metadata["why"])
        for one in fields(Knobs)
        if one.metadata
    ]


DEFAULT = Knobs()
