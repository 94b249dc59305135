"""Every bad file of the list, through the command: exit 2, one line with file, row and cure, and nothing written."""

from pathlib import Path

import pytest

from leadtime.cli import entry
from leadtime.sources import demand_file

HEAD = "t,v\n2026-03-02T00:00:00Z,1\n"


def replay(folder: Path, *more: str) -> int:
    """Replay demand.csv of ``folder`` into its sub-folder out."""
    line = ["replay", "--demand", str(folder / "demand.csv"), "--time-column", "t", "--value-column", "v"]
    line += ["--capacity-per-pod", "20", "--scenario", "gpu-40min", "--warm-up", "1m", "--out", str(folder / "out")]
    return entry.run([*line, *more])


def assert_refused(folder: Path, capsys: pytest.CaptureFixture[str], *, row: int | None, says: str, cure: str) -> None:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "demand.csv" in err
    assert row is None or f"row {row}" in err
    assert says in err
    assert cure in err.partition(";")[2]
    assert [path.name for path in folder.iterdir()] == ["demand.csv"]


@pytest.mark.parametrize(
    ("content", "row", "says", "cure"),
    [
        pytest.param("t,w\n2026-03-02T00:00:00Z,1\n", 1, "'v'", "--value-column", id="missing column"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,many\n", 3, "'many'", "number", id="text in numbers"),
        pytest.param(HEAD + "soon,1\n", 3, "'soon'", "2026-03-02T06:05:00Z", id="unreadable time"),
        pytest.param("", None, "empty", "header", id="empty"),
        pytest.param("t,v\n", None, "no row", "row", id="header only"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,-1\n", 3, "-1", "empty", id="negative"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0", None, "text", "CSV", id="not text at all"),
        pytest.param(HEAD + "2026-03-01T23:00:00Z,1\n", 3, "row 2", "sort", id="times out of order"),
        pytest.param(HEAD + "2026-03-02T00:00:00Z,1\n", 3, "row 2", "--on-duplicate", id="a time twice"),
    ],
)
def test_a_bad_file_is_one_line_that_names_file_row_and_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, content: str | bytes, row: int | None, says: str, cure: str
) -> None:
    (tmp_path / "demand.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert replay(tmp_path) == 2
    assert_refused(tmp_path, capsys, row=row, says=says, cure=cure)


def test_an_unknown_zone_is_refused_with_an_example_of_a_known_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demand.csv").write_text("t,v\n2026-03-02T00:00:00,1\n2026-03-02T00:01:00,1\n")
    assert replay(tmp_path, "--time-zone", "Mars/Olympus") == 2
    assert_refused(tmp_path, capsys, row=None, says="Mars/Olympus", cure="Europe/Berlin")


def test_a_file_over_the_documented_limit_is_refused_before_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demand_file, "MAX_BYTES", 20)
    (tmp_path / "demand.csv").write_text(HEAD)
    assert replay(tmp_path) == 2
    assert_refused(tmp_path, capsys, row=None, says="B", cure="")


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(tmp_path) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "demand.csv" in err
    assert not list(tmp_path.iterdir())


def test_what_an_earlier_run_wrote_is_left_when_the_next_file_is_bad(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"2026-03-02T0{i // 60}:{i % 60:02}:00Z,10" for i in range(120)]
    (tmp_path / "demand.csv").write_text("t,v\n" + "\n".join(rows) + "\n")
    assert replay(tmp_path, "--warm-up", "1h") == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (tmp_path / "demand.csv").write_text(HEAD + "2026-03-02T00:01:00Z,many\n")
    assert replay(tmp_path) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
