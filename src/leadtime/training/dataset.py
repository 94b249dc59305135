"""``make_dataset``: shards of a trace → windows with everything known at their end, and ``dataset.json`` last.

Every shard is split by hash of the collection, every partition is joined on its own (``partition``), where the
executor says. An interrupted run, run again, keeps what is finished and leaves the bytes of an uninterrupted one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from leadtime.domain.errors import BadTrace
from leadtime.risk.gates import failed_in
from leadtime.sources.borg.shards import Shard
from leadtime.training.check_files import EARLIER
from leadtime.training.dataset_cell import UNFINISHED, CellRecord, build_cell, is_begun, is_finished, read_cell
from leadtime.training.dataset_digest import combined
from leadtime.training.dataset_gates import judge, refuse_unknown
from leadtime.training.dataset_plan import CellPlan, plan, shards_of
from leadtime.training.executor import Executor, Local
from leadtime.training.folder_lock import sole_writer
from leadtime.training.manifest import disk_errors, fingerprint, read_json, write_json
from leadtime.training.progress import Progress, silent

DATASET = "dataset.json"
DATASET_SCHEMA = "leadtime.borg-windows/1"
ROWS_PER_PARTITION = 1_000_000
HASH_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set as it lies in ``folder``. ``data_hash``: over all rows, whatever executor, partitions and folder.

    ``rebuilt``: cell → what had changed, of this run only; ``kept_partitions``: found finished by this run.
    """

    folder: Path
    cells: tuple[CellRecord, ...]
    data_hash: str
    gates: tuple[Mapping[str, Any], ...]  # as dataset.json has them (risk.gates.Gate.to_json)
    allowed: tuple[str, ...] = ()
    kept_partitions: int = 0
    rebuilt: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Windows in all."""
        return sum(part.rows for cell in self.cells for part in cell.partitions)

    @property
    def failed_gates(self) -> tuple[str, ...]:
        """Names of the gates that failed and were not allowed to."""
        return failed_in(self.gates)

    @property
    def is_usable(self) -> bool:
        """False where a gate failed that was not allowed to."""
        return not self.failed_gates


def make_dataset(
    source: Path | Sequence[Shard],
    out: Path,
    *,
    cells: Sequence[str] | None = None,
    rows_per_partition: int = ROWS_PER_PARTITION,
    executor: Executor | None = None,
    allow: Collection[str] = frozenset(),
    progress: Progress = silent,
) -> Dataset:
    """Shards (or the folder that holds them) → ``out`` as docs/designs/0015 lays it out.

    ``rows_per_partition`` bounds memory: about 1 GB for a million usage rows a worker. ``allow`` names gates and gaps
    that may fail. Cells an earlier run finished below ``out`` stay and stand in ``dataset.json`` too. Raises BadTrace
    for shards that cannot be read or joined and while another run writes into ``out``, DependencyFailed for a full disk
    or a lost cluster; finished partitions are kept in either case.
    """
    if rows_per_partition < 1:
        raise ValueError(f"rows_per_partition must be at least 1, not {rows_per_partition}")
    refuse_unknown(allow)
    if isinstance(source, Path):
        _refuse_inside(source, out)
    shards = shards_of(source, cells) if isinstance(source, Path) else _of_cells(source, cells)
    with disk_errors(f"writing {out}", out), sole_writer(out, doing=f"writing {out}"):
        plans = plan(shards, rows_per_partition=rows_per_partition, allow=allow, progress=progress)
        if not all(is_finished(out, one) for one in plans):
            _set_aside(out, plans)
        built = [build_cell(one, out, executor or Local(), progress) for one in plans]
        _remove_if_empty(out / UNFINISHED)
        dataset = Dataset(
            folder=out, cells=_all_cells(out), data_hash=data_hash(_all_cells(out)), gates=(),
            allowed=tuple(sorted(set(allow))), kept_partitions=sum(one.kept for one in built),
            rebuilt={one.cell: one.why_rebuilt for one in built if one.why_rebuilt is not None},
        )  # fmt: skip
        return _judged(dataset, progress)


def _refuse_inside(source: Path, out: Path) -> None:
    """Windows among the shards would be taken for shards by the next run. Raises BadTrace."""
    there, inside = source.resolve(), out.resolve()
    if inside == there or there in inside.parents:
        wrong = f"{out} is the folder of the shards or lies inside it"
        raise BadTrace("borg-out-inside", f"joining {source}", wrong, "name a folder elsewhere with --out")


def _judged(dataset: Dataset, progress: Progress) -> Dataset:
    """The data set with its gates, and ``dataset.json``; gates of the same data and permissions are not run again."""
    folder = dataset.folder
    earlier = read_json(folder / DATASET)
    if earlier is not None and _is_of(earlier, dataset):
        return replace(dataset, gates=tuple(earlier["gates"]))
    gates = judge(
        folder, dataset.cells, described(dataset), allow=dataset.allowed, previous=read_json(folder / EARLIER),
        progress=progress,
    )  # fmt: skip
    judged = replace(dataset, gates=tuple(gate.to_json() for gate in gates))
    write_json(folder / DATASET, described(judged))
    return judged


def _is_of(manifest: Mapping[str, Any], dataset: Dataset) -> bool:
    same = {"schema": DATASET_SCHEMA, "data_hash": dataset.data_hash, "allowed": list(dataset.allowed)}
    return all(manifest.get(name) == value for name, value in same.items())


def _set_aside(out: Path, plans: Sequence[CellPlan]) -> None:
    """No manifest while a build goes on. That of other data is kept: the next positive rate is compared with its."""
    if all(is_begun(out, one) for one in plans):
        (out / DATASET).unlink(missing_ok=True)
    elif (out / DATASET).exists():
        (out / DATASET).replace(out / EARLIER)


def data_hash(cells: Sequence[CellRecord]) -> str:
    """Hash of everything the windows of ``cells`` say; independent of partitions, executors, folders and times."""
    content = [
        {
            "cell": cell.cell,
            "observed_until_us": cell.observed_until_us,
            "windows": combined([part.windows_digest for part in cell.partitions]),
            "events": combined([part.events_digest for part in cell.partitions]),
            "tables": cell.table_digests,
        }
        for cell in cells
    ]
    return fingerprint(content)[:HASH_DIGITS]


def described(dataset: Dataset) -> dict[str, Any]:
    """``dataset.json``: what a later step, and a person, may want to know. Neither times nor absolute paths."""
    return {
        "schema": DATASET_SCHEMA,
        "data_hash": dataset.data_hash,
        "usable": dataset.is_usable,
        "rows": dataset.rows,
        "cells": [cell.cell for cell in dataset.cells],
        "observed_until_us": {cell.cell: cell.observed_until_us for cell in dataset.cells},
        "observed_until_declared": {cell.cell: cell.is_declared for cell in dataset.cells},
        "gates": list(dataset.gates),
        "allowed": list(dataset.allowed),
        "missing": {cell.cell: list(cell.missing) for cell in dataset.cells},
        "sources": {cell.cell: [asdict(source) for source in cell.sources] for cell in dataset.cells},
        "partitions": {cell.cell: [asdict(part) for part in cell.partitions] for cell in dataset.cells},
    }


def read_dataset(folder: Path) -> dict[str, Any]:
    """``dataset.json`` of a finished data set. Raises BadTrace where there is none, or of another version."""
    content = read_json(folder / DATASET)
    if content is None:
        raise BadTrace(
            "borg-no-dataset", f"reading {folder}", f"there is no {DATASET}: nothing was built there, or not finished",
            "run 'leadtime borg make-dataset' (again), or name the right folder",
        )  # fmt: skip
    if content.get("schema") != DATASET_SCHEMA:
        raise BadTrace(
            "borg-no-dataset", f"reading {folder / DATASET}", f"its schema is {content.get('schema')!r}",
            f"build it again: this version reads {DATASET_SCHEMA}",
        )  # fmt: skip
    return content


def _of_cells(shards: Sequence[Shard], cells: Sequence[str] | None) -> Sequence[Shard]:
    return [shard for shard in shards if cells is None or shard.cell in cells]


def _all_cells(out: Path) -> tuple[CellRecord, ...]:
    """Every finished cell below ``out``, by name."""
    names = sorted(folder.name.removeprefix("cell=") for folder in out.glob("cell=*") if folder.is_dir())
    return tuple(record for name in names if (record := read_cell(out, name)) is not None)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
