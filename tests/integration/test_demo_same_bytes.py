"""Equal seeds give equal bytes and equal ticks, in another process, with other hashes, alone or beside other forms."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., "CompletedProcess[str]"]
Ticks = Callable[[Path], list[dict[str, Any]]]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The folder of the second run, and what it printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory, leadtime_command: Command) -> Again:
    """The recurring form once more, alone, under another seed of Python's hashes."""
    out = tmp_path_factory.mktemp("again") / "out"
    done = leadtime_command("demo", "--headless", "--json", "--form", "recurring", "--out", str(out), hash_seed=4242)
    assert done.returncode == 0, done.stderr
    return Again(folder=out / "recurring", printed=done.stdout)


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_the_same_seed_gives_the_same_bytes(demo_folder: Path, again: Again, name: str) -> None:
    assert digest(demo_folder / "recurring" / name) == digest(again.folder / name)


def test_the_same_seed_gives_the_same_ticks(demo_folder: Path, again: Again, ticks_of: Ticks) -> None:
    first, second = ticks_of(demo_folder / "recurring" / "ticks.sqlite"), ticks_of(again.folder / "ticks.sqlite")
    assert len(first) == 1440
    assert first == second


def test_what_is_printed_as_json_is_the_report(again: Again) -> None:
    assert json.loads(again.printed)["recurring"] == json.loads((again.folder / "report.json").read_text())


def test_another_seed_gives_other_bytes(replay_folder: Path, replay_again: Callable[..., Path]) -> None:
    assert digest(replay_again("--seed", "1") / "report.json") != digest(replay_folder / "report.json")
