"""A small network is fitted, exported and served: the same every time, the same in ONNX, or refused by name."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra 'lstm' is not installed")

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.forecast.model import Band, TooShort
from leadtime.forecast.sequence_model import CHANNELS, HEADS_MIN, WINDOW_MIN, SequenceModel
from leadtime.sources.demand_model import CARD
from leadtime.sources.demand_network import NETWORK, OnnxNetwork, load_demand_network
from leadtime.testing import forecast_battery as battery
from leadtime.testing.forecast_battery import DAY_MIN, START_S, demand, fed
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted
from leadtime.training.demand_lstm import export, fit, publish
from leadtime.training.demand_lstm.network import Layer, Network, untrained
from leadtime.training.demand_lstm.samples import WindowSamples, samples
from leadtime.training.demand_lstm.settings import LstmSettings
from leadtime.training.demand_lstm.trainee import LstmTrainee

pytestmark = pytest.mark.slow  # JAX compiles for seconds
PLENTY_S = 3600.0  # on a busy machine compiling alone may take a minute
SMALL = LstmSettings(units=(8, 8), epochs=20, batch=32, origins=700, learning_rate=2e-2)


def history(minutes: int = 2 * DAY_MIN) -> MinuteHistory:
    """A wave of 40 minutes: the naive forecast is wrong, the last hour tells what follows. Some minutes are unknown."""
    t = np.arange(minutes)
    noise = 1.0 + 0.02 * np.random.default_rng(1).standard_normal(minutes)
    values = (100.0 + 40.0 * np.sin(2.0 * np.pi * t / 40.0)) * noise
    values[t % 501 == 500] = np.nan
    return MinuteHistory(start_s=START_S, values=values)


@pytest.fixture(scope="module")
def rows() -> WindowSamples:
    return samples(history(), zone="UTC", most_origins=SMALL.origins)


@pytest.fixture(scope="module")
def network(rows: WindowSamples) -> Network:
    return fit.fit(rows, SMALL, seed=0, budget_s=PLENTY_S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, network: Network, rows: WindowSamples) -> Path:
    made = tmp_path_factory.mktemp("models") / "demand"
    publish.publish(made, network, {"name": "bi_lstm"}, rows.x)
    return made


def test_windows_of_the_watched_part_share_no_minute_with_the_targets_before(rows: WindowSamples) -> None:
    older, watched = rows.split()
    assert older.origin.max() + HEADS_MIN[-1] < watched.origin.min()
    assert 0.10 < len(watched.x) / len(rows.x) < 0.20


def test_targets_are_what_came(rows: WindowSamples) -> None:
    values = history().values
    at = int(np.flatnonzero(~np.isnan(rows.y[:, 5]))[0])
    said = rows.y[at, HEADS_MIN.index(10)]
    level, came = values[rows.origin[at]], values[rows.origin[at] + 10]
    assert said == pytest.approx(np.log(came / level), abs=0.1)
    assert np.isnan(rows.y[-1]).any()  # the last windows' later targets lie beyond the history


def test_a_wave_within_the_hour_is_learned(rows: WindowSamples, network: Network) -> None:
    _, watched = rows.split()
    ten = HEADS_MIN.index(10)
    known = ~np.isnan(watched.y[:, ten])
    naive = np.abs(watched.y[known, ten]).mean()
    off = np.abs(watched.y[known, ten] - fit.said(network, watched.x[known])[:, ten, 1]).mean()
    assert off < 0.5 * naive


def test_equal_seeds_give_equal_bytes(rows: WindowSamples, network: Network) -> None:
    again, other = (fit.fit(rows, SMALL, seed=seed, budget_s=PLENTY_S) for seed in (0, 1))
    assert export.export_onnx(again) == export.export_onnx(network)
    assert export.export_onnx(other) != export.export_onnx(network)


def drawn(units: tuple[int, int]) -> Network:
    """A network whose every weight is drawn, biases and the dense layer too: each gate and direction counts."""
    start, draw = untrained(units, 0), np.random.default_rng(7)

    def some(part: np.ndarray) -> np.ndarray:
        return draw.normal(0.0, 0.2, part.shape).astype(np.float32)

    layers = (Layer(*(some(part) for part in layer)) for layer in (start.first, start.second))
    return Network(*layers, w=some(start.w), b=some(start.b))


@pytest.mark.parametrize("units", [(6, 4), (64, 32)])
def test_onnx_says_what_jax_says(units: tuple[int, int]) -> None:
    some = drawn(units)
    windows = np.random.default_rng(3).normal(size=(300, WINDOW_MIN, len(CHANNELS))).astype(np.float32)
    _, parity = publish.served(some, windows)
    assert parity.rows == 300
    assert parity.largest_ratio <= 1e-5


def test_an_lstm_of_one_unit_says_what_the_equations_of_the_operator_say() -> None:
    """Worked by hand: so that JAX and ONNX cannot be wrong together about the order of gates or directions."""
    some = drawn((1, 1))
    window = np.random.default_rng(4).normal(size=(1, WINDOW_MIN, len(CHANNELS))).astype(np.float32)

    def sigmoid(x: float) -> float:
        return float(1.0 / (1.0 + np.exp(-x)))

    def one_way(layer: Layer, x: np.ndarray, d: int) -> np.ndarray:
        h = c = 0.0
        out = np.zeros(len(x))
        for t in range(len(x)) if d == 0 else reversed(range(len(x))):
            i, o, f, g = layer.w[d] @ x[t] + layer.r[d][:, 0] * h + layer.b[d]
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = out[t] = sigmoid(o) * np.tanh(c)
        return out

    first = np.stack([one_way(some.first, window[0], d) for d in (0, 1)], axis=1)
    forth, back = one_way(some.second, first, 0), one_way(some.second, first, 1)
    expected = np.array([forth[-1], back[0]]) @ some.w + some.b
    reader, _ = publish.served(some, window)
    np.testing.assert_allclose(reader(window)[0].ravel(), expected, atol=1e-5)


def test_a_row_is_answered_the_same_alone_and_among_many(rows: WindowSamples, network: Network) -> None:
    reader = OnnxNetwork(content=export.export_onnx(network))
    together = reader(rows.x[:100])
    for i in (0, 31, 99):
        np.testing.assert_allclose(reader(rows.x[i : i + 1])[0], together[i], rtol=1e-9)


def test_the_published_folder_serves_after_a_pickle(folder: Path, rows: WindowSamples, network: Network) -> None:
    card = json.loads((folder / CARD).read_text())
    assert card["name"] == "bi_lstm"
    assert card["parity"]["largest_ratio"] <= 1e-5
    assert card["parity"]["rows"] == len(rows.x)
    assert card["parity"]["missing_ratio"] > 0.0
    served = pickle.loads(pickle.dumps(load_demand_network(folder, CHANNELS, HEADS_MIN)))
    np.testing.assert_allclose(served(rows.x), fit.said(network, rows.x), atol=1e-5)


def test_a_file_that_differs_is_refused_and_the_earlier_model_stays(
    folder: Path, rows: WindowSamples, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / CARD).read_bytes()
    turned = network._replace(b=network.b + np.float32(0.001))
    other = export.export_onnx(turned)
    monkeypatch.setattr(publish, "export_onnx", lambda _network: other)
    with pytest.raises(DependencyFailed, match=r"ONNX and JAX differ by 1\.0e-03") as refused:
        publish.publish(folder, network, {}, rows.x)
    assert refused.value.slug == "demand-model-parity"
    assert (folder / CARD).read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_without_windows_nothing_is_published(tmp_path: Path, network: Network, rows: WindowSamples) -> None:
    with pytest.raises(BadTrace, match="no rows"):
        publish.publish(tmp_path / "demand", network, {}, rows.x[:0])
    assert not list(tmp_path.iterdir())


def spoilt(folder: Path, to: Path, **changed: object) -> Path:
    to.mkdir()
    (to / NETWORK).write_bytes((folder / NETWORK).read_bytes())
    card = json.loads((folder / CARD).read_text())
    (to / CARD).write_text(json.dumps({key: value for key, value in {**card, **changed}.items() if value is not None}))
    return to


@pytest.mark.parametrize(
    ("changed", "slug"),
    [
        ({"schema": "leadtime.demand-model/1"}, "demand-model-other"),
        ({"channels": ["level"]}, "demand-model-other"),
        ({"heads_min": [1, 2]}, "demand-model-other"),
        ({"heads_min": None}, "demand-model-broken"),
        ({"files": {NETWORK: "0" * 64}}, "demand-model-changed"),
    ],
)
def test_a_spoilt_folder_is_refused_by_name(
    folder: Path, tmp_path: Path, changed: dict[str, object], slug: str
) -> None:
    with pytest.raises(BadTrace) as refused:
        load_demand_network(spoilt(folder, tmp_path / "copy", **changed), CHANNELS, HEADS_MIN)
    assert refused.value.slug == slug


def test_a_history_becomes_a_model_that_keeps_the_rules() -> None:
    shares: list[float] = []
    model = LstmTrainee(settings=SMALL).fit(history(), seed=0, budget_s=PLENTY_S, progress=shares.append)
    assert isinstance(model, SequenceModel)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for check in (battery.pickles, battery.bears_any_input, battery.looks_as_far_as_asked, battery.bears_gaps):
        check(model)
    band = model.predict(fed(model, demand(DAY_MIN)), 30)
    assert isinstance(band, Band)


def test_less_than_a_day_is_refused_by_name() -> None:
    refused = LstmTrainee(settings=SMALL).fit(history(700), seed=0, budget_s=PLENTY_S, progress=lambda _s: None)
    assert isinstance(refused, TooShort)
    assert "bi_lstm needs a day" in refused.reason
    assert refused.have_s < refused.needed_s


def test_a_budget_that_is_too_small_is_named() -> None:
    refused = LstmTrainee(settings=SMALL).fit(history(), seed=0, budget_s=0.0, progress=lambda _s: None)
    assert isinstance(refused, NotFitted)
    assert refused.reason == "bi_lstm: the first epoch took more than 0 s"


def test_whoever_stops_a_fit_stops_it() -> None:
    def stop(share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LstmTrainee(settings=SMALL).fit(history(), seed=0, budget_s=PLENTY_S, progress=stop)


@pytest.fixture
def without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith("leadtime.training.demand_lstm."):
            monkeypatch.delitem(sys.modules, name)
    package = sys.modules["leadtime.training.demand_lstm"]
    for name in ("fit", "publish"):
        monkeypatch.delattr(package, name)
    monkeypatch.setitem(sys.modules, "jax", None)


@pytest.mark.usefixtures("without_jax")
def test_without_the_extra_it_is_refused_by_name() -> None:
    refused = LstmTrainee(settings=SMALL).fit(history(), seed=0, budget_s=PLENTY_S, progress=lambda _s: None)
    assert isinstance(refused, NotFitted)
    assert "extra lstm not installed" in refused.reason
