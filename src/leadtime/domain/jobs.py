"""The canonical form of a job-level trace: one row a job, whoever kept the accounts (Slurm, a GPU cluster's pod list).

Times are whole seconds on the trace's own clock. What the accounts do not know is null, never 0.
"""

from collections.abc import Mapping
from enum import StrEnum


class Outcome(StrEnum):
    """How a job ended, or how far it had come when it was last seen. A closed set: anything else is an error."""

    COMPLETED = "completed"
    FAILED = "failed"  # its own exit code, or its own broken launch
    CANCELLED = "cancelled"  # by its user, an administrator, or whatever deleted it; also before it started
    TIMEOUT = "timeout"  # its own time limit or deadline
    NODE_FAILED = "node_failed"  # the node's doing, or preemption's: not the job's
    OUT_OF_MEMORY = "out_of_memory"
    RUNNING = "running"
    PENDING = "pending"
    UNKNOWN = "unknown"  # the accounts say nothing that can be told apart


ENDED = frozenset({
    Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED, Outcome.TIMEOUT, Outcome.NODE_FAILED, Outcome.OUT_OF_MEMORY,
})  # fmt: skip
DEFAULT_FAILURES = frozenset({Outcome.FAILED, Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY})  # the job's own work was lost


class JobFormat(StrEnum):
    """Whose accounts a file holds."""

    SACCT = "sacct"  # sacct --parsable2, with its header
    MIT = "mit"  # MIT SuperCloud sample: scheduler log as Parquet
    OPENB = "openb"  # Alibaba openb GPU cluster 2023: pods as CSV


# Column → Polars dtype, in order. ``censored``: the job's end was not seen; ``ended_s`` is null then.
JOB_COLUMNS: Mapping[str, str] = {
    "job": "String",
    "user": "String",  # null where the accounts name none
    "queue": "String",  # partition, or quality of service
    "kind": "String",  # job type or QOS; null where not told
    "nodes": "Float64",
    "cpus": "Float64",
    "gpus": "Float64",
    "memory_bytes": "Float64",
    "time_limit_s": "Float64",  # null: none, or not told
    "submitted_s": "Int64",
    "eligible_s": "Int64",
    "started_s": "Int64",
    "ended_s": "Int64",
    "outcome": "String",
    "exit_code": "Int64",
    "censored": "Boolean",
}
