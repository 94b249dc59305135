"""The hidden chain: probabilities against brute force, the base rate it is solved for."""

import numpy as np
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.simulate.borg.chain import Chain, degrading_share, expected, fails_within, outside_rates, solved
from leadtime.simulate.borg.knobs import Knobs

CHAIN = Chain(degrades=(0.004, 0.08), fails_healthy=2e-4, fails=0.25, heals=0.02, ends=0.012)


@pytest.mark.parametrize("z", [0, 1])
@pytest.mark.parametrize("state", [0, 1])
def test_failure_within_k_windows_is_what_a_simulation_of_the_chain_counts(z: int, state: int) -> None:
    rng = np.random.default_rng(5 + z)
    n, outside = 200_000, 0.01
    now, alive, failed = np.full(n, state), np.ones(n, np.bool_), np.zeros((13, n), np.bool_)
    stopped = rng.exponential(1 / outside, n)  # in windows
    for k in range(1, 13):
        u = rng.random(n)
        fail = np.where(now == 1, CHAIN.fails, CHAIN.fails_healthy)
        change = np.where(now == 1, CHAIN.heals, CHAIN.degrades[z])
        ends = alive & (u < fail + CHAIN.ends)
        at = k - 1 + rng.random(n)
        failed[k] = failed[k - 1] | (ends & (u < fail) & (at < stopped))
        alive = alive & ~ends & (stopped > k)
        now = np.where((u >= fail + CHAIN.ends) & (u < fail + CHAIN.ends + change), 1 - now, now)
    counted = failed.mean(1)
    computed = fails_within(CHAIN, z, outside)[state]
    assert np.abs(counted - computed).max() < 5 * np.sqrt(computed.max() / n)


def test_without_ends_from_outside_one_window_is_the_chains_own_probability() -> None:
    assert fails_within(CHAIN, 0, 0.0)[:, 1].tolist() == [CHAIN.fails_healthy, CHAIN.fails]


def test_the_long_run_share_is_kept_by_one_more_window() -> None:
    share = degrading_share(CHAIN, 1)
    after = np.array([1 - share, share]) @ CHAIN.survives(1)
    assert after[1] / after.sum() == pytest.approx(share)


@pytest.mark.parametrize("base_rate", [0.001, 0.005, 0.01, 0.03])
def test_the_solved_chain_has_the_base_rate_asked_for(base_rate: float) -> None:
    knobs = Knobs(base_rate=base_rate)
    assert expected(solved(knobs), knobs).base_rate == pytest.approx(base_rate, rel=1e-3)


def test_a_base_rate_out_of_reach_is_refused_with_what_can_be_reached() -> None:
    knobs = Knobs(base_rate=0.2, degrading_fails=0.001, unpredictable=0.0)
    with pytest.raises(BadTrace, match="above the") as refused:
        solved(knobs)
    assert refused.value.slug == "base-rate-unreachable"


def test_a_child_is_ended_from_outside_more_often_than_a_collection_without_a_parent() -> None:
    alone, child = outside_rates(Knobs(removals_a_day=0.0, killed_a_day=0.5))
    assert child == pytest.approx(2 * alone)
    assert alone == pytest.approx(0.5 / 288)
