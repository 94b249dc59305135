"""The dashboard calls a ledger by its run: every run's file has the same name."""

from pathlib import Path

import pytest

from leadtime.cli import dashboard_run


@pytest.mark.parametrize(
    ("ledger", "name"),
    [
        ("out/recurring/ticks.sqlite", "recurring"),
        ("out/monday.sqlite", "monday"),
        ("/ticks.sqlite", "ticks"),
        ("a b/../../we ird#1?/ticks.sqlite", "we-ird-1"),
        ("##/ticks.sqlite", "ledger"),
    ],
)
def test_a_ledger_is_called_by_its_run(ledger: str, name: str) -> None:
    assert dashboard_run.ledger_name(Path(ledger)) == name
