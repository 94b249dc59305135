"""One run at a time writes into a folder; a run that died holds nothing."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leadtime.domain.errors import BadTrace
from leadtime.risk.gates import GATES
from leadtime.testing.borg_trace import small_trace
from leadtime.training.dataset import make_dataset
from leadtime.training.folder_lock import LOCK, sole_writer
from leadtime.training.forecaster_dataset import make_forecaster_dataset

HOLD = """
import sys
from pathlib import Path
from leadtime.training.folder_lock import sole_writer
with sole_writer(Path(sys.argv[1]), doing="joining b"):
    print("held", flush=True)
    sys.stdin.read()
"""


def other_run(folder: Path) -> subprocess.Popen[str]:
    """Another process that writes into ``folder`` and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_into_the_folder_is_refused_and_told_who_writes_there(tmp_path: Path) -> None:
    out = tmp_path / "windows"
    with other_run(out) as first:
        with pytest.raises(BadTrace) as refused, sole_writer(out, doing="joining c"):
            pass
        first.communicate("")
    assert refused.value.slug == "folder-in-use"
    assert refused.value.exit_code == 2
    assert str(out) in refused.value.wrong
    assert f"process {first.pid}" in refused.value.wrong
    assert "another folder" in refused.value.cure


def test_a_run_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with other_run(tmp_path) as first:
        first.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with sole_writer(tmp_path, doing="joining"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_runs_one_after_the_other_leave_no_trace(tmp_path: Path) -> None:
    for _ in range(2):
        with sole_writer(tmp_path / "out", doing="joining"), sole_writer(tmp_path / "beside", doing="joining"):
            assert (tmp_path / "out" / LOCK).exists()
    assert not (tmp_path / "out").exists()


def test_an_error_inside_gives_the_folder_back(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), sole_writer(tmp_path, doing="joining"):
        raise RuntimeError
    with sole_writer(tmp_path, doing="joining"):
        pass


def test_a_file_system_without_locks_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", without)
    with sole_writer(tmp_path, doing="joining"):
        pass


def test_no_step_writes_where_another_run_does(tmp_path: Path) -> None:
    windows, features = tmp_path / "windows", tmp_path / "features"
    small_trace(2, collections=4).write(tmp_path / "raw")

    def join() -> object:
        return make_dataset(tmp_path / "raw", windows, allow=GATES)

    def label() -> object:
        return make_forecaster_dataset(windows, features)

    for step, folder in ((join, windows), (label, features)):
        with sole_writer(folder, doing="the first"), pytest.raises(BadTrace, match="another run"):
            step()
        step()
