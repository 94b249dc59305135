"""A folder of shards, or of windows, → gates with their verdicts; and the door that a failed gate closes to training.

``check_raw`` reads any dialect; ``check_dataset`` reads what make-dataset wrote. Both tell of every gate in
``risk.gates.GATES``, of those that could not be examined too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.borg import EventType
from leadtime.domain.errors import BadTrace
from leadtime.risk import gates_ends, gates_join, gates_rows
from leadtime.risk.gates import GATES, Gate, Standing, allowing, failed_in, not_examined, reported
from leadtime.risk.gates_enum import collection_proof, enum_proof
from leadtime.risk.labels import DEFAULT_FAILURES
from leadtime.training.check_reading import Cell, file_name, read_cells, shards_below, unreadable
from leadtime.training.check_windows import read_manifest, window_cells
from leadtime.training.progress import Progress, silent

SCHEMA = "leadtime.borg-check/1"
SLICE_REASON = "a joined slice has neither usage nor events of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Every gate of one check. ``sampled``: cell → share of instances whose histories were looked at (1 = all)."""

    path: str
    kind: str  # "shards" or "windows"
    gates: tuple[Gate, ...]
    allowed: tuple[str, ...]  # names given with --allow
    sampled: Mapping[str, float]

    @property
    def failed(self) -> tuple[Gate, ...]:
        """Gates that failed and are not allowed."""
        return tuple(gate for gate in self.gates if gate.standing is Standing.FAILED)

    def count(self, standing: Standing) -> int:
        """How many gates came out so."""
        return sum(gate.standing is standing for gate in self.gates)

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` prints and dataset.json keeps (``gates``, ``allowed``)."""
        return {
            "schema": SCHEMA, "path": self.path, "kind": self.kind, "passed": not self.failed,
            "counts": {standing.value: self.count(standing) for standing in Standing},
            "allowed": list(self.allowed), "sampled_ratio": dict(self.sampled),
            "gates": [gate.to_json() for gate in self.gates],
        }  # fmt: skip


def require_passed(manifest: Mapping[str, Any], *, doing: str, allow: Iterable[str] = ()) -> None:
    """Raise BadTrace when ``manifest`` (dataset.json or forecaster.json) holds a failed gate that nobody allowed.

    ``allow``: gates allowed now, beside those that were allowed when the data was built. A manifest without gates was
    written without a check: it is refused too.
    """
    gates = manifest.get("gates")
    if isinstance(gates, Mapping):  # a whole report was stored
        gates = gates.get("gates")
    now = frozenset(allow)
    if gates is None:
        raise BadTrace(
            "borg-not-checked", doing, "the data set carries no gates",
            "build it again with `leadtime borg make-dataset`, which checks it",
        )  # fmt: skip
    names = tuple(name for name in failed_in(gates) if name not in now)
    if names:
        options = " ".join(f"--allow {name}" for name in names)
        raise BadTrace(
            "borg-gate-failed", doing, f"{len(names)} failed gate(s) in the data: {', '.join(names)}",
            f"see `leadtime borg check`, mend the data, or go on with {options} (it will stand in every report)",
        )  # fmt: skip


def check_raw(
    path: Path,
    *,
    cell: str | None = None,
    allow: Iterable[str] = (),
    previous: Mapping[str, Any] | None = None,
    previous_name: str = "the last build",
    failure_types: frozenset[EventType] = DEFAULT_FAILURES,
    progress: Progress = silent,
) -> CheckReport:
    """Check a file or a folder of shards in any dialect.

    ``previous``: JSON of an earlier check or manifest, to compare positive rates with. Raises BadTrace where there is
    nothing to read; a broken file is a failed gate (``readable``), not an error. Names in ``allow`` that no gate has
    allow nothing.
    """
    names = tuple(dict.fromkeys(allow))
    shards, faults = shards_below(path, cell)
    cells = read_cells(shards, path, progress)
    early = [unreadable(fault, where=file_name(Path(fault.doing.removeprefix("reading ")), path)) for fault in faults]
    context = _Context(previous=previous, previous_name=previous_name, failure_types=failure_types, progress=progress)
    return _judged(path, "shards", cells, early, names, context)


def check_dataset(
    folder: Path,
    *,
    manifest: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    previous: Mapping[str, Any] | None = None,
    previous_name: str = "the last build",
    failure_types: frozenset[EventType] = DEFAULT_FAILURES,
    progress: Progress = silent,
) -> CheckReport:
    """Check what make-dataset wrote into ``folder`` (cell=<c>/windows, events, machines.parquet).

    ``manifest``: dataset.json where it isn't written yet; read from ``folder`` when left out. Raises BadTrace where the
    folder holds no windows.
    """
    names = tuple(dict.fromkeys(allow))
    if manifest is None:
        manifest = read_manifest(folder)
    context = _Context(previous=previous, previous_name=previous_name, failure_types=failure_types, progress=progress)
    return _judged(folder, "windows", window_cells(folder, manifest, progress), [], names, context)


def judged(path: Path, cells: Iterator[Cell], progress: Progress = silent) -> CheckReport:
    """Check cells that somebody else reads, such as a repair's mended frames before they are written."""
    return _judged(path, "shards", cells, [], (), _Context(progress=progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    previous: Mapping[str, Any] | None = None
    previous_name: str = "the last build"
    failure_types: frozenset[EventType] = DEFAULT_FAILURES
    progress: Progress = silent


def _judged(  # noqa: PLR0917
    path: Path, kind: str, cells: Iterator[Cell], gates: list[Gate], names: tuple[str, ...], context: _Context
) -> CheckReport:  # fmt: skip
    sampled: dict[str, float] = {}
    collections: dict[str, pl.Series] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        context.progress(f"judging cell {cell.name or '(unnamed)'}", 0, 1, "cells")
        gates += _cell_gates(cell, kind, context)
        sampled[cell.name] = cell.share
        unknown |= cell.unknown
        if cell.tallies:
            parts = (cell.windows["collection_id"], cell.events["collection_id"])
            collections[cell.name] = pl.concat([part.unique() for part in parts]).unique()
        context.progress(f"judging cell {cell.name or '(unnamed)'}", 1, 1, "cells")
    gates.append(gates_rows.leaked_columns(unknown))
    gates.append(gates_join.id_overlap(collections))
    order = {name: at for at, name in enumerate(GATES)}
    gates.sort(key=lambda gate: (order[gate.name], gate.where))
    return CheckReport(path=path.name, kind=kind, gates=allowing(gates, names), allowed=names, sampled=sampled)


def _cell_gates(cell: Cell, kind: str, context: _Context) -> list[Gate]:
    """Every gate of one cell."""
    where = f"cell {cell.name}" if cell.name else "cell unnamed"
    gates = [*cell.gates]
    if not cell.tallies:
        gates += [not_examined(name, SLICE_REASON, where=where) for name in GATES if name not in _NOT_OF_A_CELL]
        return gates
    tables = gates_rows.tables_of(cell.tallies.values())
    latest = gates_rows.proved_latest_us(cell.tallies.values(), cell.observed_until_us)
    gates += _readable(cell, where)
    gates += gates_rows.time_unit(cell.tallies, latest_us=latest)
    gates += gates_rows.rows_accounted(cell.sources or cell.tallies)
    gates += gates_rows.null_rates(tables, where, absent=cell.absent_everywhere)
    gates += gates_rows.sentinel_rates(tables, where)
    gates.append(gates_rows.machine_sentinels(tables, where))
    gates.append(_separate(tables, where))
    windows, events = cell.windows, cell.events
    gates += _proofs(cell, windows, events, where)
    names = cell.files if kind == "shards" else ()
    gates += gates_join.join_match(windows, events, names, cell=where)
    gates += gates_join.coverage(windows, events, cell.machines, cell=where)
    if cell.dropped is None:
        gates.append(gates_join.duplicate_events(events, cell=where))
    else:
        gates.append(gates_join.duplicates_dropped(*cell.dropped, cell=where))
    gates += _end_gates(cell, windows, events, where, context)
    return gates


_NOT_OF_A_CELL = frozenset({"leaked-columns", "id-overlap", "enum-proof", "separate-events", "readable"})


def _readable(cell: Cell, where: str) -> list[Gate]:
    """How many files were read whole; broken ones have a failed gate of their own."""
    rows = sum(one.rows_out for one in cell.tallies.values())
    broken = sum(gate.name == "readable" for gate in cell.gates)
    sentence = f"{len(cell.tallies)} files, {rows:,} rows; {broken} broken"
    return [reported("readable", float(len(cell.tallies)), unit="files", where=where, sentence=sentence)]


def _separate(tables: Mapping[str, Any], where: str) -> Gate:
    absent = [table for table in ("instance_usage", "instance_events") if table not in tables]
    if absent:
        return not_examined("separate-events", f"there is no {' and no '.join(absent)} file", where=where)
    return reported("separate-events", None, unit="", where=where, sentence="usage and events are tables of their own")


def _proofs(cell: Cell, windows: pl.DataFrame, events: pl.DataFrame, where: str) -> list[Gate]:
    """The codes of the cell, and of each event file that is large enough to say something by itself."""
    gates = [enum_proof(events, windows, where=where, declared=cell.declared)]
    files = events.partition_by("shard", as_dict=True) if events.height else {}
    for (number,), rows in sorted(files.items()):
        if len(files) > 1 and rows.height >= gates_join.MIN_ROWS:
            gates.append(enum_proof(rows, None, where=cell.files[int(str(number))], declared=cell.declared))
    if cell.collections.height:
        gates.append(collection_proof(cell.collections, where=f"{where} collections", declared=cell.declared))
    return gates


def _end_gates(
    cell: Cell, windows: pl.DataFrame, events: pl.DataFrame, where: str, context: _Context
) -> Sequence[Gate]:  # fmt: skip
    """Everything that needs to know how runs end."""
    if windows.height == 0 or events.height == 0:
        reason = f"there are no {'usage' if windows.height == 0 else 'event'} rows"
        names = (
            "terminal-timing",
            "rows-after-end",
            "negative-sampling",
            "positive-rate",
            "positive-rate-change",
            "drift",
        )
        return [not_examined(name, reason, where=where) for name in names]
    found = gates_ends.windows_with_ends(windows, events)
    until = cell.observed_until_us or int(windows["end_time_us"].max() or 0)  # type: ignore[arg-type]
    labelled = gates_ends.labelled_rows(found, observed_until_us=until, failure_types=context.failure_types)
    rate = gates_ends.positive_rates(labelled, cell=where)
    before = _previous_rate(context.previous, where)
    return [
        gates_ends.terminal_timing(found, cell=where),
        gates_ends.rows_after_end(found, cell=where),
        gates_ends.negative_sampling(found, cell=where),
        rate,
        gates_ends.positive_rate_change(rate, before, source=context.previous_name),
        gates_ends.drift(labelled, cell=where),
    ]


def _previous_rate(previous: Mapping[str, Any] | None, where: str) -> Mapping[str, Any] | None:
    """The positive-rate gate of the same cell in an earlier report or manifest."""
    gates = (previous or {}).get("gates") or ()
    if isinstance(gates, Mapping):
        gates = gates.get("gates") or ()
    return next((one for one in gates if one.get("name") == "positive-rate" and one.get("where") == where), None)
