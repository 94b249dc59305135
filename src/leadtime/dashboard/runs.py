"""Decisions → runs of equal ones: a day of 1,440 rows becomes the few dozen changes of mind a person can read.

Two neighbouring decisions of one scope belong together while reason, agent, direction and kind stay the same and no
tick is missing between them. "Nothing" is a decision and is grouped alike.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leadtime.dashboard.clock_text import pods
from leadtime.dashboard.views import DecisionView, Direction, Fate, ProposalView, TickView

LONGEST_STEP = 2.5  # ticks; a longer silence ends a run


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRun:
    """Equal decisions of one scope over [start_s, end_s); never empty."""

    scope: str
    decisions: tuple[DecisionView, ...]
    end_s: int

    @property
    def first(self) -> DecisionView:
        """The decision that began it."""
        return self.decisions[0]

    @property
    def start_s(self) -> int:
        """When it began."""
        return self.decisions[0].at_s

    @property
    def words(self) -> str:
        """What was done, from the first step to the last."""
        first, last = self.decisions[0].action, self.decisions[-1].action
        if first is None or last is None:
            return "nothing"
        if first.before is None or last.after is None or len(self.decisions) == 1:
            return first.words
        noun = "room ahead" if first.kind == "buffer" else "floor"
        if first.direction is Direction.RENEW:
            return f"{noun} {pods(last.after)}, renewed"
        steps = f" in {len(self.decisions)} steps"
        return f"{noun} {first.before} → {pods(last.after)}{steps}"

    @property
    def loser_reasons(self) -> tuple[tuple[str, int], ...]:
        """Reasons of the proposals that lost, most frequent first."""
        counted = Counter(p.fate_why.reason for d in self.decisions for p in d.losers if p.fate_why)
        return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def decision_runs(ticks: Sequence[TickView], tick_s: int = 60) -> tuple[DecisionRun, ...]:
    """All runs, by their beginning, then scope."""
    by_scope: dict[str, list[DecisionView]] = {}
    for tick in ticks:
        for decision in tick.decisions:
            by_scope.setdefault(decision.scope, []).append(decision)
    runs = [run for scope, decisions in by_scope.items() for run in _runs_of(scope, decisions, tick_s)]
    return tuple(sorted(runs, key=lambda run: (run.start_s, run.scope)))


def _runs_of(scope: str, decisions: Sequence[DecisionView], tick_s: int) -> list[DecisionRun]:
    runs: list[DecisionRun] = []
    held: list[DecisionView] = []
    for decision in decisions:
        if held and not _belongs(held[-1], decision, tick_s):
            end_s = min(decision.at_s, held[-1].at_s + tick_s)
            runs.append(DecisionRun(scope=scope, decisions=tuple(held), end_s=end_s))
            held = []
        held.append(decision)
    if held:
        runs.append(DecisionRun(scope=scope, decisions=tuple(held), end_s=held[-1].at_s + tick_s))
    return runs


def _belongs(last: DecisionView, decision: DecisionView, tick_s: int) -> bool:
    kinds = [d.action.kind if d.action else "" for d in (last, decision)]
    return (
        decision.why.reason == last.why.reason
        and decision.agent == last.agent
        and decision.direction is last.direction
        and kinds[0] == kinds[1]
        and decision.at_s - last.at_s <= LONGEST_STEP * tick_s
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRun:
    """One agent saying the same thing with the same fate over [start_s, end_s)."""

    agent: str
    start_s: int
    end_s: int
    count: int
    first: ProposalView


def proposal_runs(ticks: Sequence[TickView], tick_s: int = 60) -> tuple[ProposalRun, ...]:
    """What each agent proposed, as runs of equal (scope, reason, direction, fate)."""
    open_runs: dict[tuple[str, str, str, Direction, Fate], ProposalRun] = {}
    done: list[ProposalRun] = []
    for tick in ticks:
        for p in tick.proposals:
            key = (p.agent, p.scope, p.why.reason, p.action.direction, p.fate)
            run = open_runs.get(key)
            if run and tick.at_s - run.end_s <= LONGEST_STEP * tick_s - tick_s:
                count, start_s, first = run.count + 1, run.start_s, run.first
            else:
                if run:
                    done.append(run)
                count, start_s, first = 1, tick.at_s, p
            open_runs[key] = ProposalRun(
                agent=p.agent, start_s=start_s, end_s=tick.at_s + tick_s, count=count, first=first
            )
    return tuple(sorted([*done, *open_runs.values()], key=lambda r: (r.start_s, r.agent, r.first.id)))
