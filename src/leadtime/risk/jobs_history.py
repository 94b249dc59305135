"""Jobs in order of time → what was known of the past at each submission: ends, failures, waits, queue.

Known at a submission t is what happened strictly before t: accounts count whole seconds, so what stands at the same
second may have come after. A job tells nothing of its outcome before its end, and nothing of its wait before its start.
"""

from bisect import insort
from dataclasses import dataclass
from math import exp, inf

import numpy as np

from leadtime.risk.measures import Array, Whole

NOBODY = -1  # a key that is missing: no history


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Of earlier jobs with the same key, as of each submission [jobs]; NaN where there is none to tell of.

    ``ended``, ``failed``: sums, each end weighing exp(-age / decay). ``since_end_s``, ``since_failure_s``: ages of the
    newest. ``last_failed``: 1 where the newest end was a failure.
    """

    ended: Array
    failed: Array
    since_end_s: Array
    since_failure_s: Array
    last_failed: Array

    def rate(self, prior: Array | float, weight: float) -> Array:
        """Share of failures, drawn towards ``prior`` as if ``weight`` further jobs had failed at that rate."""
        return (self.failed + weight * prior) / (self.ended + weight)


def past_outcomes(key: Whole, submitted_s: Array, ended_s: Array, failed: Array, *, decay_s: float = inf) -> Past:
    """``key`` [jobs] (NOBODY: none), times in s (NaN: not seen), ``failed`` 0/1 (NaN: not known) → ``Past`` [jobs].

    Time and memory grow with the number of jobs; any order of jobs gives the same.
    """
    count = len(key)
    told = {name: np.full(count, np.nan) for name in ("since_end_s", "since_failure_s", "last_failed")}
    ended, lost = np.zeros(count), np.zeros(count)
    state: dict[int, list[float]] = {}  # ended, failed, their time, last end, last failure, last failed
    for at, job, is_end in _moments(submitted_s, np.where(np.isnan(failed), np.nan, ended_s)):
        code = int(key[job])
        if code == NOBODY:
            continue
        if is_end:
            one = state.setdefault(code, [0.0, 0.0, at, -inf, -inf, 0.0])
            fade = exp((one[2] - at) / decay_s)
            state[code] = [
                one[0] * fade + 1, one[1] * fade + failed[job], at, at, at if failed[job] else one[4], failed[job],
            ]  # fmt: skip
        elif code in state:
            one = state[code]
            fade = exp((one[2] - at) / decay_s)
            ended[job], lost[job] = one[0] * fade, one[1] * fade
            told["since_end_s"][job], told["last_failed"][job] = at - one[3], one[5]
            told["since_failure_s"][job] = at - one[4] if one[4] > -inf else np.nan
    return Past(ended=ended, failed=lost, **told)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWaits:
    """Median and 90th percentile (s) of earlier jobs' waits, and how many; NaN where nobody had started yet."""

    p50: Array
    p90: Array
    count: Array


def past_waits(key: Whole, submitted_s: Array, started_s: Array) -> PastWaits:
    """Of jobs of the same key that started strictly before each submission. Jobs still waiting tell nothing here."""
    found = {name: np.full(len(key), np.nan) for name in ("p50", "p90")}
    count = np.zeros(len(key))
    waits: dict[int, list[float]] = {}
    for _, job, is_start in _moments(submitted_s, started_s):
        code = int(key[job])
        if code == NOBODY:
            continue
        if is_start:
            insort(waits.setdefault(code, []), float(started_s[job] - submitted_s[job]))
        elif known := waits.get(code):
            count[job] = len(known)
            for name, share in (("p50", 0.5), ("p90", 0.9)):
                found[name][job] = known[max(0, -(-int(share * 1000) * len(known) // 1000) - 1)]
    return PastWaits(count=count, **found)


def _moments(submitted_s: Array, later_s: Array) -> list[tuple[float, int, bool]]:
    """(time, job, is it the later one) in order; at equal times the submission first, so it knows nothing of it."""
    seen = np.flatnonzero(~np.isnan(later_s))
    moments = [(float(at), job, False) for job, at in enumerate(submitted_s)]
    moments += [(float(later_s[job]), int(job), True) for job in seen]
    return sorted(moments, key=lambda one: (one[0], one[2], one[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Jobs of the same key that waited, and that ran, at each submission; and the CPUs the waiting ones asked for."""

    waiting: Array
    running: Array
    waiting_cpus: Array


def load(key: Whole, submitted_s: Array, started_s: Array, ended_s: Array, cpus: Array) -> Load:
    """Counts as of each submission t: submitted < t and not gone by t. NOBODY has none (NaN)."""
    waiting, running, asked = (np.full(len(key), np.nan) for _ in range(3))
    for code in np.unique(key):
        if code == NOBODY:
            continue
        mine = np.flatnonzero(key == code)
        at = submitted_s[mine]
        left = np.where(np.isnan(started_s[mine]), np.where(np.isnan(ended_s[mine]), inf, ended_s[mine]),
                        started_s[mine])  # fmt: skip
        asks = np.nan_to_num(cpus[mine])
        waiting[mine] = _before(at, at) - _before(left, at)
        asked[mine] = _before(at, at, asks) - _before(left, at, asks)
        started = ~np.isnan(started_s[mine])
        gone = np.where(np.isnan(ended_s[mine]), inf, ended_s[mine])[started]
        running[mine] = _before(started_s[mine][started], at) - _before(gone, at)
    return Load(waiting=waiting, running=running, waiting_cpus=asked)


def _before(moments: Array, at: Array, weight: Array | None = None) -> Array:
    """How many (or how much weight) of ``moments`` lie strictly before each ``at``."""
    order = np.argsort(moments, kind="stable")
    weights = np.ones(len(moments)) if weight is None else weight
    total = np.concatenate(([0.0], np.cumsum(weights[order])))
    return np.asarray(total[np.searchsorted(moments[order], at, side="left")], dtype=np.float64)
