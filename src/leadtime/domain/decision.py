"""Proposal (agent) → Verdict (guard) → Decision (referee) → Outcome (actuator). One meaning a word."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leadtime.domain.evidence import Explanation
from leadtime.domain.refs import Scope, WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFloor:
    """minReplicas of ``workload`` becomes at least ``replicas`` until ``expires_at``."""

    workload: WorkloadRef
    replicas: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFloor:
    """Our floor is given back at once: the owner's minReplicas counts again."""

    workload: WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBuffer:
    """Room for ``pods`` more pods of ``workload`` stands ready on its pool until ``expires_at``; 0 gives it back."""

    workload: WorkloadRef
    pool: str
    pods: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLowPriorityAdmission:
    """New low-priority pods of ``queue`` are held back (``paused``) or admitted again."""

    queue: str
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConsolidation:
    """Empty nodes of ``pool`` are offered for removal at once (``offered``), or left to the autoscaler's own time."""

    pool: str
    offered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectPod:
    """While it stands, ``workload`` is not scaled down: its ``pod`` is at risk, and what stands may soon be one less.

    Ends by itself at ``expires_at``; None gives it back at once.
    """

    pod: str
    workload: WorkloadRef
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvoidNode:
    """While it stands, new pods go to other nodes of the pool as long as one of them has room (PreferNoSchedule).

    Ends by itself at ``expires_at``; None gives it back at once.
    """

    node: str
    pool: str
    expires_at: datetime | None


Action = SetFloor | ReleaseFloor | SetBuffer | SetLowPriorityAdmission | SetConsolidation | ProtectPod | AvoidNode


class Agent(StrEnum):
    """Who proposes. Least harm first is the referee's order, kept in policy order, not here."""

    SAFETY = "safety"
    ADMISSION = "admission"
    UNBLOCK = "unblock"
    SCALING = "scaling"
    EFFICIENCY = "efficiency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One agent's wish for one scope. ``id`` is unique within the tick, e.g. ``scaling/workload:serving/chat``."""

    id: str
    agent: Agent
    scope: Scope
    action: Action
    why: Explanation


class Answer(StrEnum):
    """The guard's closed set of answers."""

    ALLOWED = "Allowed"
    LIMITED = "Limited"  # allowed in a smaller form, ``allowed_action``
    REFUSED = "Refused"
    ALLOWED_FAIL_OPEN = "AllowedFailOpen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The guard on one proposal: ``allowed_action`` is what may be done (None when refused)."""

    proposal_id: str
    answer: Answer
    allowed_action: Action | None
    why: tuple[Explanation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A proposal that lost, and why."""

    proposal_id: str
    why: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """At most one per scope. ``action`` None means: nothing is done, and ``why`` says why."""

    scope: Scope
    proposal_id: str | None
    action: Action | None
    why: Explanation
    rejections: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the actuator did. ``rollback`` is the command or the expiry that undoes it."""

    scope: Scope
    actuator: str
    applied: bool
    why: Explanation
    rollback: str
    written_at: datetime
