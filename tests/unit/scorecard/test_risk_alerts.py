"""What an alert is, what came of it, and which failures nobody foresaw."""

from dataclasses import replace

import pytest

from leadtime.scorecard.risk_alerts import AlertOutcome, AlertScore, EndSeen, record

HORIZON_S = 1800.0
SCORE = AlertScore(
    at_s=0.0, pod="api-1", node="gpu-1", workload="serving/api", probability=0.2, base_rate=0.01, until_s=HORIZON_S,
    horizon_s=HORIZON_S,
)  # fmt: skip


def score(at_s: float, pod: str = "api-1", probability: float = 0.2) -> AlertScore:
    return replace(SCORE, at_s=at_s, until_s=at_s + HORIZON_S, pod=pod, probability=probability)


def end(at_s: float, pod: str = "api-1", *, failed: bool = True) -> EndSeen:
    return EndSeen(at_s=at_s, pod=pod, node="gpu-1", workload="serving/api", failed=failed)


@pytest.mark.parametrize(
    ("ends", "now_s", "outcome"),
    [
        pytest.param([end(1800)], 9000, AlertOutcome.FAILED, id="failed at the very end of the horizon"),
        pytest.param([end(1801)], 9000, AlertOutcome.DID_NOT_FAIL, id="failed a second later"),
        pytest.param([], 1801, AlertOutcome.DID_NOT_FAIL, id="ran on"),
        pytest.param([], 1800, AlertOutcome.OPEN, id="may still fail"),
        pytest.param([end(700, failed=False)], 9000, AlertOutcome.ENDED_OTHERWISE, id="was deleted"),
        pytest.param([end(700)], 600, AlertOutcome.OPEN, id="its end is not known yet"),
        pytest.param([end(700, pod="api-2")], 9000, AlertOutcome.DID_NOT_FAIL, id="another pod failed"),
    ],
)
def test_what_came_of_an_alert(ends, now_s, outcome):
    assert [alert.outcome for alert in record([score(0)], ends, now_s).alerts] == [outcome]


def test_scores_of_one_pod_close_in_time_are_one_alert_with_the_highest_number():
    found = record([score(0), score(300, probability=0.5), score(600, pod="api-2"), score(1200)], [end(2000)], 9000)
    first, other = found.alerts
    assert (first.pod, first.first_s, first.last_s, first.until_s) == ("api-1", 0, 1200, 1200 + HORIZON_S)
    assert first.highest.probability == 0.5
    assert first.warned_ahead_s == 2000
    assert other.pod == "api-2"


def test_scores_apart_are_two_alerts():
    assert [a.first_s for a in record([score(0), score(901)], [], 9000).alerts] == [0, 901]


def test_a_failure_without_an_alert_is_missed_and_precision_counts_judged_alerts_only():
    scores = [score(0), score(0, pod="api-2"), score(0, pod="api-3"), score(8000, pod="api-4")]
    ends = [end(600), end(700, pod="api-3", failed=False), end(800, pod="api-9"), end(5000, pod="api-2")]
    found = record(scores, ends, 9000)
    assert found.precision_ratio == 0.5
    assert [missed.pod for missed in found.missed] == ["api-9", "api-2"]


def test_precision_is_not_known_before_anything_came_of_an_alert():
    assert record([score(0)], [], 100).precision_ratio is None
