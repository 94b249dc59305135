"""Jobs in order of submission → blocks by time, with a purge: a job teaches only what was known when the block closed.

A job's outcome is known at its end, so the blocks lose the jobs that were still going when they closed, the long ones
first. They are counted, because what stays is shorter than what is.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.risk.measures import Array
from leadtime.risk.splits import by_time

SECOND_US = 1_000_000
FEWEST_JOBS = 200
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBlocks:
    """Cuts in s, and where jobs [jobs] lie by submission: train < ``tune_from_s`` ≤ tune < ``test_from_s`` ≤ test."""

    tune_from_s: int
    test_from_s: int
    train: Mask
    tune: Mask
    test: Mask


def blocks(submitted_s: Array, doing: str) -> JobBlocks:
    """60 % of the jobs, 20 %, the rest. Raises BadTrace(jobs-too-few) below FEWEST_JOBS, or when a block is empty."""
    if len(submitted_s) < FEWEST_JOBS:
        raise BadTrace(
            "jobs-too-few", doing, f"there are {len(submitted_s)} jobs, {FEWEST_JOBS} are the least",
            "export a longer span, or more queues",
        )  # fmt: skip
    cut = by_time(pl.DataFrame({"end_time_us": submitted_s.astype(np.int64) * SECOND_US}), horizon_us=0)
    tune_from, test_from = cut.tune_from_us // SECOND_US, cut.test_from_us // SECOND_US
    train, test = submitted_s < tune_from, submitted_s >= test_from
    found = JobBlocks(tune_from_s=tune_from, test_from_s=test_from, train=train, tune=~train & ~test, test=test)
    if not (found.train.any() and found.tune.any() and found.test.any()):
        raise BadTrace(
            "jobs-too-few", doing, "all jobs were submitted at (nearly) the same time, so none comes after another",
            "export a longer span",
        )  # fmt: skip
    return found
