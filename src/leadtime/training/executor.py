"""Jobs → results, on this machine: one after the other, or in several processes. Ray: ``ray_executor``.

A job is a value, its work a function of a module, and it may run twice: it looks first whether it is done already.
Deliberate errors travel back as values, because an exception of ours does not survive every pickle.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol, TypeVar

from leadtime.domain.errors import BadTrace, DependencyFailed, LeadtimeError

J = TypeVar("J")
R = TypeVar("R")


class Executor(Protocol):
    """Where the partitions of a data set are built."""

    @property
    def name(self) -> str:
        """As the command line calls it."""
        ...

    def results(self, work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """``work(job)`` of every job, as they finish. Raises what a job raised; the others may or may not be done."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """A loop in this process."""

    @property
    def name(self) -> str:
        """``local``."""
        return "local"

    def results(self, work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """In the order given."""
        return map(work, jobs)


@dataclass(frozen=True, slots=True)
class Processes:
    """``workers`` fresh processes of this machine; each needs the memory of one partition."""

    workers: int

    @property
    def name(self) -> str:
        """``processes``."""
        return "processes"

    def results(self, work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """As they finish. Raises DependencyFailed when a process is killed, for lack of memory as a rule."""
        context = multiprocessing.get_context("spawn")  # Polars' threads do not survive a fork
        pool = ProcessPoolExecutor(min(self.workers, len(jobs) or 1), mp_context=context, initializer=_leave_stopping)
        try:
            for future in as_completed([pool.submit(caught, work, job) for job in jobs]):
                yield returned(future.result())
        except BrokenProcessPool:
            raise DependencyFailed(
                "worker-died", "building partitions in processes", "a process was killed",
                "give it more memory (fewer --workers, a smaller --rows-per-partition) and run the same command again",
            ) from None  # fmt: skip
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A LeadtimeError as a value."""

    wrong_use: bool
    slug: str
    doing: str
    wrong: str
    cure: str


def caught(work: Callable[[J], R], job: J) -> R | Failure:
    """``work(job)``, or the deliberate error it raised, as a value that every pickle can carry."""
    try:
        return work(job)
    except LeadtimeError as error:
        return Failure(
            wrong_use=not isinstance(error, DependencyFailed), slug=error.slug, doing=error.doing, wrong=error.wrong,
            cure=error.cure,
        )  # fmt: skip


def returned(result: R | Failure) -> R:
    """The result. Raises the error a Failure stands for."""
    if isinstance(result, Failure):
        kind = BadTrace if result.wrong_use else DependencyFailed
        raise kind(result.slug, result.doing, result.wrong, result.cure)
    return result


def _leave_stopping() -> None:
    """Ctrl-C goes to every process of the terminal; the parent hears it and ends its workers after their job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
