"""Frames of cohorts → the folder of a trace: all of it or nothing, trace.json last. Disks and folders that refuse."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from leadtime.domain.borg import DECLARATION, DECLARATION_SCHEMA, Dialect
from leadtime.domain.errors import BadTrace, DependencyFailed, WrongUse
from leadtime.simulate.borg.dialects.layout import EventTypeForm
from leadtime.simulate.borg.dialects.shards import write_shard
from leadtime.simulate.borg.dialects.slices import write_slice
from leadtime.simulate.borg.knobs import Knobs

TRUTH_FOLDER = "truth"
TRUTH, TRUTH_ROWS = "truth.json", "truth_rows.parquet"
TRUTH_SCHEMA = "leadtime.borg-truth/1"
TRUTH_GROUP_ROWS = 262_144
DOING = "writing a trace to"
SHARD_NAMES = ("instance_usage-*", "instance_events-*", "collection_events-*", "machine_events-*", "slice-*")


class TraceFolder:
    """Where one trace is being written: shards into a hidden folder, moved when everything is there.

    ``rows`` and ``nulls`` count what was written, by table and by "table.column".
    """

    def __init__(self, knobs: Knobs, out: Path, staged: Path) -> None:
        self.knobs, self.out, self.staged = knobs, out, staged
        self.rows: Counter[str] = Counter()
        self.nulls: Counter[str] = Counter()
        self._shards: Counter[str] = Counter()
        self._parts: list[Path] = []
        (staged / TRUTH_FOLDER).mkdir()

    def dialect(self, number: int) -> Dialect:
        """What shard ``number`` speaks."""
        return self.knobs.dialects[number % len(self.knobs.dialects)]

    def shard(self, table: str, frame: pl.DataFrame) -> None:
        """The next shard of ``table``."""
        number = self._shards[table]
        self._shards[table] += 1
        self._count(table, frame)
        form = EventTypeForm(self.knobs.event_types)
        write_shard(self.staged, table, number, frame, self.dialect(number), event_type_form=form)

    def slice(self, usage: pl.DataFrame, instance_events: pl.DataFrame, collection_events: pl.DataFrame) -> None:
        """The next joined CSV."""
        tables = {
            "instance_usage": usage, "instance_events": instance_events, "collection_events": collection_events,
        }  # fmt: skip
        for table, frame in tables.items():
            self._count(table, frame)
        write_slice(self.staged, self._shards["slice"], usage, instance_events, collection_events)
        self._shards["slice"] += 1

    def truth_part(self, frame: pl.DataFrame) -> None:
        """The next cohort's truth rows; cohorts come in the order of their ids."""
        part = self.staged / TRUTH_FOLDER / f"part-{len(self._parts):06d}.parquet"
        frame.write_parquet(part, compression="uncompressed", statistics=False)
        self._parts.append(part)

    def finish(self, truth: Mapping[str, object]) -> None:
        """Truth rows into one file, truth.json, trace.json, and everything to its place."""
        folder = self.staged / TRUTH_FOLDER
        pl.scan_parquet(self._parts, glob=False).sink_parquet(
            folder / TRUTH_ROWS, compression="zstd", compression_level=1, row_group_size=TRUTH_GROUP_ROWS,
            maintain_order=True,
        )  # fmt: skip
        for part in self._parts:
            part.unlink()
        (folder / TRUTH).write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
        version = "v2" if Dialect.V2 in self.knobs.dialects else "v3"
        declaration = {
            "schema": DECLARATION_SCHEMA, "cell": self.knobs.cell, "clusterdata": version,
            "observed_until_us": self.knobs.observed_until_us,
        }  # fmt: skip
        _clear(self.out)
        files = sorted(path.relative_to(self.staged) for path in self.staged.rglob("*") if path.is_file())
        for file in files:
            (self.out / file).parent.mkdir(parents=True, exist_ok=True)
            (self.staged / file).replace(self.out / file)
        (self.out / DECLARATION).write_text(json.dumps(declaration, indent=1) + "\n", encoding="utf-8")

    def _count(self, table: str, frame: pl.DataFrame) -> None:
        self.rows[table] += frame.height
        for name, nulls in frame.null_count().row(0, named=True).items():
            self.nulls[f"{table}.{name}"] += nulls


@contextmanager
def trace_folder(knobs: Knobs, out: Path) -> Iterator[TraceFolder]:
    """A folder to write a trace into; nothing of it is left when writing fails or is stopped.

    Raises WrongUse (a file in the way, no right to write), BadTrace (somebody else's files) before anything is drawn,
    DependencyFailed ``disk-full`` when the disk has no room.
    """
    existed = out.is_dir()
    _refuse(out)
    staged = out / f".unfinished-{os.getpid()}"
    try:
        try:
            staged.mkdir(parents=True)
            yield TraceFolder(knobs, out, staged)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            if not existed and out.is_dir() and not any(out.iterdir()):
                out.rmdir()
    except (OSError, pl.exceptions.ComputeError) as error:
        raise _failed(out, error) from None


def _failed(out: Path, error: Exception) -> Exception:
    text = str(error)
    if "os error 28" in text or "No space left" in text or "quota" in text.lower():
        return DependencyFailed(
            "disk-full",
            f"{DOING} {out}",
            "the disk has no room left",
            "free some, or lower --rows; nothing was left behind",
        )
    reason = text.splitlines()[0] if text else type(error).__name__
    return WrongUse("out-not-writable", f"{DOING} {out}", reason, "check its rights and that the disk has room")


def _refuse(out: Path) -> None:
    for one in (out, *out.parents):
        if one.exists() and not one.is_dir():
            raise WrongUse("out-not-a-folder", f"{DOING} {out}", f"{one.name} is a file", "name a folder with --out")
    if out.is_dir() and any(not path.name.startswith(".unfinished-") for path in out.iterdir()) and not _ours(out):
        raise BadTrace(
            "trace-folder-not-ours", f"{DOING} {out}", "there are files in it that no earlier run generated",
            "name a new or empty folder with --out",
        )  # fmt: skip


def _ours(out: Path) -> bool:
    """True for a folder that an earlier run generated: its truth says so."""
    try:
        truth = json.loads((out / TRUTH_FOLDER / TRUTH).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(truth, dict) and truth.get("schema") == TRUTH_SCHEMA


def _clear(out: Path) -> None:
    """Take an earlier trace away: its shards and its truth, nothing else."""
    for pattern in (DECLARATION, *SHARD_NAMES, f"{TRUTH_FOLDER}/{TRUTH}", f"{TRUTH_FOLDER}/{TRUTH_ROWS}"):
        for path in out.glob(pattern):
            path.unlink()
