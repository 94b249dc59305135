"""Capacity per pod: found where it can be, within its stated interval; refused by name where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.forecast.capacity import (
    Capacity,
    CapacityGap,
    CapacityMinutes,
    CapacityUnknown,
    after_removal_ratio,
    fewest_pods,
    learn_capacity,
)
from leadtime.forecast.capacity_line import two_sizes

DAY = 1440


def minutes(
    *, seed: int = 0, days: float = 1.0, full: float = 10.0, idle: float = 0.05, noise: float = 0.02,
    steady: float = 0.0, odd: float = 0.0,
) -> CapacityMinutes:  # fmt: skip
    """A day of waves on pods that follow ten minutes late; ``steady`` ties a minute's noise to the one before."""
    rng = np.random.default_rng(seed)
    count = int(days * DAY)
    wave = 300 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(count) / DAY))
    demand = wave * (1 + 0.05 * rng.standard_normal(count)) * full / 10
    pods = np.maximum(30, np.ceil(demand / (0.6 * full)))
    pods = np.concatenate((np.full(10, pods[0]), pods[:-10]))
    error = rng.standard_normal(count)
    for i in range(1, count):
        error[i] = steady * error[i - 1] + np.sqrt(1 - steady**2) * error[i]
    use = np.clip(idle + (1 - idle) * demand / pods / full + noise * error, 0, 1)
    strange = rng.random(count) < odd
    use[strange] = rng.random(int(strange.sum()))
    return CapacityMinutes(demand=demand, ready_pods=pods, utilisation_ratio=use)


def at_target(full: float, idle: float) -> float:
    """The truth at utilisation 0.70."""
    return (0.70 - idle) * full / (1 - idle)


def found(given_minutes: CapacityMinutes) -> Capacity:
    capacity = learn_capacity(given_minutes)
    assert isinstance(capacity, Capacity), capacity
    return capacity


def refused(given_minutes: CapacityMinutes) -> CapacityUnknown:
    unknown = learn_capacity(given_minutes)
    assert isinstance(unknown, CapacityUnknown), unknown
    return unknown


@settings(max_examples=10, deadline=None)
@given(full=st.floats(0.01, 1e6), idle=st.floats(0.0, 0.4))
def test_without_noise_the_truth_is_found(full: float, idle: float) -> None:
    capacity = found(minutes(full=full, idle=idle, noise=0.0))
    assert capacity.at_target == pytest.approx(at_target(full, idle), rel=1e-6)
    assert capacity.full == pytest.approx(full, rel=1e-6)
    assert capacity.lower < at_target(full, idle) < capacity.upper


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.001, 1000))
def test_the_unit_of_demand_does_not_matter(seed: int, factor: float) -> None:
    one = minutes(seed=seed)
    other = replace(one, demand=one.demand * factor)
    assert found(other).at_target == pytest.approx(found(one).at_target * factor, rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "steady", "odd"), [(0.02, 0.0, 0.0), (0.05, 0.0, 0.0), (0.03, 0.95, 0.0), (0.02, 0.0, 0.1)]
)
def test_the_stated_interval_holds_the_truth(noise: float, steady: float, odd: float) -> None:
    truth = at_target(10.0, 0.05)
    answers = [found(minutes(seed=s, noise=noise, steady=steady, odd=odd)) for s in range(12)]
    inside = sum(one.lower <= truth <= one.upper for one in answers)
    assert inside >= 8  # stated 0.90: of 12 fewer than 8 would come once in 200 times
    assert max(one.upper / one.lower for one in answers) < 1.25


def test_gaps_and_odd_minutes_change_little() -> None:
    one = minutes(noise=0.01)
    holes = one.utilisation_ratio.copy()  # type: ignore[union-attr]
    holes[::3] = np.nan
    torn = replace(one, utilisation_ratio=holes, demand=np.where(np.arange(DAY) % 97 == 0, np.nan, one.demand))
    assert found(torn).at_target == pytest.approx(found(one).at_target, rel=0.02)
    assert found(torn).minutes < found(one).minutes


def test_too_few_minutes_are_refused_with_their_number() -> None:
    unknown = refused(minutes(days=0.2))
    assert unknown.why is CapacityGap.TOO_FEW_MINUTES
    assert "288 minutes" in unknown.sentence
    assert "360" in unknown.sentence


def test_a_load_that_never_varied_is_refused_and_leaves_a_lower_bound() -> None:
    steady = minutes()
    unknown = refused(replace(steady, demand=steady.ready_pods * 6.0, utilisation_ratio=np.full(DAY, 0.6)))
    assert unknown.why is CapacityGap.LOAD_NEVER_VARIED
    assert unknown.at_least_per_pod == pytest.approx(6.0)


def test_use_that_does_not_rise_with_load_is_refused() -> None:
    one = minutes()
    rng = np.random.default_rng(5)
    unknown = refused(replace(one, utilisation_ratio=0.5 + 0.05 * rng.standard_normal(DAY)))
    assert unknown.why is CapacityGap.DOES_NOT_RISE


def test_pods_saturated_all_the_time_give_a_lower_bound_only() -> None:
    one = minutes()
    unknown = refused(replace(one, utilisation_ratio=np.full(DAY, 0.99)))
    assert unknown.why is CapacityGap.ALWAYS_SATURATED
    assert unknown.at_least_per_pod is not None
    assert 4.0 < unknown.at_least_per_pod < 12.0


def test_saturated_minutes_do_not_bend_the_line() -> None:
    one = minutes(noise=0.0, idle=0.0, full=10.0)
    heavy = replace(one, ready_pods=one.ready_pods * 0.6)
    use = np.minimum(1.0, heavy.demand / heavy.ready_pods / 10.0)
    assert (use >= 0.95).mean() > 0.2
    assert found(replace(heavy, utilisation_ratio=use)).full == pytest.approx(10.0, rel=0.01)


def test_two_sizes_of_pods_are_refused_with_both() -> None:
    small, large = minutes(full=10.0, seed=1), minutes(full=20.0, seed=2)
    both = CapacityMinutes(
        demand=np.concatenate((small.demand, small.demand)),
        ready_pods=np.concatenate((small.ready_pods, small.ready_pods)),
        utilisation_ratio=np.concatenate((small.utilisation_ratio, large.utilisation_ratio)),  # type: ignore[arg-type]
    )
    mixed = replace(both, utilisation_ratio=np.concatenate(
        (small.utilisation_ratio, 0.05 + 0.95 * small.demand / small.ready_pods / 20.0)  # type: ignore[arg-type]
    ))  # fmt: skip
    unknown = refused(mixed)
    assert unknown.why is CapacityGap.SEVERAL_SIZES
    assert "50%" in unknown.sentence


@pytest.mark.parametrize("seed", range(5))
def test_one_heap_is_not_taken_for_two(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert two_sizes(rng.normal(10, 2, 300)) is None
    assert two_sizes(rng.uniform(5, 15, 300)) is None


def test_a_wide_interval_is_refused() -> None:
    unknown = refused(minutes(noise=0.25, steady=0.99, seed=3))
    assert unknown.why is CapacityGap.TOO_UNSURE
    assert "a factor of 2." in unknown.sentence


def test_latency_that_doubles_sets_the_limit() -> None:
    one = minutes(noise=0.0, idle=0.0, days=2)
    load = one.demand / one.ready_pods
    latency = np.where(load < 5.0, 0.1, 0.1 + (load - 5.0))
    capacity = found(replace(one, latency_s=latency))
    assert capacity.knee == pytest.approx(5.1, abs=0.3)
    assert capacity.at_target == pytest.approx(0.7 * capacity.knee)  # type: ignore[operator]
    alone = found(replace(one, utilisation_ratio=None, latency_s=latency))
    assert alone.lower <= 0.7 * 5.1 <= alone.upper


def test_latency_that_never_rose_gives_a_lower_bound() -> None:
    one = minutes()
    unknown = refused(replace(one, utilisation_ratio=None, latency_s=np.full(DAY, 0.2)))
    assert unknown.why is CapacityGap.NO_KNEE
    assert unknown.at_least_per_pod is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"demand": np.full(DAY, -1.0)}, "demand holds negative"),
        ({"ready_pods": np.ones(7)}, "ready_pods has 7 minutes"),
        ({"utilisation_ratio": np.full(DAY, 63.0)}, "divide percent by 100"),
        ({"utilisation_ratio": None}, "one of them is needed"),
    ],
)
def test_columns_that_cannot_be_are_an_error(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        learn_capacity(replace(minutes(), **change))  # type: ignore[arg-type]


def test_pods_for_a_demand() -> None:
    capacity = found(minutes(noise=0.0, idle=0.0, full=10.0))
    assert (capacity.pods(0.0), capacity.pods(7.0), capacity.pods(7.1)) == (0, 1, 2)
    fewest, most = capacity.pods_between(700.0)
    assert fewest <= 100 <= most
    assert capacity.per_pod == pytest.approx(10.0)


@given(use=st.floats(0.0, 1.0), pods=st.integers(1, 300), idle=st.floats(0.0, 0.3))
def test_pods_go_only_while_the_others_stay_below_the_target(use: float, pods: int, idle: float) -> None:
    left = fewest_pods(use, pods, idle_ratio=idle)
    assert 1 <= left <= pods
    if left < pods:
        assert after_removal_ratio(use, pods, removed=pods - left, idle_ratio=idle) < 0.70
    if left > 1:
        assert after_removal_ratio(use, pods, removed=pods - left + 1, idle_ratio=idle) >= 0.70


def test_the_check_on_the_way_down_in_numbers() -> None:
    assert fewest_pods(0.50, 10) == 8
    assert fewest_pods(0.63, 10) == 10  # 0.63 · 10/9 = 0.70: not below
    assert after_removal_ratio(0.5, 1) == np.inf
    with pytest.raises(ValueError, match="removing 3 pods of 2"):
        after_removal_ratio(0.5, 2, removed=3)
