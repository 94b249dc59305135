"""Survival curves by hand: what censoring does, and what weights do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.forecast import kaplan_meier
from leadtime.forecast.kaplan_meier import Curve


def curve(samples: list[tuple[float, bool]], weights: list[float] | None = None) -> Curve:
    durations = np.array([d for d, _ in samples])
    ended = np.array([0.0 if censored else 1.0 for _, censored in samples])
    return kaplan_meier.curve(durations, ended, np.array(weights or [1.0] * len(samples)))


def test_without_censoring_it_is_the_empirical_distribution() -> None:
    c = curve([(30.0, False), (10.0, False), (20.0, False), (40.0, False)])
    assert c.times.tolist() == [10.0, 20.0, 30.0, 40.0]
    assert c.done.tolist() == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert c.quantile(np.array([0.25, 0.5, 0.9])).tolist() == [10.0, 20.0, 40.0]


def test_a_censored_sample_leaves_the_risk_set_without_an_end() -> None:
    # By hand: at 10 three of four remain; the one censored at 15 leaves two at risk; at 20 one of two ends.
    c = curve([(10.0, False), (15.0, True), (20.0, False), (30.0, False)])
    assert c.done.tolist() == pytest.approx([0.25, 1 - 0.75 * 0.5, 1.0])


def test_an_end_at_the_time_of_a_censoring_comes_first() -> None:
    assert curve([(10.0, True), (10.0, False)]).done.tolist() == pytest.approx([0.5])


def test_where_the_curve_never_gets_there_the_longest_seen_is_a_lower_bound() -> None:
    c = curve([(10.0, False), (50.0, True), (60.0, True)])
    assert c.quantile(np.array([0.3, 0.9])).tolist() == [10.0, 60.0]


def test_weights_count_like_copies() -> None:
    one = curve([(10.0, False), (20.0, False)], [3.0, 1.0])
    assert one.quantile(np.array([0.75, 0.76])).tolist() == [10.0, 20.0]


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="use the prior"):
        curve([])


@given(st.lists(st.tuples(st.floats(0.1, 1e4), st.booleans()), min_size=1, max_size=60))
def test_quantiles_rise_and_censoring_never_shortens(samples: list[tuple[float, bool]]) -> None:
    shares = np.linspace(0.05, 0.95, 19)
    censored = curve(samples).quantile(shares)
    assert (np.diff(censored) >= 0).all()
    as_if_ended = curve([(d, False) for d, _ in samples]).quantile(shares)
    assert (censored >= as_if_ended - 1e-9).all()
