"""The output folder: all files of a run or none, and nobody else's files."""

import json
from pathlib import Path

import pytest

from leadtime.cli.output import OutputFolder
from leadtime.domain.errors import WrongUse

REPORT = json.dumps({"schema": "leadtime.report/1"})


def left_in(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def write_run(staged: Path, text: str = REPORT) -> None:
    """What a run writes."""
    (staged / "report.json").write_text(text)
    (staged / "ticks.sqlite").write_bytes(b"x")


def test_a_run_that_ends_well_leaves_its_files_and_nothing_else(tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "a" / "out", ("recurring", "ramp")) as staged:
        write_run(staged / "recurring")
        write_run(staged / "ramp")
        assert not (tmp_path / "a" / "out").exists()
    assert left_in(tmp_path / "a") == [
        "out", "out/ramp", "out/ramp/report.json", "out/ramp/ticks.sqlite",
        "out/recurring", "out/recurring/report.json", "out/recurring/ticks.sqlite",
    ]  # fmt: skip


def fail_half_way(out: Path, error: type[BaseException]) -> None:
    """A run that writes one file and ends."""
    with OutputFolder(out) as staged:
        (staged / "report.json").write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_fails_or_is_stopped_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        fail_half_way(tmp_path / "a" / "out", error)
    assert left_in(tmp_path) == []


def test_a_run_that_fails_leaves_an_earlier_run_as_it_was(tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "out") as staged:
        write_run(staged)
    with pytest.raises(ValueError):  # noqa: PT011 - our own, raised without a text
        fail_half_way(tmp_path / "out", ValueError)
    assert left_in(tmp_path / "out") == ["report.json", "ticks.sqlite"]
    assert (tmp_path / "out" / "report.json").read_text() == REPORT


def test_an_earlier_run_is_replaced_and_other_files_are_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for text in (REPORT, json.dumps({"seed": 1, "schema": "leadtime.report/1"})):
        with OutputFolder(out) as staged:
            write_run(staged, text)
        assert (out / "report.json").read_text() == text
    assert left_in(out) == ["notes.txt", "report.json", "ticks.sqlite"]


@pytest.mark.parametrize("name", ["report.json", "ticks.sqlite", "report.html"])
def test_a_file_of_our_name_that_is_not_ours_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"schema": "other/1"}')
    with pytest.raises(WrongUse, match=name) as caught, OutputFolder(tmp_path):
        pytest.fail("the run must not begin")
    assert caught.value.slug == "out-not-ours"
    assert left_in(tmp_path) == [name]


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WrongUse, match="it is a file"), OutputFolder(tmp_path / "out"):
        pytest.fail("the run must not begin")
    with pytest.raises(WrongUse) as caught, OutputFolder(tmp_path / "out" / "deeper"):
        pytest.fail("the run must not begin")
    assert caught.value.slug == "out-not-a-folder"
    assert f"{tmp_path / 'out'} is a file" in str(caught.value)
    with pytest.raises(WrongUse, match="it is a file"), OutputFolder(tmp_path / "out", ("recurring", "ramp")):
        pytest.fail("the run must not begin")
    assert left_in(tmp_path) == ["out"]
