"""The parts of a cell → what its machines, owners and queue looked like, as small tables beside the features.

One job a part writes partial sums; merging adds them up, the largest table (machine sums by 300 s slot) some hours at a
time, so memory depends on one part and on the machines, not on the number of parts. Every sum is over integers: the
tables come out the same in any order of parts.

    <context>/partial/part-0000/<table>.parquet     one part's sums; gone when the tables are finished
    <context>/machine_slots/day-0000.parquet        sums of that day
    <context>/<table>.parquet, context.json         the rest; the manifest last
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from leadtime.domain.borg import DAY_US, WINDOW_US
from leadtime.risk.features.context import (
    KEYS,
    SCHEMAS,
    SLOTS_BACK,
    Context,
    add_up,
    asked_slots,
    collection_table,
    machine_changes,
    newest_slots,
    partial,
)
from leadtime.training.executor import Executor
from leadtime.training.manifest import disk_errors, read_json, write_json, written
from leadtime.training.partition import write_parquet
from leadtime.training.progress import Progress

CONTEXT = "context.json"
CONTEXT_SCHEMA = "leadtime.borg-context/1"
SLOTS = "machine_slots"
PIECE_US = DAY_US // 8  # added up at a time: 4 million partial sums where 60 million rows span two days
PARTIAL_GROUP_ROWS = 16_384  # row groups of partial sums, small enough that a piece reads little beside itself
WINDOW_COLUMNS = [
    "machine_id", "start_time_us", "end_time_us", "is_running", "avg_cpu", "avg_memory", "request_cpu",
    "request_memory",
]  # fmt: skip
EVENT_COLUMNS = ["collection_id", "instance_index", "time_us", "type", "collection_type", "machine_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialJob:
    """One part of a cell's windows, and where its sums go."""

    cell_folder: Path
    part: str
    out: Path


def build_context(
    cell_folder: Path, parts: list[str], out: Path, *, inputs: str, run: Executor, note: Progress
) -> None:
    """Bring ``out`` to the tables of ``cell_folder``; nothing to do where it is finished for the same ``inputs``."""
    with disk_errors(f"writing {out}", out):
        manifest = read_json(out / CONTEXT)
        if manifest is not None and manifest.get("inputs") == inputs:
            return
        shutil.rmtree(out, ignore_errors=True)
        jobs = [PartialJob(cell_folder=cell_folder, part=part, out=out / "partial" / part) for part in parts]
        what = f"context of {cell_folder.name}"
        for number, _ in enumerate(run.results(write_partial, jobs), start=1):
            note(what, number, len(jobs), "partitions")
        _merge(cell_folder, parts, out)
        shutil.rmtree(out / "partial")
        write_json(out / CONTEXT, {"schema": CONTEXT_SCHEMA, "inputs": inputs, "tables": sorted(SCHEMAS)})


def write_partial(job: PartialJob) -> str:
    """One part's sums, table by table, each sorted by its key; the part's name."""
    with disk_errors(f"writing {job.out}", job.out):
        windows = pl.scan_parquet(job.cell_folder / "windows" / f"{job.part}.parquet").select(WINDOW_COLUMNS)
        events = pl.scan_parquet(job.cell_folder / "events" / f"{job.part}.parquet").select(EVENT_COLUMNS)
        sums = partial(windows, events, _collections(job.cell_folder))
        for name in KEYS:
            frame: pl.DataFrame = getattr(sums, name)
            if name == SLOTS:
                _write_slots(frame.sort("slot_us", "machine_id"), job.out / f"{name}.parquet")
            else:
                write_parquet(frame, job.out / f"{name}.parquet")
    return job.part


def _write_slots(frame: pl.DataFrame, path: Path) -> None:
    written(path, lambda staged: frame.write_parquet(
        staged, compression="zstd", compression_level=1, row_group_size=PARTIAL_GROUP_ROWS, statistics=True
    ))  # fmt: skip


def read_context(out: Path, rows: pl.DataFrame) -> Context:
    """Tables for ``rows`` (machine_id, end_time_us): of the machine sums only the slots these rows look at."""
    tables = {name: pl.read_parquet(out / f"{name}.parquet") for name in SCHEMAS if name != SLOTS}
    asked = asked_slots(rows)
    kept = [_seen_of(day, asked) for day in sorted((out / SLOTS).glob("day-*.parquet"))]
    slots = pl.concat([*kept, pl.DataFrame(schema=SCHEMAS[SLOTS])]).sort("machine_id", "slot_us")
    return Context(**tables, machine_slots=slots)


def narrowed(context: Context, rows: pl.DataFrame) -> Context:
    """The same tables for some of the rows, with the machine sums these look at."""
    return replace(context, machine_slots=newest_slots(context.machine_slots, asked_slots(rows)))


def _seen_of(day: Path, asked: pl.DataFrame) -> pl.DataFrame:
    """A day's slots that are asked for, on that day or in the first minutes of the next."""
    slots = pl.scan_parquet(day)
    first, last = slots.select(pl.col("slot_us").min(), last=pl.col("slot_us").max()).collect().row(0)
    near = asked.filter(pl.col("slot_us").is_between(first, last + (SLOTS_BACK - 1) * WINDOW_US))
    keys = pl.concat(near.lazy().with_columns(pl.col("slot_us") - back * WINDOW_US) for back in range(SLOTS_BACK))
    candidates = slots.join(keys.unique(), on=["machine_id", "slot_us"], how="semi").collect(engine="streaming")
    return newest_slots(candidates, near)


def _collections(cell_folder: Path) -> pl.DataFrame:
    path = cell_folder / "collections.parquet"
    columns = ["collection_id", "time_us", "type", "user", "collection_logical_name"]
    return collection_table(pl.read_parquet(path, columns=columns))


def _merge(cell_folder: Path, parts: list[str], out: Path) -> None:
    for name in KEYS:
        if name != SLOTS:
            frames = [pl.read_parquet(out / "partial" / part / f"{name}.parquet") for part in parts]
            write_parquet(add_up(name, frames), out / f"{name}.parquet")
    write_parquet(_collections(cell_folder), out / "collections.parquet")
    machines = pl.read_parquet(cell_folder / "machines.parquet", columns=["machine_id", "time_us", "type"])
    write_parquet(machine_changes(machines), out / "machine_changes.parquet")
    _merge_slots([out / "partial" / part / f"{SLOTS}.parquet" for part in parts], out / SLOTS)


def _merge_slots(files: list[Path], out: Path) -> None:
    """Day by day, a day PIECE_US at a time: files are sorted by slot, so a piece is read by its row groups alone."""
    slots = pl.scan_parquet(files)
    first, last = slots.select(pl.col("slot_us").min(), last=pl.col("slot_us").max()).collect().row(0)
    out.mkdir(parents=True, exist_ok=True)
    if first is None:
        return
    for day in range(first // DAY_US, last // DAY_US + 1):
        pieces = []
        for begun in range(day * DAY_US, (day + 1) * DAY_US, PIECE_US):
            of_piece = slots.filter(pl.col("slot_us").is_between(begun, begun + PIECE_US - 1))
            pieces.append(add_up(SLOTS, [of_piece.collect(engine="streaming")]))
        if sum(piece.height for piece in pieces):
            write_parquet(pl.concat(pieces).sort(KEYS[SLOTS]), out / f"day-{day:04d}.parquet")
