"""What was done and what it brought → one sentence; every branch of it."""

from dataclasses import replace

import pytest

from leadtime.domain.reasons import Reason
from leadtime.policy.schema import Policy
from leadtime.scorecard.digest import DecisionDigest, TickDigest
from leadtime.scorecard.measures import WorkloadScore
from leadtime.simulate.verdict import conclude, in_shadow, with_kill, writes

AT_S = 1_772_409_600

SCORE = WorkloadScore(
    world="hpa", workload="serving/chat", scored_from_s=0, scored_until_s=86_400, scored_hours=24.0,
    unscored_minutes=0.0, arrived_requests=1e6, unserved_requests=5000.0, unserved_ratio=0.005,
    unserved_ratio_peak=0.17, late_ratio=0.0, latency_p95_s=1.0, shortfall_minutes=24, pod_hours=1000.0,
    gpu_node_hours=150.0, pending_pod_minutes=0.0, churn_pods_per_hour=0.0, busy_pods_killed=0, warm_pods_killed=0,
    max_pods_added_per_minute=0.0, hpa_max_pods_added_per_minute=0.0, reversals=0.0,
)  # fmt: skip
GOOD = replace(SCORE, unserved_requests=0.0, shortfall_minutes=0, pod_hours=1060.0)


def tick(*decisions: tuple[Reason, str | None, int], minute: int = 0) -> TickDigest:
    """Decisions as (reason, type of the action, its pods)."""
    return TickDigest(
        as_of_s=AT_S + 60 * minute,
        workloads=(),
        decisions=tuple(
            DecisionDigest(
                scope="workload:serving/chat", reason=reason.value, sentence=f"because {reason.value} at {minute}",
                action=action, asks="", pods=pods, agent=None, lost=(),
            )
            for reason, action, pods in decisions
        ),
    )  # fmt: skip


RAISED = tick((Reason.FORECAST_ABOVE_READY, "SetFloor", 500))
STEADY = tick((Reason.STEADY_HEADROOM, "SetFloor", 500))


def test_where_it_acted_and_helped_the_sentence_compares_minutes_and_cost() -> None:
    told = conclude([RAISED], SCORE, GOOD, replace(SCORE, shortfall_minutes=1))
    assert told.act
    assert told.sentence == (
        "leadtime acted: 0 minutes of shortfall with leadtime, 24 minutes under the HPA alone, at 1.06 times its "
        "pod-hours; an HPA with a lower target at the same cost has 1 minute."
    )


def test_where_it_made_it_worse_it_says_so_whatever_the_plan() -> None:
    worse = replace(SCORE, shortfall_minutes=25)
    for ticks in ([RAISED], [STEADY]):
        told = conclude(ticks, SCORE, worse, SCORE)
        assert told.act
        assert told.sentence.startswith("leadtime made it worse here: 25 minutes")


@pytest.mark.parametrize("shortfall", [0, 24])
def test_where_nothing_changed_for_the_users_it_says_so_whatever_the_plan(shortfall: int) -> None:
    hpa = replace(SCORE, shortfall_minutes=shortfall)
    for ticks in ([RAISED], [STEADY]):
        told = conclude(ticks, hpa, replace(hpa, pod_hours=1100.0), hpa)
        assert told.sentence.startswith("leadtime acted and changed nothing for the users: ")


def test_equal_minutes_but_fewer_requests_unserved_is_help() -> None:
    assert conclude([RAISED], SCORE, replace(SCORE, unserved_requests=4000.0), SCORE).sentence.startswith(
        "leadtime acted: 24 minutes"
    )


def test_a_steady_headroom_is_called_so_where_it_pays() -> None:
    told = conclude([STEADY, STEADY, RAISED], SCORE, GOOD, SCORE)
    assert told.sentence.startswith("A steady headroom is what pays here, and leadtime chooses it: 0 minutes")
    assert conclude([STEADY, RAISED, RAISED], SCORE, GOOD, SCORE).sentence.startswith("leadtime acted: ")


def test_where_it_stood_back_the_reason_it_gave_most_often_is_told_in_its_newest_words() -> None:
    ticks = [
        tick((Reason.MODEL_LOSES_TO_LAST_VALUE, None, 0), minute=0),
        tick((Reason.PREDICTION_DOES_NOT_PAY, None, 0), minute=1),
        tick((Reason.PREDICTION_DOES_NOT_PAY, None, 0), minute=2),
        tick((Reason.ENOUGH_CAPACITY, None, 0), minute=3),
    ]
    told = conclude(ticks, SCORE, SCORE, SCORE)
    assert not told.act
    assert told.sentence == "leadtime stood back, judging by the days before: because PredictionDoesNotPay at 2"


@pytest.mark.parametrize(
    "ticks",
    [
        [],
        [tick((Reason.ENOUGH_CAPACITY, None, 0))],
        [tick((Reason.BUFFER_NO_LONGER_NEEDED, "SetBuffer", 0))],
        [tick((Reason.EMPTY_NODES, "SetConsolidation", 0))],
    ],
    ids=["no tick", "nothing asked for", "a buffer given back", "nodes offered"],
)
def test_giving_back_is_not_acting(ticks: list[TickDigest]) -> None:
    told = conclude(ticks, SCORE, SCORE, SCORE)
    assert not told.act
    assert told.sentence == "leadtime stood back: there was always enough capacity for what it expected."


def test_a_world_without_pods_has_no_cost_to_compare() -> None:
    assert "at 1.00 times" in conclude([RAISED], replace(SCORE, pod_hours=0.0), GOOD, SCORE).sentence


SURGE = tick((Reason.SURGE_ABOVE_FORECAST, "SetFloor", 500), (Reason.PREDICTION_DOES_NOT_PAY, None, 0))


def test_answering_surges_where_nobody_was_short_is_standing_back() -> None:
    calm = replace(SCORE, shortfall_minutes=0, unserved_requests=0.0)
    told = conclude([SURGE], calm, replace(calm, pod_hours=1010.0), calm)
    assert not told.act
    assert told.sentence == "leadtime stood back, judging by the days before: because PredictionDoesNotPay at 0"


def test_answering_surges_counts_as_acting_where_users_were_short() -> None:
    assert conclude([SURGE], SCORE, GOOD, SCORE).sentence.startswith("leadtime acted: 0 minutes")
    told = conclude([SURGE], SCORE, SCORE, SCORE)
    assert told.act
    assert told.sentence.startswith("leadtime answered surges as it saw them and changed nothing for the users: ")


def test_answering_surges_is_told_as_harm_where_only_leadtimes_users_were_short() -> None:
    calm = replace(SCORE, shortfall_minutes=0, unserved_requests=0.0)
    told = conclude([SURGE], calm, replace(calm, shortfall_minutes=5, unserved_requests=900.0), calm)
    assert told.act
    assert told.sentence.startswith("leadtime made it worse here: 5 minutes")


def test_in_shadow_nothing_was_written_and_the_verdict_says_what_would_have_been_asked() -> None:
    assert not writes(Policy())
    assert in_shadow(conclude([RAISED], SCORE, GOOD, SCORE)).sentence == (
        "leadtime only watched (policy.actuation): nothing was written; it would have asked for capacity."
    )
    stood_back = in_shadow(conclude([], SCORE, SCORE, SCORE))
    assert not stood_back.act
    assert stood_back.sentence.endswith("it would not have asked for capacity either.")


def test_a_kill_switch_stands_before_anything_else() -> None:
    said = conclude([RAISED], SCORE, GOOD, SCORE)
    assert with_kill(said, None, AT_S) == said
    never = with_kill(said, AT_S, AT_S)
    assert (never.act, never.sentence.split(":")[0]) == (False, "The kill switch was on from the first tick")
    later = with_kill(said, AT_S + 3600, AT_S)
    assert later.act
    assert later.sentence.startswith("The kill switch was on from 2026-03-02T01:00:00Z: from then on the HPA alone")
