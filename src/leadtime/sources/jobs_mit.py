"""MIT SuperCloud's scheduler log (Parquet) → canonical jobs. Times are Unix seconds; states are Slurm's numbers.

Of Slurm's enum (slurm.h, ``enum job_states``) the sample holds 3, 4, 5, 6, 7 and 11; the exit code is a wait status.
Its publisher left out jobs under 300 s and the longest 1 %, so rates are those of the jobs that stayed.
"""

from pathlib import Path

import polars as pl

from leadtime.domain.jobs import Outcome
from leadtime.sources.jobs_frame import Jobs, bad_jobs, canonical, require

STATES = {
    0: Outcome.PENDING, 1: Outcome.RUNNING, 2: Outcome.RUNNING, 3: Outcome.COMPLETED, 4: Outcome.CANCELLED,
    5: Outcome.FAILED, 6: Outcome.TIMEOUT, 7: Outcome.NODE_FAILED, 8: Outcome.NODE_FAILED, 9: Outcome.FAILED,
    10: Outcome.TIMEOUT, 11: Outcome.OUT_OF_MEMORY,
}  # fmt: skip
COLUMNS = (
    "job", "user", "job_type", "partition", "nodes_alloc", "cpus_req", "gpu_tesla", "gpu_volta", "timelimit_min",
    "state", "exit_code", "time_submit", "time_eligible", "time_start", "time_end",
)  # fmt: skip
CURE = "give the Parquet file of the scheduler log with its published columns"


def read_mit(path: Path) -> Jobs:
    """One row a job. Raises jobs-unreadable, jobs-column-missing, jobs-state-unknown, and what ``canonical`` raises."""
    try:
        raw = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise bad_jobs("jobs-unreadable", path, f"it is no Parquet file ({str(error).splitlines()[0]})", CURE) from None
    require(path, raw.columns, COLUMNS, CURE)
    unknown = raw.filter(~pl.col("state").is_in(list(STATES)) | pl.col("state").is_null())
    if unknown.height:
        wrong = f"state {unknown['state'][0]} of job {unknown['job'][0]} is none of Slurm's ({unknown.height} jobs)"
        raise bad_jobs("jobs-state-unknown", path, wrong, "known are 0 (pending) to 11 (out of memory)")
    times = {"submitted_s": "time_submit", "eligible_s": "time_eligible", "started_s": "time_start"}
    rows = raw.select(
        pl.col("job").cast(pl.String), "user",
        queue="partition", kind="job_type", nodes="nodes_alloc", cpus="cpus_req",
        gpus=pl.col("gpu_tesla").fill_null(0) + pl.col("gpu_volta").fill_null(0),
        time_limit_s=pl.col("timelimit_min") * 60,
        outcome=pl.col("state").replace_strict({k: v.value for k, v in STATES.items()}, return_dtype=pl.String),
        exit_code=pl.col("exit_code") // 256,
        **{name: pl.when(pl.col(column) > 0).then(pl.col(column)) for name, column in times.items()},
        ended_s=pl.when(pl.col("time_end") > 0).then(pl.col("time_end")),
    )  # fmt: skip
    latest = rows.select(pl.max_horizontal(pl.col("submitted_s", "started_s", "ended_s").max())).item()
    return canonical(path, rows, observed_until_s=int(latest or 0), epoch=True)
