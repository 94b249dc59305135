"""Counted average precision, precision at the top and errors against the same computed from every row."""

import numpy as np
import pytest

from leadtime.simulate.borg.tally import FINE, Tally, average_precision, fine_class


def exactly(score: np.ndarray, y: np.ndarray) -> float:
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(y[order])
    return float((hits / np.arange(1, len(y) + 1))[y[order]].mean())


@pytest.mark.parametrize("most", [0.25, 0.9])
def test_average_precision_is_that_of_every_row_even_where_scores_crowd_below_a_bound(most: float) -> None:
    rng = np.random.default_rng(4)
    score = most * (1 - np.exp(-(rng.exponential(2.0, 60_000) ** 3)))
    y = rng.random(60_000) < score
    tally = Tally()
    tally.add(score[:20_000], y[:20_000], np.arange(20_000) % 200, np.zeros(20_000))
    tally.add(score[20_000:], y[20_000:], np.arange(40_000) % 200, np.zeros(40_000))
    found = tally.measured(rng)
    assert found.average_precision == pytest.approx(exactly(score, y), rel=0.002)
    top = y[np.argsort(-score)][:600].mean()
    assert found.precision_at_top["0.01"] == pytest.approx(top, abs=0.02)
    assert found.brier == pytest.approx(((score - y) ** 2).mean())
    assert found.mean_score == pytest.approx(score.mean())
    assert found.ece is not None
    assert found.ece < 0.02


def test_ties_share_the_precision_of_their_class() -> None:
    assert average_precision(np.array([1.0, 1.0]), np.array([3.0, 1.0])) == pytest.approx((1 + 2 / 4) / 2)


def test_classes_rise_with_the_score_from_0_to_1() -> None:
    classes = fine_class(np.array([0.0, 1e-9, 1e-5, 1.0001e-5, 0.25, 0.250005, 0.999, 1.0]))
    assert (np.diff(classes) >= 0).all()
    assert classes[0] == 0
    assert classes[-1] == FINE - 1
    assert classes[2] < classes[3]
    assert classes[4] < classes[5]


def test_no_failure_has_no_average_precision_and_no_row_has_nothing() -> None:
    tally = Tally()
    assert tally.measured(np.random.default_rng(0)).base_rate is None
    tally.add(np.full(10, 0.1), np.zeros(10, np.bool_), np.zeros(10, np.int64), np.zeros(10))
    found = tally.measured(np.random.default_rng(0))
    assert (found.rows, found.positives, found.average_precision) == (10, 0, None)


def test_rows_of_one_collection_count_as_one_observation() -> None:
    """A hundred copies of the same few collections are no surer than the collections themselves."""
    rng = np.random.default_rng(8)
    score = rng.uniform(0.01, 0.5, 40)
    y = rng.random(40) < score
    once, often = Tally(), Tally()
    once.add(score, y, np.arange(40), np.zeros(40))
    often.add(score.repeat(100), y.repeat(100), np.arange(40).repeat(100), np.zeros(4000))
    a, b = once.measured(np.random.default_rng(1)), often.measured(np.random.default_rng(1))
    assert a.average_precision_se is not None
    assert b.average_precision_se == pytest.approx(a.average_precision_se, rel=0.05)
