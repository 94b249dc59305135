"""What a world leaves behind for the score card: columns of equal length, one entry a step, per workload and pool.

Filled by the simulator's recorder (or, later, from live measurements); read by the measures. Times are epoch seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Something that happened once. ``kind``: node_requested, node_ready, node_deleted, pod_bound, pod_ready,
    pod_deleted, pod_failed, floor_raised, floor_released, buffer_set, threshold_crossed (the HPA asked for more than
    stood). ``count`` is how many; ``detail`` is free text for people."""

    at_s: int
    kind: str
    workload: str | None
    pool: str | None
    count: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRun:
    """One workload in one world over [start_s, start_s + n·step_s). Requests are counts within the step, booked at the
    step they arrived in; pod counts are those at the step's end."""

    workload: str
    start_s: int
    step_s: int
    capacity_per_pod_rps: float
    gpus_per_pod: int
    slo_s: float
    demand_rps: FloatColumn  # NaN: the demand series has no value here; the step is not scored
    arrived: FloatColumn
    unserved: FloatColumn  # rejected + expired
    late: FloatColumn  # served after more than slo_s
    latency_s: FloatColumn  # mean waiting + service of the requests served that arrived in this step; NaN when none
    wanted: IntColumn  # spec.replicas
    ready: IntColumn
    starting: IntColumn
    pending: IntColumn
    floor: IntColumn  # effective minReplicas (owner's or ours, whichever is higher)
    pod_seconds: FloatColumn  # Σ over pods of seconds in this step between bound and deleted
    pending_pod_seconds: FloatColumn
    deleted: IntColumn  # pods deleted in this step that had been bound
    deleted_while_demand_stayed: IntColumn
    busy_killed: IntColumn
    warm_killed: IntColumn
    floor_added: IntColumn  # pods leadtime's own floor raise added above the spec.replicas that stood
    pool: str | None = None  # the pool its pods run on; None: any pool of the world


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRun:
    """One pool in one world. ``node_seconds``: launch accepted → deleted, within the step, static nodes included."""

    pool: str
    start_s: int
    step_s: int
    gpus_per_node: int
    node_seconds: FloatColumn
    nodes_by_stage: Mapping[str, IntColumn]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldRun:
    """Everything one world did."""

    world: str  # hpa | hpa_equal_cost | cron | leadtime | oracle
    workloads: Mapping[str, WorkloadRun]
    pools: Mapping[str, PoolRun]
    events: tuple[RunEvent, ...]
