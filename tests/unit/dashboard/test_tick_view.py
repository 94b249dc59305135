# ruff: noqa: E501 - a table reads better wide
"""What the ledger wrote → what the page draws."""

import msgspec
import pytest

from leadtime.dashboard import clock_text
from leadtime.dashboard.tick_view import action_view, seconds, tick_view
from leadtime.dashboard.views import Direction, Fate
from leadtime.ledger import wire

SNAPSHOT = {
    "workloads": [
        {
            "ref": {"namespace": "serving", "name": "chat"},
            "owner_min_replicas": 8,
            "floor": {"replicas": 20, "expires_at": "2026-03-02T06:00:00Z"},
            "buffer": None,
        }
    ]
}
CHAT = {"namespace": "serving", "name": "chat", "kind": "Deployment"}


def tick_at(synthetic, minute):
    return tick_view(wire.decode_tick(wire.encode_tick(synthetic.tick(minute))))


@pytest.mark.parametrize(
    ("action", "direction", "words"),
    [
        pytest.param({"workload": CHAT, "replicas": 30}, Direction.RAISE, "floor 20 → 30 pods", id="a floor above ours is a raise"),
        pytest.param({"workload": CHAT, "replicas": 12}, Direction.LOWER, "floor 20 → 12 pods", id="a floor below ours lowers"),
        pytest.param({"workload": CHAT, "pool": "gpu", "pods": 1}, Direction.RAISE, "room for 0 → 1 more pod on gpu", id="one pod"),
        pytest.param({"workload": CHAT, "replicas": 20}, Direction.RENEW, "floor 20 pods, renewed", id="the same floor renews"),
        pytest.param({"workload": CHAT}, Direction.LOWER, "floor 20 → given back to the owner's 8", id="release names the owner's"),
        pytest.param(
            {"workload": CHAT, "pool": "gpu", "pods": 7}, Direction.RAISE, "room for 0 → 7 more pods on gpu", id="no buffer stood"
        ),
        pytest.param({"queue": "q", "paused": True}, Direction.QUEUE, "hold back new low-priority pods in queue q", id="pause"),
        pytest.param({"queue": "q", "paused": False}, Direction.QUEUE, "admit low-priority pods in queue q", id="admit"),
        pytest.param({"pool": "gpu", "offered": True}, Direction.LOWER, "offer empty nodes of pool gpu", id="offer"),
    ],
)  # fmt: skip
def test_an_action_is_told_by_its_fields(action, direction, words):
    seen = action_view(action, SNAPSHOT)
    assert (seen.direction, seen.words) == (direction, words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT3240S", 3240.0), ("PT54M", 3240.0), ("P1DT2H3M4.5S", 93_784.5), ("-PT5S", -5.0), (12, 12.0)],
)
def test_durations_are_read_in_both_forms(text, expected):
    assert seconds(text) == expected


def test_durations_are_read_as_the_ledger_writes_them(synthetic):
    import datetime as dt

    for span in (dt.timedelta(minutes=54), dt.timedelta(days=1, seconds=1.5), dt.timedelta(0)):
        assert seconds(msgspec.to_builtins(span)) == span.total_seconds()


def test_a_limited_winner_keeps_the_guards_reason(synthetic):
    tick = tick_at(synthetic, 341)
    winner = next(p for p in tick.proposals if p.agent == "safety")
    assert winner.fate is Fate.LIMITED
    assert winner.fate_why.reason == "RateLimit"


def test_a_loser_keeps_the_referees_reason(synthetic):
    tick = tick_at(synthetic, 341)
    decision = next(d for d in tick.decisions if d.scope == "workload:serving/chat")
    assert [(p.agent, p.fate, p.fate_why.reason) for p in decision.losers] == [("scaling", Fate.LOST, "Outranked")]


def test_nothing_is_a_decision_with_a_reason(synthetic):
    tick = tick_at(synthetic, 200)
    decision = next(d for d in tick.decisions if d.scope == "workload:serving/chat")
    assert decision.direction is Direction.NOTHING
    assert decision.why.reason == "EnoughCapacity"


def test_missing_demand_is_none_and_says_why(synthetic):
    raw = wire.decode_tick(wire.encode_tick(synthetic.tick(200)))
    raw["assessments"][0]["demand"] = {"source": "demand", "reason": "no answer", "since": None}
    seen = tick_view(raw).workloads["serving/chat"]
    assert seen.demand is None
    assert seen.missing == "demand: no answer"


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="no zone"):
        clock_text.epoch("2026-03-02T06:05:00")


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "–"),
        (0.0, "0.0 %"),
        (0.0312, "3.1 %"),
        (0.0000004, "<\u202f0.1 %"),
        (0.9997, ">\u202f99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_share_of_some_never_reads_as_none_or_all(ratio, text):
    assert clock_text.percent(ratio) == text


@pytest.mark.parametrize(
    ("s", "text"), [(45, "45 s"), (3599, "1 h"), (3660, "1 h 1 min"), (-120, "−2 min"), (190_000, "2 d 5 h")]
)
def test_durations_read_like_a_person_says_them(s, text):
    assert clock_text.duration(s) == text
