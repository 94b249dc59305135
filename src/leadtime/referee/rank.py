"""Proposals and verdicts → at most one winner per scope, and a reason for every other proposal.

The rank is policy.referee.order, data anyone can read. Among raises in the same direction a lower-ranked proposal that
asks for more also serves the higher-ranked one and wins in its stead. A scope where nothing is done says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadtime.domain.decision import (
    Action,
    Agent,
    Answer,
    Decision,
    Proposal,
    Rejection,
    SetBuffer,
    SetFloor,
    Verdict,
)
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope
from leadtime.policy.schema import RefereePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """A proposal that passed the guard, with what is left of it."""

    proposal: Proposal
    action: Action
    verdict: Verdict


def decide(
    proposals: Sequence[Proposal],
    verdicts: Sequence[Verdict],
    quiet: Mapping[Scope, Explanation],
    policy: RefereePolicy,
) -> tuple[Decision, ...]:
    """One decision per scope that was spoken about or is named in ``quiet``, spoken-of scopes in ``quiet``'s order.

    ``verdicts`` stand in the order of ``proposals``. ``quiet``: why nothing is done, for every scope that must have a
    decision. Raises ValueError when the two lists do not belong together.
    """
    if [p.id for p in proposals] != [v.proposal_id for v in verdicts]:
        raise ValueError("deciding: proposals and verdicts do not belong together; judge every proposal once, in order")
    rank = {name: i for i, name in enumerate(policy.order)}
    by_scope: dict[Scope, list[tuple[Proposal, Verdict]]] = {scope: [] for scope in quiet}
    for proposal, verdict in zip(proposals, verdicts, strict=True):
        by_scope.setdefault(proposal.scope, []).append((proposal, verdict))
    return tuple(
        _one_scope(scope, sorted(heard, key=lambda h: _rank(h[0], rank)), quiet.get(scope))
        for scope, heard in by_scope.items()
    )


def _rank(proposal: Proposal, rank: Mapping[str, int]) -> tuple[int, str]:
    return rank.get(proposal.agent.value, len(rank)), proposal.id


def _one_scope(scope: Scope, heard: list[tuple[Proposal, Verdict]], quiet: Explanation | None) -> Decision:
    passed = [
        _Standing(proposal=p, action=v.allowed_action, verdict=v) for p, v in heard if v.allowed_action is not None
    ]
    refused = [_refused(p, v) for p, v in heard if v.allowed_action is None]
    if not passed:
        why = _nothing(scope, refused, quiet)
        return Decision(scope=scope, proposal_id=None, action=None, why=why, rejections=tuple(refused))
    winner = _winner(passed)
    lost = [_lost(standing, winner) for standing in passed if standing is not winner]
    return Decision(
        scope=scope,
        proposal_id=winner.proposal.id,
        action=winner.action,
        why=_why(winner),
        rejections=(*lost, *refused),
    )


def _winner(passed: list[_Standing]) -> _Standing:
    """The highest rank, or the lower-ranked raise that asks for more of the same."""
    winner = passed[0]
    for other in passed[1:]:
        if _asks_more(other, winner):
            winner = other
    return winner


def _size(action: Action) -> int | None:
    match action:
        case SetFloor():
            return action.replicas
        case SetBuffer():
            return action.pods
    return None


def _same_direction(one: _Standing, other: _Standing) -> bool:
    """Both ask for at least so many pods of the same kind of floor or room.

    A buffer of 0 is a release, and efficiency only ever gives back: neither is served by a raise.
    """
    if type(one.action) is not type(other.action):
        return False
    if Agent.EFFICIENCY in {one.proposal.agent, other.proposal.agent}:
        return False
    return bool(_size(one.action)) and bool(_size(other.action))


def _asks_more(one: _Standing, than: _Standing) -> bool:
    """True when ``one`` is larger in the same direction: whoever wanted less is served too."""
    return _same_direction(one, than) and (_size(one.action) or 0) > (_size(than.action) or 0)


def _lost(loser: _Standing, winner: _Standing) -> Rejection:
    ours, wins = loser.proposal, winner.proposal
    mine, theirs = _size(loser.action) or 0, _size(winner.action) or 0
    if _same_direction(loser, winner):
        if mine == theirs:
            return _reject(ours, Reason.DUPLICATE, f"{wins.agent.value} asks for the same {mine:,} pods")
        if mine < theirs:
            text = f"asks for {mine:,} pods; the {theirs:,} of {wins.agent.value} serve it too"
            return _reject(ours, Reason.SERVED_BY_WINNER, text)
    if loser.action == winner.action:
        return _reject(ours, Reason.DUPLICATE, f"{wins.agent.value} asks for the same")
    if wins.agent is Agent.ADMISSION:
        text = f"queue health goes before cost: {wins.why.sentence}"
        return _reject(ours, Reason.QUEUE_BEFORE_COST, text)
    text = f"{wins.agent.value} ranks before {ours.agent.value} and wants otherwise: {wins.why.sentence}"
    return _reject(ours, Reason.OUTRANKED, text)


def _reject(proposal: Proposal, reason: Reason, sentence: str) -> Rejection:
    why = Explanation(reason=reason, sentence=sentence, because=proposal.why.because)
    return Rejection(proposal_id=proposal.id, why=why)


def _refused(proposal: Proposal, verdict: Verdict) -> Rejection:
    last = verdict.why[-1]
    why = Explanation(reason=last.reason, sentence=f"the guard refuses: {last.sentence}", because=proposal.why.because)
    return Rejection(proposal_id=proposal.id, why=why)


def _why(winner: _Standing) -> Explanation:
    why = winner.proposal.why
    if winner.verdict.answer is not Answer.LIMITED:
        return why
    limits = "; ".join(f"{limit.reason.value}: {limit.sentence}" for limit in winner.verdict.why)
    size = _size(winner.action)
    to = f" to {size:,}" if size is not None else ""
    return Explanation(
        reason=why.reason, sentence=f"{why.sentence}; limited{to} by the guard ({limits})", because=why.because
    )


def _nothing(scope: Scope, refused: list[Rejection], quiet: Explanation | None) -> Explanation:
    if refused:
        said = "; ".join(f"{r.proposal_id}: {r.why.sentence}" for r in refused)
        tail = f"; {quiet.sentence}" if quiet is not None else ""
        because = tuple(dict.fromkeys(i for r in refused for i in r.why.because))
        return Explanation(reason=refused[0].why.reason, sentence=f"{said}{tail}", because=because)
    if quiet is not None:
        return quiet
    return Explanation(reason=Reason.NO_AGENT_SPOKE, sentence=f"{scope.name}: no agent proposed anything")
