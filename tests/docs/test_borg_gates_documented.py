"""Every gate, trap and repair rule stands in docs/borg-check.md."""

import re
from pathlib import Path

from leadtime.risk import gates
from leadtime.risk.repairs import REFUSED, RULES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "borg-check.md").read_text(encoding="utf-8")


def test_every_gate_and_every_rule_is_explained() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`", PAGE))
    assert set(gates.GATES) | set(RULES) | set(REFUSED) <= named


def test_every_trap_has_what_catches_it_in_code_and_page() -> None:
    for text in (gates.__doc__ or "", PAGE):
        assert re.findall(r"^\| T(\d+) ", text, re.MULTILINE) == [str(number) for number in range(1, 16)]
