"""The console script, and how it is stopped: one line from the first import on, and nothing half-written.

Imports nothing heavy at the top, so that Ctrl-C while the rest is being loaded is answered like any other.
"""

import os
import signal
import sys
from types import FrameType

from leadtime.cli.exits import STOPPED_EXIT, TERMINATED_EXIT, say_stopped


class Terminated(BaseException):
    """SIGTERM, as ``timeout`` and service managers send it; unwinds like Ctrl-C, so that everything is cleared away."""


def main() -> None:
    """The console script."""
    try:
        signal.signal(signal.SIGTERM, _terminate)
        from leadtime.cli.entry import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = say_stopped(STOPPED_EXIT)
    except Terminated:
        code = say_stopped(TERMINATED_EXIT)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # `leadtime … | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated
