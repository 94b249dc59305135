"""*recurring*, pinned: the numbers of story C, read from report.json as the command writes it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytestmark = pytest.mark.slow

KEY = "serving/chat"
RIVALS = ("hpa_equal_cost", "cron")


@pytest.fixture(scope="module")
def report(demo_reports: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return demo_reports["recurring"]


@pytest.fixture(scope="module")
def worlds(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """World → score card."""
    return {world: by_workload[KEY] for world, by_workload in report["worlds"].items()}


@pytest.fixture(scope="module")
def compared(report: dict[str, Any]) -> dict[str, Any]:
    return report["comparison"][KEY]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def clock(hour: int, minute: int) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


def row_at(fields: dict[str, Any], when: datetime) -> dict[str, Any]:
    return next(row for row in fields["minutes"] if at(row["at"]) == when)


def test_the_hpa_alone_crosses_its_threshold_at_five_past_six(report: dict[str, Any]) -> None:
    crossed = at(report["timeline"]["hpa"][KEY]["threshold_crossed_at"])
    assert abs(crossed - clock(6, 5)) <= timedelta(minutes=2)


def test_under_the_hpa_alone_at_least_150_pods_wait_at_a_quarter_past_six(
    report: dict[str, Any], worlds: dict[str, Any]
) -> None:
    pending = report["timeline"]["hpa"][KEY]["pending_at_15min"]
    assert pending >= 150
    assert row_at(worlds["hpa"], clock(6, 15))["pending"] == pending


def test_the_hpas_first_new_node_is_ready_at_a_quarter_to_seven(report: dict[str, Any]) -> None:
    ready = at(report["timeline"]["hpa"][KEY]["first_new_node_ready_at"])
    assert abs(ready - clock(6, 45)) <= timedelta(minutes=5)


def test_the_hpa_alone_leaves_a_sixth_of_its_worst_five_minutes_unserved(worlds: dict[str, Any]) -> None:
    assert 0.15 <= worlds["hpa"]["unserved_ratio_peak"] <= 0.20


def test_leadtimes_worst_five_minutes_leave_at_most_one_percent_unserved(worlds: dict[str, Any]) -> None:
    assert worlds["leadtime"]["unserved_ratio_peak"] <= 0.01


def test_leadtime_closes_the_gap_to_the_oracle(compared: dict[str, Any]) -> None:
    assert compared["oracle_gap_closed"] >= 0.95


def test_leadtime_costs_little_more_pods_than_the_oracle(compared: dict[str, Any]) -> None:
    assert compared["pod_hours_ratio_to_oracle"] <= 1.15


def test_leadtime_costs_little_more_nodes_than_the_oracle(compared: dict[str, Any]) -> None:
    assert compared["gpu_node_hours_ratio_to_oracle"] <= 1.15


def test_the_ratios_are_those_of_the_score_cards(compared: dict[str, Any], worlds: dict[str, Any]) -> None:
    for field in ("pod_hours", "gpu_node_hours"):
        ratio = worlds["leadtime"][field] / worlds["oracle"][field]
        assert compared[f"{field}_ratio_to_oracle"] == pytest.approx(ratio, abs=1e-5)


def test_the_warning_comes_at_least_one_learned_lead_early(compared: dict[str, Any]) -> None:
    assert compared["early_warning_s"] >= compared["learned_lead_p90_s"]
    assert compared["learned_lead_p90_s"] > 2400  # the stage times of the scenario, not a prior


def test_the_capacity_of_the_first_raise_is_ready_before_it_is_needed(compared: dict[str, Any]) -> None:
    assert compared["ready_ahead_s"] > 0


def test_nothing_is_ever_pending_because_of_leadtimes_own_plan(worlds: dict[str, Any]) -> None:
    assert worlds["leadtime"]["pending_pod_minutes"] == 0.0
    assert all(row["pending"] == 0 for row in worlds["leadtime"]["minutes"])


def test_leadtime_adds_at_most_twenty_pods_a_minute(compared: dict[str, Any], worlds: dict[str, Any]) -> None:
    assert 0 < compared["max_pods_added_per_minute"] <= 20
    assert worlds["leadtime"]["max_pods_added_per_minute"] == compared["max_pods_added_per_minute"]


def test_leadtime_reverses_at_most_once_a_day_more_than_the_hpa(worlds: dict[str, Any]) -> None:
    assert worlds["leadtime"]["reversals"] <= worlds["hpa"]["reversals"] + 1


@pytest.mark.parametrize("rival", RIVALS)
def test_leadtime_leaves_fewer_unserved_than_what_its_money_buys_elsewhere(rival: str, worlds: dict[str, Any]) -> None:
    ours, theirs = (worlds[world]["unserved_requests"] for world in ("leadtime", rival))
    assert ours <= theirs
    assert ours < theirs or theirs == 0


@pytest.mark.parametrize("rival", RIVALS)
def test_the_rivals_cost_what_leadtime_costs_or_the_report_says_so(
    rival: str, report: dict[str, Any], worlds: dict[str, Any]
) -> None:
    ratio = worlds[rival]["pod_hours"] / worlds["leadtime"]["pod_hours"]
    assert report[f"{rival}_cost_ratio_to_leadtime"] == pytest.approx(ratio, abs=1e-4)
    assert report[f"{rival}_within_1pct"] is (abs(ratio - 1.0) <= 0.01)


def test_the_verdict_says_that_leadtime_acts_and_what_it_brought(
    report: dict[str, Any], worlds: dict[str, Any]
) -> None:
    assert report["verdict"]["act"] is True
    assert f"{worlds['hpa']['shortfall_minutes']:,} minutes under the HPA alone" in report["verdict"]["sentence"]


def test_the_oracle_leaves_nobody_unserved_and_costs_least_of_those_that_do(
    report: dict[str, Any], worlds: dict[str, Any]
) -> None:
    assert worlds["oracle"]["unserved_requests"] == 0
    assert worlds["oracle"]["pod_hours"] <= worlds["leadtime"]["pod_hours"]
    assert report["oracle_pod_hours_at_full_utilisation"] <= worlds["oracle"]["pod_hours"]
