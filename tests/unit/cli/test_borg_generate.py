"""borg generate from the command line: files and options, JSON, and one clear error for every wrong use."""

import json
import os
from pathlib import Path

import pytest

from leadtime.cli import entry

SMALL = ["--rows", "3000", "--days", "1", "--seed", "2"]


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The built-in summary, whatever lies beside the checkout."""
    monkeypatch.setenv("LEADTIME_DATA_DIR", str(tmp_path / "nothing"))


def run(*words: str) -> int:
    return entry.run(["borg", "generate", *words])


def test_it_writes_shards_truth_and_declaration_and_says_what_can_be_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "b"
    assert run("--out", str(out), "--cell", "b", "--base-rate", "0.02", *SMALL) == 0
    printed, said = capsys.readouterr()
    assert printed == ""
    assert "best possible average precision" in said
    assert "built-in summary" in said
    declared = json.loads((out / "trace.json").read_text())
    assert declared == {
        "schema": "leadtime.borg-trace/1", "cell": "b", "clusterdata": "v3",
        "observed_until_us": 600_000_000 + 86_400_000_000,
    }  # fmt: skip
    assert {path.name for path in out.iterdir()} >= {"truth", "instance_usage-000000000001.parquet"}


def test_json_is_the_truth_and_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", str(tmp_path / "c"), "--json", *SMALL) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["knobs"]["rows"] == 3000
    assert told["horizons"]["15"]["rows"] > 2500
    assert "trace.json" in told["files"]


def test_options_stand_above_set_and_set_above_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "knobs.toml"
    file.write_text("mu = 3.0\nlost = 0.1\nevicted = 0.0005\n")
    words = ["--knobs", str(file), "--set", "lost=0.2", "--set", "mu=2.5", "--mu", "2", "--trap", "T5", "--json"]
    assert run("--out", str(tmp_path / "c"), *words, *SMALL) == 0
    knobs = json.loads(capsys.readouterr().out)["knobs"]
    assert (knobs["mu"], knobs["lost"], knobs["evicted"]) == (2.0, 0.2, 0.0005)
    assert knobs["traps"] == ["T5"]
    assert knobs["overrun"] == 1.0


def test_figures_of_2019_are_drawn_from_where_they_are_named(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", str(tmp_path / "c"), "--data", str(data_dir), "--json", *SMALL) == 0
    assert json.loads(capsys.readouterr().out)["shapes"] == "borg-2019 figures, cell c"
    assert run("--out", str(tmp_path / "z"), "--cell", "z", "--data", str(data_dir), "--json", *SMALL) == 0
    assert json.loads(capsys.readouterr().out)["shapes"] == "borg-2019 figures, cell all"


def test_the_list_of_knobs_has_a_unit_or_a_reason_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list-knobs", "--json") == 0
    knobs = json.loads(capsys.readouterr().out)
    assert {"bad_factor", "crash_loops", "late"} <= {knob["name"] for knob in knobs}
    assert all(knob["why"] for knob in knobs)


@pytest.mark.parametrize(
    ("words", "slug", "says"),
    [
        (["--set", "lots=1"], "knob-unknown", "lots"),
        (["--set", "lost=2"], "knob-out-of-range", "from 0 to 0.5 share of ends"),
        (["--set", "lost=nan"], "knob-out-of-range", "nan"),
        (["--set", "tasks_most=1.5"], "knob-out-of-range", "1.5"),
        (["--set", "lost=much"], "knob-out-of-range", "much"),
        (["--trap", "T99"], "knob-out-of-range", "T99"),
        (["--cell", "a/b"], "knob-out-of-range", "letters and digits"),
        (["--set", "event_types='code2'"], "knob-out-of-range", "code, text, name"),
        (["--base-rate", "0.2", "--set", "degrading_fails=0.001"], "base-rate-unreachable", "can reach"),
        (["--knobs", "absent.toml"], "knobs-unreadable", "absent.toml"),
        (["--data", "absent"], "shapes-unreadable", "machine_shapes.csv"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(
    words: list[str], slug: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", str(tmp_path / "c"), *SMALL, *words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"[{slug}]" in said
    assert says in said
    assert not (tmp_path / "c").exists()


def test_broken_toml_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "knobs.toml").write_text("mu = = 3")
    assert run("--out", str(tmp_path / "c"), "--knobs", str(tmp_path / "knobs.toml")) == 2
    assert "[knobs-not-toml]" in capsys.readouterr().err


def test_without_out_nothing_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--rows", "10") == 2
    assert "--out DIR" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    assert run("--out", str(tmp_path / "locked" / "c"), *SMALL) == 2
    assert "[out-not-writable]" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_a_dependency_that_failed_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """/dev/full stands in for a full disk: the shard of machines is written through a link to it."""
    from leadtime.simulate.borg import write

    def link_to_full(folder: Path, table: str, number: int, *_rest: object, **_more: object) -> Path:
        path = folder / f"{table}-{number:012d}.parquet"
        path.symlink_to("/dev/full")
        with path.open("w") as file:
            file.write("x" * 100_000)
        return path

    monkeypatch.setattr(write, "write_shard", link_to_full)
    assert run("--out", str(tmp_path / "c"), *SMALL) == 3
    assert "[disk-full]" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
