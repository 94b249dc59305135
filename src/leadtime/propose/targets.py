"""Candidate plans + what stands + what was needed lately → the floor and the room one workload should have now.

Three kinds of numbers: *required* must stand at once, *held* was required within policy.scaling.floor_hold_s, *keep*
is the level below which lowering would be taken back within ten minutes. All in pods.

Surprising: with release at once a floor goes down in few large steps, not in many small ones. Each small step takes
pods off another full node, and nodes left half full cannot be removed; one large step empties whole nodes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from leadtime.domain.evidence import Explanation
from leadtime.domain.snapshot import PoolState, WorkloadState
from leadtime.policy.schema import Policy

# Part of a floor goes only when it is worth a step: the HPA's own tolerance, within which it does not move either.
PART_AT_LEAST_RATIO = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """The plan that is followed, or None and why leadtime stands back."""

    plan: str | None
    why: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWish:
    """What the chosen plan (or, beside it, the surge) asks for. 0 everywhere when it asks for nothing."""

    required: int = 0
    held: int = 0
    settled: int = 0
    later: int = 0
    room: int = 0
    held_room: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where one workload should stand. ``standing_floor`` 0 = none of ours."""

    choice: PlanChoice
    plan: PlanWish
    surge: PlanWish
    standing_floor: int
    effective_floor: int  # the owner's or ours, whichever is higher
    keep: int
    lower_to: int | None  # where the floor goes down to now; None: it stays where it is
    free_slots: int  # pods of this size that fit on allocatable GPUs nobody uses
    floor_next: int  # the floor this tick can reach: rate and free slots already taken off
    buffer_pods: int  # by the plan
    surge_buffer_pods: int


def free_slots(workload: WorkloadState, pool: PoolState) -> int:
    """Pods that fit now. Free GPUs are counted over the pool: a GPU left over on each of many nodes may not fit.

    A workload without GPUs is bounded by no GPU: its pool is taken to have room.
    """
    if workload.gpus_per_pod <= 0:
        return 1_000_000
    return max(0, (pool.allocatable_gpus - pool.used_gpus) // workload.gpus_per_pod)


def targets(
    *,
    workload: WorkloadState,
    pool: PoolState,
    policy: Policy,
    choice: PlanChoice,
    plan: PlanWish,
    surge: PlanWish,
    added_last_minute: int,
    lowered_at: datetime | None,
    as_of: datetime,
) -> Targets:
    """Combine the wishes with what stands. ``lowered_at``: when this floor was last lowered."""
    scaling = policy.scaling
    standing = workload.floor.replicas if workload.floor is not None else 0
    effective = max(workload.owner_min_replicas, standing)
    base = max(effective, workload.wanted_replicas)
    rate = scaling.surge_pods_added_per_min if surge.required else scaling.normal_pods_added_per_min
    slots = free_slots(workload, pool)
    bound = workload.ready_pods + workload.starting_pods
    reachable = max(base, min(base + max(0, rate - added_last_minute), bound + slots))
    floor_next = max(base, min(max(plan.required, surge.required), reachable))
    spare = scaling.pool_headroom_nodes * (pool.gpus_per_node // max(1, workload.gpus_per_pod))
    keep = max(plan.held, surge.held, plan.settled)
    just_lowered = lowered_at is not None and as_of - lowered_at < timedelta(seconds=scaling.floor_hold_s)
    whole_soon = max(plan.later, surge.required) <= workload.owner_min_replicas
    return Targets(
        choice=choice,
        plan=plan,
        surge=surge,
        standing_floor=standing,
        effective_floor=effective,
        keep=keep,
        lower_to=_lower_to(workload, policy, standing, keep, wait=just_lowered or whole_soon),
        free_slots=slots,
        floor_next=floor_next,
        # The pods the floor adds in this tick take slots themselves: room for them on top would be ordered twice.
        buffer_pods=max(0, plan.held_room - floor_next) + spare if choice.plan is not None else 0,
        surge_buffer_pods=max(0, surge.held_room - floor_next),
    )


def _lower_to(workload: WorkloadState, policy: Policy, standing: int, keep: int, *, wait: bool) -> int | None:
    """Where the floor goes down to now, or None.

    With release at once: given back when nothing above the owner's minimum is kept; part of the way only when
    ``wait`` is False (it cannot be given back whole within two holds, and the last step was a hold ago) and at least a
    tenth of it goes.
    """
    if not standing:
        return None
    if keep <= workload.owner_min_replicas:
        return workload.owner_min_replicas
    at_once = policy.actuation.floor_release == "at_once"
    step = max(policy.scaling.floor_tolerance_ratio, PART_AT_LEAST_RATIO if at_once else 0.0)
    if keep >= standing * (1 - step) or (wait and at_once):
        return None
    return keep
