"""``leadtime borg report``: a run folder → its measures on the terminal, beside an earlier run on the same rows."""

from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli.borg.page import parse_page

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg report reports/baseline/baseline\n"
    "  leadtime borg report reports/advanced/xgboost --against reports/baseline/baseline --html compared.html"
)
FOUND_EXIT = 1

_Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder train-baseline or train wrote.", show_default=False)
]
_AGAINST_HELP = "An earlier run: compared on the rows both scored, and by what changed in the data."
_Against = Annotated[Path | None, typer.Option(metavar="DIR", help=_AGAINST_HELP)]
_HTML_HELP = "Write the page there too, the comparison included; its folder must be there."
_Html = Annotated[Path | None, typer.Option(parser=parse_page, metavar="FILE", help=_HTML_HELP)]
_Json = Annotated[bool, typer.Option("--json", help="Print the measures on stdout.")]


def report(*, folder: _Folder, against: _Against = None, html: _Html = None, json: _Json = False) -> None:
    """Show a run's measures, gates and exclusions (exit 1 when the run is unusable)."""
    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("reading a run", "polars")
    from leadtime.training.compare_runs import compare, compared_text
    from leadtime.training.manifest import disk_errors
    from leadtime.training.run_folder import read_run
    from leadtime.training.run_report import build_html
    from leadtime.training.run_report_text import metrics_text

    metrics = read_run(folder)
    comparison = None if against is None else compare(folder, against)
    if html is not None:
        with disk_errors("writing the page", html.absolute().parent):
            html.write_text(build_html(metrics, comparison), encoding="utf-8")
    if json:
        import json as to_text

        told = metrics if comparison is None else metrics | {"compared": comparison}
        typer.echo(to_text.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        console = stderr()
        console.print(metrics_text(metrics), markup=False, soft_wrap=True, end="")
        if comparison is not None:
            console.print("\n" + compared_text(comparison), markup=False, soft_wrap=True, end="")
    if not metrics["usable"]:
        raise typer.Exit(FOUND_EXIT)
