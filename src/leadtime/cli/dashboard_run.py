"""What ``leadtime dashboard`` does: a ledger as a page on 127.0.0.1."""

import re
from pathlib import Path

from leadtime.cli.options import DashboardOptions
from leadtime.dashboard.app import create_app
from leadtime.dashboard.serve import serve
from leadtime.ledger.reader import LedgerReader


def run(options: DashboardOptions) -> None:
    """Serve the ledger until Ctrl-C. Raises BadLedger before anything is served."""
    with LedgerReader(options.ledger):
        pass
    serve(create_app({ledger_name(options.ledger): options.ledger}, live=True), options.port)


def ledger_name(ledger: Path) -> str:
    """The run's folder for a ``ticks.sqlite``, which every run has; else the file's own name. Fit for an address."""
    folder = ledger.absolute().parent.name
    name = folder if ledger.name == "ticks.sqlite" and folder else ledger.stem
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "ledger"
