"""Thresholds that can never be reached or left, worked out by hand."""

from typing import Any

import pytest

from leadtime.policy import Policy
from leadtime.policy.reach import Reach, WorkloadNumbers, check

# 100 pods at 70 % serve 1400 requests/s; the HPA runs 8 to 300 pods
SOUND = {
    "min_replicas": 8, "max_replicas": 300, "capacity_per_pod": 20.0, "hpa_target_ratio": 0.7, "peak_demand": 1400.0,
    "low_demand": 200.0, "pods_now": 20, "node_lead_s": 120.0, "pod_lead_s": 600.0, "highest_utilisation_ratio": 1.0,
}  # fmt: skip
ACTING = {"actuation": {"stage": "hpa_floor"}, "scaling": {"replica_cap": 300, "max_buffer_pods": 300}}


def harmful(numbers: dict[str, Any], policy: dict[str, Any] | None = None) -> dict[str, tuple[Reach, str]]:
    """Harmful findings by threshold."""
    report = check(Policy.model_validate(policy or ACTING), WorkloadNumbers(**{**SOUND, **numbers}))
    return {one.threshold: (one.reach, one.sentence) for one in report.findings if one.harmful}


def test_a_sound_workload_has_no_finding_at_all() -> None:
    report = check(Policy.model_validate(ACTING), WorkloadNumbers(**SOUND))
    assert (report.findings, report.not_checked) == ((), ())


@pytest.mark.parametrize(
    ("numbers", "threshold", "reach", "says"),
    [
        pytest.param({"min_replicas": 100}, "minReplicas", Reach.NEVER_LEFT, "100 pods hold 1400",
                     id="minReplicas holds the peak exactly: never left"),
        pytest.param({"max_replicas": 99}, "scaling.target_utilisation_ratio", Reach.NEVER_REACHED, "wants 100 pods",
                     id="maxReplicas one pod short of the peak"),
        pytest.param({"highest_utilisation_ratio": 0.77}, "HPA target", Reach.NEVER_REACHED, "never scales up",
                     id="a metric that saturates at target and tolerance"),
        pytest.param({"hpa_target_ratio": 0.6}, "scaling.target_utilisation_ratio", Reach.NEVER_REACHED, "17%",
                     id="leadtime aims higher than the HPA"),
        pytest.param({"pod_lead_s": 180.0}, "scaling.surge_pods_added_per_min", Reach.NEVER_REACHED, "60 of them",
                     id="80 pods at 20 a minute do not fit into 3 minutes"),
        pytest.param({"low_demand": 1335.0}, "surge.min_excess_ratio", Reach.NEVER_REACHED, "no surge is ever seen",
                     id="peak only 5 % above the low"),
        pytest.param({"pod_lead_s": 901.0}, "surge.extrapolate_s", Reach.NEVER_REACHED, "15 min",
                     id="a pod takes longer than a rise is carried on"),
        pytest.param({"min_replicas": 297}, "scaling.floor_tolerance_ratio", Reach.NEVER_LEFT, "no floor ever moves",
                     id="297 to 300 pods is within 2 %"),
        pytest.param({"min_replicas": 300}, "scaling.replica_cap", Reach.NEVER_LEFT, "no floor above minReplicas",
                     id="a cap at minReplicas"),
    ],
)  # fmt: skip
def test_findings(numbers: dict[str, Any], threshold: str, reach: Reach, says: str) -> None:
    found = harmful(numbers)
    assert found[threshold][0] is reach
    assert says in found[threshold][1]


@pytest.mark.parametrize(
    "numbers",
    [{"min_replicas": 99}, {"max_replicas": 100}, {"highest_utilisation_ratio": 0.78}, {"pod_lead_s": 240.0},
     {"low_demand": 1290.0}, {"pod_lead_s": 900.0}, {"min_replicas": 50}],
)  # fmt: skip
def test_one_step_on_the_good_side_is_no_harm(numbers: dict[str, Any]) -> None:
    assert harmful(numbers) == {}


def test_the_cap_above_every_hpa_is_told_and_is_no_harm() -> None:
    report = check(Policy(), WorkloadNumbers(min_replicas=8, max_replicas=300))
    told = {one.threshold: one for one in report.findings}
    assert (told["scaling.replica_cap"].reach, told["scaling.replica_cap"].harmful) == (Reach.NEVER_REACHED, False)


def test_in_shadow_it_says_that_nothing_is_written() -> None:
    told = {one.threshold: one.sentence for one in check(Policy(), WorkloadNumbers()).findings}
    assert "shadow" in told["actuation.stage"]


def test_checks_whose_numbers_are_not_given_are_named_not_guessed() -> None:
    report = check(Policy.model_validate(ACTING), WorkloadNumbers(peak_demand=1.0))
    assert report.findings == ()
    assert "min-replicas (needs min_replicas, capacity_per_pod, hpa_target_ratio)" in report.not_checked
    assert len(report.not_checked) == 10
