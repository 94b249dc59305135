"""A tick → the little the score card needs of it, so that 52 days of ticks need not be held to write one report.

Whoever runs the loop may drop a tick once it is in the ledger and keep its digest.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from leadtime.domain.decision import (
    Action,
    AvoidNode,
    Decision,
    ProtectPod,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
)
from leadtime.domain.tick import Tick, WorkloadAssessment

HORIZON_S = 600  # ten minutes, as in the table that closes the data folder's README


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What was expected at issued_at + HORIZON_S, in the workload's unit."""

    expected: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDigest:
    """One workload in one tick. ``warned``: an alarm stood, because a surge was seen or is expected."""

    workload: str
    pool: str | None
    queue: str | None
    forecast: Bounds | None
    warned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LostProposal:
    """A proposal that lost, who made it, and why."""

    proposal_id: str
    agent: str | None
    reason: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDigest:
    """One decision. ``action`` is its type (None: nothing is done), ``asks`` the same in words, ``pods`` its size."""

    scope: str
    reason: str
    sentence: str
    action: str | None
    asks: str
    pods: int | None
    agent: str | None
    lost: tuple[LostProposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TickDigest:
    """One tick, without what it saw."""

    as_of_s: int
    workloads: tuple[WorkloadDigest, ...]
    decisions: tuple[DecisionDigest, ...]

    def own_scopes(self, workload: str) -> frozenset[str]:
        """Scope keys about ``workload`` (its key) alone: its replicas, and its buffer on its pool."""
        pools = (state.pool for state in self.workloads if state.workload == workload)
        return frozenset({f"workload:{workload}", *(f"pool:{pool}/{workload}" for pool in pools)})

    def concerned_scopes(self, workload: str) -> frozenset[str]:
        """Scope keys that concern ``workload``: its own, its pool and its queue."""
        shared = (
            scope
            for state in self.workloads
            if state.workload == workload
            for scope in (f"pool:{state.pool}", f"queue:{state.queue}")
        )
        return self.own_scopes(workload).union(shared)


def digest(tick: Tick) -> TickDigest:
    """Keep of ``tick`` what reports need."""
    places = {state.ref: state for state in tick.snapshot.workloads}
    agents = {proposal.id: proposal.agent.value for proposal in tick.proposals}
    workloads = []
    for assessment in tick.assessments:
        place = places.get(assessment.ref)
        workloads.append(
            WorkloadDigest(
                workload=assessment.ref.key,
                pool=None if place is None else place.pool,
                queue=None if place is None else place.queue,
                forecast=_at_horizon(assessment),
                warned=assessment.alarm is not None,
            )
        )
    return TickDigest(
        as_of_s=_epoch_s(tick.as_of),
        workloads=tuple(workloads),
        decisions=tuple(_decision(decision, agents) for decision in tick.decisions),
    )


def in_words(action: Action | None) -> str:
    """The action as a reader says it, e.g. ``floor 510 until 05:25Z``."""
    match action:
        case None:
            return "nothing"
        case SetFloor():
            return f"floor {action.replicas} until {action.expires_at:%H:%MZ}"
        case ReleaseFloor():
            return "floor released"
        case SetBuffer():
            return f"buffer for {action.pods} pods on {action.pool} until {action.expires_at:%H:%MZ}"
        case SetConsolidation():
            return f"empty nodes of {action.pool} {'offered' if action.offered else 'left to the node autoscaler'}"
        case ProtectPod():
            until = "ended" if action.expires_at is None else f"until {action.expires_at:%H:%MZ}"
            return f"no scale-down of {action.workload.key} for {action.pod} {until}"
        case AvoidNode():
            until = "ended" if action.expires_at is None else f"until {action.expires_at:%H:%MZ}"
            return f"no new pods on {action.node} {until}"
    return f"low-priority pods of {action.queue} {'held back' if action.paused else 'admitted'}"


def _decision(decision: Decision, agents: dict[str, str]) -> DecisionDigest:
    action = decision.action
    return DecisionDigest(
        scope=decision.scope.key,
        reason=decision.why.reason.value,
        sentence=decision.why.sentence,
        action=None if action is None else type(action).__name__,
        asks=in_words(action),
        pods=action.replicas
        if isinstance(action, SetFloor)
        else action.pods
        if isinstance(action, SetBuffer)
        else None,
        agent=None if decision.proposal_id is None else agents.get(decision.proposal_id),
        lost=tuple(
            LostProposal(
                proposal_id=rejection.proposal_id,
                agent=agents.get(rejection.proposal_id),
                reason=rejection.why.reason.value,
                sentence=rejection.why.sentence,
            )
            for rejection in decision.rejections
        ),
    )


def _at_horizon(assessment: WorkloadAssessment) -> Bounds | None:
    """A forecast made for this very horizon if there is one, otherwise the path's element; None without either."""
    for forecast in assessment.forecasts:
        if forecast.horizon == timedelta(seconds=HORIZON_S):
            return Bounds(expected=forecast.expected, lower=forecast.lower, upper=forecast.upper)
    i = HORIZON_S // assessment.path_step_s
    if i >= len(assessment.path_expected):
        return None
    return Bounds(expected=assessment.path_expected[i], lower=assessment.path_lower[i], upper=assessment.path_upper[i])


def _epoch_s(at: datetime) -> int:
    return round(at.timestamp())
