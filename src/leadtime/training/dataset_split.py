"""One shard → fragments by hash of the collection, and the record of what was read; resumable by that record.

Usage keeps only what a window needs (vectors become quantiles), so that fragments stay small. Collection and machine
events are not split: they are the whole cell's. Fragments without a record are of a split that did not finish.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.risk.gates_tally import Tally, tally
from leadtime.risk.windows import TASK, usage_windows
from leadtime.sources.borg.batch import Note
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import Shard
from leadtime.training.check_reading import lacking_in
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
    foreign_columns: tuple[str, ...]  # of no canonical table; not read
    tally: Mapping[str, Any]  # risk.gates_tally.Tally, what the gates judge
    latest_us: int  # newest time seen, sentinels left out
    absent_columns: tuple[str, ...] = ()  # canonical columns the file does not have


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
        counts, rows_out, notes = Tally(table=job.shard.table), 0, list[Note]()
        for batch in read_shard(job.shard, batch_rows=READ_ROWS):
            rejects = {reject.rule: reject.rows for reject in batch.rejects}
            counts += tally(batch.frame, job.shard.table, rows_in=batch.rows_in, rejects=rejects)
            kept = _reduced(batch.frame, job.shard.table)
            rows_out += kept.height
            notes += batch.notes
            writer.add(kept)
        writer.flush()
        record = _record(job, counts, rows_out, notes)
        write_json(place, asdict(record))
        return record


def _record(job: SplitJob, counts: Tally, rows_out: int, notes: Sequence[Note]) -> ShardRecord:
    return ShardRecord(
        file=job.name, table=job.shard.table, dialect=job.shard.dialect.value, sha256=job.sha256,
        size_bytes=job.shard.path.stat().st_size, rows_in=counts.rows_in, rows_out=rows_out,
        alloc_rows=counts.rows_out - rows_out, rejects=dict(sorted(counts.rejects.items())),
        notes=tuple(note.text for note in notes),
        foreign_columns=tuple(note.column for note in notes if note.code == "column-ignored"),
        latest_us=counts.latest_us or 0, tally=tally_json(counts),
        absent_columns=tuple(sorted(
            {note.column for note in notes if note.code == "column-absent"} | lacking_in(job.shard)
        )),
    )  # fmt: skip


def record_from(content: Mapping[str, Any]) -> ShardRecord:
    """The record as its JSON has it."""
    lists = ("notes", "foreign_columns", "absent_columns")
    return ShardRecord(**{**content, **{name: tuple(content.get(name, ())) for name in lists}})


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


def tally_json(counts: Tally) -> dict[str, Any]:
    """A tally as JSON keeps it."""
    return asdict(counts) | {"lengths_us": {str(length): rows for length, rows in sorted(counts.lengths_us.items())}}


def tally_from(content: Mapping[str, Any]) -> Tally:
    """A tally as JSON kept it."""
    return Tally(**{**content, "lengths_us": {int(length): rows for length, rows in content["lengths_us"].items()}})
