"""``leadtime borg import-prometheus``: a cluster's own history → a trace in the same schema, to train on it."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadtime.cli.options import parse_duration, parse_folder, parse_instant

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLE = (
    "\b\nExample:\n  leadtime borg import-prometheus --url http://127.0.0.1:9090 --start 2026-03-01T00:00:00Z "
    "--end 2026-03-29T00:00:00Z --cell mine --out shards/mine"
)
STEP, MINUTE = timedelta(minutes=5), timedelta(minutes=1)
HIGHEST_PRIORITY = 450

_Url = Annotated[str, typer.Option(metavar="URL", help="Address of the Prometheus, with its path prefix.")]
_Start = Annotated[datetime, typer.Option(parser=parse_instant, metavar="TIME", help="From when.")]
_End = Annotated[datetime, typer.Option(parser=parse_instant, metavar="TIME", help="Until when.")]
_Out = Annotated[Path, typer.Option(parser=parse_folder, metavar="DIR", help="Folder for the shards.")]
_Cell = Annotated[str, typer.Option(metavar="NAME", help="What the cluster is called in the trace.")]
_Step = Annotated[
    timedelta | None,
    typer.Option(parser=parse_duration, metavar="DURATION", help="5m, a window's length; 5m if left out."),
]
_Namespace = Annotated[str | None, typer.Option(metavar="REGEX", help="Only these namespaces.")]
_PRIORITY_HELP = "A priority class on Borg's scale, 0 to 450; may be repeated. Others are production (200)."
_Priority = Annotated[list[str] | None, typer.Option(metavar="CLASS=N", help=_PRIORITY_HELP)]
_Token = Annotated[Path | None, typer.Option(metavar="FILE", help="File that holds a bearer token.")]
_Timeout = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="For one answer; 1m if left out.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print import.json on stdout.")]


def import_prometheus(
    *, url: _Url, start: _Start, end: _End, out: _Out, cell: _Cell, step: _Step = None, namespace: _Namespace = None,
    priority: _Priority = None, token_file: _Token = None, timeout: _Timeout = None, json: _Json = False,
) -> None:  # fmt: skip
    """Fill the trace's schema from Prometheus (cAdvisor and kube-state-metrics); run it again to go on."""
    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr

    need("importing from Prometheus", "polars", "httpx2")
    from leadtime.training.import_prometheus import ImportRequest
    from leadtime.training.import_prometheus import import_prometheus as fill

    asked = ImportRequest(
        url=url, start_s=int(start.timestamp()), end_s=int(end.timestamp()), cell=cell,
        step_s=int((step or STEP).total_seconds()), namespace=namespace, token=_token(token_file),
        timeout_s=(timeout or MINUTE).total_seconds(), priorities=_priorities(priority or []),
    )  # fmt: skip
    console = stderr()
    with shown(console) as progress:
        report = fill(asked, out, progress=progress)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(report, indent=2, allow_nan=False))
    else:
        _show(console, report)
    console.print(f"{out}: next, leadtime borg check {out}", markup=False, soft_wrap=True)


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--token-file {path} cannot be read ({error})") from None


def _priorities(texts: list[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value.isdigit() or int(value) > HIGHEST_PRIORITY:
            raise typer.BadParameter(f"--priority {text!r}: write CLASS=N with N from 0 to {HIGHEST_PRIORITY}")
        found[name] = int(value)
    return found


def _show(console: "Console", report: dict[str, Any]) -> None:
    """What was found, each end with the rule it was read by."""
    from leadtime.risk.kube_events import RULES

    console.print(
        f"{report['pods']:,} pods of {report['workloads']:,} workloads on {report['nodes']:,} nodes: "
        f"{report['rows']['instance_usage']:,} usage windows ({report['usage_left_out']:,} left out as gaps), "
        f"{report['instants_missing']:,} of {report['instants_missing'] + report['instants_observed']:,} instants "
        f"without any sample", markup=False, soft_wrap=True,
    )  # fmt: skip
    for rule, count in report["ends"].items():
        if count:
            kind, meaning = RULES[rule]
            console.print(f"{kind.name} {rule}: {count:,} ({meaning})", markup=False, soft_wrap=True)
    if report["restarts_unseen"]:
        console.print(
            f"{report['restarts_unseen']:,} restarts were counted of which only the number is known", markup=False
        )
