"""Fragments of one partition → its windows, its events and its manifest: the unit of resume and of distribution."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.risk.asof import join_events
from leadtime.risk.causes import with_causes
from leadtime.risk.runs import ordered
from leadtime.risk.windows import USAGE_SCHEMA
from leadtime.sources.borg.canonical import schema_of
from leadtime.training.dataset_digest import digest
from leadtime.training.dataset_split import fragments
from leadtime.training.manifest import disk_errors, read_json, write_json, written

PARTITION_SCHEMA = "leadtime.borg-partition/1"
ROW_GROUP_ROWS = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionJob:
    """``inputs``: fingerprint of the cell's shards and settings; ``folder``: the cell's; ``work``: its fragments."""

    cell: str
    partition: int
    partitions: int
    inputs: str
    folder: Path
    work: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """What one partition holds. Digests add up over partitions (dataset_digest); ``rows_in`` = ``rows``."""

    schema: str
    cell: str
    partition: int
    partitions: int
    inputs: str
    rows_in: int
    rows: int
    events_in: int
    events: int
    duplicate_events: int
    windows_digest: int
    events_digest: int


def manifest_path(folder: Path, partition: int) -> Path:
    """Where a partition says that it is finished."""
    return folder / f"{part_name(partition)}.json"


def part_name(partition: int) -> str:
    """File name of a partition, without its ending."""
    return f"part-{partition:04d}"


def finished(folder: Path, partition: int, inputs: str) -> PartitionRecord | None:
    """The partition's record where it is finished and of these ``inputs``; else None."""
    content = read_json(manifest_path(folder, partition))
    if content is None or content.get("schema") != PARTITION_SCHEMA or content.get("inputs") != inputs:
        return None
    parts = [folder / kind / f"{part_name(partition)}.parquet" for kind in ("windows", "events")]
    return PartitionRecord(**content) if all(part.is_file() for part in parts) else None


def build_partition(job: PartitionJob) -> PartitionRecord:
    """Join one partition and write it, manifest last; at once done where it is finished. Its fragments are removed.

    Needs ``collections.parquet`` and ``machines.parquet`` in the cell's folder. Raises DependencyFailed when the disk
    is full; what other partitions wrote stays.
    """
    with disk_errors(f"building {part_name(job.partition)} of cell {job.cell}", job.folder):
        record = finished(job.folder, job.partition, job.inputs)
        if record is None:
            record = _build(job)
            write_json(manifest_path(job.folder, job.partition), asdict(record))
        shutil.rmtree(fragments(job.work, job.partition), ignore_errors=True)
        return record


def _build(job: PartitionJob) -> PartitionRecord:
    usage, read_events = _fragments(job, "usage"), _fragments(job, "events")
    collections = pl.read_parquet(job.folder / "collections.parquet", columns=_COLLECTION_COLUMNS)
    machines = pl.read_parquet(job.folder / "machines.parquet")
    in_order = ordered(read_events.lazy())
    events = with_causes(in_order, collections.lazy(), machines.lazy()).collect(engine="in-memory")
    rows_in, events_in = usage.height, read_events.height
    del read_events
    windows = join_events(usage.lazy(), events.lazy(), collections.lazy(), machines.lazy())
    del usage
    joined = windows.collect(engine="in-memory")
    del windows
    write_parquet(events, job.folder / "events" / f"{part_name(job.partition)}.parquet")
    write_parquet(joined, job.folder / "windows" / f"{part_name(job.partition)}.parquet")
    return PartitionRecord(
        schema=PARTITION_SCHEMA, cell=job.cell, partition=job.partition, partitions=job.partitions,
        inputs=job.inputs, rows_in=rows_in, rows=joined.height, events_in=events_in, events=events.height,
        duplicate_events=events_in - events.height, windows_digest=digest(joined), events_digest=digest(events),
    )  # fmt: skip


_COLLECTION_COLUMNS = [
    "time_us", "type", "collection_id", "scheduling_class", "priority", "vertical_scaling", "parent_collection_id",
]  # fmt: skip


def _fragments(job: PartitionJob, kind: str) -> pl.DataFrame:
    """The partition's rows in the order of shards."""
    files = sorted(fragments(job.work, job.partition).glob(f"{kind}-*.arrow"))
    if not files:
        schema: Any = USAGE_SCHEMA if kind == "usage" else schema_of("instance_events")
        return pl.DataFrame(schema=schema)
    return pl.concat([pl.read_ipc(file) for file in files], rechunk=False)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """``frame`` → ``path``, all or nothing, with settings that never vary: equal rows, equal bytes."""
    rows = frame.rechunk()
    written(path, lambda staged: rows.write_parquet(
        staged, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS, statistics=True
    ))  # fmt: skip
