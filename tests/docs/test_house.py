"""The rules of the house, counted: file and function length, names, and what may stand in the repository."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "leadtime").rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
MAX_BYTES = 100_000
FORBIDDEN_NAMES = {"utils", "util", "common", "core", "helpers", "helper", "models", "manager", "engine", "misc"}
LOCKS = {"uv.lock", "package-lock.json", "go.sum"}
FOREIGN_ROOTS = tuple(f"/{name}/" for name in ("work", "root", "home"))


@cache
def tracked() -> tuple[Path, ...]:
    """Every file git tracks; skipped where there is no checkout (an unpacked archive)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what is tracked cannot be listed")
    return tuple(ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


def relative(path: Path) -> str:
    """As it stands in a message."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_source_file_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_function_is_longer_than_40_lines(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {f"{node.name}, line {node.lineno}": (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_module_says_what_becomes_what(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {relative(path) for path in SOURCES if FORBIDDEN_NAMES & {path.stem, *path.relative_to(ROOT).parts[:-1]}}
    assert named == set()


def test_no_tracked_file_is_large_but_locks() -> None:
    large = {relative(path) for path in tracked() if path.stat().st_size > MAX_BYTES and path.name not in LOCKS}
    assert large == set()


def test_no_tracked_file_names_a_folder_of_somebodys_machine() -> None:
    found = {
        f"{relative(path)}: {root}"
        for path in tracked()
        for root in FOREIGN_ROOTS
        if root.encode() in path.read_bytes()
    }
    assert found == set()
