"""The filters and the Bayes score against sums over every hidden path, and against the outcome of many draws."""

from itertools import product

import numpy as np
import pytest

from leadtime.simulate.borg import optimum
from leadtime.simulate.borg.chain import Chain, fails_within
from leadtime.simulate.borg.knobs import Knobs

CHAIN = Chain(degrades=(0.05, 0.4), fails_healthy=0.01, fails=0.25, heals=0.1, ends=0.03)
MU = 1.5


def density(x: float, state: int) -> float:
    return float(np.exp(-((x - MU * state) ** 2) / 2))


def by_paths(z: int, xs: list[float]) -> tuple[float, float]:
    """(P(D | seen, z), P(seen | z)) by summing over all paths; a run starts healthy."""
    weight = [0.0, 0.0]
    survives = CHAIN.survives(z)
    for path in product((0, 1), repeat=len(xs)):
        if path[0] == 1:
            continue
        p = density(xs[0], 0)
        for before, now, x in zip(path[:-1], path[1:], xs[1:], strict=True):
            p *= float(survives[before, now]) * density(x, now)
        weight[path[-1]] += p
    return weight[1] / sum(weight), sum(weight)


def filtered(xs: list[float]) -> tuple[np.ndarray, float]:
    """(belief [2], log P(seen | z=1) / P(seen | z=0)) by the filters."""
    belief, says = np.zeros((2, 1)), 0.0
    for step, x in enumerate(xs):
        degrading, healthy = (np.zeros((2, 1)), np.ones((2, 1))) if step == 0 else optimum.predicted(CHAIN, belief)
        belief, told = optimum.seen(degrading, healthy, optimum.signal_odds(MU, np.array([x])))
        says += float(told[0])
    return belief[:, 0], says


def test_beliefs_and_evidence_equal_the_sum_over_all_hidden_paths() -> None:
    xs = [0.3, -0.5, 1.9, 2.2, 0.1, 1.2, 2.5]
    belief, says = filtered(xs)
    (healthy_belief, healthy_seen), (bad_belief, bad_seen) = by_paths(0, xs), by_paths(1, xs)
    assert belief == pytest.approx([healthy_belief, bad_belief])
    assert says == pytest.approx(np.log(bad_seen / healthy_seen))


def test_at_mu_0_a_window_says_nothing_of_the_state() -> None:
    assert optimum.signal_odds(0.0, np.array([-3.0, 0.0, 8.0])).tolist() == [1.0, 1.0, 1.0]


def test_a_score_mixes_the_worlds_by_their_odds_and_the_states_by_the_belief() -> None:
    knobs = Knobs(lost=0.0, removals_a_day=0.0, killed_a_day=0.0)
    table = optimum.future((CHAIN, CHAIN), knobs)
    none = np.zeros(1, np.intp)
    score = table.scores(
        half=none, parent=none, belief=np.array([[0.2], [0.7]]), bad=np.array([0.4]), parent_gone_us=np.array([-1.0])
    )
    good, bad = fails_within(CHAIN, 0, 0.0), fails_within(CHAIN, 1, 0.0)
    by_hand = 0.6 * (0.2 * good[1, 3] + 0.8 * good[0, 3]) + 0.4 * (0.7 * bad[1, 3] + 0.3 * bad[0, 3])
    assert score[0, 1] == pytest.approx(by_hand)
    assert np.all(np.diff(score[0]) > 0)


def test_a_run_whose_parent_has_ended_can_fail_only_in_what_is_left_of_the_minute() -> None:
    table = optimum.future((CHAIN, CHAIN), Knobs())
    one = np.ones(2, np.intp)
    belief, bad = np.full((2, 2), 0.5), np.zeros(2)
    alive, orphaned = table.scores(
        half=0 * one, parent=one, belief=belief, bad=bad, parent_gone_us=np.array([-1.0, 20e6])
    )
    assert orphaned == pytest.approx(alive[0] * 20 / 300)


def test_evidence_adds_up_over_time_on_the_prior() -> None:
    knobs = Knobs(bad_collections=0.03)
    evidence = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, -9.0]])
    steps = np.arange(3)
    assert optimum.bad_share(knobs, evidence, steps, 0 * steps) == pytest.approx([0.03] * 3)
    prior = 0.03 / 0.97
    by_hand = [odds / (1 + odds) for odds in (prior * np.exp([1.0, 3.0, -6.0]))]
    assert optimum.bad_share(knobs, evidence, steps, 0 * steps + 1) == pytest.approx(by_hand)


def test_nobody_is_bad_where_there_are_no_bad_collections() -> None:
    one = np.zeros(1, np.int64)
    assert not optimum.bad_share(Knobs(bad_collections=0.0), np.ones((3, 2)), one, one).any()


def test_a_failure_points_to_a_bad_collection_by_the_ratio_of_its_probabilities() -> None:
    belief = np.array([[0.1], [0.6]])
    by_hand = np.log((0.6 * CHAIN.fails + 0.4 * CHAIN.fails_healthy) / (0.1 * CHAIN.fails + 0.9 * CHAIN.fails_healthy))
    assert optimum.failure_says(CHAIN, belief)[0] == pytest.approx(by_hand)
    assert 0 < optimum.lost_says(CHAIN, belief)[0] < by_hand


def test_an_end_from_outside_says_only_that_the_run_was_alive_until_then() -> None:
    belief = np.array([[0.1], [0.6]])
    assert optimum.outside_end_says(CHAIN, belief, np.array([0.0]))[0] == 0
    assert optimum.outside_end_says(CHAIN, belief, np.array([1.0]))[0] < 0
