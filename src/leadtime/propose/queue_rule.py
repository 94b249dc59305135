"""Pending pods and forecast of one queue → QueueHealth. The rule is exact, and a value in and out.

Unhealthy when, among pods that no ordered capacity covers, (1) more wait than ``growth_window_s`` ago, or (2) the
oldest waits at least ``oldest_pending_s``, or when (3) the forecast within the lead lies above ready + arriving
capacity. Pods covered by ordered capacity are left out, or the rule would veto the plan itself. Healthy again after
``clean_ticks_to_clear`` clean ticks in a row. Stale inputs hold: they never clear the alarm, nor count as clean.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.snapshot import QueueState
from leadtime.domain.tick import QueueHealth
from leadtime.policy.schema import QueuePolicy
from leadtime.propose import wording as say


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSample:
    """How many pods waited that no ordered capacity covers."""

    at: datetime
    uncovered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMemory:
    """What survives a tick: health, clean ticks, and the samples of the growth window."""

    healthy: bool = True
    clean_ticks: int = 0
    samples: tuple[PendingSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLoad:
    """Forecast against capacity, in pods summed over the queue's workloads. ``stale`` says which input is missing."""

    forecast_pods: int
    covered_pods: int  # ready + starting + free places + on nodes that arrive
    stale: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJudgement:
    """The health of this tick and the memory for the next."""

    health: QueueHealth
    memory: QueueMemory


def judge(
    queue: QueueState, load: QueueLoad, memory: QueueMemory, policy: QueuePolicy, as_of: datetime
) -> QueueJudgement:
    """Apply the rule at ``as_of``.

    Growth compares with the newest sample at or before as_of − growth_window_s; without one, growth is not claimed.
    With stale inputs the health stays as it was, whatever the other conditions say.
    """
    uncovered = max(0, queue.pending_pods - queue.covered_pending_pods)
    if load.stale is not None:
        why = Explanation(
            reason=Reason.QUEUE_INPUTS_STALE,
            sentence=f"{load.stale}; the queue stays {'healthy' if memory.healthy else 'unhealthy'} as it was",
        )
        held: tuple[Explanation, ...] = () if memory.healthy else (why,)
        health = QueueHealth(queue=queue.name, healthy=memory.healthy, clean_ticks=memory.clean_ticks, because=held)
        return QueueJudgement(health=health, memory=memory)
    because = _causes(queue, load, _earlier(memory, policy, as_of), uncovered, policy)
    clean = 0 if because else memory.clean_ticks + 1
    healthy = not because and (memory.healthy or clean >= policy.clean_ticks_to_clear)
    health = QueueHealth(queue=queue.name, healthy=healthy, clean_ticks=clean, because=because)
    samples = (*_kept(memory, policy, as_of), PendingSample(at=as_of, uncovered=uncovered))
    return QueueJudgement(health=health, memory=QueueMemory(healthy=healthy, clean_ticks=clean, samples=samples))


def _earlier(memory: QueueMemory, policy: QueuePolicy, as_of: datetime) -> int | None:
    then = as_of - timedelta(seconds=policy.growth_window_s)
    return next((s.uncovered for s in reversed(memory.samples) if s.at <= then), None)


def _kept(memory: QueueMemory, policy: QueuePolicy, as_of: datetime) -> tuple[PendingSample, ...]:
    """The samples still needed: those inside the window and the newest one before it."""
    then = as_of - timedelta(seconds=policy.growth_window_s)
    outside = [i for i, sample in enumerate(memory.samples) if sample.at <= then]
    return memory.samples[outside[-1] :] if outside else memory.samples


def _causes(
    queue: QueueState, load: QueueLoad, earlier: int | None, uncovered: int, policy: QueuePolicy
) -> tuple[Explanation, ...]:
    said: list[str] = []
    if earlier is not None and uncovered > earlier:
        said.append(
            f"{uncovered:,} pods wait without ordered capacity, {earlier:,} did {say.span(policy.growth_window_s)} ago"
        )
    if queue.oldest_uncovered_pending_s >= policy.oldest_pending_s:
        said.append(
            f"the oldest has waited {queue.oldest_uncovered_pending_s:,.0f} s, "
            f"{policy.oldest_pending_s:,.0f} s is the limit"
        )
    if load.forecast_pods > load.covered_pods:
        said.append(f"the forecast fills {load.forecast_pods:,} pods, {load.covered_pods:,} are ready or arriving")
    return tuple(Explanation(reason=Reason.QUEUE_UNHEALTHY, sentence=text) for text in said)
