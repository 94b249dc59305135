"""``leadtime borg check``: gates with numbers and a verdict, on shards of any dialect or on joined windows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.borg.page import parse_page

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.risk.gates import Gate
    from leadtime.training.check import CheckReport

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg check ~/Documents/borg_data/b --html check.html\n"
    "  leadtime borg check ~/Documents/borg_processed --allow null-rate --json"
)
FOUND_EXIT = 1

_Path = Annotated[Path, typer.Argument(metavar="PATH", help="A shard, a folder of shards, or make-dataset's folder.")]
_Cell = Annotated[str | None, typer.Option(metavar="NAME", help="Only shards of this cell.")]
_Allow = Annotated[list[str] | None, typer.Option(metavar="GATE", help="Let this gate fail; may be repeated.")]
_Html = Annotated[
    Path | None,
    typer.Option(parser=parse_page, metavar="FILE", help="Write the report as one page, in a folder that is there."),
]
_Previous = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Compare rates with this dataset.json or check's JSON.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")]


def check(
    *, path: _Path, cell: _Cell = None, allow: _Allow = None, html: _Html = None, previous: _Previous = None,
    json: _Json = False,
) -> None:  # fmt: skip
    """Check a trace, or the windows made from one, before anything is trained on it (exit 1 when a gate fails)."""
    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("checking a trace", "polars")
    _refuse_unknown(allow or ())
    console = stderr()
    report = _report(path, cell, tuple(allow or ()), previous, console)
    if html is not None:
        from leadtime.training.check_files import write_page

        write_page(html, report)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(console, report)
    if report.failed:
        raise typer.Exit(FOUND_EXIT)


def _refuse_unknown(names: Sequence[str]) -> None:
    """A misspelt gate would allow nothing, in silence."""
    from leadtime.risk.gates import GATES

    unknown = [name for name in names if name not in GATES]
    if unknown:
        raise typer.BadParameter(f"--allow {unknown[0]}: there is no such gate; the gates are {', '.join(GATES)}")


def _report(
    path: Path, cell: str | None, allow: tuple[str, ...], previous: Path | None, console: "Console"
) -> "CheckReport":  # fmt: skip
    """Run the check that fits ``path``, with bars on a terminal."""
    from leadtime.cli.borg.progress import shown
    from leadtime.training.check import check_dataset, check_raw
    from leadtime.training.check_files import earlier, is_dataset

    before = earlier(previous, path)
    name = "the last build" if before is None else before.name
    content = None if before is None else before.content
    with shown(console) as progress:
        if is_dataset(path):
            return check_dataset(path, allow=allow, previous=content, previous_name=name, progress=progress)
        return check_raw(path, cell=cell, allow=allow, previous=content, previous_name=name, progress=progress)


def _show(console: "Console", report: "CheckReport") -> None:
    """Each failed gate on its own line, allowed ones after them, then one row a gate."""
    from leadtime.risk.gates import Standing
    from leadtime.training.check_html import verdict

    for gate in report.gates:
        if gate.standing in (Standing.FAILED, Standing.ALLOWED):
            console.print(_line(gate), markup=False, soft_wrap=True)
    console.print(_table(report))
    for line in _unexamined(report):
        console.print(line, markup=False, soft_wrap=True)
    for cell, share in report.sampled.items():
        if share < 1:
            console.print(
                f"cell {cell or 'unnamed'}: histories of {share:.3%} of the instances looked at", markup=False
            )
    console.print(verdict(report), markup=False, soft_wrap=True)


def _line(gate: "Gate") -> str:
    where = f" [{gate.where}]" if gate.where else ""
    measured = f" measured {gate.measured_words}, {gate.limit_words} wanted:" if gate.limit_words else ""
    return f"{gate.standing.value} {gate.name}{where}:{measured} {gate.sentence}; {gate.cure}"


def _table(report: "CheckReport") -> object:
    """One row a gate that was examined: how often it came out how, and its worst verdict."""
    from rich.markup import escape
    from rich.table import Table

    from leadtime.risk.gates import GATES, Standing

    columns = (Standing.FAILED, Standing.ALLOWED, Standing.PASSED, Standing.NOT_EXAMINED)  # the worst first
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("gate", no_wrap=True, min_width=max(map(len, GATES)))
    table.add_column("verdicts", no_wrap=True, min_width=22)
    table.add_column("worst verdict", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in GATES:
        gates = [gate for gate in report.gates if gate.name == name]
        if any(gate.standing is not Standing.NOT_EXAMINED for gate in gates):
            counts = [(standing, sum(gate.standing is standing for gate in gates)) for standing in columns]
            said = ", ".join(f"{count} {standing.value.replace('_', ' ')}" for standing, count in counts if count)
            worst = min(gates, key=lambda gate: columns.index(gate.standing))
            table.add_row(name, said, escape(worst.sentence))
    return table


def _unexamined(report: "CheckReport") -> list[str]:
    """Gates that nothing could be said about, by reason."""
    from leadtime.risk.gates import Standing

    told = {gate.name for gate in report.gates if gate.standing is not Standing.NOT_EXAMINED}
    reasons: dict[str, list[str]] = {}
    for gate in report.gates:
        if gate.name not in told and gate.name not in reasons.setdefault(gate.sentence, []):
            reasons[gate.sentence].append(gate.name)
    return [f"{reason} ({', '.join(names)})" for reason, names in reasons.items() if names]
