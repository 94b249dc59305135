"""The account of a repair: rules and rows touched, what was set aside and why, rates before and after."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leadtime.risk.gates import Gate
from leadtime.risk.repairs import REFUSED, RULES
from leadtime.sources.borg.batch import Batch
from leadtime.training.check import CheckReport

SCHEMA = "leadtime.borg-repair/1"
SAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A file in quarantine: the file itself stays where it is."""

    file: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """Field names as they are."""
        return {"file": self.file, "reason": self.reason}


@dataclass(slots=True)
class Account:
    """Filled while files are mended; every count is of this run."""

    touched: dict[tuple[str, str], int] = field(default_factory=dict)  # (rule, file) → rows
    aside: dict[tuple[str, str], int] = field(default_factory=dict)
    rejected: dict[tuple[str, str], int] = field(default_factory=dict)  # (reader's rule, file) → rows
    samples: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    quarantined: list[SetAside] = field(default_factory=list)
    files: list[tuple[str, str, int]] = field(default_factory=list)  # from, to, rows
    unknown: dict[str, list[str]] = field(default_factory=dict)
    absent: dict[str, frozenset[str]] = field(default_factory=dict)  # file → columns it lacks

    def touch(self, rule: str, file: str, rows: int) -> None:
        """``rule`` changed ``rows`` of ``file``."""
        if rows:
            self.touched[rule, file] = self.touched.get((rule, file), 0) + rows

    def set_aside(self, rule: str, file: str, rows: int) -> None:
        """``rule`` took ``rows`` out of ``file``; it touched them too."""
        self.aside[rule, file] = self.aside.get((rule, file), 0) + rows
        self.touch(rule, file, rows)

    def quarantine(self, file: str, reason: str) -> None:
        """A whole file."""
        self.quarantined.append(SetAside(file=file, reason=reason))

    def write(self, file: str, target: str, rows: int) -> None:
        """A mended file."""
        self.files.append((file, target, rows))

    def read(self, file: str, batch: Batch, lacking: frozenset[str]) -> None:
        """What the reader rejected, the columns it knows nothing of, and those the file (or its dialect) lacks."""
        for reject in batch.rejects:
            key = (reject.rule, file)
            self.rejected[key] = self.rejected.get(key, 0) + reject.rows
            kept = self.samples.setdefault(key, [])
            kept += [f"row {one.row}, {one.column}: {one.value}" for one in reject.samples][: SAMPLES - len(kept)]
        names = [note.column for note in batch.notes if note.code == "column-ignored"]
        absent = {note.column for note in batch.notes if note.code == "column-absent"}
        self.absent[file] = self.absent.get(file, frozenset()) | absent | lacking
        if names:
            self.unknown.setdefault(file, []).extend(names)

    @property
    def rows_touched(self) -> int:
        """Over all rules; a row that two rules touched counts twice."""
        return sum(self.touched.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair did, or (``dry_run``) would do; ``before`` and ``after`` are checks of the input and the copy."""

    path: str
    dry_run: bool
    account: Account
    before: CheckReport
    after: CheckReport

    @property
    def is_usable(self) -> bool:
        """Something is left, and no gate fails on it."""
        return bool(self.account.files) and not self.after.failed

    def rates(self) -> list[dict[str, Any]]:
        """Every gate with a number whose number or standing changed: before and after."""
        after = {(gate.name, gate.where): gate for gate in self.after.gates}
        before = {(gate.name, gate.where): gate for gate in self.before.gates}
        rows = []
        for key in dict.fromkeys((*before, *after)):
            old, new = before.get(key), after.get(key)
            if _told(old) != _told(new):
                rows.append({
                    "gate": key[0], "where": key[1], "unit": (new or old).unit,  # type: ignore[union-attr]
                    "before": _told(old), "after": _told(new),
                })  # fmt: skip
        return rows

    def to_json(self) -> dict[str, Any]:
        """``repair.json``. Neither times nor absolute paths."""
        told = self.account
        return {
            "schema": SCHEMA, "path": self.path, "dry_run": self.dry_run, "usable": self.is_usable,
            "rows_touched": told.rows_touched,
            "rules": [
                {"rule": rule, "file": file, "rows": rows, "what": RULES[rule]}
                for (rule, file), rows in sorted(told.touched.items())
            ],
            "rows_aside": _counted(told.aside),
            "rows_rejected": [
                {**one, "samples": told.samples.get((one["rule"], one["file"]), [])} for one in _counted(told.rejected)
            ],
            "quarantined": [one.to_json() for one in told.quarantined],
            "files": [{"from": source, "to": target, "rows": rows} for source, target, rows in told.files],
            "rates": self.rates(),
            "still_failing": [gate.to_json() for gate in self.after.failed],
            "refused_rules": dict(REFUSED),
        }  # fmt: skip


def _told(gate: Gate | None) -> dict[str, Any] | None:
    return None if gate is None else {"standing": gate.standing.value, "measured": gate.measured}


def _counted(rows: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"rule": rule, "file": file, "rows": count} for (rule, file), count in sorted(rows.items())]
