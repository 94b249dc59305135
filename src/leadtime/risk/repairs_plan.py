"""Gates of a check → what to mend in which file, and which files cannot be mended, with the reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from leadtime.risk.gates import Gate, Standing
from leadtime.risk.repairs import FACTORS

EVENT_TABLES = ("instance_events", "collection_events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """By file, as gates name it. ``units``: times are in this unit; ``v2``: codes are 2011's; ``aside``: reasons."""

    units: Mapping[str, str] = field(default_factory=dict)
    v2: frozenset[str] = frozenset()
    aside: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: "Plan") -> "Plan":
        """Both, the earlier one's unit and reason standing where they speak of the same file."""
        return Plan(
            units={**other.units, **self.units}, v2=self.v2 | other.v2, aside={**other.aside, **self.aside}
        )  # fmt: skip

    def asks_more_than(self, other: "Plan") -> bool:
        """True where a file would be treated otherwise than under ``other``."""
        return (
            not set(self.units) <= set(other.units)
            or not self.v2 <= other.v2
            or not set(self.aside) <= set(other.aside)
        )


def plan_of(gates: Iterable[Gate], files: Mapping[str, tuple[str, str]]) -> Plan:
    """``files``: name → (cell, table). Only what a failed gate names is touched.

    Mended: a file whose unit is known, event files whose codes were proved to be v2's. Set aside: what cannot be read,
    slices, files of another cell, and files of no known unit.
    """
    units: dict[str, str] = {}
    v2: set[str] = set()
    aside: dict[str, str] = {}
    for gate in gates:
        if gate.standing not in (Standing.FAILED, Standing.ALLOWED):
            continue
        reason = f"{gate.name}: {gate.sentence}"
        if gate.name == "enum-proof" and gate.figures.get("stands") == ["v2"]:
            v2 |= _event_files(gate.where, files)
        elif gate.where not in files:
            continue  # a verdict on a cell or a column: told again after the repair
        elif gate.name == "time-unit" and gate.figures.get("unit") in FACTORS:
            units[gate.where] = str(gate.figures["unit"])
        elif gate.name in ("readable", "separate-events", "join-match", "time-unit") or _text_contradicts(gate):
            aside[gate.where] = f"{aside[gate.where]}; {reason}" if gate.where in aside else reason
    return Plan(units=units, v2=frozenset(v2), aside=aside)


def _text_contradicts(gate: Gate) -> bool:
    return gate.name == "enum-proof" and bool(gate.figures.get("contradicting_ratio"))


def _event_files(where: str, files: Mapping[str, tuple[str, str]]) -> set[str]:
    """One file, or a cell's files of the table the proof was about."""
    if where in files:
        return {where}
    table = "collection_events" if where.endswith(" collections") else "instance_events"
    name = where.removesuffix(" collections").removeprefix("cell ")
    return {file for file, (cell, of) in files.items() if (cell or "unnamed") == name and of == table}
