"""Stage passages, unfinished ones too → how long a node and a pod take, P50 and P90, and what that was learned from.

An HPA's history hardly ever shows a pod Ready on a new node (the pods are deleted first), so whole leads are censored
and stages are learned one by one: node stages from nodes, pod stages from pods wherever they ran. The P90 of the whole
is composed from the stages, not added up from their P90s. Independent episodes count, not nodes: forty nodes of one
morning are one observation of that morning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from leadtime.domain.lead_time import LeadTime, StageLead, StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.forecast import compose
from leadtime.forecast.compose import Passage
from leadtime.forecast.model import FloatColumn
from leadtime.policy.schema import LeadTimePolicy, Policy

KEPT_EPISODES = 128  # per stage, the newest
KEPT_SAMPLES = 32  # per episode and stage, the newest: within one episode they hardly differ
SETTLED_EPISODES = 20  # from here on one more sample moves little, and leads are recomputed hourly
SETTLE_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StageKey:
    """Whose stage: ``workload`` None for node stages."""

    pool: str
    workload: WorkloadRef | None
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One scale-up's passages through one stage: durations in s, and counts that include the dropped ones."""

    name: str
    ended: tuple[float, ...] = ()
    censored: tuple[float, ...] = ()
    ended_count: int = 0
    censored_count: int = 0
    newest: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """All that is remembered, by stage; episodes oldest first."""

    stages: Mapping[StageKey, tuple[Episode, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeadTimeState:
    """``seen`` is up to date; ``settled`` is what leads are computed from, equal to it or at most an hour behind."""

    seen: Seen = field(default_factory=Seen)
    settled: Seen = field(default_factory=Seen)
    settled_at: datetime | None = None


def start() -> LeadTimeState:
    """The state before the first sample."""
    return LeadTimeState()


def observe(state: LeadTimeState, samples: Sequence[StageSample], policy: Policy) -> LeadTimeState:
    """Add ``samples``; forget what is older than ``lead_time.window_s`` before the newest."""
    if not samples:
        return state
    stages = dict(state.seen.stages)
    for sample in samples:
        key = StageKey(pool=sample.pool, workload=sample.workload, stage=sample.stage)
        stages[key] = _added(stages.get(key, ()), sample)
    newest = max(s.ended_at for s in samples)
    if state.settled_at is not None:
        newest = max(newest, state.settled_at)
    oldest = newest - timedelta(seconds=policy.lead_time.window_s)
    few = any(
        len(stages[StageKey(pool=s.pool, workload=s.workload, stage=s.stage)]) < SETTLED_EPISODES for s in samples
    )
    if not few and state.settled_at is not None and newest - state.settled_at < SETTLE_EVERY:
        return replace(state, seen=Seen(stages=stages))
    kept = {k: tuple(e for e in episodes if e.newest is None or e.newest >= oldest) for k, episodes in stages.items()}
    seen = Seen(stages={k: episodes for k, episodes in kept.items() if episodes})
    return LeadTimeState(seen=seen, settled=seen, settled_at=newest)


def _added(episodes: tuple[Episode, ...], sample: StageSample) -> tuple[Episode, ...]:
    """``episodes`` with one more passage; the episode it belongs to becomes the newest."""
    before = next((e for e in reversed(episodes) if e.name == sample.episode), Episode(name=sample.episode))
    others = tuple(e for e in episodes if e.name != sample.episode)[-(KEPT_EPISODES - 1) :]
    newest = sample.ended_at if before.newest is None else max(before.newest, sample.ended_at)
    if sample.censored:
        censored = (*before.censored, sample.duration_s)[-KEPT_SAMPLES:]
        after = replace(before, censored=censored, censored_count=before.censored_count + 1, newest=newest)
    else:
        ended = (*before.ended, sample.duration_s)[-KEPT_SAMPLES:]
        after = replace(before, ended=ended, ended_count=before.ended_count + 1, newest=newest)
    return (*others, after)


def learn(state: LeadTimeState, ref: WorkloadRef, pool: str, policy: Policy) -> LeadTime:
    """The lead of ``ref`` on ``pool``; the policy's priors stand beside what was learned from too few episodes."""
    return _learn(state.settled, ref, pool, policy.lead_time)


@lru_cache(maxsize=4096)
def _learn(seen: Seen, ref: WorkloadRef, pool: str, rules: LeadTimePolicy) -> LeadTime:
    """Kept per ``seen``: the tick asks each minute, and nothing changes until samples come."""
    node = _part(seen, pool, None, rules, compose.log_normal(rules.prior_node_p50_s, rules.prior_node_p90_s))
    pod = _part(seen, pool, ref, rules, compose.log_normal(rules.prior_pod_p50_s, rules.prior_pod_p90_s))
    total = compose.added(node.draws, pod.draws)
    q = rules.quantile_ratio
    return LeadTime(
        workload=ref, pool=pool,
        node_p50_s=compose.at(node.draws, 0.5), node_p90_s=compose.at(node.draws, q),
        pod_p50_s=compose.at(pod.draws, 0.5), pod_p90_s=compose.at(pod.draws, q),
        total_p90_s=compose.at(total, q), stages=(*node.stages, *pod.stages),
        learned_from=f"nodes: {node.words('nodes', rules)}; pods: {pod.words('pods', rules)}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Node part or pod part of a lead: sorted draws of its duration, its stages, and how much stands behind them."""

    draws: FloatColumn
    stages: tuple[StageLead, ...]
    episodes: int
    samples: int
    censored: int
    from_prior: bool

    def words(self, what: str, rules: LeadTimePolicy) -> str:
        """E.g. ``7 episodes, 41 nodes (0 censored)``."""
        if not self.samples:
            return "none seen, the policy's prior"
        text = f"{self.episodes} episodes, {self.samples} {what} ({self.censored} censored)"
        if self.episodes < rules.min_episodes:
            text += f", fewer than {rules.min_episodes} episodes: the policy's prior stands beside"
        return text


def _part(seen: Seen, pool: str, workload: WorkloadRef | None, rules: LeadTimePolicy, prior: FloatColumn) -> _Part:
    """Compose the stages of nodes (``workload`` None) or of one workload's pods; ``prior``: sorted draws."""
    mine = [key for key in seen.stages if key.pool == pool and key.workload == workload]
    keys = sorted(mine, key=lambda key: key.stage)
    if not keys:
        return _Part(draws=prior, stages=(), episodes=0, samples=0, censored=0, from_prior=True)
    passages = [[_passage(e) for e in seen.stages[k]] for k in keys]
    draws = compose.composed(passages, rules.quantile_ratio)
    episodes = min(sum(1 for p in stage if len(p.ended)) for stage in passages)
    few = episodes < rules.min_episodes
    if few and compose.at(prior, rules.quantile_ratio) > compose.at(draws, rules.quantile_ratio):
        draws = prior
    stages = tuple(_stage(k, seen.stages[k], p, rules, few=few) for k, p in zip(keys, passages, strict=True))
    return _Part(
        draws=draws, stages=stages, episodes=episodes, samples=max(s.samples for s in stages),
        censored=max(s.censored for s in stages), from_prior=draws is prior,
    )  # fmt: skip


def _passage(episode: Episode) -> Passage:
    return Passage(
        episode=episode.name,
        ended=np.array(episode.ended),
        censored=np.array(episode.censored),
        ended_share=episode.ended_count / (episode.ended_count + episode.censored_count),
    )


def _stage(
    key: StageKey, episodes: tuple[Episode, ...], passages: Sequence[Passage], rules: LeadTimePolicy, *, few: bool
) -> StageLead:
    """One stage for people: its own quantiles and what they rest on."""
    quantiles = compose.stage_curve(passages).quantile(np.array([0.5, rules.quantile_ratio]))
    censored = sum(e.censored_count for e in episodes)
    return StageLead(
        stage=key.stage, p50_s=float(quantiles[0]), p90_s=float(quantiles[1]),
        samples=censored + sum(e.ended_count for e in episodes), censored=censored,
        episodes=sum(1 for e in episodes if e.ended_count), from_prior=few,
    )  # fmt: skip
