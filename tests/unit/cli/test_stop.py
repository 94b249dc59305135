"""Being stopped: one line and its exit code, from the first import on, and children that leave the talking to us."""

import multiprocessing
import os
import signal
import sys
from types import SimpleNamespace

import pytest

from leadtime.cli import exits, stop


def stopped_by(number: signal.Signals):
    """An entry whose command is stopped half-way."""

    def run(_argv: list[str]) -> int:
        if number is signal.SIGINT:
            raise KeyboardInterrupt
        os.kill(os.getpid(), number)
        return 0

    return SimpleNamespace(run=run)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_says_so_in_one_line(
    number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "leadtime.cli.entry", stopped_by(number))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            stop.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == code
    assert capsys.readouterr().err == "leadtime: stopped [interrupted]\n"


def test_children_do_not_hear_ctrl_c_and_we_do() -> None:
    child = multiprocessing.get_context("spawn").Process(target=signal.raise_signal, args=(signal.SIGINT,))
    with exits.deaf_children():
        child.start()
    child.join()
    assert child.exitcode == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
