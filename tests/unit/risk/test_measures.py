"""Average precision, calibration error and friends, against scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import average_precision_score

from leadtime.risk import measures

LABELS = arrays.arrays(np.int8, st.integers(1, 60), elements=st.integers(0, 1))


@settings(deadline=None)
@given(LABELS, st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_average_precision_is_scikit_learns_with_and_without_weights_and_ties(y, levels, seed):
    generator = np.random.default_rng(seed)
    y[0] = 1
    score = generator.integers(0, levels, len(y)) / levels  # few levels: many ties
    weight = generator.integers(1, 5, len(y)).astype(float)
    assert measures.average_precision(y, score) == pytest.approx(average_precision_score(y, score))
    assert measures.average_precision(y, score, weight) == pytest.approx(
        average_precision_score(y, score, sample_weight=weight)
    )


@settings(deadline=None)
@given(LABELS, st.integers(0, 2**32 - 1))
def test_drawing_a_group_twice_is_having_its_rows_twice(y, seed):
    generator = np.random.default_rng(seed)
    score, group = generator.integers(0, 9, len(y)) / 9, generator.integers(0, 4, len(y))
    times = generator.integers(0, 4, 4).astype(float)
    copied = np.repeat(np.arange(len(y)), times[group].astype(int))
    by_times = measures.ranked(y, score, group=group).average_precision(times)
    by_copies = measures.average_precision(y[copied], score[copied])
    assert by_times == pytest.approx(by_copies, nan_ok=True)


def test_a_score_that_knows_nothing_has_the_base_rate_as_its_average_precision():
    y = np.array([0, 1, 0, 0, 1, 0, 0, 0])
    assert measures.average_precision(y, np.full(8, 0.3)) == measures.base_rate(y) == 0.25


def test_without_positives_there_is_no_average_precision_rather_than_zero():
    assert np.isnan(measures.average_precision([0, 0], [0.1, 0.2]))
    assert np.isnan(measures.average_precision([], []))
    assert np.isnan(measures.calibration_in_the_large([0, 0], [0.1, 0.2]))


def test_a_missing_score_is_refused_because_it_has_no_rank():
    with pytest.raises(ValueError, match="1 scores are not finite"):
        measures.average_precision([0, 1], [np.nan, 0.2])


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 labels, 1 scores"):
        measures.average_precision([0, 1], [0.2])


def test_sampled_negatives_with_weights_give_the_average_precision_of_the_full_stream():
    # Trap T9: 1 negative in 40 kept at weight 40 is within 1 SE of all of them; without weights it is far above
    generator = np.random.default_rng(7)
    y = (generator.random(400_000) < 0.01).astype(int)
    score = generator.normal(size=len(y)) + 1.5 * y
    full = measures.average_precision(y, score)
    weighted = []
    for _ in range(20):
        kept = (y == 1) | (generator.random(len(y)) < 1 / 40)
        weight = np.where(y[kept] == 1, 1.0, 40.0)
        weighted.append(measures.average_precision(y[kept], score[kept], weight))
    assert abs(np.mean(weighted) - full) < np.std(weighted)
    assert measures.average_precision(y[kept], score[kept]) > 3 * full


def test_calibration_error_by_hand_in_bins_of_equal_mass():
    # two bins of two rows: |0.15 - 0.5| and |0.85 - 1.0|, half of the rows each
    y, p = [0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9]
    assert measures.ece_equal_mass(y, p, bins=2) == pytest.approx((0.35 + 0.15) / 2)


def test_equal_probabilities_share_a_bin_whatever_the_order_of_rows():
    y = np.array([0] * 90 + [1] * 10)
    assert measures.ece_equal_mass(y, np.full(100, 0.1), bins=10) == pytest.approx(0.0)


@settings(deadline=None)
@given(LABELS, st.integers(0, 2**32 - 1))
def test_a_weight_of_two_is_two_rows_for_every_mean(y, seed):
    generator = np.random.default_rng(seed)
    p, weight = generator.random(len(y)), generator.integers(1, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    for measure in (measures.brier, measures.calibration_in_the_large):
        assert measure(y, p, weight) == pytest.approx(measure(y[twice], p[twice]), nan_ok=True)


def test_brier_of_the_base_rate_is_its_variance():
    y = np.array([1, 0, 0, 0])
    assert measures.brier(y, np.full(4, 0.25)) == pytest.approx(0.25 * 0.75)


@settings(max_examples=50, deadline=None)
@given(LABELS, st.integers(0, 2**32 - 1))
def test_the_curve_ends_with_all_positives_found_and_holds_its_area_under_one(y, seed):
    y[0] = 1
    curve = measures.precision_recall_curve(y, np.random.default_rng(seed).random(len(y)))
    assert curve.recall[-1] == pytest.approx(1.0)
    assert curve.precision[-1] >= y.mean() - 1e-12
    assert list(curve.recall) == sorted(curve.recall)
