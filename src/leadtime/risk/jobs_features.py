"""Canonical jobs → features as known at each submission. No ids and no names: a user is what became of their jobs.

Everything is computed from the past alone (``risk.jobs_history``), so a job's row does not change when later rows do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
import polars as pl

from leadtime.risk.jobs_history import NOBODY, Past, load, past_outcomes, past_waits
from leadtime.risk.measures import Array, Whole

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
SHORT_DECAY_S, LONG_DECAY_S = DAY_S, 30 * DAY_S
REQUEST = ("cpus", "gpus", "nodes", "memory_bytes", "time_limit_s")  # jobs equal in these asked for the same
PRIOR_JOBS = 5.0  # a user's base rate is drawn towards everybody's by the weight of so many jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFeature:
    """One feature in the dictionary. ``known``: what of the past it is made from."""

    name: str
    unit: str
    known: str


_REQUEST, _CLOCK, _QUEUE = "the job's own request", "the clock", "jobs submitted, started, ended before"
_ENDS = "jobs that ended before"
FEATURES = (
    JobFeature(name="cpus", unit="CPUs", known=_REQUEST),
    JobFeature(name="gpus", unit="GPUs", known=_REQUEST),
    JobFeature(name="nodes", unit="nodes", known=_REQUEST),
    JobFeature(name="memory_gib", unit="GiB", known=_REQUEST),
    JobFeature(name="memory_per_cpu_gib", unit="GiB", known=_REQUEST),
    JobFeature(name="time_limit_h", unit="h", known=_REQUEST),
    JobFeature(name="day_sin", unit="1", known=_CLOCK),
    JobFeature(name="day_cos", unit="1", known=_CLOCK),
    JobFeature(name="week_sin", unit="1", known=_CLOCK),
    JobFeature(name="week_cos", unit="1", known=_CLOCK),
    JobFeature(name="queue_waiting", unit="jobs", known=_QUEUE),
    JobFeature(name="queue_running", unit="jobs", known=_QUEUE),
    JobFeature(name="queue_waiting_cpus", unit="CPUs", known=_QUEUE),
    JobFeature(name="user_waiting", unit="jobs", known=_QUEUE),
    JobFeature(name="user_running", unit="jobs", known=_QUEUE),
    JobFeature(name="user_ended", unit="jobs", known=_ENDS),
    JobFeature(name="user_rate", unit="ratio", known=_ENDS),
    JobFeature(name="user_ended_day", unit="jobs, decay 1 d", known=_ENDS),
    JobFeature(name="user_failed_day", unit="jobs, decay 1 d", known=_ENDS),
    JobFeature(name="user_ended_month", unit="jobs, decay 30 d", known=_ENDS),
    JobFeature(name="user_failed_month", unit="jobs, decay 30 d", known=_ENDS),
    JobFeature(name="user_last_failed", unit="0 or 1", known=_ENDS),
    JobFeature(name="user_since_end_h", unit="h", known=_ENDS),
    JobFeature(name="user_since_failure_h", unit="h", known=_ENDS),
    JobFeature(name="shape_ended", unit="jobs of the user with this request, decay 30 d", known=_ENDS),
    JobFeature(name="shape_rate", unit="ratio", known=_ENDS),
    JobFeature(name="request_rate", unit="ratio, decay 30 d", known=_ENDS),
    JobFeature(name="kind_rate", unit="ratio", known=_ENDS),
    JobFeature(name="queue_rate", unit="ratio, decay 1 d", known=_ENDS),
    JobFeature(name="all_rate", unit="ratio, decay 1 d", known=_ENDS),
    JobFeature(name="user_wait_p50_s", unit="s", known="the user's jobs that started before"),
    JobFeature(name="user_wait_p90_s", unit="s", known="the user's jobs that started before"),
    JobFeature(name="queue_wait_p50_s", unit="s", known="the queue's jobs that started before"),
    JobFeature(name="queue_wait_p90_s", unit="s", known="the queue's jobs that started before"),
)
NAMES = tuple(feature.name for feature in FEATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTable:
    """``x`` [jobs, features] float32 (NaN: missing) in the order of NAMES.

    ``user_rate``, ``global_rate`` [jobs]: share of failures so far, of the user and of everybody: the floors.
    ``user`` [jobs]: code of the user, or of the job's day where the accounts have no users; what is drawn as a whole.
    """

    x: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    user: Whole
    user_rate: Array
    global_rate: Array
    has_users: bool

    def column(self, name: str) -> Array:
        """One feature [jobs]."""
        return self.x[:, NAMES.index(name)].astype(np.float64)


def codes(frame: pl.DataFrame, columns: Sequence[str], *, owner: bool = True) -> Whole:
    """Rows → a number for each combination of ``columns``.

    ``owner``: the first column names somebody, and a job where it is missing is NOBODY's.
    """
    code = frame.select(pl.struct(columns).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy().astype(np.int64)
    return np.where(frame[columns[0]].is_null().to_numpy(), NOBODY, code) if owner else code


def job_table(frame: pl.DataFrame, failed: Array) -> JobTable:
    """``frame``: canonical jobs [jobs]; ``failed`` 0/1, NaN where the outcome is not known → features in that order."""
    submitted, started, ended = (_reals(frame, name) for name in ("submitted_s", "started_s", "ended_s"))
    user, queue = codes(frame, ["user"]), codes(frame, ["queue"])
    everybody = np.zeros(frame.height, np.int64)
    cpus, memory = _reals(frame, "cpus"), _reals(frame, "memory_bytes") / 2**30
    whole = past_outcomes(everybody, submitted, ended, failed)
    global_rate = whole.rate(0.5, 1.0)

    def past(key: Whole, decay_s: float) -> Past:
        return past_outcomes(key, submitted, ended, failed, decay_s=decay_s)

    ever, day, month = (past(user, decay) for decay in (np.inf, SHORT_DECAY_S, LONG_DECAY_S))
    shape = past(codes(frame, ["user", *REQUEST]), LONG_DECAY_S)
    recent = past(everybody, SHORT_DECAY_S)
    user_rate = ever.rate(global_rate, PRIOR_JOBS)
    in_queue, of_user = load(queue, submitted, started, ended, cpus), load(user, submitted, started, ended, cpus)
    user_waits, queue_waits = past_waits(user, submitted, started), past_waits(queue, submitted, started)
    day_phase, week_phase = (2 * pi * (submitted % period) / period for period in (DAY_S, WEEK_S))
    columns = {
        "cpus": cpus, "gpus": _reals(frame, "gpus"), "nodes": _reals(frame, "nodes"), "memory_gib": memory,
        "memory_per_cpu_gib": memory / cpus, "time_limit_h": _reals(frame, "time_limit_s") / 3600,
        "day_sin": np.sin(day_phase), "day_cos": np.cos(day_phase), "week_sin": np.sin(week_phase),
        "week_cos": np.cos(week_phase), "queue_waiting": in_queue.waiting, "queue_running": in_queue.running,
        "queue_waiting_cpus": in_queue.waiting_cpus, "user_waiting": of_user.waiting, "user_running": of_user.running,
        "user_ended": ever.ended, "user_rate": user_rate, "user_ended_day": day.ended, "user_failed_day": day.failed,
        "user_ended_month": month.ended, "user_failed_month": month.failed, "user_last_failed": ever.last_failed,
        "user_since_end_h": ever.since_end_s / 3600, "user_since_failure_h": ever.since_failure_s / 3600,
        "shape_ended": shape.ended, "shape_rate": shape.rate(user_rate, PRIOR_JOBS),
        "request_rate": past(codes(frame, REQUEST, owner=False), LONG_DECAY_S).rate(
            global_rate, PRIOR_JOBS
        ),
        "kind_rate": past(codes(frame, ["kind"]), LONG_DECAY_S).rate(global_rate, PRIOR_JOBS),
        "queue_rate": past(queue, SHORT_DECAY_S).rate(global_rate, PRIOR_JOBS),
        "all_rate": recent.rate(global_rate, PRIOR_JOBS), "user_wait_p50_s": user_waits.p50,
        "user_wait_p90_s": user_waits.p90, "queue_wait_p50_s": queue_waits.p50, "queue_wait_p90_s": queue_waits.p90,
    }  # fmt: skip
    has_users = bool((user != NOBODY).any())
    drawn = np.unique(user if has_users else (submitted // DAY_S).astype(np.int64), return_inverse=True)[1]
    x = np.column_stack([columns[name] for name in NAMES]).astype(np.float32)
    return JobTable(
        x=np.where(np.isfinite(x), x, np.float32("nan")), user=drawn.astype(np.int64), user_rate=user_rate,
        global_rate=global_rate, has_users=has_users,
    )  # fmt: skip


def _reals(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
