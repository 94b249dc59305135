"""``leadtime borg make-dataset`` as a person runs it: exit codes, messages, and a run that is stopped by SIGTERM."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leadtime.cli.entry import run
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs
from leadtime.training.dataset import make_dataset

COMMAND = [sys.executable, "-c", "from leadtime.cli.stop import main; main()", "borg", "make-dataset"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of one cell."""
    folder = tmp_path_factory.mktemp("raw") / "shards"
    generate(folder, Knobs(rows=6_000, cell="c", seed=2))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_data_set_is_built_where_the_environment_says(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BORG_DATA_DIR", str(shards))
    monkeypatch.delenv("BORG_XGBOOST_WORKSPACE", raising=False)
    monkeypatch.setenv("BORG_PROCESSED_DIR", str(tmp_path / "windows"))
    code = run(["borg", "make-dataset", "--cells", "c", "--allow", "positive-rate", "--json"])
    told = capsys.readouterr()
    manifest = json.loads(told.out)
    assert code == (0 if manifest["usable"] else 1)
    assert manifest == json.loads((tmp_path / "windows" / "dataset.json").read_text())
    assert f"data hash {manifest['data_hash']}" in told.err


def test_a_missing_machine_table_is_one_line_and_exit_2(
    shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for file in shards.iterdir():
        if not file.name.startswith("machine_events"):
            (raw / file.name).symlink_to(file)
    code = run(["borg", "make-dataset", "--in", str(raw), "--out", str(tmp_path / "windows")])
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.count("\n") == 1
    assert told.err.endswith("[borg-table-missing]\n")


def test_a_full_disk_is_one_line_and_exit_3(shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    staged = tmp_path / "windows" / "cell=c" / "windows" / ".part-0000.parquet.unfinished"
    staged.parent.mkdir(parents=True)
    staged.symlink_to("/dev/full")
    code = run(["borg", "make-dataset", "--in", str(shards), "--out", str(tmp_path / "windows")])
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (3, 1)
    assert told.endswith("[disk-full]\n")


@pytest.mark.parametrize("options", [["--cells", ","], ["--ray-address", "x:1"], ["--workers", "0"]])
def test_wrong_options_are_exit_2(options: list[str], shards: Path, tmp_path: Path) -> None:
    assert run(["borg", "make-dataset", "--in", str(shards), "--out", str(tmp_path / "windows"), *options]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", "processes"])
def test_a_run_stopped_by_sigterm_resumes_to_the_same_bytes(executor: str, shards: Path, tmp_path: Path) -> None:
    arguments = ["--in", str(shards), "--rows-per-partition", "500", "--executor", executor]
    out = tmp_path / "out"
    with subprocess.Popen([*COMMAND, *arguments, "--out", str(out)], stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (out / "cell=c" / "part-0001.json").exists():
            os.sched_yield()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (143, "leadtime: stopped [interrupted]\n")
    assert not (out / "dataset.json").exists()
    subprocess.run([*COMMAND, *arguments, "--out", str(out)], check=False, capture_output=True)
    make_dataset(shards, tmp_path / "whole", rows_per_partition=500)
    assert contents(out) == contents(tmp_path / "whole")
