"""What ``leadtime dashboard`` does: a ledger as a page on 127.0.0.1."""

from leadtime.cli.options import DashboardOptions
from leadtime.dashboard.app import create_app
from leadtime.dashboard.serve import serve
from leadtime.ledger.reader import LedgerReader


def run(options: DashboardOptions) -> None:
    """Serve the ledger until Ctrl-C. Raises BadLedger before anything is served."""
    with LedgerReader(options.ledger):
        pass
    serve(create_app({options.ledger.stem: options.ledger}, live=True), options.port)
