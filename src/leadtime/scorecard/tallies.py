"""Ticks → how often each reason decided, and how often each reason made a proposal lose.

A workload is charged with the decisions about itself, about its queue and about its pool; where workloads share a pool
or a queue, each of them shows those decisions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadtime.domain.refs import ScopeKind
from leadtime.domain.tick import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTally:
    """Counts by reason (its PascalCase value), sorted by reason. Decisions for nothing are decisions too."""

    decisions: Mapping[str, int]
    rejections: Mapping[str, int]


def tally(ticks: Sequence[Tick], workload: str) -> DecisionTally:
    """Count the decisions and rejections of ``ticks`` that concern ``workload`` (its key)."""
    decided: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for tick in ticks:
        scopes = concerned_scopes(tick, workload)
        for decision in tick.decisions:
            if decision.scope.key in scopes:
                decided[decision.why.reason.value] += 1
                lost.update(rejection.why.reason.value for rejection in decision.rejections)
    return DecisionTally(decisions=dict(sorted(decided.items())), rejections=dict(sorted(lost.items())))


def concerned_scopes(tick: Tick, workload: str) -> frozenset[str]:
    """Scope keys that concern ``workload``: itself, its pool and its queue, as the tick's snapshot has them."""
    scopes = {f"{ScopeKind.WORKLOAD.value}:{workload}"}
    for state in tick.snapshot.workloads:
        if state.ref.key == workload:
            scopes |= {f"{ScopeKind.POOL.value}:{state.pool}", f"{ScopeKind.QUEUE.value}:{state.queue}"}
    return frozenset(scopes)
