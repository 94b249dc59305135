"""How a stopped run ends: its exit codes, its one line, and children that leave Ctrl-C to their parent."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STOPPED_EXIT = 130
TERMINATED_EXIT = 143


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
