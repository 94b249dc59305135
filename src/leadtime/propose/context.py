"""What an agent may know: the snapshot, what was assessed, where each workload should stand, queue health, and the
ids of the evidence behind it. Built once a tick by the loop; agents only read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leadtime.domain.at_risk import RiskStanding
from leadtime.domain.evidence import Explanation
from leadtime.domain.snapshot import ClusterSnapshot, PoolState, WorkloadState
from leadtime.domain.tick import QueueHealth, WorkloadAssessment
from leadtime.policy.schema import Policy
from leadtime.propose.targets import Targets


class DataStanding(StrEnum):
    """How far the demand of a workload is known at this tick."""

    COMPLETE = "complete"
    GAP = "gap"  # newest value known, but something read in this tick is missing: nothing is lowered
    HOLD = "hold"  # newest value too old: what stands is held
    EXPIRED = "expired"  # held for as long as the policy allows: what stands lapses by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandReading:
    """Demand as read in this tick. ``missing_since`` is None while everything was there."""

    standing: DataStanding
    value: float | None
    missing_since: datetime | None
    hold_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEvidence:
    """Ids of the evidence of this tick about one workload."""

    demand: str
    pods: str
    forecast_pod: str
    forecast_node: str
    lead: str
    slots: str
    hpa: str
    surge: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """One workload as the agents see it. ``lapse`` explains a floor of ours that has just run out."""

    state: WorkloadState
    pool: PoolState
    assessment: WorkloadAssessment
    reading: DemandReading
    targets: Targets
    evidence: WorkloadEvidence
    lapse: Explanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """One pool. ``empty_for_s``: how long it has had an empty node."""

    state: PoolState
    empty_for_s: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue. ``paused_by_us``: low-priority admission was paused by leadtime and must be given back."""

    name: str
    pool: str
    low_priority_paused: bool
    paused_by_us: bool
    health: QueueHealth
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TickContext:
    """Everything the agents of one tick may read. ``risk``: None without a risk model."""

    as_of: datetime
    policy: Policy
    snapshot: ClusterSnapshot
    workloads: tuple[WorkloadView, ...]
    pools: Mapping[str, PoolView]
    queues: tuple[QueueView, ...]
    risk: RiskStanding | None = None

    @property
    def killed(self) -> bool:
        """True when the kill switch is on: only releases are left to propose."""
        return self.policy.actuation.kill_switch
