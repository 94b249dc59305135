"""Ticks → how often each reason decided, and how often each reason made a proposal lose.

A workload is charged with the decisions about itself, about its queue and about its pool; where workloads share a pool
or a queue, each of them shows those decisions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadtime.scorecard.digest import TickDigest


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTally:
    """Counts by reason (its PascalCase value), sorted by reason. Decisions for nothing are decisions too."""

    decisions: Mapping[str, int]
    rejections: Mapping[str, int]


def tally(ticks: Sequence[TickDigest], workload: str) -> DecisionTally:
    """Count the decisions and rejections of ``ticks`` that concern ``workload`` (its key)."""
    decided: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for tick in ticks:
        scopes = tick.concerned_scopes(workload)
        for decision in tick.decisions:
            if decision.scope in scopes:
                decided[decision.reason] += 1
                lost.update(rejection.reason for rejection in decision.lost)
    return DecisionTally(decisions=dict(sorted(decided.items())), rejections=dict(sorted(lost.items())))
