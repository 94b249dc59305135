"""Ticks with risk → the page's lines: numbers beside their base, what was done or why not, what came of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leadtime.dashboard.risk import NOT_CONNECTED, QUIET, risk_part
from leadtime.dashboard.story import Choice, LedgerBook
from leadtime.domain.decision import Agent, Answer, AvoidNode, Decision, Proposal, ProtectPod, Rejection, Verdict
from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import node_scope, pod_scope
from leadtime.domain.risk import PodEnd, PodEnding, RiskDriver, RiskScore
from leadtime.domain.time_window import TimeWindow
from leadtime.ledger.records import LedgerMeta
from leadtime.ledger.sqlite import SqliteLedger

POD, NODE = "serving/chat-7", "gpu-3"


@pytest.fixture
def told(synthetic, tmp_path):
    """The part after ticks of the minutes 200 to 260: an alert about one pod at 205, which ends (or not) at 215."""

    def build(*, alert: bool = True, how: PodEnding | None = PodEnding.FAILED, until: int = 260):
        path = tmp_path / "risk.sqlite"
        meta = LedgerMeta(kind="replay", scenario="r", seed=1, policy_hash="0", workloads=(synthetic.CHAT.key,))
        with SqliteLedger.create(path, meta) as ledger:
            for minute in range(200, until):
                ledger.append(
                    tick(synthetic, minute, alert=alert and minute == 205, how=how if minute == 215 else None)
                )
        story = LedgerBook("r", path).story(Choice())
        assert story is not None
        return risk_part(story, int(synthetic.at(until).timestamp()))

    return build


def tick(synthetic, minute, *, alert, how):
    at = synthetic.at(minute)
    noted = Evidence(id="ev-r", source="risk model", query="scores of m@1", window=TimeWindow(start=at, end=at),
                     value="480 of 480 running pods have a fresh score", unit="pods")  # fmt: skip
    plain = synthetic.tick(minute)
    plain = replace(plain, evidence=(*plain.evidence, noted))
    if how is not None:
        end = PodEnd(pod=POD, workload=synthetic.CHAT, node=NODE, at=at - timedelta(seconds=20), how=how)
        plain = replace(plain, pod_ends=(end,))
    return plain if not alert else with_alert(synthetic, plain, at)


def with_alert(synthetic, plain, at):
    score = RiskScore(
        pod=POD, node=NODE, workload=synthetic.CHAT, as_of=at, window_end=at, horizon=timedelta(minutes=30),
        probability=0.21, base_rate=0.009, expires_at=at + timedelta(minutes=10), model="m@1",
        drivers=(RiskDriver(feature="cpu_ratio", value=0.71, effect=2.5),),
    )  # fmt: skip
    ends = at + timedelta(minutes=15)
    protect = Proposal(id="safety/p", agent=Agent.SAFETY, scope=pod_scope(POD),
                       action=ProtectPod(pod=POD, workload=synthetic.CHAT, expires_at=ends),
                       why=Explanation(reason=Reason.POD_AT_RISK, sentence=f"{POD} fails"))  # fmt: skip
    avoid = Proposal(id="safety/n", agent=Agent.SAFETY, scope=node_scope(NODE),
                     action=AvoidNode(node=NODE, pool="gpu", expires_at=ends),
                     why=Explanation(reason=Reason.NODE_AT_RISK, sentence=f"{POD} fails"))  # fmt: skip
    no = Explanation(reason=Reason.RISK_BUDGET, sentence="4 pods are protected; 4 at once are the limit")
    return replace(
        plain, risks=(score,), proposals=(*plain.proposals, protect, avoid),
        verdicts=(*plain.verdicts,
                  Verdict(proposal_id="safety/p", answer=Answer.ALLOWED, allowed_action=protect.action, why=()),
                  Verdict(proposal_id="safety/n", answer=Answer.REFUSED, allowed_action=None, why=(no,))),
        decisions=(*plain.decisions,
                   Decision(scope=protect.scope, proposal_id="safety/p", action=protect.action, why=protect.why),
                   Decision(scope=avoid.scope, proposal_id=None, action=None, why=no,
                            rejections=(Rejection(proposal_id="safety/n", why=no),))),
    )  # fmt: skip


def test_an_alert_stands_with_its_base_rate_lift_and_drivers(told):
    (row,) = told().rows
    assert (row.pod, row.node, row.horizon) == (POD, NODE, "30 min")
    assert (row.probability, row.base_rate, row.lift) == ("21 %", "0.9 %", "23.3\u00a0×")
    assert row.drivers == "cpu_ratio 0.71 (+2.5)"


def test_what_was_done_and_what_was_not_is_told_with_the_reason(told):
    part = told()
    protect, avoid = part.rows[0].measures
    assert (protect.words, protect.taken) == ("no scale-down", True)
    assert protect.decision is not None
    assert (avoid.words, avoid.taken) == ("no new placement", False)
    assert avoid.why == "RiskBudget: 4 pods are protected; 4 at once are the limit"
    assert part.refused == "RiskBudget 1×"


@pytest.mark.parametrize(
    ("how", "until", "outcome", "came"),
    [
        (PodEnding.FAILED, 260, "failed", "at 03:34:40, 10 min after the alert began"),
        (PodEnding.DELETED, 260, "ended otherwise", "not known whether it would have failed"),
        (None, 260, "did not fail", "nothing happened up to 03:55"),
        (None, 230, "open", "known at 03:55"),
    ],
)
def test_what_came_of_it(told, how, until, outcome, came):
    (row,) = told(how=how, until=until).rows
    assert row.outcome == outcome
    assert came in row.came


def test_hits_false_alarms_and_misses_are_counted(told):
    assert dict(told().counts)["hits: failed in time"] == "1"
    assert dict(told(how=None).counts)["false alarms"] == "1"
    missed = told(alert=False)
    assert dict(missed.counts)["failures missed"] == "1"
    assert dict(missed.counts)["precision"] == "not known yet"


def test_an_empty_part_says_why(told, incident_ledger):
    assert told(alert=False, how=None).absent == QUIET
    story = LedgerBook("i", incident_ledger).story(Choice())
    assert story is not None
    assert risk_part(story, story.full.end_s).absent == NOT_CONNECTED
