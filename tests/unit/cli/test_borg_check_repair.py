"""borg check and borg repair from the command line: exit codes, one line a failed gate, JSON on stdout alone."""

import json
from pathlib import Path

import polars as pl
import pytest

from leadtime.cli import entry
from leadtime.testing.toy_trace import toy_trace
from leadtime.training.repair_shards import write_declaration, write_shard

LATE = "instance_usage-000000000001.parquet"


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean cell beside one with a usage file in milliseconds."""
    trace = toy_trace(collections=12, tasks=6)
    root = tmp_path_factory.mktemp("cells")
    for name, divisor in (("clean", 1), ("late", 1_000)):
        folder = root / name
        folder.mkdir()
        half = trace.usage.height // 2
        late = trace.usage.slice(half).with_columns(pl.col("start_time_us", "end_time_us") // divisor)
        for table, number, frame in (
            ("instance_usage", 0, trace.usage.head(half)), ("instance_usage", 1, late),
            ("instance_events", 0, trace.events), ("collection_events", 0, trace.collections),
            ("machine_events", 0, trace.machines),
        ):  # fmt: skip
            write_shard(folder / f"{table}-{number:012d}.parquet", frame, table)
        write_declaration(folder, cell="b", clusterdata="v3", observed_until_us=trace.observed_until_us)
    return root


def test_a_clean_trace_exits_0_with_a_table_on_stderr(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["borg", "check", str(cell / "clean")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "join-match" in err
    assert "Nothing failed" in err


def test_each_failed_gate_has_its_own_line_with_number_limit_and_cure(
    cell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(["borg", "check", str(cell / "late")]) == 1
    lines = capsys.readouterr().err.splitlines()
    (line,) = [line for line in lines if line.startswith("failed time-unit")]
    assert LATE in line
    assert "measured 300,000 µs, exactly 300 s wanted" in line
    assert "leadtime borg repair" in line


def test_json_is_alone_on_stdout_and_the_page_is_written(
    cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "check.html"
    allowed = ["--allow", "time-unit", "--allow", "coverage"]
    assert entry.run(["borg", "check", str(cell / "late"), "--json", "--html", str(page), *allowed]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] is True
    assert told["allowed"] == ["time-unit", "coverage"]
    standing = {(gate["name"], gate["where"]): gate["standing"] for gate in told["gates"]}
    assert standing["time-unit", LATE] == "allowed"
    assert "Failed, and allowed by name" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        ["check", "absent"],
        ["check", ".", "--allow", "no-such-gate"],
        ["repair", "absent", "--out", "x"],
        ["repair", "."],
    ],
    ids=["no path", "no gate", "nothing to repair", "no out"],
)
def test_wrong_use_exits_2_with_one_line(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert entry.run(["borg", *line]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_repair_tells_what_it_did_and_exits_0_when_the_copy_passes(
    cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mended"
    assert entry.run(["borg", "repair", str(cell / "late"), "--out", str(out), "--dry-run"]) == 0
    assert "nothing was written" in capsys.readouterr().err
    assert not out.exists()
    assert entry.run(["borg", "repair", str(cell / "late"), "--out", str(out)]) == 0
    err = capsys.readouterr().err
    assert "unit-ms-to-us: " in err
    assert f"time-unit [{LATE}]: failed at 300,000 µs → passed at 300 s" in err
    assert entry.run(["borg", "check", str(out)]) == 0
    capsys.readouterr()
    assert entry.run(["borg", "repair", str(out), "--out", str(tmp_path / "again"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_touched"] == 0


def test_repair_exits_1_when_nothing_usable_is_left(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "borg-2019" / "kaggle_slice_99_exact_ids.csv"
    assert entry.run(["borg", "repair", str(path), "--out", str(tmp_path / "mended")]) == 1
    assert (tmp_path / "mended" / "repair.json").is_file()
