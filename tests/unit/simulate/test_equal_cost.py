"""Matching one world's cost to another's."""

import pytest

from leadtime.simulate.equal_cost import match_cost


def test_the_match_is_within_one_percent_of_a_smooth_cost() -> None:
    found = match_cost(lambda x: x, lambda x: 100.0 + 50.0 * x, aim_pod_hours=120.0, cheap=0.0, dear=1.0)
    assert found.within_tolerance
    assert found.pod_hours == pytest.approx(120.0, rel=0.01)


def test_a_world_that_already_costs_as_much_stays_as_it_is() -> None:
    runs: list[float] = []

    def run(setting: float) -> float:
        runs.append(setting)
        return setting

    found = match_cost(run, lambda _x: 130.0, aim_pod_hours=120.0, cheap=0.7, dear=0.3)
    assert (found.setting, runs) == (0.7, [0.7])
    assert not found.within_tolerance


def test_a_cost_that_jumps_past_the_aim_gives_the_closest_run() -> None:
    found = match_cost(lambda x: x, lambda x: 100.0 if x < 0.5 else 200.0, aim_pod_hours=140.0, cheap=0.0, dear=1.0)
    assert found.pod_hours == 100.0
    assert not found.within_tolerance
