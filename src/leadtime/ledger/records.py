"""What goes into a ledger beside ticks, and what the quick lists give back: frozen records, no logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMeta:
    """What a ledger is about. ``kind``: demo | replay | run; ``run_class``: simulated | replayed | off-policy | live.

    ``scenario`` is the scenario's or the form's name, ``workloads`` and ``worlds`` are the keys used in the minute
    rows, ``extra`` holds free text a page may show (the verdict's sentence, the demand file's name).
    """

    kind: str
    scenario: str
    seed: int
    policy_hash: str
    workloads: tuple[str, ...]
    worlds: tuple[str, ...] = ()
    run_class: str = "simulated"
    tick_s: int = 60
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteRow:
    """One minute of one workload in one world.

    ``demand`` (the workload's unit per s, mean), ``served`` and ``unserved`` (requests that arrived) are about
    [at, at + 60 s); None where the demand series has no value. Pod and node counts stand at the instant ``at``.
    """

    at: datetime
    demand: float | None
    served: float | None
    unserved: float | None
    wanted: int
    ready: int
    starting: int
    pending: int
    floor: int
    nodes_by_stage: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLine:
    """One decision in a list. ``action`` is the action's type or None (nothing is done); ``agent`` the winner's."""

    as_of: datetime
    scope: str  # Scope.key, e.g. "workload:serving/chat"
    reason: str
    sentence: str
    action: str | None
    agent: str | None
    proposal_id: str | None
    rejected: int  # how many proposals lost
