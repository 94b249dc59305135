"""Demand path, leads and rates → how many pods must stand when, and how many nodes must be on their way.

All numbers are pods of one workload. Index i of a need row is the minute [as_of + i·step, as_of + (i+1)·step).
Surprising: raises are limited per minute, so a steep ramp begins early: the floor that must stand now is the highest
of need(now + pod lead + τ) − rate·τ over every τ ≥ 0, and the room that must be ordered now is the highest floor that
must stand within one node lead.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.demand import DemandPath
from leadtime.policy.schema import ScalingPolicy

Pods = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PATH_PLANS = ("upper", "middle", "expected")
# Steady headroom above what the HPA wants now: the strategy that needs no forecast, always in the race.
HEADROOM_PLANS = ("headroom-05", "headroom-10", "headroom-15", "headroom-20")
HEADROOM_RATIOS = np.array([0.05, 0.10, 0.15, 0.20])
PLANS = PATH_PLANS + HEADROOM_PLANS
# Nodes ahead for the upper path and no floor: pods are the HPA's business. Costs no pod-hours, only nodes.
ROOM_PLAN = "room-upper"
# A lowered floor is not raised again within ten minutes, the span the score card calls a reversal.
SETTLE_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What turns one workload's demand into pods and bounds them. ``lid`` = min(maxReplicas, policy.replica_cap)."""

    per_pod: float  # demand one pod takes at the target utilisation
    lid: int
    rate_per_step: float  # pods leadtime may add in one step of the path, at the normal rate
    pod_steps: int  # path steps from a floor's write until its pods are Ready, one tick for the decision included
    node_steps: int  # path steps from a buffer's write until its nodes are allocatable, one tick included
    settle_steps: int
    hold_steps: int  # path steps a floor outlives its need


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePlans:
    """Every candidate's wish at this instant, in the order of PLANS: floors to stand, floors safe to lower to, room."""

    required: Pods
    settled: Pods  # the highest floor that must stand within the next ten minutes: lower than this is a see-saw
    later: Pods  # the highest floor that must stand two holds from now, and ten minutes on
    room: Pods
    need_at_pod_lead: int  # by the upper path
    need_at_node_lead: int  # by the upper path, node lead + pod lead ahead


def sizing(
    *,
    capacity_per_pod: float,
    max_replicas: int,
    scaling: ScalingPolicy,
    step_s: int,
    tick_s: int,
    pod_lead_s: float,
    node_lead_s: float,
) -> Sizing:
    """Whole path steps and pods per step; leads in seconds are rounded up to the step."""
    return Sizing(
        per_pod=scaling.target_utilisation_ratio * capacity_per_pod,
        lid=min(max_replicas, scaling.replica_cap),
        rate_per_step=scaling.normal_pods_added_per_min * step_s / 60,
        pod_steps=math.ceil((pod_lead_s + tick_s) / step_s),
        node_steps=math.ceil((node_lead_s + tick_s) / step_s),
        settle_steps=math.ceil(SETTLE_S / step_s),
        hold_steps=math.ceil(scaling.floor_hold_s / step_s),
    )


def horizon_s(*, pod_lead_s: float, node_lead_s: float, raise_pods: int, scaling: ScalingPolicy, tick_s: int) -> float:
    """How far the path must reach: both leads, the time a raise by ``raise_pods`` takes, at most 2.5 h.

    Example: node 2,460 s, pod 660 s, 412 pods at 10 a minute → 2,460 + 660 + 2,472 + 120 = 5,712 s.
    """
    raise_s = 60 * raise_pods / scaling.normal_pods_added_per_min
    return min(9000.0, node_lead_s + pod_lead_s + raise_s + 2 * tick_s)


def pods_for(demand: float, per_pod: float, lid: int) -> int:
    """ceil(demand / per_pod), within [0, lid]; 412 for 1,440 requests/s at 3.5 a pod."""
    return min(lid, max(0, math.ceil(demand / per_pod - 1e-9)))


def needs(path: DemandPath, size: Sizing, skip_steps: int) -> Floats:
    """Rows upper, middle, expected × minutes: whole pods needed; the first ``skip_steps`` minutes lie before as_of."""
    upper = np.asarray(path.upper, dtype=np.float64)
    expected = np.asarray(path.expected, dtype=np.float64)
    if skip_steps > 0:
        skip = min(skip_steps, len(upper) - 1)
        upper, expected = upper[skip:], expected[skip:]
    rows = np.empty((3, len(upper)))
    rows[0], rows[2] = upper, expected
    rows[1] = (upper + expected) * 0.5
    rows /= size.per_pod
    rows -= 1e-9
    np.ceil(rows, out=rows)
    return np.minimum(rows, size.lid, out=rows)


def reach(rows: Floats, rate_per_step: float) -> Floats:
    """g[t] = max over u ≥ t of rows[u] − rate·(u − t): what must stand at t so that every later need is reachable."""
    slope = rate_per_step * np.arange(rows.shape[1])
    backwards: Floats = np.maximum.accumulate((rows - slope)[:, ::-1], axis=1)
    return backwards[:, ::-1] + slope


def headrooms(hpa_want: Floats | int, owner_min: int, lid: int, ratios: Floats | float) -> Floats:
    """Steady headroom above what the HPA wants; none where the owner's minimum alone decides, it is one already.

    Example at 5 %: 100 → 105, 8 of minimum 8 → 8.
    """
    wanted = np.minimum(np.ceil(hpa_want * (1 + np.asarray(ratios)) - 1e-9), lid)
    return np.where(np.asarray(hpa_want) > owner_min, wanted, np.minimum(hpa_want, lid))


def candidates(
    path: DemandPath, hpa_want: int, size: Sizing, *, owner_min: int = 0, skip_steps: int = 0
) -> CandidatePlans:
    """Every candidate plan now. A path that ends before the leads do is read as if its last minute lasted."""
    rows = needs(path, size, skip_steps)
    pod, settle, holds = size.pod_steps, size.settle_steps, 2 * size.hold_steps
    width, after = pod + size.node_steps + 1, holds + pod + settle + 1
    if rows.shape[1] < max(width, after):
        rows = np.concatenate([rows, np.repeat(rows[:, -1:], max(width, after) - rows.shape[1], axis=1)], axis=1)
    ahead = reach(rows, size.rate_per_step)
    near = np.maximum.accumulate(rows[:, : pod + settle + 1], axis=1)
    required = np.maximum(near[:, pod], ahead[:, pod])
    settled = np.maximum(near[:, -1], ahead[:, pod : pod + settle + 1].max(axis=1))
    later = ahead[:, holds:after].max(axis=1)
    room = np.maximum(required, ahead[:, pod:width].max(axis=1))
    head = headrooms(hpa_want, owner_min, size.lid, HEADROOM_RATIOS)
    upper = rows[0]
    return CandidatePlans(
        required=np.ceil(np.concatenate([required, head])).astype(np.int64),
        settled=np.ceil(np.concatenate([settled, head])).astype(np.int64),
        later=np.ceil(np.concatenate([later, head])).astype(np.int64),
        room=np.ceil(np.concatenate([room, head])).astype(np.int64),
        need_at_pod_lead=int(upper[pod]),
        need_at_node_lead=int(upper[width - 1]),
    )
