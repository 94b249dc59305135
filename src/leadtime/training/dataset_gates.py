"""A built data set → its gates: of every source file from what the split counted, of the windows from the windows.

Source files are judged one by one, because a file in another unit or full of nulls drowns in the partitions it is
spread over.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadtime.domain.errors import BadTrace
from leadtime.risk import gates_rows
from leadtime.risk.gates import GATES, Gate, allowing
from leadtime.training.check import check_dataset
from leadtime.training.dataset_cell import CellRecord
from leadtime.training.dataset_plan import OPTIONAL
from leadtime.training.dataset_split import tally_from
from leadtime.training.progress import Progress

_OF_SOURCES = frozenset({"time-unit", "rows-accounted", "reject-rate", "null-rate", "sentinel-rate", "leaked-columns"})


def refuse_unknown(allow: Collection[str]) -> None:
    """Raise BadTrace for a name that is neither a gate nor a gap one may allow."""
    known = (*GATES, *OPTIONAL.values())
    if unknown := sorted(set(allow) - set(known)):
        raise BadTrace(
            "borg-gate-unknown", "allowing a gate", f"there is no gate called {unknown[0]!r}",
            f"one may allow {', '.join(known)}",
        )  # fmt: skip


def judge(
    folder: Path,
    cells: Sequence[CellRecord],
    manifest: Mapping[str, Any],
    *,
    allow: Collection[str],
    previous: Mapping[str, Any] | None,
    progress: Progress,
) -> tuple[Gate, ...]:
    """Every gate of the data set in ``folder``, those of ``allow`` standing as allowed."""
    gates = frozenset(allow) & frozenset(GATES)
    report = check_dataset(folder, manifest=manifest, allow=sorted(gates), previous=previous, progress=progress)
    sources = [gate for cell in cells for gate in source_gates(cell)]
    of_windows = [gate for gate in report.gates if gate.name not in _OF_SOURCES]
    order = {name: place for place, name in enumerate(GATES)}
    return tuple(sorted((*allowing(sources, gates), *of_windows), key=lambda gate: (order[gate.name], gate.where)))


def source_gates(cell: CellRecord) -> Iterable[Gate]:
    """Units, rows, missing values, zeros and foreign columns of the files a cell was made from."""
    where = f"cell {cell.cell}"
    tallies = {source.file: tally_from(source.tally) for source in cell.sources}
    tables = gates_rows.tables_of(tallies.values())
    declared = cell.observed_until_us if cell.is_declared else None
    latest_us = gates_rows.proved_latest_us(tallies.values(), declared)
    yield from gates_rows.time_unit(tallies, latest_us=latest_us)
    yield from gates_rows.rows_accounted(tallies)
    yield from gates_rows.null_rates(tables, where, absent=_absent(cell))
    yield from gates_rows.sentinel_rates(tables, where)
    yield gates_rows.leaked_columns({source.file: source.foreign_columns for source in cell.sources})


def _absent(cell: CellRecord) -> frozenset[str]:
    """``table.column`` of columns that no file of the table has."""
    by_table: dict[str, list[frozenset[str]]] = {}
    for source in cell.sources:
        by_table.setdefault(source.table, []).append(frozenset(source.absent_columns))
    return frozenset(
        f"{table}.{column}" for table, files in by_table.items() for column in frozenset.intersection(*files)
    )
