"""Alibaba openb pods (CSV) → canonical jobs. Seconds from the trace's own start; there are no users.

A phase is the last one seen before the pod was deleted. ``Running`` and deleted earlier than the trace's last instant:
somebody or something deleted it (cancelled, nobody knows by whom); deleted at that very instant: the trace ended, the
pod is censored. ``Pending`` with a deletion was given up before it was scheduled. Of ``Failed`` pods the reason is not
told, so an out-of-memory kill is a failure like any other.
"""

from pathlib import Path

import polars as pl

from leadtime.domain.jobs import Outcome
from leadtime.sources.jobs_frame import Jobs, bad_jobs, canonical, require

PHASES = {"Succeeded": Outcome.COMPLETED, "Failed": Outcome.FAILED, "Running": Outcome.CANCELLED,
          "Pending": Outcome.CANCELLED}  # fmt: skip
COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "pod_phase", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
CURE = "give a pod list of the trace with its times, such as pods_default.csv"
MIB = 1024**2


def read_openb(path: Path) -> Jobs:
    """One row a pod; ``queue`` is its quality of service. Raises jobs-unreadable, -column-missing, -state-unknown."""
    try:
        raw = pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise bad_jobs("jobs-unreadable", path, f"it is no CSV table ({str(error).splitlines()[0]})", CURE) from None
    require(path, raw.columns, COLUMNS, CURE)
    unknown = raw.filter(~pl.col("pod_phase").is_in(list(PHASES)) | pl.col("pod_phase").is_null())
    if unknown.height:
        wrong = f"phase {unknown['pod_phase'][0]!r} of pod {unknown['name'][0]!r} is not known ({unknown.height} pods)"
        raise bad_jobs("jobs-state-unknown", path, wrong, f"known are {', '.join(sorted(PHASES))}")
    end = raw.select(pl.max_horizontal(pl.col("creation_time", "deletion_time", "scheduled_time").max())).item()
    cut = (pl.col("deletion_time") >= end) | pl.col("deletion_time").is_null()
    still = pl.when(pl.col("pod_phase") == "Running").then(pl.lit(Outcome.RUNNING.value)).otherwise(
        pl.lit(Outcome.PENDING.value)
    )  # fmt: skip
    ended = pl.col("pod_phase").replace_strict({k: v.value for k, v in PHASES.items()}, return_dtype=pl.String)
    rows = raw.select(
        job="name", queue="qos", kind="qos", cpus=pl.col("cpu_milli") / 1000,
        gpus=pl.col("num_gpu") * pl.col("gpu_milli") / 1000, memory_bytes=pl.col("memory_mib") * MIB,
        submitted_s="creation_time", started_s="scheduled_time", ended_s="deletion_time",
        outcome=pl.when(cut & pl.col("pod_phase").is_in(["Running", "Pending"])).then(still).otherwise(ended),
    )  # fmt: skip
    notes = {"running at the trace's end": int(rows["outcome"].is_in([Outcome.RUNNING.value]).sum())}
    return canonical(path, rows, observed_until_s=int(end or 0), epoch=False, notes=notes)
