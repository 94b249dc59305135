"""``leadtime borg repair``: a mended copy of a trace by named rules, a quarantine, and an account of both."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.training.repair_account import RepairReport

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg repair ~/Documents/borg_data/b --out mended --dry-run\n"
    "  leadtime borg repair ~/Documents/borg_data/b --out mended --json"
)
FOUND_EXIT = 1

_Path = Annotated[Path, typer.Argument(metavar="PATH", help="A shard or a folder of shards; it is only read.")]
_Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the mended copy goes: an empty or new folder.")]
_Cell = Annotated[str | None, typer.Option(metavar="NAME", help="Only shards of this cell.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the account as JSON on stdout.")]


def repair(*, path: _Path, out: _Out, cell: _Cell = None, dry_run: _DryRun = False, json: _Json = False) -> None:
    """Mend what can be mended, set aside what cannot (exit 1 when the mended copy still fails a gate)."""
    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr

    need("repairing a trace", "polars")
    from leadtime.training.repair import repair as mend

    console = stderr()
    with shown(console) as progress:
        report = mend(path, out, cell=cell, dry_run=dry_run, progress=progress)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(console, report, out)
    if not report.is_usable:
        raise typer.Exit(FOUND_EXIT)


def _show(console: "Console", report: "RepairReport", out: Path) -> None:
    """Rules with the rows they touched, what was set aside, the rates that moved, what still fails."""
    from leadtime.risk.repairs import RULES

    told = report.account
    rules: dict[str, list[int]] = {}
    for (rule, _), rows in sorted(told.touched.items()):
        rules.setdefault(rule, []).append(rows)
    for rule, counts in rules.items():
        console.print(f"{rule}: {sum(counts):,} rows in {len(counts)} file(s): {RULES[rule]}", markup=False)
    for (rule, file), rows in sorted(told.rejected.items()):
        console.print(f"rejected by the reader, {rule}: {rows:,} rows of {file}", markup=False)
    for aside in told.quarantined:
        console.print(f"set aside {aside.file}: {aside.reason}", markup=False, soft_wrap=True)
    for one in report.rates():
        standings = (_standing(one["before"]), _standing(one["after"]))
        if "failed" in standings and standings[0] != standings[1]:
            line = f"{one['gate']} [{one['where']}]: {_said(one['before'], one)} → {_said(one['after'], one)}"
            console.print(line, markup=False, soft_wrap=True)
    for gate in report.after.failed:
        console.print(f"still failing {gate.name} [{gate.where}]: {gate.sentence}; {gate.cure}", markup=False)
    if report.dry_run:
        console.print(f"dry run: {told.rows_touched:,} rows would be touched; nothing was written", markup=False)
    else:
        what = f"{len(told.files)} shards, {told.rows_touched:,} rows touched, {len(told.quarantined)} files set aside"
        console.print(f"written: {out} ({what})", markup=False, soft_wrap=True)


def _standing(told: dict[str, object] | None) -> object:
    return None if told is None else told["standing"]


def _said(told: dict[str, object] | None, one: dict[str, object]) -> str:
    """``failed at 300,000 µs``; a gate that is not there before or after had nothing to look at."""
    from leadtime.risk.gates import written

    if told is None:
        return "no such file"
    measured = told["measured"]
    number = f" at {written(measured, str(one['unit']))}" if isinstance(measured, float) else ""
    return f"{str(told['standing']).replace('_', ' ')}{number}"
