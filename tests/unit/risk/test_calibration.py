"""Maps from scores to probabilities: order kept, base rate recovered, horizons in order."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.risk import calibration, measures
from leadtime.risk.calibration import Calibration, Kind
from leadtime.training.calibrate import fit_calibration


def stream(rows: int, base: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and the true probabilities of one normal signal of 1.5 standard deviations."""
    generator = np.random.default_rng(seed)
    y = (generator.random(rows) < base).astype(int)
    x = generator.normal(size=rows) + 1.5 * y
    return y, calibration.expit(calibration.logit([base]) + 1.5 * x - 1.5**2 / 2)


def test_prior_correction_recovers_the_base_rate_after_sampling():
    y, p = stream(400_000, 0.01)
    f = 1 / 40
    sampled = p / (p + f * (1 - p))  # what a model of the sample believes: its odds are 1/f too high
    corrected = calibration.prior_corrected(sampled, kept_negatives=f)
    assert corrected == pytest.approx(p)
    assert corrected.mean() == pytest.approx(y.mean(), rel=0.03)


def test_a_weight_on_positives_is_undone_as_the_sample_of_negatives_it_is_like():
    assert calibration.prior_corrected([0.5], positive_weight=40) == pytest.approx(
        calibration.prior_corrected([0.5], kept_negatives=1 / 40)
    )


@pytest.mark.parametrize("share", [0.0, 1.5, -1.0])
def test_a_share_of_negatives_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="kept_negatives"):
        calibration.prior_corrected([0.5], kept_negatives=share)


def kinked(log_odds):
    """Steep below -4.5, all but flat above: no line in log-odds undoes it."""
    return np.where(log_odds < -4.5, log_odds, -4.5 + 0.05 * (log_odds + 4.5))


@pytest.mark.parametrize(
    ("rows", "bend", "kind"),
    [
        (200_000, kinked, Kind.ISOTONIC),
        (200_000, lambda log_odds: 2.0 * log_odds + 3.0, Kind.PLATT),
        (2_000, lambda log_odds: 2.0 * log_odds + 3.0, Kind.PLATT),
    ],
    ids=["kinked", "straight", "straight-few"],
)
def test_the_map_suits_the_scores_and_the_positives_keeps_order_and_mends_what_was_bent(rows, bend, kind):
    y, p = stream(rows, 0.01, seed=3)
    bent = calibration.expit(bend(calibration.logit(p)))
    fitted = fit_calibration(bent, y)
    assert fitted.kind is kind
    new_y, new_p = stream(300_000, 0.01, seed=4)
    mended = fitted.apply(calibration.expit(bend(calibration.logit(new_p))))
    order = np.argsort(new_p)
    assert (np.diff(mended[order]) >= 0).all()
    assert measures.average_precision(new_y, mended) == pytest.approx(
        measures.average_precision(new_y, new_p), rel=1e-3
    )
    assert mended.mean() == pytest.approx(new_y.mean(), rel=0.35 if rows < 10_000 else 0.15)


def test_weights_stand_for_the_negatives_that_were_left_out():
    y, p = stream(400_000, 0.01, seed=5)
    kept = (y == 1) | (np.random.default_rng(6).random(len(y)) < 0.1)
    fitted = fit_calibration(p[kept], y[kept], np.where(y[kept] == 1, 1.0, 10.0))
    assert fitted.apply(p).mean() == pytest.approx(y.mean(), rel=0.05)


def test_without_failures_nothing_is_fitted():
    assert fit_calibration([0.1, 0.2], [0, 0]) is calibration.IDENTITY


def test_scores_that_rank_the_wrong_way_round_are_flattened_not_turned():
    generator = np.random.default_rng(1)
    y = (generator.random(5_000) < 0.01).astype(int)
    p = calibration.expit(-3.0 - 2.0 * y + 0.3 * generator.normal(size=len(y)))
    mended = fit_calibration(p, y).apply(p)
    assert mended == pytest.approx(np.full(len(y), y.mean()), rel=1e-4)


@settings(deadline=None)
@given(
    st.lists(st.floats(-8, 8), min_size=2, max_size=12, unique=True),
    st.lists(st.floats(-8, 8), min_size=2, max_size=12, unique=True),
)
def test_a_map_survives_json_and_never_makes_a_rank_fall(knots_from, knots_to):
    n = min(len(knots_from), len(knots_to))
    given_map = Calibration(
        kind=Kind.ISOTONIC, knots_from=tuple(sorted(knots_from)[:n]), knots_to=tuple(sorted(knots_to)[:n])
    )
    again = Calibration.from_json(json.loads(json.dumps(given_map.to_json())))
    p = np.linspace(0, 1, 101)
    assert again == given_map
    assert (np.diff(again.apply(p)) >= 0).all()


def test_a_shift_moves_every_log_odds_alike():
    p = np.array([0.01, 0.2, 0.7])
    for fitted in (calibration.IDENTITY, Calibration(kind=Kind.ISOTONIC, knots_from=(-1.0, 1.0), knots_to=(-2.0, 0.0))):
        moved = calibration.logit(fitted.shifted(0.5).apply(p)) - calibration.logit(fitted.apply(p))
        assert moved == pytest.approx(np.full(3, 0.5))


def test_horizons_never_fall_and_the_share_of_changed_rows_is_told():
    fixed, changed = calibration.monotone_across_horizons({15: [0.2, 0.1], 5: [0.1, 0.3], 60: [0.4, 0.2]})
    assert [list(fixed[m]) for m in (5, 15, 60)] == [[0.1, 0.3], [0.2, 0.3], [0.4, 0.3]]
    assert changed == 0.5
