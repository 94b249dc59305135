"""Jobs → results on a Ray cluster whose nodes share the folders. A job whose worker or node dies is run again."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from leadtime.domain.errors import DependencyFailed
from leadtime.training.executor import caught, returned

J = TypeVar("J")
R = TypeVar("R")
RETRIES = 20  # of one job, after the death of its worker or node


@dataclass(frozen=True, slots=True)
class Ray:
    """``address``: of the head node (host:port or ``auto``); None starts a cluster of this machine alone."""

    address: str | None = None

    @property
    def name(self) -> str:
        """``ray``."""
        return "ray"

    def results(self, work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """As they finish; one core a job. Raises DependencyFailed where no cluster answers, or none of it is left."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        started = not ray.is_initialized()
        if started:
            self._connect()
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(caught)
        waiting = [remote.remote(work, job) for job in jobs]
        try:
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=1)
                yield returned(ray.get(done[0]))
        except ray.exceptions.RayError as error:
            raise DependencyFailed(
                "ray-failed", "building partitions on Ray", (str(error).splitlines() or [type(error).__name__])[0],
                "look at the cluster (ray status), then run the same command again: finished partitions are kept",
            ) from None  # fmt: skip
        finally:
            for job in waiting:
                ray.cancel(job, force=False)
            if started:
                ray.shutdown()

    def _connect(self) -> None:
        import ray

        try:
            ray.init(address=self.address, include_dashboard=False if self.address is None else None,
                     log_to_driver=False, configure_logging=False)  # fmt: skip
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise DependencyFailed(
                "ray-no-cluster", f"connecting to Ray at {self.address or 'this machine'}",
                (str(error).splitlines() or ["no answer"])[0],
                "start one with 'ray start --head', or leave out --executor ray",
            ) from None  # fmt: skip
