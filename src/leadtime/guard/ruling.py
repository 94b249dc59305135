"""What one rule of the guard answers, and the two ways to say no."""

from collections.abc import Callable
from dataclasses import dataclass

from leadtime.domain.decision import Action, Proposal
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.guard.facts import GuardFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """``action`` None: refused. The same action as before: allowed, but ``why`` must be on record."""

    action: Action | None
    why: Explanation


Rule = Callable[[Proposal, Action, GuardFacts], Ruling | None]


def refuse(reason: Reason, sentence: str) -> Ruling:
    """Nothing of it may be done."""
    return Ruling(action=None, why=Explanation(reason=reason, sentence=sentence))


def limit(action: Action, reason: Reason, sentence: str) -> Ruling:
    """Only ``action`` of it may be done."""
    return Ruling(action=action, why=Explanation(reason=reason, sentence=sentence))
