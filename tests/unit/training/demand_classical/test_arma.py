"""ARIMA coefficients by two least squares: close to the truth, close to a likelihood, never explosive."""

import numpy as np
import pytest

from leadtime.forecast.arima import Arima, pulled_in
from leadtime.forecast.model import Band
from leadtime.training.demand_classical.arma import clipped, fitted, hannan_rissanen


def changes(ar: tuple[float, ...], ma: tuple[float, ...], count: int = 20_000) -> np.ndarray:
    error = np.random.default_rng(5).standard_normal(count)
    made = np.zeros(count)
    for t in range(5, count):
        made[t] = error[t] + sum(a * made[t - i - 1] for i, a in enumerate(ar))
        made[t] += sum(m * error[t - i - 1] for i, m in enumerate(ma))
    return made


@pytest.mark.parametrize(("ar", "ma"), [((), (-0.6,)), ((0.5,), (-0.8,)), ((0.4, 0.3), ()), ((0.6, -0.2), (0.4,))])
def test_coefficients_that_made_a_series_are_found(ar: tuple[float, ...], ma: tuple[float, ...]) -> None:
    found = hannan_rissanen(changes(ar, ma), len(ar), len(ma))
    assert found is not None
    assert np.allclose(found.ar, ar, atol=0.05)
    assert np.allclose(found.ma, ma, atol=0.05)


@pytest.mark.slow
def test_it_agrees_with_a_likelihood() -> None:
    pytest.importorskip("statsmodels", reason="the extra 'bench' is not installed")
    from statsmodels.tsa.arima.model import ARIMA

    made = changes((0.5,), (-0.8,), 1500)
    params = ARIMA(np.cumsum(made), order=(1, 1, 1)).fit().params
    found = hannan_rissanen(made, 1, 1)
    assert found is not None
    assert abs(found.ar[0] - params[0]) < 0.1
    assert abs(found.ma[0] - params[1]) < 0.1


def test_an_explosive_series_gives_a_model_that_is_not() -> None:
    found = hannan_rissanen(1.05 ** np.arange(300), 1, 0)
    assert found is not None
    assert found.ar[0] == pytest.approx(0.98)
    assert max(abs(np.roots((1.0, *(-c for c in pulled_in((1.4, 0.3), 0.9)))))) <= 0.9 + 1e-9


def test_gaps_faults_and_nothing_at_all() -> None:
    made = changes((0.5,), ())
    made[::50] = np.nan
    made[777] = 1e9
    found = hannan_rissanen(clipped(made), 1, 0)
    assert found is not None
    assert found.ar[0] == pytest.approx(0.5, abs=0.05)
    assert hannan_rissanen(np.zeros(500), 1, 1) is None
    assert hannan_rissanen(np.full(500, np.nan), 1, 1) is None
    assert list(fitted(np.full(3000, np.nan))) == []


def test_the_path_of_the_recursion_is_the_one_worked_out_by_hand() -> None:
    model = Arima(ar=(0.5,), ma=(-0.25,))
    state = model.start()
    for i, value in enumerate([100.0, *[100.0] * 20, 108.0]):
        state = model.update(state, 60 * i, value)
    # the change was 8, all of it error: next change 0.5·8 − 0.25·8 = 2, then 1, then 0.5
    band = model.predict(state, 3)
    assert isinstance(band, Band)
    assert band.expected.tolist() == [110.0, 111.0, 111.5]
