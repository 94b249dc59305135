"""A simulated cluster's failing pods → usage windows and ends as a monitor would have them (domain.risk.UsageSource).

A window is visible its end plus the scenario's metric lag. Requests and capacities are in shares of the largest
machine, as in the trace, and every column is made from the usage ratio as the trace generator makes it
(simulate/borg/usage.py), so that a model trained on generated traces meets what it knows.
"""

import math
from collections.abc import Sequence
from datetime import datetime

from leadtime.domain.risk import PodEnd, PodFacts, PodUsage, UsageWindow
from leadtime.domain.series import Missing
from leadtime.domain.time_window import from_epoch
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.pod_failures import WINDOW_S, Ended, Life, PodFailures, ref_of, windows_of

REQUEST_CPU, REQUEST_MEMORY = 0.02, 0.015
CAPACITY_CPU, CAPACITY_MEMORY = 0.6, 0.5
CYCLES = 1.1
P50, P90, P95, P99 = (1.0, 0.05), (1.0, 0.6), 0.75, 0.94  # parts of average, and of maximum − average
ABSENT = Missing(source="usage windows", reason="the scenario has no failures")


class SimulatedUsage:
    """Usage reads of one cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def usage(self, since: datetime, as_of: datetime) -> PodUsage | Missing:
        """Pods that run or ended after ``since``, and their windows with end > ``since`` visible at ``as_of``."""
        failures = self._cluster.failures
        if failures is None:
            return ABSENT
        now_s, since_s = as_of.timestamp(), since.timestamp()
        visible_s = now_s - self._cluster.scenario.metric_lag_s
        known = failures.known(since_s, now_s)
        return PodUsage(
            as_of=as_of,
            pods=tuple(_facts(life) for life, _ in known),
            windows=tuple(window for life, end in known for window in _windows(life, end, since_s, visible_s)),
            ends=tuple(_end(end, failures) for _, end in known if end is not None),
        )

    def pod_ends(self, since: datetime, as_of: datetime) -> Sequence[PodEnd] | Missing:
        """Pods that ended in (``since``, ``as_of``]."""
        failures = self._cluster.failures
        if failures is None:
            return ABSENT
        return [_end(end, failures) for end in failures.ends_within(since.timestamp(), as_of.timestamp())]


def _facts(life: Life) -> PodFacts:
    return PodFacts(
        pod=life.pod, workload=ref_of(life.workload), node=life.node, created_at=from_epoch(life.created_s),
        started_at=from_epoch(life.started_s), request_cpu=REQUEST_CPU, request_memory=REQUEST_MEMORY,
        capacity_cpu=CAPACITY_CPU, capacity_memory=CAPACITY_MEMORY,
    )  # fmt: skip


def _windows(life: Life, end: Ended | None, since_s: float, visible_s: float) -> list[UsageWindow]:
    """Windows that were closed while the pod ran."""
    until_s = visible_s if end is None else min(visible_s, end.at_s)
    shown = []
    for i in windows_of(life, until_s):
        ends_s = life.first_end_s + WINDOW_S * i
        if ends_s > since_s:
            starts_s = max(life.started_s, ends_s - WINDOW_S)
            shown.append(_window(life, i, starts_s, ends_s))
    return shown


def _window(life: Life, i: int, starts_s: float, ends_s: float) -> UsageWindow:
    noise, chance = life.noise[:, i], life.chance[:, i]
    average = life.ratios[i] * REQUEST_CPU
    most = average * (1.1 + 0.2 * abs(float(noise[0])))
    memory = REQUEST_MEMORY * (0.6 + 0.1 * math.tanh(float(noise[1])))
    cycles = CYCLES * (1.0 + 0.1 * math.tanh(float(noise[2])))
    spread = most - average
    return UsageWindow(
        pod=life.pod, start=from_epoch(starts_s), end=from_epoch(ends_s), avg_cpu=average, avg_memory=memory,
        max_cpu=most, max_memory=memory * (1.02 + 0.1 * float(chance[2])),
        sample_cpu=average * (1.0 + 0.05 * float(noise[3])), assigned_memory=REQUEST_MEMORY,
        page_cache_memory=memory * (0.02 + 0.05 * float(chance[3])),
        cpu_p50=average * P50[0] + spread * P50[1], cpu_p90=average * P90[0] + spread * P90[1],
        cpu_p95=average + spread * P95, cpu_p99=average + spread * P99, cycles_per_instruction=cycles,
        memory_accesses_per_instruction=cycles * (0.005 + 0.002 * float(chance[3])),
        sample_rate=1.0 - 0.015 * float(chance[3]) * float(chance[2]),
    )  # fmt: skip


def _end(end: Ended, failures: PodFailures) -> PodEnd:
    life = failures.lives[end.pod]
    return PodEnd(
        pod=end.pod, workload=ref_of(life.workload), node=life.node, at=from_epoch(end.at_s), how=end.how
    )  # fmt: skip
