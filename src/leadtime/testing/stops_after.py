"""A run that is stopped in the middle, for tests of what can be gone on with."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")


class StopsAfter:
    """An executor: Local, but the run is stopped (as by Ctrl-C) after ``jobs`` finished jobs in all."""

    name = "stopped"

    def __init__(self, jobs: int) -> None:
        self._left = jobs

    def results(self, work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """As an Executor gives them; raises KeyboardInterrupt before the next job."""
        for job in jobs:
            if self._left == 0:
                raise KeyboardInterrupt
            self._left -= 1
            yield work(job)
