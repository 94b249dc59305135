"""*ramp* and *sudden*: nobody could know. What a detector can still do, and what only warm pods do."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from leadtime.policy.schema import Policy
from leadtime.scorecard.measures import WorkloadScore, score
from leadtime.simulate import worlds
from leadtime.simulate.demo import demo
from leadtime.simulate.incident import Form
from leadtime.testing.fakes import ListSink

pytestmark = pytest.mark.slow

KEY = "serving/chat"


@pytest.fixture(scope="module")
def ramp(demo_reports: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return demo_reports["ramp"]


@pytest.fixture(scope="module")
def sudden(demo_reports: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return demo_reports["sudden"]


def of(report: dict[str, Any], world: str) -> dict[str, Any]:
    return report["worlds"][world][KEY]


def test_on_a_ramp_leadtime_asks_for_nodes_before_the_hpas_pods_do(ramp: dict[str, Any]) -> None:
    assert ramp["comparison"][KEY]["first_request_ahead_s"] > 0


def test_on_a_ramp_fewer_requests_go_unserved(ramp: dict[str, Any]) -> None:
    assert of(ramp, "leadtime")["unserved_requests"] < of(ramp, "hpa")["unserved_requests"]
    assert of(ramp, "leadtime")["shortfall_minutes"] < of(ramp, "hpa")["shortfall_minutes"]


@pytest.mark.parametrize("form", ["ramp", "sudden"])
def test_without_any_warning_leadtime_is_never_worse_than_the_hpa_alone(
    form: str, demo_reports: dict[str, dict[str, Any]]
) -> None:
    ours, theirs = (of(demo_reports[form], world) for world in ("leadtime", "hpa"))
    for field in ("unserved_requests", "unserved_ratio_peak", "shortfall_minutes"):
        assert ours[field] <= theirs[field], field


@pytest.mark.parametrize("form", ["ramp", "sudden"])
def test_a_surge_does_not_lift_the_pace_above_twenty_pods_a_minute(
    form: str, demo_reports: dict[str, dict[str, Any]]
) -> None:
    assert demo_reports[form]["comparison"][KEY]["max_pods_added_per_minute"] <= 20
    assert of(demo_reports[form], "leadtime")["reversals"] <= of(demo_reports[form], "hpa")["reversals"] + 1


def test_the_report_names_the_warm_pods_and_what_they_cost(sudden: dict[str, Any], ramp: dict[str, Any]) -> None:
    assert sudden["warm_pods_needed"] > 0
    assert sudden["warm_gpu_hours_per_day"] == sudden["warm_pods_needed"] * 24  # one GPU a pod
    assert "warm_pods_needed" not in ramp


@pytest.fixture(scope="module")
def with_warm_pods(policy: Policy) -> Callable[[int], WorkloadScore]:
    """leadtime's world of the sudden surge, this many pods standing warm."""

    def play(pods: int) -> WorkloadScore:
        replay = demo(Form.SUDDEN, seed=0, vary=False, policy=policy, warm_pods=pods).replay
        made = worlds.prepare(replay, lambda _what, _share: None)
        return score(worlds.run_leadtime(made, ListSink(), lambda _what, _share: None).run, KEY)

    return play


def test_exactly_the_warm_pods_that_were_named_leave_no_shortfall(
    sudden: dict[str, Any], with_warm_pods: Callable[[int], WorkloadScore]
) -> None:
    assert with_warm_pods(sudden["warm_pods_needed"]).shortfall_minutes == 0


def test_a_tenth_fewer_warm_pods_leave_a_shortfall(
    sudden: dict[str, Any], with_warm_pods: Callable[[int], WorkloadScore]
) -> None:
    assert with_warm_pods(math.floor(0.9 * sudden["warm_pods_needed"])).shortfall_minutes > 0
