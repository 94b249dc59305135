"""Bounds become pods, pods become hours and short minutes, and models are compared at equal pod-hours."""

import numpy as np
import pytest

from leadtime.training.backtest.cost import Capacity, at_pod_hours, cost

TEN = Capacity(per_pod=10.0, target_ratio=0.70)


def test_pods_are_sized_for_the_target_utilisation_and_are_one_at_least() -> None:
    assert TEN.pods(np.array([0.0, 7.0, 7.1, 70.0])).tolist() == [1.0, 1.0, 2.0, 10.0]


def test_a_minute_is_short_beyond_full_use_and_strained_beyond_the_target() -> None:
    found = cost(np.full(4, 70.0), np.array([69.0, 71.0, 100.0, 101.0]), TEN, 5)
    assert found.short.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert found.strained.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert (found.shortfall_minutes, found.strained_minutes) == (5, 15)
    assert found.pod_hours == pytest.approx(4 * 10 * 5 / 60)


def test_what_is_not_known_is_not_judged() -> None:
    found = cost(np.array([70.0, np.nan, 70.0]), np.array([200.0, 200.0, np.nan]), TEN, 1)
    assert found.pod_hours == pytest.approx(10 / 60)
    assert np.isnan(found.short).tolist() == [False, True, True]


def test_bounds_are_scaled_until_they_cost_what_was_asked() -> None:
    rng = np.random.default_rng(1)
    upper, truth = 500.0 + 100.0 * rng.random(2000), 400.0 + 200.0 * rng.random(2000)
    wanted = 1.5 * cost(upper, truth, TEN, 1).pod_hours
    found = at_pod_hours(wanted, upper, truth, TEN, 1)
    assert found is not None
    assert found.pod_hours == pytest.approx(wanted, rel=0.01)
    assert found.scale == pytest.approx(1.5, rel=0.02)


def test_a_bound_of_nothing_cannot_be_scaled_to_anything() -> None:
    assert at_pod_hours(100.0, np.zeros(60), np.ones(60), TEN, 1) is None
