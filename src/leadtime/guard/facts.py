"""What the guard may look at when it judges one change. Plain values, built by the loop; no forecast, no array."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from leadtime.domain.at_risk import RiskStanding
from leadtime.domain.decision import (
    Action,
    AvoidNode,
    ProtectPod,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    SetLowPriorityAdmission,
)
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.snapshot import PoolState, WorkloadState
from leadtime.policy.schema import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFacts:
    """Pod-hours over the HPA's own within policy.scaling.budget_window_s. ``allowed`` already holds the ratio."""

    extra_pod_hours: float
    allowed_pod_hours: float

    @property
    def spent(self) -> bool:
        """Nothing is left to spend on raises."""
        return self.extra_pod_hours >= self.allowed_pod_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """One workload. ``added_last_minute``: pods our own raises added in (as_of − 60 s, as_of).

    ``nothing_lower``: demand is missing and the hold still runs, so nothing may be lowered.
    ``floor_needed_at``: the last tick in which the demand needed our floor.
    """

    state: WorkloadState
    added_last_minute: int
    surging: bool
    nothing_lower: str | None
    budget: BudgetFacts
    hpa_would_want: int
    floor_needed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFacts:
    """Everything the rules may read. ``workloads`` by reference, ``pools`` by name.

    ``missing``: in words, what of a pool's or queue's inputs is missing; None when all is there. ``risk``: None without
    a risk model.
    """

    as_of: datetime
    policy: Policy
    workloads: Mapping[WorkloadRef, WorkloadFacts]
    pools: Mapping[str, PoolState]
    missing: str | None = None
    risk: RiskStanding | None = None


def standing_floor(facts: WorkloadFacts) -> int:
    """Our floor that stands, 0 when there is none."""
    return facts.state.floor.replicas if facts.state.floor is not None else 0


def standing_buffer(facts: WorkloadFacts) -> int:
    """The room for pods that stands, 0 when there is none."""
    return facts.state.buffer.pods if facts.state.buffer is not None else 0


def raise_base(facts: WorkloadFacts) -> int:
    """Pods that stand without a new raise: owner's minimum, our floor or what is wanted, whichever is highest."""
    return max(facts.state.owner_min_replicas, standing_floor(facts), facts.state.wanted_replicas)


def spare_base(facts: WorkloadFacts) -> int:
    """Pods that would stand without any spare replica: the owner's minimum or the HPA's own wish."""
    return max(facts.state.owner_min_replicas, facts.hpa_would_want)


def lowers(action: Action, facts: GuardFacts) -> bool:
    """True when ``action`` asks for less than stands. An offer of empty nodes is less, too."""
    match action:
        case SetFloor():
            return action.replicas < standing_floor(facts.workloads[action.workload])
        case ReleaseFloor():
            return standing_floor(facts.workloads[action.workload]) > 0
        case SetBuffer():
            return action.pods < standing_buffer(facts.workloads[action.workload])
        case SetConsolidation():
            return action.offered
        case SetLowPriorityAdmission() | ProtectPod() | AvoidNode():
            return False
