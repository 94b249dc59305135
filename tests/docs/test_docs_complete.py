"""What is not documented fails: every command and option, threshold, reason and error slug has its place in docs/."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer

from leadtime.cli.app import app
from leadtime.domain import errors
from leadtime.domain.reasons import Reason
from leadtime.policy import docs_table
from leadtime.policy.fields import all_fields

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "leadtime"
HEADING = re.compile(r"^#{2,4} `([^`]+)`", re.MULTILINE)


def headings(page: str) -> list[str]:
    """What stands in backquotes in the headings of a page of docs/."""
    return HEADING.findall((DOCS / page).read_text(encoding="utf-8"))


# --- error slugs --------------------------------------------------------------------------------------------------


def error_classes() -> set[str]:
    """LeadtimeError and all that is derived from it, wherever it is defined in the source."""
    names = {name for name, value in vars(errors).items() if isinstance(value, type)}
    for node in nodes():
        if isinstance(node, ast.ClassDef) and names & {base.id for base in node.bases if isinstance(base, ast.Name)}:
            names.add(node.name)
    return names


@cache
def nodes() -> tuple[ast.AST, ...]:
    """Every call, class and function in the source."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    wanted = (ast.Call, ast.ClassDef, ast.FunctionDef)
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, wanted))


def slug_takers() -> set[str]:
    """Error classes, and functions whose first parameter is called ``slug``: their first argument is a slug."""
    makers = {
        node.name
        for node in nodes()
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "slug"
    }
    return error_classes() | makers


@cache
def slugs_raised() -> frozenset[str]:
    """Every slug that an error can carry, read from the source; and those of the last line of defence."""
    takers = slug_takers()
    found = {"usage", "interrupted", "defect"}  # cli/entry.py: no LeadtimeError stands behind these
    for node in nodes():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            is_init = called == "__init__" and isinstance(node.args[0].value, str) and len(node.args) == 4
            if called in takers or is_init:
                found.add(str(node.args[0].value))
    return frozenset(found)


def test_the_source_is_read_rightly() -> None:
    assert {"demand-time-order", "policy-refused", "out-not-ours", "ledger-absent"} <= slugs_raised()


def test_every_error_slug_is_documented_and_no_other() -> None:
    assert sorted(headings("errors.md")) == sorted(slugs_raised())


# --- reasons ------------------------------------------------------------------------------------------------------


def test_every_reason_is_explained_and_no_other() -> None:
    assert sorted(headings("reasons.md")) == sorted(reason.value for reason in Reason)


def test_every_reason_has_a_sentence_of_its_own() -> None:
    parts = re.split(HEADING, (DOCS / "reasons.md").read_text(encoding="utf-8"))[1:]
    told = dict(zip(parts[::2], (text.split("\n##")[0].strip() for text in parts[1::2]), strict=True))
    assert all(len(text) > 40 for text in told.values()), [name for name, text in told.items() if len(text) <= 40]
    assert len(set(told.values())) == len(told)


# --- thresholds ---------------------------------------------------------------------------------------------------


def test_the_policy_page_is_what_the_schema_writes() -> None:
    stale = "docs/policy.md is stale; run: python -m leadtime.policy.docs_table > docs/policy.md"
    assert (DOCS / "policy.md").read_text(encoding="utf-8") == docs_table.page(), stale


def test_every_threshold_has_a_reason_and_every_number_a_unit() -> None:
    for field in all_fields():
        assert field.why, f"{field.path} has no reason for its default"
        assert field.unit or not field.is_number, f"{field.path} has no unit"


# --- commands -----------------------------------------------------------------------------------------------------


def commands() -> dict[str, list[str]]:
    """Command as typed → its options."""
    found: dict[str, list[str]] = {}

    def walk(words: list[str], command: object) -> None:
        inner = getattr(command, "commands", None)
        if inner:
            for name, sub in inner.items():
                walk([*words, name], sub)
            return
        options = [text for param in command.params for text in param.opts if text.startswith("--")]  # type: ignore[attr-defined]
        found[" ".join(words)] = [option for option in options if option != "--help"]

    walk(["leadtime"], typer.main.get_command(app))
    return found


def test_every_command_is_documented_and_no_other() -> None:
    assert sorted(headings("commands.md")) == sorted(commands())


@pytest.mark.parametrize(("command", "options"), commands().items(), ids=lambda value: str(value)[:30])
def test_every_option_stands_in_the_section_of_its_command(command: str, options: list[str]) -> None:
    parts = re.split(HEADING, (DOCS / "commands.md").read_text(encoding="utf-8"))[1:]
    section = dict(zip(parts[::2], parts[1::2], strict=True))[command].split("\n## ")[0]
    documented = set(re.findall(r"--[a-z][a-z-]+", section))
    assert set(options) <= documented
