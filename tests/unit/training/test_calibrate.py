"""An isotonic map whose outermost blocks are a few rows keeps the base rate."""

import numpy as np
import pytest

from leadtime.risk.calibration import Kind, expit, logit
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
    fitted = fit_calibration(p, y)
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
    fitted = fit_calibration(expit(log_odds), y)
    assert fitted.apply(expit(log_odds)).mean() == pytest.approx(y.mean(), rel=0.02)
    assert np.all(np.diff(logit(fitted.apply(np.sort(expit(log_odds))))) >= 0)
