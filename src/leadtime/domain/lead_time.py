"""Lead times: signal → requested → node allocatable → image → Ready, learned stage by stage, censored samples kept."""

from dataclasses import dataclass
from datetime import datetime

from leadtime.domain.refs import WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSample:
    """One passage (or unfinished passage) through one stage.

    ``censored``: the stage had not ended when it was last seen after ``duration_s`` (pod deleted, node given up): the
    true duration is at least that. ``episode`` groups samples that share a cause (one scale-up), because the nodes of
    one day are not independent draws.
    """

    pool: str
    workload: WorkloadRef | None  # None for node stages
    stage: str
    duration_s: float
    censored: bool
    episode: str
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLead:
    """What is known about one stage. ``episodes`` = independent ones; 0 means the prior from the policy is used."""

    stage: str
    p50_s: float
    p90_s: float
    samples: int
    censored: int
    episodes: int
    from_prior: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTime:
    """Lead of one workload on one pool. ``node_*``: request → allocatable; ``pod_*``: bound → Ready;
    ``total_p90_s``: request → pod Ready on a new node (composed from the stages, not the sum of P90s).
    ``learned_from`` says it in words, e.g. "7 episodes, 41 nodes (0 censored)"."""

    workload: WorkloadRef
    pool: str
    node_p50_s: float
    node_p90_s: float
    pod_p50_s: float
    pod_p90_s: float
    total_p90_s: float
    stages: tuple[StageLead, ...]
    learned_from: str
