"""Stage passages, unfinished ones too → how long a node and a pod take, P50 and P90, and what that was learned from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leadtime.domain.lead_time import LeadTime, StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.policy.schema import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTimeState:
    """Samples kept, and the leads already computed from them."""

    samples: tuple[StageSample, ...] = ()


def start() -> LeadTimeState:
    """The state before the first sample."""
    return LeadTimeState()


def observe(state: LeadTimeState, samples: Sequence[StageSample], policy: Policy) -> LeadTimeState:
    """Add ``samples`` and recompute what they change."""
    del policy
    return replace(state, samples=(*state.samples, *samples)) if samples else state


def learn(state: LeadTimeState, ref: WorkloadRef, pool: str, policy: Policy) -> LeadTime:
    """The lead of ``ref`` on ``pool``; priors from the policy where too little was seen."""
    del state
    prior = policy.lead_time
    return LeadTime(
        workload=ref, pool=pool, node_p50_s=prior.prior_node_p50_s, node_p90_s=prior.prior_node_p90_s,
        pod_p50_s=prior.prior_pod_p50_s, pod_p90_s=prior.prior_pod_p90_s,
        total_p90_s=prior.prior_node_p90_s + prior.prior_pod_p90_s, stages=(),
        learned_from="nothing yet: the policy's priors",
    )  # fmt: skip
