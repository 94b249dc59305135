"""A folder of shards → a mended copy as v3 Parquet, what could not be mended in quarantine, and an account of both.

    DIR/[cell_<c>/]<table>-000000000000.parquet, trace.json    the mended copy
    DIR/quarantine/_<file>.json, _rows-<n>.parquet             files and rows set aside, with the reason
    DIR/repair.json                                            last: rules, rows touched, rates before and after

The input is read only. A mended copy, repaired again, comes out byte for byte the same with nothing touched. Memory:
one file, and about 25 bytes an event row for finding doubles.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from leadtime.domain.borg import Dialect
from leadtime.domain.errors import BadTrace
from leadtime.risk.gates_rows import OPTIONAL
from leadtime.risk.repairs import (
    Mended,
    backward_aside,
    doubles,
    identities,
    in_order,
    no_machine_aside,
    times_to_us,
    v2_to_v3,
)
from leadtime.risk.repairs_plan import EVENT_TABLES, Plan, plan_of
from leadtime.sources.borg import parquet
from leadtime.sources.borg.reading import PARQUETS, read_shard
from leadtime.sources.borg.shards import Shard
from leadtime.training.check import CheckReport, check_raw, judged
from leadtime.training.check_reading import Cell, file_name, lacking_in, shards_below
from leadtime.training.manifest import disk_errors, read_json, write_json
from leadtime.training.progress import Progress, silent
from leadtime.training.repair_account import SCHEMA, Account, RepairReport
from leadtime.training.repair_shards import write_declaration, write_rows_aside, write_shard

MANIFEST = "repair.json"
QUARANTINE = "quarantine"
ROUNDS = 4  # a mended fault may uncover another one: a shard in ms hides what its codes mean


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One shard to be mended: its name in reports, and where its mended copy goes (relative to DIR)."""

    shard: Shard
    name: str
    target: Path


def repair(
    path: Path, out: Path, *, cell: str | None = None, dry_run: bool = False, progress: Progress = silent
) -> RepairReport:  # fmt: skip
    """Mend what can be mended of the shards below ``path`` into ``out``; ``dry_run`` writes nothing at all.

    Raises BadTrace where there is nothing to read, or ``out`` is somebody else's folder or lies inside ``path``;
    DependencyFailed for a full disk.
    """
    _refuse_out(path, out)
    before = check_raw(path, cell=cell, progress=progress)
    shards, _ = shards_below(path, cell)
    files = {file_name(one.path, path): (one.cell or "", one.table) for one in shards}
    unrecognised = {gate.where: ("", "") for gate in before.failed if gate.name == "readable"}
    plan = plan_of(before.gates, {**unrecognised, **files})
    staged = out.absolute().parent / f".{out.name}.unfinished"
    with disk_errors(f"writing {out}", out.absolute().parent):
        try:
            for _ in range(ROUNDS):
                account, after = _mend(path, shards, plan, None if dry_run else staged, progress)
                more = plan_of(after.gates, files)
                if not more.asks_more_than(plan):
                    break
                plan += more
            report = RepairReport(path=path.name, dry_run=dry_run, account=account, before=before, after=after)
            if not dry_run:
                _finish(staged, out, report)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return report


def _refuse_out(path: Path, out: Path) -> None:
    doing = f"repairing {path}"
    if out.absolute() == path.absolute() or path.absolute() in out.absolute().parents:
        raise BadTrace("borg-out-inside", doing, f"{out} lies inside what is to be repaired", "name a folder elsewhere")
    if out.is_file():
        raise BadTrace("borg-out-not-ours", doing, f"{out} is a file", "name a folder; it is made if it does not exist")
    if out.is_dir() and any(out.iterdir()) and (read_json(out / MANIFEST) or {}).get("schema") != SCHEMA:
        raise BadTrace(
            "borg-out-not-ours", doing, f"{out} holds files that no earlier repair wrote", "name an empty or new folder"
        )


def _finish(staged: Path, out: Path, report: RepairReport) -> None:
    """The account last, then the whole folder to its place; an earlier repair's folder is replaced."""
    for number, aside in enumerate(report.account.quarantined):
        write_json(staged / QUARANTINE / f"_{number:04d}-{Path(aside.file).name}.json", aside.to_json())
    write_json(staged / MANIFEST, report.to_json())
    if out.exists():
        shutil.rmtree(out)
    staged.rename(out)


def _mend(
    root: Path, shards: Sequence[Shard], plan: Plan, staged: Path | None, progress: Progress
) -> tuple[Account, CheckReport]:  # fmt: skip
    """One round: every file mended by ``plan`` (written where ``staged`` is a folder), and checked as it came out."""
    if staged is not None:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
    account = Account()
    for name, reason in sorted(plan.aside.items()):
        account.quarantine(name, reason)
    files = _files(root, shards, plan)
    cells = _mended_cells(files, plan, account, staged, progress)
    return account, judged(root, cells, progress)


def _files(root: Path, shards: Sequence[Shard], plan: Plan) -> tuple[_File, ...]:
    """Files that are neither quarantined nor slices, numbered by cell and table."""
    count: dict[tuple[str, str], int] = {}
    found = []
    for shard in shards:
        name = file_name(shard.path, root)
        if name in plan.aside or shard.dialect is Dialect.SLICE:
            continue
        key = (shard.cell or "", shard.table)
        number = count[key] = count.get(key, -1) + 1
        folder = Path(f"cell_{shard.cell}") if shard.cell else Path()
        found.append(_File(shard=shard, name=name, target=folder / f"{shard.table}-{number:012d}.parquet"))
    return tuple(found)


def _mended_cells(
    files: Sequence[_File], plan: Plan, account: Account, staged: Path | None, progress: Progress
) -> Iterator[Cell]:  # fmt: skip
    """Cell after cell: doubles found, files mended and written, the result handed to the gates."""
    total = len(files)
    done = 0
    for name in sorted({one.shard.cell or "" for one in files}):
        own = [one for one in files if (one.shard.cell or "") == name]
        first = own[0].shard
        cell = Cell(name=name, declared=first.clusterdata, observed_until_us=first.observed_until_us)
        double = _doubles(own, plan)
        for file in own:
            frame = _mended(file, plan, double.get(file.name), account, staged)
            cell.take(file.name, file.shard.table, frame, rows_in=frame.height, rejects={})
            cell.absent[file.name] = account.absent[file.name]
            if staged is not None:
                write_shard(staged / file.target, frame, file.shard.table, without=account.absent[file.name])
            account.write(file.name, str(file.target), frame.height)
            done += 1
            progress("mending files", done, total, "files")
        if staged is not None:
            write_declaration(
                (staged / own[0].target).parent, cell=first.cell, observed_until_us=first.observed_until_us,
                clusterdata="v3" if first.clusterdata is not None else None,
            )  # fmt: skip
        yield cell


def _doubles(files: Sequence[_File], plan: Plan) -> dict[str, pl.Series]:
    """File → which of its event rows are doubles of rows anywhere in the cell."""
    found: dict[str, pl.Series] = {}
    for table in EVENT_TABLES:
        own = [one for one in files if one.shard.table == table]
        parts = [pl.concat([identities(frame) for frame in _frames(one, plan)]) for one in own]
        found |= {one.name: is_double for one, is_double in zip(own, doubles(parts), strict=True)}
    return found


def _frames(file: _File, plan: Plan, account: Account | None = None) -> Iterator[pl.DataFrame]:
    """Batches of a file with its unit and codes put right."""
    lacking = frozenset(name for name in lacking_in(file.shard) if f"{file.shard.table}.{name}" in OPTIONAL)
    for batch in read_shard(file.shard):
        frame = batch.frame
        unit = plan.units.get(file.name)
        steps = [] if unit is None else [(f"unit-{unit}-to-us", times_to_us(frame, unit))]
        if steps:
            frame = steps[0][1].frame
        if file.name in plan.v2:
            steps.append(("enum-v2-to-v3", v2_to_v3(frame)))
            frame = steps[-1][1].frame
        if account is not None:
            for rule, step in steps:
                account.touch(rule, file.name, step.rows)
            account.read(file.name, batch, lacking)
        yield frame


def _mended(
    file: _File, plan: Plan, double: pl.Series | None, account: Account, staged: Path | None
) -> pl.DataFrame:  # fmt: skip
    """A whole file after every rule; rows that were set aside are written to the quarantine."""
    table = file.shard.table
    frame = pl.concat(list(_frames(file, plan, account)))
    _note_writing(file, frame.height, account)
    if double is not None:
        account.touch("drop-duplicate-events", file.name, int(double.sum()))
        frame = frame.filter(~double)
    rule, step = "", Mended(frame=frame, rows=0)
    if table == "machine_events":
        rule, step = "zero-means-no-machine", no_machine_aside(frame)
    elif table == "instance_usage":
        rule, step = "drop-backward-windows", backward_aside(frame)
    if step.aside is not None:
        account.set_aside(rule, file.name, step.rows)
        if staged is not None:
            rows = step.aside.with_columns(pl.lit(rule).alias("reason"), pl.lit(file.name).alias("file"))
            name = f"_rows-{str(file.target).replace('/', '-')}"
            (staged / QUARANTINE).mkdir(exist_ok=True)
            write_rows_aside(staged / QUARANTINE / name, rows)
    ordered = in_order(step.frame, table)
    account.touch("sort-rows", file.name, ordered.rows)
    return ordered.frame


def _note_writing(file: _File, rows: int, account: Account) -> None:
    """What changes by writing the file anew, before any rule."""
    if file.shard.dialect is not Dialect.PARQUET:
        account.touch("canonical-parquet", file.name, rows)
    if file.shard.dialect in PARQUETS and parquet.schema_at(file.shard.path).get("type") == pl.String:
        account.touch("normalise-event-types", file.name, rows)
    if file.name in account.unknown:
        account.touch("drop-unknown-columns", file.name, rows)
