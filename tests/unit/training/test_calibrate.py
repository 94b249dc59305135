"""Which form of map the rows hold up; an isotonic one whose outermost blocks are a few rows keeps the base rate."""

import numpy as np
import pytest

from leadtime.risk.calibration import Kind, expit, logit
from leadtime.risk.measures import ece_equal_mass
from leadtime.training import calibrate
from leadtime.training.calibrate import fit_calibration


@pytest.mark.parametrize("few", [1, 2, 5, 50])
def test_a_few_lowest_rows_without_a_failure_do_not_lift_the_rest(few: int) -> None:
    generator = np.random.default_rng(few)
    log_odds = np.concatenate([np.full(few, -9.0), generator.normal(-4.0, 1.0, 200_000)])
    y = generator.random(len(log_odds)) < expit(log_odds)
    y[:few] = False
    p = expit(log_odds)
    lowest = np.flatnonzero(y)[np.argmin(p[y])]
    p[lowest] = expit(np.asarray(-8.9))  # a failure right above them: they are a block of their own
    fitted = calibrate._isotonic(p, y.astype(float), np.ones(len(p)))
    assert fitted.kind is Kind.ISOTONIC
    assert fitted.apply(p).mean() == pytest.approx(y.mean(), rel=0.02)


def test_a_single_highest_failure_does_not_sink_the_rest() -> None:
    generator = np.random.default_rng(3)
    log_odds = generator.normal(2.0, 1.0, 100_000)
    y = generator.random(len(log_odds)) < expit(log_odds)
    top = int(np.argmax(log_odds))
    y[top] = True
    second = int(np.argsort(log_odds)[-2])
    y[second] = False
    fitted = calibrate._isotonic(expit(log_odds), y.astype(float), np.ones(len(y)))
    assert fitted.apply(expit(log_odds)).mean() == pytest.approx(y.mean(), rel=0.02)
    assert np.all(np.diff(logit(fitted.apply(np.sort(expit(log_odds))))) >= 0)


def test_scores_that_tell_nothing_become_the_base_rate() -> None:
    generator = np.random.default_rng(5)
    p = expit(generator.normal(-4.5, 0.2, 300_000))
    group = np.repeat(np.arange(3000), 100)
    often = generator.gamma(0.5, 2.0, 3000)[group]  # a few groups fail much more often, whatever the score says
    y = generator.random(len(p)) < 0.01 * often
    fitted = fit_calibration(p, y, group=group)
    new = expit(generator.normal(-4.5, 0.2, 200_000))
    assert np.ptp(fitted.apply(new)) < 0.003
    assert ece_equal_mass(generator.random(len(new)) < 0.01, fitted.apply(new)) < 0.001


def test_a_bent_score_is_bent_back_by_the_isotonic_map() -> None:
    generator = np.random.default_rng(6)
    truth = generator.choice([0.002, 0.01, 0.3], size=200_000, p=[0.5, 0.45, 0.05])
    p = np.select([truth == 0.002, truth == 0.01], [0.1, 0.11], 0.12) + generator.normal(0, 1e-4, len(truth))
    fitted = fit_calibration(p, generator.random(len(p)) < truth)
    assert fitted.kind is Kind.ISOTONIC
    assert fitted.apply([0.1, 0.11, 0.12]) == pytest.approx([0.002, 0.01, 0.3], rel=0.25)


def test_true_probabilities_need_no_more_than_a_line() -> None:
    generator = np.random.default_rng(7)
    p = expit(generator.normal(-4.0, 1.0, 200_000))
    fitted = fit_calibration(p, generator.random(len(p)) < p)
    assert fitted.kind is Kind.PLATT
    assert fitted.slope == pytest.approx(1.0, abs=0.1)
