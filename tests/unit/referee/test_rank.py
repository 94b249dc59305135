"""The referee: one winner per scope by rank, and a reason for every proposal that lost."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.decision import (
    Action,
    Agent,
    Answer,
    Proposal,
    ReleaseFloor,
    SetBuffer,
    SetConsolidation,
    SetFloor,
    Verdict,
)
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, ScopeKind, workload_scope
from leadtime.policy import Policy
from leadtime.referee import rank
from leadtime.testing.builders import ref

ENDS = datetime(2026, 3, 2, 5, 10, tzinfo=UTC) + timedelta(seconds=900)
CHAT = ref("serving/chat")
SCOPE = workload_scope(CHAT)
ORDER = Policy().referee


def floor(replicas: int) -> SetFloor:
    return SetFloor(workload=CHAT, replicas=replicas, expires_at=ENDS)


def ask(agent: Agent, action: Action, scope: Scope = SCOPE) -> Proposal:
    why = Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence=f"{agent.value} wants it", because=("ev-1",))
    return Proposal(id=f"{agent.value}/{scope.key}", agent=agent, scope=scope, action=action, why=why)


def passed(proposal: Proposal, action: Action | None = None) -> Verdict:
    why = Explanation(reason=Reason.RATE_LIMIT, sentence="ten a minute")
    answer = Answer.ALLOWED if action is None else Answer.LIMITED
    return Verdict(proposal_id=proposal.id, answer=answer, allowed_action=action or proposal.action, why=(why,))


def refused(proposal: Proposal) -> Verdict:
    why = Explanation(reason=Reason.KILL_SWITCH, sentence="the kill switch is on")
    return Verdict(proposal_id=proposal.id, answer=Answer.REFUSED, allowed_action=None, why=(why,))


SAFETY, SCALING, EFFICIENCY = Agent.SAFETY, Agent.SCALING, Agent.EFFICIENCY


@pytest.mark.parametrize(
    ("asked", "winner", "lost"),
    [
        pytest.param(
            [(SAFETY, floor(500)), (EFFICIENCY, floor(400))], SAFETY, {EFFICIENCY: Reason.OUTRANKED},
            id="safety goes before efficiency",
        ),
        pytest.param(
            [(SCALING, floor(520)), (SAFETY, floor(500))], SCALING, {SAFETY: Reason.SERVED_BY_WINNER},
            id="a larger floor of a lower rank serves safety too and wins in its stead",
        ),
        pytest.param(
            [(SAFETY, floor(500)), (SCALING, floor(500))], SAFETY, {SCALING: Reason.DUPLICATE},
            id="for the same floor the rank decides",
        ),
        pytest.param(
            [(SCALING, floor(500)), (EFFICIENCY, ReleaseFloor(workload=CHAT))], SCALING,
            {EFFICIENCY: Reason.OUTRANKED}, id="a release of a lower rank loses against a floor",
        ),
        pytest.param(
            [(SAFETY, ReleaseFloor(workload=CHAT)), (SCALING, floor(900))], SAFETY, {SCALING: Reason.OUTRANKED},
            id="no floor serves a release",
        ),
        pytest.param(
            [(SAFETY, SetBuffer(workload=CHAT, pool="gpu", pods=0, expires_at=ENDS)),
             (SCALING, SetBuffer(workload=CHAT, pool="gpu", pods=90, expires_at=ENDS))],
            SAFETY, {SCALING: Reason.OUTRANKED}, id="no room serves who gives room back",
        ),
        pytest.param(
            [(Agent.ADMISSION, SetConsolidation(pool="gpu", offered=False)),
             (EFFICIENCY, SetConsolidation(pool="gpu", offered=True))],
            Agent.ADMISSION, {EFFICIENCY: Reason.QUEUE_BEFORE_COST}, id="queue health goes before power saving",
        ),
    ],
)  # fmt: skip
def test_winner_and_losers(asked: list[tuple[Agent, Action]], winner: Agent, lost: dict[Agent, Reason]) -> None:
    proposals = [ask(agent, action) for agent, action in asked]
    (decision,) = rank.decide(proposals, [passed(p) for p in proposals], {}, ORDER)
    assert decision.proposal_id == f"{winner.value}/{SCOPE.key}"
    assert {r.proposal_id.split("/")[0]: r.why.reason for r in decision.rejections} == {
        agent.value: reason for agent, reason in lost.items()
    }


def test_what_the_guard_left_is_compared_and_written_not_what_was_asked() -> None:
    safety, scaling = ask(SAFETY, floor(515)), ask(SCALING, floor(900))
    (decision,) = rank.decide([safety, scaling], [passed(safety), passed(scaling, floor(510))], {}, ORDER)
    assert decision.action == floor(515)
    (only,) = rank.decide([scaling], [passed(scaling, floor(510))], {}, ORDER)
    assert only.action == floor(510)
    assert "limited to 510 by the guard (RateLimit: ten a minute)" in only.why.sentence


def test_a_refused_proposal_loses_with_the_guards_reason_and_the_scope_says_why_nothing_is_done() -> None:
    scaling = ask(SCALING, floor(500))
    kept = Explanation(reason=Reason.ENOUGH_CAPACITY, sentence="kept at 480")
    (decision,) = rank.decide([scaling], [refused(scaling)], {SCOPE: kept}, ORDER)
    assert decision.action is None
    assert decision.rejections[0].why.reason is Reason.KILL_SWITCH
    assert "kept at 480" in decision.why.sentence


def test_a_scope_nobody_spoke_about_is_explained() -> None:
    kept = Explanation(reason=Reason.ENOUGH_CAPACITY, sentence="kept at 480; 412 are needed")
    (decision,) = rank.decide([], [], {SCOPE: kept}, ORDER)
    assert decision.action is None
    assert decision.why == kept


def test_the_order_is_the_policys() -> None:
    upside_down = ORDER.model_copy(update={"order": ("efficiency", "scaling", "safety")})
    proposals = [ask(SAFETY, floor(500)), ask(EFFICIENCY, ReleaseFloor(workload=CHAT))]
    (decision,) = rank.decide(proposals, [passed(p) for p in proposals], {}, upside_down)
    assert decision.action == ReleaseFloor(workload=CHAT)


def test_verdicts_of_other_proposals_are_refused() -> None:
    scaling = ask(SCALING, floor(500))
    with pytest.raises(ValueError, match="do not belong together"):
        rank.decide([scaling], [], {}, ORDER)


actions = st.one_of(
    st.integers(1, 900).map(floor), st.just(ReleaseFloor(workload=CHAT)),
    st.integers(0, 900).map(lambda n: SetBuffer(workload=CHAT, pool="gpu", pods=n, expires_at=ENDS)),
    st.booleans().map(lambda b: SetConsolidation(pool="gpu", offered=b)),
)  # fmt: skip
scopes = st.sampled_from([SCOPE, Scope(kind=ScopeKind.POOL, name="gpu"), Scope(kind=ScopeKind.QUEUE, name="online")])
heard = st.dictionaries(st.tuples(st.sampled_from(list(Agent)), scopes), st.tuples(actions, st.booleans()), max_size=12)


@given(heard=heard)
def test_at_most_one_winner_per_scope_and_every_proposal_ends_as_winner_or_rejection(
    heard: dict[tuple[Agent, Scope], tuple[Action, bool]],
) -> None:
    proposals = [ask(agent, action, scope) for (agent, scope), (action, _) in heard.items()]
    verdicts = [passed(p) if ok else refused(p) for p, (_, ok) in zip(proposals, heard.values(), strict=True)]
    decisions = rank.decide(proposals, verdicts, {}, ORDER)
    assert len({d.scope for d in decisions}) == len(decisions)
    ends = [d.proposal_id for d in decisions if d.proposal_id] + [
        r.proposal_id for d in decisions for r in d.rejections
    ]
    assert sorted(ends) == sorted(p.id for p in proposals)
    assert all(r.why.sentence for d in decisions for r in d.rejections)
