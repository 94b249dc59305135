"""``leadtime dashboard LEDGER``: a ledger file → the page, on this machine only."""

from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli.options import DashboardOptions

EXAMPLE = "\b\nExample:\n  leadtime dashboard out/recurring/ticks.sqlite --port 8321"


def dashboard(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger, such as out/recurring/ticks.sqlite.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")] = 8321,
) -> None:
    """Serve a ledger as a page on 127.0.0.1; nothing is written."""
    from leadtime.cli import dashboard_run

    dashboard_run.run(DashboardOptions(ledger=ledger, port=port))
