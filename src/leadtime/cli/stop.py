"""The console script, and how it is stopped: one line from the first import on, and nothing half-written.

Imports nothing of ours at the top, so that Ctrl-C while the rest is being loaded is answered like any other.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED_EXIT = 130
TERMINATED_EXIT = 143


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


def say_stopped(code: int) -> int:
    """The one line of a run that was stopped."""
    print("leadtime: stopped [interrupted]", file=sys.stderr)  # noqa: T201 - this is the command line
    return code


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started inside never see Ctrl-C: this process hears it, a moment later, and ends them.

    Ctrl-C goes to the whole group of processes; without this each child would print its own traceback.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # first: when it starts it lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated
