"""What a tick makes of the risk scores: pods worth a look, what stands for them, and what the budgets still allow.

Built once a tick by the loop; the safety agent proposes from it and the guard judges by it, so both see one truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import RiskScore


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAtRisk:
    """A pod whose score is worth a look: it passes at least one of the two bars (policy.risk).

    ``alert``: it passes both. ``may_protect`` and ``may_spare``: the limits at once and a day leave room for it, the
    most probable first. ``no_spare_because``: why a spare replica does not pay; None where it does.
    """

    score: RiskScore
    alert: bool
    may_protect: bool
    may_spare: bool
    no_spare_because: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spare:
    """A spare replica that was started for ``pod`` and stands until ``until`` (open), unless the pod ends before."""

    pod: str
    workload: WorkloadRef
    started_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AvoidedNode:
    """A node new pods are kept from, and until when (open)."""

    pool: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskStanding:
    """Everything about risk in one tick. ``pods``: most probable first. ``spares``: those that stand now.

    ``protected``: pod → its workload; ``avoided``: node → its pool. ``spares_started``: within the last 24 h.
    """

    model: str
    pods: tuple[PodAtRisk, ...]
    protected: Mapping[str, WorkloadRef] = field(default_factory=dict)
    avoided: Mapping[str, AvoidedNode] = field(default_factory=dict)
    spares: tuple[Spare, ...] = ()
    spares_started: int = 0

    def pod(self, name: str) -> PodAtRisk | None:
        """The pod of this name, None when it is not worth a look."""
        return next((pod for pod in self.pods if pod.score.pod == name), None)

    def on_node(self, node: str) -> tuple[PodAtRisk, ...]:
        """The pods worth a look that run on ``node``."""
        return tuple(pod for pod in self.pods if pod.score.node == node)

    def spares_of(self, workload: WorkloadRef) -> tuple[Spare, ...]:
        """The spare replicas of ``workload`` that stand."""
        return tuple(spare for spare in self.spares if spare.workload == workload)

    def wanting_spare(self, workload: WorkloadRef) -> tuple[PodAtRisk, ...]:
        """Alerts of ``workload`` that have no spare replica yet."""
        have = {spare.pod for spare in self.spares}
        return tuple(p for p in self.pods if p.alert and p.score.workload == workload and p.score.pod not in have)

    def granted(self, workload: WorkloadRef) -> tuple[PodAtRisk, ...]:
        """Of those, the ones for which a new spare replica pays and is within the budget."""
        return tuple(p for p in self.wanting_spare(workload) if p.may_spare and p.no_spare_because is None)
