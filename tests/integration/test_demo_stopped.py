"""The demo as a person ends it: Ctrl-C to all its processes, SIGTERM to the first; and a port that is taken."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = [sys.executable, "-c", "from leadtime.cli import main; main()", "demo"]
BEGUN_WITHIN_S = 30


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=lambda value: getattr(value, "name", "")
)
def test_a_stopped_demo_says_one_line_and_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    line = [*DEMO, "--headless", "--out", str(tmp_path / "out")]
    demo = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    begun_by = time.monotonic() + BEGUN_WITHIN_S
    while not any(tmp_path.iterdir()) and time.monotonic() < begun_by:
        time.sleep(0.05)
    time.sleep(1.5)  # its processes play
    if number is signal.SIGINT:
        os.killpg(demo.pid, number)
    else:
        demo.send_signal(number)
    out, err = demo.communicate(timeout=30)
    assert (demo.returncode, out, err) == (code, "", "leadtime: stopped [interrupted]\n")
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_said_before_anything_is_played(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        line = [*DEMO, "--port", str(taken.getsockname()[1]), "--out", str(tmp_path / "out")]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("[page-port-busy]\n")
    assert list(tmp_path.iterdir()) == []
