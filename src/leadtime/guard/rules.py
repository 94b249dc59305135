"""One rule, one reason a change may not be made as asked. A rule sees the action as the rules before it left it.

A rule answers None (nothing to say), a smaller action (limited), or no action at all (refused). A floor is never
limited below the floor that stands: a limit on raises is not a reason to lower.
"""

from dataclasses import replace
from datetime import timedelta

from leadtime.domain.decision import (
    Action,
    Agent,
    AvoidNode,
    Proposal,
    ProtectPod,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.reasons import Reason
from leadtime.guard.facts import GuardFacts, lowers, raise_base, standing_buffer, standing_floor
from leadtime.guard.risk_rules import protect_limit, risk_threshold, spare_budget
from leadtime.guard.ruling import Rule, Ruling, limit, refuse


def kill_switch(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """With the kill switch on only releases pass, a stepwise one included."""
    del proposal
    if not facts.policy.actuation.kill_switch:
        return None
    match action:
        case ReleaseFloor() | SetBuffer(pods=0) | SetConsolidation(offered=False):
            return None
        case SetLowPriorityAdmission(paused=False) | ProtectPod(expires_at=None) | AvoidNode(expires_at=None):
            return None
        case SetFloor() if lowers(action, facts):
            return None
    return refuse(Reason.KILL_SWITCH, "the kill switch is on: only releases pass")


def missing_never_lowers(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """While demand is missing nothing that stands is made smaller; the kill switch's releases are no measurement."""
    if proposal.why.reason is Reason.KILL_SWITCH or not lowers(action, facts):
        return None
    missing = facts.missing
    if isinstance(action, SetFloor | ReleaseFloor | SetBuffer):
        missing = facts.workloads[action.workload].nothing_lower
    if missing is None:
        return None
    return refuse(Reason.MISSING_NEVER_LOWERS, f"{missing}; missing is not zero, so nothing is lowered")


def expiry(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """Everything that raises ends by itself: in the future, and no later than the policy's expiry."""
    del proposal
    if not isinstance(action, SetFloor | SetBuffer | ProtectPod | AvoidNode) or action.expires_at is None:
        return None
    limit_s = _longest_s(action, facts)
    if action.expires_at <= facts.as_of:
        return refuse(Reason.NO_EXPIRY, "it would have expired already; whatever is written must end in the future")
    latest = facts.as_of + timedelta(seconds=limit_s)
    if action.expires_at <= latest:
        return None
    return limit(
        replace(action, expires_at=latest), Reason.NO_EXPIRY, f"it may stand for {limit_s:,} s at most before renewal"
    )


def _longest_s(action: SetFloor | SetBuffer | ProtectPod | AvoidNode, facts: GuardFacts) -> int:
    """How long this kind of action may stand before it is renewed, in s."""
    match action:
        case SetFloor():
            return facts.policy.actuation.floor_expiry_s
        case SetBuffer():
            return facts.policy.actuation.buffer_expiry_s
    return facts.policy.risk.hold_s


def replica_cap(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """Floors stay within the owner's maxReplicas and the policy's cap; buffers within the largest sane buffer."""
    del proposal
    scaling = facts.policy.scaling
    if isinstance(action, SetFloor):
        lid = min(facts.workloads[action.workload].state.max_replicas, scaling.replica_cap)
        if action.replicas > lid:
            return limit(replace(action, replicas=lid), Reason.REPLICA_CAP, f"{lid:,} pods are the cap")
    if isinstance(action, SetBuffer) and action.pods > scaling.max_buffer_pods:
        lid = scaling.max_buffer_pods
        return limit(replace(action, pods=lid), Reason.REPLICA_CAP, f"a buffer has {lid:,} pods at most")
    return None


def pool_limit(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """A buffer asks for no more than the pool's largest size can hold beside what is used."""
    del proposal
    if not isinstance(action, SetBuffer) or action.pods == 0 or action.pool not in facts.pools:
        return None
    workload, pool = facts.workloads[action.workload], facts.pools[action.pool]
    if workload.state.gpus_per_pod <= 0:
        return None
    places = max(0, pool.max_nodes * pool.gpus_per_node - pool.used_gpus) // workload.state.gpus_per_pod
    places = max(places, standing_buffer(workload))
    if action.pods <= places:
        return None
    return limit(
        replace(action, pods=places),
        Reason.POOL_LIMIT,
        f"pool {pool.name} grows to {pool.max_nodes:,} nodes, which leaves places for {places:,} more pods",
    )


def rate(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """Our own raises add at most so many pods of a workload a minute: the surge rate for safety, else the normal one.

    Counted above what stands anyway (owner's minimum, our floor, wanted replicas), over the last 60 s.
    Normal 10 a minute: 480 → 490 → 500; surge 20 a minute: 480 → 500 → 520.
    """
    if not isinstance(action, SetFloor):
        return None
    workload, scaling = facts.workloads[action.workload], facts.policy.scaling
    fast = proposal.agent is Agent.SAFETY and workload.surging
    per_min = scaling.surge_pods_added_per_min if fast else scaling.normal_pods_added_per_min
    lid = raise_base(workload) + max(0, per_min - workload.added_last_minute)
    if action.replicas <= lid:
        return None
    return limit(
        replace(action, replicas=lid),
        Reason.RATE_LIMIT,
        f"at most {per_min:,} pods a minute, {workload.added_last_minute:,} were added in the last one",
    )


def capacity_ready(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """A floor is raised only to what fits on nodes that are allocatable now: our plan leaves nothing Pending."""
    del proposal
    if not isinstance(action, SetFloor):
        return None
    workload = facts.workloads[action.workload]
    state, pool = workload.state, facts.pools.get(workload.state.pool)
    if pool is None or state.gpus_per_pod <= 0 or action.replicas <= raise_base(workload):
        return None
    free = max(0, pool.allocatable_gpus - pool.used_gpus) // state.gpus_per_pod
    lid = max(raise_base(workload), state.ready_pods + state.starting_pods + free)
    if action.replicas <= lid:
        return None
    return limit(
        replace(action, replicas=lid),
        Reason.CAPACITY_NOT_READY,
        f"{free:,} more pods fit on nodes that are ready; the rest would only be Pending",
    )


def pod_hour_budget(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """Raises stop when the extra pod-hours of the window are spent. Safety is exempt, but it is put on record."""
    if not isinstance(action, SetFloor):
        return None
    workload = facts.workloads[action.workload]
    if action.replicas <= max(raise_base(workload), workload.hpa_would_want) or not workload.budget.spent:
        return None
    spent = (
        f"{workload.budget.extra_pod_hours:,.1f} pod-hours over the HPA's own are spent of "
        f"{workload.budget.allowed_pod_hours:,.1f} allowed in {facts.policy.scaling.budget_window_s // 3600:,} h"
    )
    if proposal.agent is Agent.SAFETY:
        return limit(action, Reason.POD_HOUR_BUDGET, f"{spent}; safety may go on up to the surge rate")
    lid = max(raise_base(workload), workload.hpa_would_want)
    return limit(replace(action, replicas=lid), Reason.POD_HOUR_BUDGET, spent)


def warm_hold(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """With stepwise release, a floor needed within the warm hold goes down by one step a tick, whoever asks.

    With release at once the owner has chosen that warm pods may go together, and this rule says nothing: holding the
    whole floor for the warm hold as well would spend policy.scaling.warm_hold_s of a peak's pods each day.
    """
    policy = facts.policy
    if policy.actuation.floor_release != "stepwise" or not isinstance(action, SetFloor | ReleaseFloor):
        return None
    workload = facts.workloads[action.workload]
    standing = standing_floor(workload)
    needed_at = workload.floor_needed_at
    if not lowers(action, facts) or needed_at is None or proposal.why.reason is Reason.KILL_SWITCH:
        return None
    if facts.as_of - needed_at >= timedelta(seconds=policy.scaling.warm_hold_s):
        return None
    lowest = standing - max(1, int(standing * policy.actuation.release_step_ratio))
    asked = action.replicas if isinstance(action, SetFloor) else workload.state.owner_min_replicas
    if asked >= lowest:
        return None
    ends = facts.as_of + timedelta(seconds=policy.actuation.floor_expiry_s)
    return limit(
        SetFloor(workload=action.workload, replicas=lowest, expires_at=ends),
        Reason.WARM_HOLD,
        f"needed {(facts.as_of - needed_at).total_seconds():,.0f} s ago, warm pods go one step a tick for "
        f"{policy.scaling.warm_hold_s:,} s",
    )


# In this order: first what forbids, then what bounds, then what costs.
RULES: tuple[Rule, ...] = (
    kill_switch,
    missing_never_lowers,
    risk_threshold,
    protect_limit,
    spare_budget,
    expiry,
    replica_cap,
    pool_limit,
    rate,
    capacity_ready,
    pod_hour_budget,
    warm_hold,
)
