"""Canonical jobs → features as known at each submission. No ids and no names: a user is what became of their jobs.

Everything is computed from the past alone (``risk.jobs_history``), so a job's row does not change when later rows do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, pi
from typing import NamedTuple

import numpy as np
import polars as pl

from leadtime.risk.jobs_history import NOBODY, Past, load, past_outcomes, past_waits
from leadtime.risk.measures import Array, Whole

HOUR_S, DAY_S = 3_600.0, 86_400.0
GIB = 2.0**30
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
    times = _Times(submitted=submitted, started=started, ended=ended, failed=failed)
    user = codes(frame, ["user"])
    global_rate = times.past(np.zeros(frame.height, np.int64)).rate(0.5, 1.0)
    user_rate = times.past(user).rate(global_rate, PRIOR_JOBS)
    columns = (
        _requested(frame, times.submitted) | _loads(frame, times) | _users(user, times, user_rate)
        | _rates(frame, times, global_rate, user_rate) | _waits(frame, times)
    )  # fmt: skip
    has_users = bool((user != NOBODY).any())
    drawn = np.unique(user if has_users else (times.submitted // DAY_S).astype(np.int64), return_inverse=True)[1]
    x = np.column_stack([columns[name] for name in NAMES]).astype(np.float32)
    return JobTable(
        x=np.where(np.isfinite(x), x, np.float32("nan")), user=drawn.astype(np.int64), user_rate=user_rate,
        global_rate=global_rate, has_users=has_users,
    )  # fmt: skip


class _Times(NamedTuple):
    """When jobs were submitted, started and ended, in s, and whether they failed [jobs]; NaN: not seen."""

    submitted: Array
    started: Array
    ended: Array
    failed: Array

    def past(self, key: Whole, decay_s: float = inf) -> Past:
        """Earlier ends of the same key."""
        return past_outcomes(key, self.submitted, self.ended, self.failed, decay_s=decay_s)


def _requested(frame: pl.DataFrame, submitted: Array) -> dict[str, Array]:
    """The job's own request, and the clock."""
    cpus, memory = _reals(frame, "cpus"), _reals(frame, "memory_bytes") / GIB
    day, week = (2 * pi * (submitted % period) / period for period in (DAY_S, WEEK_S))
    return {
        "cpus": cpus, "gpus": _reals(frame, "gpus"), "nodes": _reals(frame, "nodes"), "memory_gib": memory,
        "memory_per_cpu_gib": np.divide(memory, cpus, out=np.full(len(cpus), np.nan), where=cpus > 0),
        "time_limit_h": _reals(frame, "time_limit_s") / HOUR_S, "day_sin": np.sin(day), "day_cos": np.cos(day),
        "week_sin": np.sin(week), "week_cos": np.cos(week),
    }  # fmt: skip


def _loads(frame: pl.DataFrame, times: _Times) -> dict[str, Array]:
    """Who waits and runs in the queue, and of the user's own jobs."""
    cpus = _reals(frame, "cpus")
    queue, user = (
        load(codes(frame, [name]), times.submitted, times.started, times.ended, cpus) for name in ("queue", "user")
    )
    return {
        "queue_waiting": queue.waiting, "queue_running": queue.running, "queue_waiting_cpus": queue.waiting_cpus,
        "user_waiting": user.waiting, "user_running": user.running,
    }  # fmt: skip


def _users(user: Whole, times: _Times, user_rate: Array) -> dict[str, Array]:
    """What became of the user's jobs."""
    ever, day, month = (times.past(user, decay) for decay in (inf, SHORT_DECAY_S, LONG_DECAY_S))
    return {
        "user_ended": ever.ended, "user_rate": user_rate, "user_ended_day": day.ended, "user_failed_day": day.failed,
        "user_ended_month": month.ended, "user_failed_month": month.failed, "user_last_failed": ever.last_failed,
        "user_since_end_h": ever.since_end_s / HOUR_S, "user_since_failure_h": ever.since_failure_s / HOUR_S,
    }  # fmt: skip


def _rates(frame: pl.DataFrame, times: _Times, global_rate: Array, user_rate: Array) -> dict[str, Array]:
    """What became of jobs like it: same user and request, same request, same kind, same queue, all."""
    shape = times.past(codes(frame, ["user", *REQUEST]), LONG_DECAY_S)
    like = {
        "request_rate": times.past(codes(frame, REQUEST, owner=False), LONG_DECAY_S),
        "kind_rate": times.past(codes(frame, ["kind"]), LONG_DECAY_S),
        "queue_rate": times.past(codes(frame, ["queue"]), SHORT_DECAY_S),
        "all_rate": times.past(np.zeros(frame.height, np.int64), SHORT_DECAY_S),
    }
    own = {"shape_ended": shape.ended, "shape_rate": shape.rate(user_rate, PRIOR_JOBS)}
    return own | {name: past.rate(global_rate, PRIOR_JOBS) for name, past in like.items()}


def _waits(frame: pl.DataFrame, times: _Times) -> dict[str, Array]:
    """How long jobs of the user, and of the queue, waited that had started."""
    found = {name: past_waits(codes(frame, [name]), times.submitted, times.started) for name in ("user", "queue")}
    return {
        f"{name}_wait_{share}_s": getattr(waits, share) for name, waits in found.items() for share in ("p50", "p90")
    }


def _reals(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
