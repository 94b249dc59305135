"""The parts of a cell → what its machines, owners and queue looked like, as small tables beside the features.

One job a part writes partial sums; merging adds them up, the largest table (machine sums by 300 s slot) day by day, so
memory depends on one part or one day, not on the number of parts. Every sum is over integers: the tables come out the
same in any order of parts.

    <context>/partial/part-0000/<table>.parquet     one part's sums; gone when the tables are finished
    <context>/machine_slots/day-0000.parquet        sums of that day
    <context>/<table>.parquet, context.json         the rest; the manifest last
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from leadtime.domain.borg import DAY_US, WINDOW_US
from leadtime.risk.features.context import (
    KEYS,
    SCHEMAS,
    Context,
    add_up,
    collection_table,
    machine_changes,
    partial,
)
from leadtime.training.executor import Executor
from leadtime.training.manifest import disk_errors, read_json, write_json
from leadtime.training.partition import write_parquet
from leadtime.training.progress import Progress

CONTEXT = "context.json"
CONTEXT_SCHEMA = "leadtime.borg-context/1"
SLOTS = "machine_slots"
SLOTS_BACK = 3  # a row looks at its newest slot and two before it
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
            write_parquet(frame.sort("slot_us", "machine_id") if name == SLOTS else frame, job.out / f"{name}.parquet")
    return job.part


def read_context(out: Path, rows: pl.DataFrame) -> Context:
    """Tables for ``rows`` (machine_id, end_time_us): of the machine sums only the slots these rows look at."""
    tables = {name: pl.read_parquet(out / f"{name}.parquet") for name in SCHEMAS if name != SLOTS}
    newest = (
        rows.lazy().filter(pl.col("machine_id") > 0)
        .select("machine_id", slot_us=pl.col("end_time_us") // WINDOW_US * WINDOW_US).unique().collect().lazy()
    )  # fmt: skip
    keys = pl.concat(newest.with_columns(pl.col("slot_us") - back * WINDOW_US) for back in range(SLOTS_BACK))
    days = sorted((out / SLOTS).glob("day-*.parquet"))
    kept = [pl.scan_parquet(day).join(keys, on=["machine_id", "slot_us"], how="semi").collect() for day in days]
    slots = pl.concat([*kept, pl.DataFrame(schema=SCHEMAS[SLOTS])]).sort("machine_id", "slot_us")
    return Context(**tables, machine_slots=slots)


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
    """Day by day: files are sorted by slot, so a day is read by its row groups alone."""
    slots = pl.scan_parquet(files)
    first, last = slots.select(pl.col("slot_us").min(), last=pl.col("slot_us").max()).collect().row(0)
    out.mkdir(parents=True, exist_ok=True)
    if first is None:
        return
    for day in range(first // DAY_US, last // DAY_US + 1):
        of_day = slots.filter(pl.col("slot_us").is_between(day * DAY_US, (day + 1) * DAY_US - 1)).collect()
        if of_day.height:
            write_parquet(add_up(SLOTS, [of_day]), out / f"day-{day:04d}.parquet")
