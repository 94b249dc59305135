"""One shard → fragments by hash of the collection, and the record of what was read; resumable by that record.

Usage keeps only what a window needs (vectors become quantiles), so that fragments stay small. Collection and machine
events are not split: they are the whole cell's. Fragments without a record are of a split that did not finish.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US
from leadtime.risk.windows import TASK, usage_windows
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import Shard
from leadtime.training.dataset_digest import bucket
from leadtime.training.manifest import disk_errors, read_json, write_json, written

READ_ROWS = 250_000  # of a shard at a time
FLUSH_ROWS = 1_000_000  # that are kept before fragments are written
SPLIT_TABLES = {"instance_usage": "usage", "instance_events": "events"}
CELL_TABLES = {"collection_events": "collections", "machine_events": "machines"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitJob:
    """``name``: the shard's path below its source; ``number``: its place among the cell's shards."""

    shard: Shard
    name: str
    number: int
    sha256: str
    partitions: int
    work: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """What was read from one file. ``rows_in`` = ``rows_out`` + ``rejects`` + ``alloc_rows`` (alloc instances)."""

    file: str
    table: str
    dialect: str
    sha256: str
    size_bytes: int
    rows_in: int
    rows_out: int
    alloc_rows: int
    rejects: Mapping[str, int]  # rule → rows
    notes: tuple[str, ...]
    latest_us: int  # newest time seen, sentinels left out


def split_shard(job: SplitJob) -> ShardRecord:
    """Read ``job.shard`` once and write its fragments below ``job.work``; at once done where its record is there.

    Raises BadTrace for a file that cannot be read, DependencyFailed for a disk that is full.
    """
    place = job.work / "shards" / f"{job.number:05d}.json"
    with disk_errors(f"splitting {job.name}", job.work):
        if (done := read_json(place)) is not None and done.get("sha256") == job.sha256:
            return record_from(done)
        for left in job.work.glob(f"*/*-{job.number:05d}-*.arrow"):
            left.unlink()
        writer = _Fragments(job)
        tally = _Tally()
        for batch in read_shard(job.shard, batch_rows=READ_ROWS):
            kept = _reduced(batch.frame, job.shard.table)
            tally.note(batch.rows_in, kept, batch.frame, {r.rule: r.rows for r in batch.rejects})
            tally.notes += [note.text for note in batch.notes]
            writer.add(kept)
        writer.flush()
        record = tally.record(job)
        write_json(place, asdict(record))
        return record


def record_from(content: Mapping[str, Any]) -> ShardRecord:
    """The record as its JSON has it."""
    return ShardRecord(**{**content, "notes": tuple(content["notes"])})


class _Tally:
    """Counts over a shard's batches."""

    def __init__(self) -> None:
        self.rows_in = self.rows_out = self.alloc_rows = self.latest_us = 0
        self.rejects: dict[str, int] = {}
        self.notes: list[str] = []

    def note(self, rows_in: int, kept: pl.DataFrame, read: pl.DataFrame, rejects: Mapping[str, int]) -> None:
        self.rows_in += rows_in
        self.rows_out += kept.height
        self.alloc_rows += read.height - kept.height
        for rule, rows in rejects.items():
            self.rejects[rule] = self.rejects.get(rule, 0) + rows
        time = "end_time_us" if "end_time_us" in read.columns else "time_us"
        latest = read.select(pl.col(time).filter(pl.col(time) < AFTER_TRACE_US).max()).item()
        self.latest_us = max(self.latest_us, latest or 0)

    def record(self, job: SplitJob) -> ShardRecord:
        return ShardRecord(
            file=job.name, table=job.shard.table, dialect=job.shard.dialect.value, sha256=job.sha256,
            size_bytes=job.shard.path.stat().st_size, rows_in=self.rows_in, rows_out=self.rows_out,
            alloc_rows=self.alloc_rows, rejects=dict(sorted(self.rejects.items())), notes=tuple(self.notes),
            latest_us=self.latest_us,
        )  # fmt: skip


class _Fragments:
    """Rows kept until there are enough of them for files of a useful size."""

    def __init__(self, job: SplitJob) -> None:
        self._job = job
        self._kept: list[pl.DataFrame] = []
        self._rows = 0
        self._flushed = 0

    def add(self, frame: pl.DataFrame) -> None:
        self._kept.append(frame)
        self._rows += frame.height
        if self._rows >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        frame, job = pl.concat(self._kept), self._job
        self._kept, self._rows = [], 0
        file = f"-{job.number:05d}-{self._flushed:04d}.arrow"
        self._flushed += 1
        if job.shard.table in CELL_TABLES:
            _write(frame, job.work / "tables" / (CELL_TABLES[job.shard.table] + file))
            return
        split = frame.with_columns(_bucket=bucket("collection_id", job.partitions))
        for (part,), rows in split.partition_by("_bucket", as_dict=True, include_key=False).items():
            _write(rows, fragments(job.work, int(part)) / (SPLIT_TABLES[job.shard.table] + file))


def fragments(work: Path, partition: int) -> Path:
    """Where the fragments of one partition lie until it is built."""
    return work / f"p{partition:04d}"


def _write(frame: pl.DataFrame, path: Path) -> None:
    written(path, lambda staged: frame.write_ipc(staged, compression="lz4"))


def _reduced(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """Tasks only, with the columns a window needs; collection and machine events as they are."""
    if table == "instance_usage":
        return usage_windows(frame.lazy()).collect(engine="in-memory")
    if table == "instance_events":
        return frame.filter(pl.col("collection_type") == TASK)
    return frame
