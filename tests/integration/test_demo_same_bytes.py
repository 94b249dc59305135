"""Equal seeds give equal bytes and equal ticks, in another process, with other hashes, alone or beside other forms."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., "CompletedProcess[str]"]
Ticks = Callable[[Path], list[dict[str, Any]]]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory, leadtime_command: Command) -> Path:
    """The recurring form once more, alone, under another seed of Python's hashes."""
    folder = tmp_path_factory.mktemp("again") / "out"
    done = leadtime_command("demo", "--headless", "--form", "recurring", "--out", str(folder), hash_seed=4242)
    assert done.returncode == 0, done.stderr
    return folder / "recurring"


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_the_same_seed_gives_the_same_bytes(demo_folder: Path, again: Path, name: str) -> None:
    assert digest(demo_folder / "recurring" / name) == digest(again / name)


def test_the_same_seed_gives_the_same_ticks(demo_folder: Path, again: Path, ticks_of: Ticks) -> None:
    first, second = ticks_of(demo_folder / "recurring" / "ticks.sqlite"), ticks_of(again / "ticks.sqlite")
    assert len(first) == 1440
    assert first == second


def test_what_is_printed_as_json_is_the_report(again: Path, leadtime_command: Command, tmp_path: Path) -> None:
    """And a folder that holds an earlier run is written anew, the same."""
    before = {path.name: digest(path) for path in again.iterdir() if path.name != "ticks.sqlite"}
    done = leadtime_command("demo", "--headless", "--json", "--form", "recurring", "--out", str(again.parent))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recurring"] == json.loads((again / "report.json").read_text())
    assert {path.name: digest(path) for path in again.iterdir() if path.name != "ticks.sqlite"} == before


def test_another_seed_gives_other_bytes(replay_folder: Path, replay_again: Callable[..., Path]) -> None:
    assert digest(replay_again("--seed", "0") / "report.json") == digest(replay_folder / "report.json")
    assert digest(replay_again("--seed", "1") / "report.json") != digest(replay_folder / "report.json")
