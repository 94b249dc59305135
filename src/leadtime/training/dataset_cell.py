"""One cell's plan → its folder: split, the cell's own tables, partitions. What is finished is kept, and said.

    <out>/cell=<c>/sources.json     the split is finished: files read, rows in and out, rejects, end of observation
    <out>/cell=<c>/part-0000.json   that partition is finished
    <out>/.unfinished/cell=<c>/     fragments; gone when every partition is finished

A change of any input or setting that decides the bytes starts the cell afresh and is named.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.sources.borg.canonical import schema_of
from leadtime.training.dataset_digest import digest
from leadtime.training.dataset_plan import CellPlan
from leadtime.training.dataset_split import CELL_TABLES, ShardRecord, SplitJob, fragments, record_from, split_shard
from leadtime.training.executor import Executor
from leadtime.training.manifest import disk_errors, read_json, write_json
from leadtime.training.partition import PartitionJob, PartitionRecord, build_partition, finished, write_parquet
from leadtime.training.progress import Progress

UNFINISHED = ".unfinished"
SOURCES = "sources.json"
PLAN = "plan.json"
MADE_UP = {"collections": "missing_type", "machines": "missing_data_reason"}  # says only how a record came about


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """A finished cell. ``kept``: partitions that an earlier run had finished; ``why_rebuilt``: None where nothing was.

    ``observed_until_us``: declared, or the newest time seen. Digests: dataset_digest.
    """

    cell: str
    observed_until_us: int
    is_declared: bool
    sources: tuple[ShardRecord, ...]
    partitions: tuple[PartitionRecord, ...]
    table_digests: tuple[tuple[str, int], ...]
    missing: tuple[str, ...]
    kept: int
    why_rebuilt: str | None


def folder_of(out: Path, cell: str) -> Path:
    """Where a cell's windows lie."""
    return out / f"cell={cell}"


def is_begun(out: Path, plan: CellPlan) -> bool:
    """True where an earlier run split exactly this plan."""
    sources = read_json(folder_of(out, plan.cell) / SOURCES)
    return sources is not None and sources.get("inputs") == plan.inputs


def is_finished(out: Path, plan: CellPlan) -> bool:
    """True where an earlier run finished exactly this plan."""
    folder = folder_of(out, plan.cell)
    return is_begun(out, plan) and all(finished(folder, part, plan.inputs) for part in range(plan.partitions))


def build_cell(plan: CellPlan, out: Path, executor: Executor, progress: Progress) -> CellRecord:
    """Bring the cell's folder to what ``plan`` says, keeping what is finished. Raises what jobs raise."""
    folder, work = folder_of(out, plan.cell), out / UNFINISHED / f"cell={plan.cell}"
    with disk_errors(f"building cell {plan.cell}", out):
        why = _why_rebuild(plan, folder, work)
        if why is not None:
            clear(folder)
            shutil.rmtree(work, ignore_errors=True)
        if not _is_split(plan, folder, work):
            _split(plan, folder, work, executor, progress)
        jobs = [
            PartitionJob(cell=plan.cell, partition=part, partitions=plan.partitions, inputs=plan.inputs, folder=folder,
                         work=work)
            for part in range(plan.partitions)
        ]  # fmt: skip
        open_jobs = [job for job in jobs if finished(folder, job.partition, plan.inputs) is None]
        done = len(jobs) - len(open_jobs)
        for number, _ in enumerate(executor.results(build_partition, open_jobs), start=done + 1):
            progress(f"join cell {plan.cell}", number, len(jobs), "partitions")
        shutil.rmtree(work, ignore_errors=True)
    record = read_cell(out, plan.cell)
    assert record is not None  # every partition has just been finished
    return CellRecord(**{**_shallow(record), "kept": done, "why_rebuilt": why})


def read_cell(out: Path, cell: str) -> CellRecord | None:
    """A finished cell as its manifests describe it; None where it is not finished."""
    folder = folder_of(out, cell)
    sources = read_json(folder / SOURCES)
    if sources is None:
        return None
    parts = [finished(folder, part, sources["inputs"]) for part in range(sources["partitions"])]
    records = tuple(part for part in parts if part is not None)
    if len(records) < len(parts):
        return None
    return CellRecord(
        cell=cell, observed_until_us=sources["observed_until_us"], is_declared=sources["is_declared"],
        sources=tuple(record_from(one) for one in sources["sources"]), partitions=records,
        table_digests=tuple(sorted(sources["table_digests"].items())), missing=tuple(sources["missing"]),
        kept=len(records), why_rebuilt=None,
    )  # fmt: skip


def clear(folder: Path) -> None:
    """Take away what an earlier build wrote into a cell's folder, its promises first."""
    for name in (SOURCES, "part-*.json", "collections.parquet", "machines.parquet"):
        for file in folder.glob(name):
            file.unlink()
    for kind in ("windows", "events"):
        shutil.rmtree(folder / kind, ignore_errors=True)


def _shallow(record: CellRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in CellRecord.__slots__}


def _why_rebuild(plan: CellPlan, folder: Path, work: Path) -> str | None:
    """What changed since the build that lies there, finished or not; None where nothing did or nothing lies there."""
    earlier = read_json(folder / SOURCES) or read_json(work / PLAN)
    if earlier is None or earlier["inputs"] == plan.inputs:
        return None
    before = {one["file"]: one["sha256"] for one in earlier["sources"]}
    now = {one.name: one.sha256 for one in plan.shards}
    named = [
        *(f"{name} is new" for name in now if name not in before),
        *(f"{name} is gone" for name in before if name not in now),
        *(f"{name} changed" for name in now if before.get(name, now[name]) != now[name]),
    ]
    if earlier["partitions"] != plan.partitions:
        named.append(f"{plan.partitions} partitions instead of {earlier['partitions']}")
    return "; ".join(named) or "a setting or the format changed"


def _is_split(plan: CellPlan, folder: Path, work: Path) -> bool:
    """True where the split is finished and the fragments of every unfinished partition are there."""
    sources = read_json(folder / SOURCES)
    if sources is None or sources["inputs"] != plan.inputs:
        return False
    return all(fragments(work, part).is_dir() or finished(folder, part, plan.inputs) for part in range(plan.partitions))


def _split(plan: CellPlan, folder: Path, work: Path, executor: Executor, progress: Progress) -> None:
    """Every shard into fragments, then the cell's own tables, then ``sources.json``."""
    if read_json(folder / SOURCES) is not None:  # fragments are gone that are needed again
        shutil.rmtree(work, ignore_errors=True)
    for part in range(plan.partitions):
        fragments(work, part).mkdir(parents=True, exist_ok=True)
    hashes = [{"file": one.name, "sha256": one.sha256} for one in plan.shards]
    write_json(work / PLAN, {"inputs": plan.inputs, "partitions": plan.partitions, "sources": hashes})
    jobs = [
        SplitJob(shard=one.shard, name=one.name, number=number, sha256=one.sha256, partitions=plan.partitions,
                 work=work)
        for number, one in enumerate(plan.shards)
    ]  # fmt: skip
    records, rows, total = [], 0, plan.rows
    progress(f"split cell {plan.cell}", 0, total)
    for record in executor.results(split_shard, jobs):
        records.append(record)
        rows += record.rows_in
        is_last = len(records) == len(jobs)
        progress(f"split cell {plan.cell}", rows, rows if is_last else None if total is None else max(rows, total))
    records.sort(key=lambda record: [one.name for one in plan.shards].index(record.file))
    digests = {kind: _write_table(table, kind, folder, work) for table, kind in CELL_TABLES.items()}
    write_json(folder / SOURCES, _sources(plan, records, digests))


def _sources(plan: CellPlan, records: Sequence[ShardRecord], digests: dict[str, int]) -> dict[str, Any]:
    latest_us = max((record.latest_us for record in records), default=0)
    declared = plan.observed_until_us
    return {
        "inputs": plan.inputs,
        "partitions": plan.partitions,
        "observed_until_us": latest_us if declared is None else declared,
        "is_declared": declared is not None,
        "missing": list(plan.missing),
        "table_digests": digests,
        "sources": [asdict(record) for record in records],
    }


def _write_table(table: str, kind: str, folder: Path, work: Path) -> int:
    """All fragments of a table of the whole cell → one Parquet in a total order without duplicates; its digest."""
    parts = [pl.read_ipc(file) for file in sorted((work / "tables").glob(f"{kind}-*.arrow"))]
    rows = pl.concat(parts) if parts else pl.DataFrame(schema=schema_of(table))
    key = "collection_id" if kind == "collections" else "machine_id"
    first = [key, "time_us", "type"]
    others = [name for name in rows.columns if name not in (*first, MADE_UP[kind])]
    rows = rows.sort(*first, *others, MADE_UP[kind]).unique([*first, *others], keep="first", maintain_order=True)
    write_parquet(rows, folder / f"{kind}.parquet")
    return digest(rows)
