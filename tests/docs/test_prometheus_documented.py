"""docs/prometheus.md has a line for every finding, every way to fail, and every template."""

from pathlib import Path

import pytest

from leadtime.sources.metric_templates_data import TEMPLATES
from leadtime.sources.prometheus_findings import FailureKind, FindingKind
from leadtime.sources.prometheus_options import Flavour

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "prometheus.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [*FindingKind, *FailureKind])
def test_every_finding_and_failure_is_explained(kind: FindingKind | FailureKind) -> None:
    assert f"`{kind.value}`" in PAGE


@pytest.mark.parametrize("each", TEMPLATES, ids=lambda each: each.name)
def test_every_template_stands_in_the_table_with_what_it_reads(each: object) -> None:
    row = next(line for line in PAGE.splitlines() if f"| `{each.name}` |" in line)  # type: ignore[attr-defined]
    for text in (each.signal.value, each.exporter, each.unit.value, each.why, *each.labels):  # type: ignore[attr-defined]
        assert text in row


def test_every_kind_of_server_is_in_the_table_of_differences() -> None:
    assert all(flavour.value in PAGE.casefold() for flavour in Flavour)
