"""What the controller loads says what XGBoost says; a model that does not, or was touched, is refused by name."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.forecast.lag_features import FEATURES
from leadtime.forecast.lag_trees import LagTrees
from leadtime.forecast.model import Band
from leadtime.sources.demand_model import CARD, load_demand_model
from leadtime.testing.forecast_battery import DAY_MIN, START_S, demand, fed
from leadtime.training.demand import publish, quantiles, samples
from leadtime.training.demand.quantiles import QuantileBoosters
from leadtime.training.demand.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def rows() -> samples.Samples:
    values = np.array([np.nan if v is None else v for v in demand(3 * DAY_MIN)])
    return samples.samples(START_S, values, zone="UTC", most_origins=500, seed=0)


@pytest.fixture(scope="module")
def reader(rows: samples.Samples) -> QuantileBoosters:
    return quantiles.fit(rows, Settings(rounds=30), seed=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, rows: samples.Samples, reader: QuantileBoosters) -> Path:
    made = tmp_path_factory.mktemp("models") / "demand"
    publish.publish(made, reader, {"name": "lag_trees"}, rows.x)
    return made


def test_the_published_files_say_what_xgboost_says(
    folder: Path, rows: samples.Samples, reader: QuantileBoosters
) -> None:
    served = load_demand_model(folder, FEATURES)
    assert np.isnan(rows.x).any()
    np.testing.assert_allclose(served(rows.x), reader(rows.x), atol=1e-5)
    card = json.loads((folder / CARD).read_text())
    assert card["name"] == "lag_trees"
    assert card["parity"]["largest_ratio"] <= 1e-5
    assert card["parity"]["rows"] == len(rows.x)


def test_both_readers_serve_the_same_model(folder: Path, reader: QuantileBoosters) -> None:
    state = fed(LagTrees(reader=reader), demand(2 * DAY_MIN))
    trained = LagTrees(reader=reader).predict(state, 60)
    served = LagTrees(reader=pickle.loads(pickle.dumps(load_demand_model(folder, FEATURES)))).predict(state, 60)
    assert isinstance(trained, Band)
    assert isinstance(served, Band)
    np.testing.assert_allclose(served.expected, trained.expected, rtol=1e-5)


def test_files_that_differ_are_refused_and_the_earlier_model_stays(
    folder: Path, rows: samples.Samples, reader: QuantileBoosters, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / CARD).read_bytes()
    other = publish.export_onnx(reader.boosters[2])
    monkeypatch.setattr(publish, "export_onnx", lambda _booster: other)
    with pytest.raises(DependencyFailed, match="differ by") as refused:
        publish.publish(folder, reader, {"name": "worse"}, rows.x)
    assert refused.value.slug == "demand-model-parity"
    assert (folder / CARD).read_bytes() == before
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_without_rows_nothing_is_published(tmp_path: Path, reader: QuantileBoosters) -> None:
    with pytest.raises(BadTrace, match="no rows"):
        publish.publish(tmp_path / "demand", reader, {}, np.empty((0, len(FEATURES)), dtype=np.float32))
    assert not list(tmp_path.iterdir())


def copied(folder: Path, to: Path) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def changed(folder: Path) -> None:
    (folder / "quantile-050.onnx").write_bytes(b"other")


def absent(folder: Path) -> None:
    (folder / "quantile-095.onnx").unlink()


def no_card(folder: Path) -> None:
    (folder / CARD).unlink()


def torn_card(folder: Path) -> None:
    (folder / CARD).write_text("{")


def other_schema(folder: Path) -> None:
    (folder / CARD).write_text(json.dumps({**json.loads((folder / CARD).read_text()), "schema": "x/2"}))


def lacking(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    del card["quantiles"]
    (folder / CARD).write_text(json.dumps(card))


@pytest.mark.parametrize(
    ("spoil", "slug"),
    [
        (changed, "demand-model-changed"), (absent, "demand-model-changed"), (no_card, "demand-model-absent"),
        (torn_card, "demand-model-broken"), (other_schema, "demand-model-other"), (lacking, "demand-model-broken"),
    ],
)  # fmt: skip
def test_a_spoilt_folder_is_refused_by_name(folder: Path, tmp_path: Path, spoil: object, slug: str) -> None:
    spoilt = copied(folder, tmp_path / "copy")
    assert callable(spoil)
    spoil(spoilt)
    with pytest.raises(BadTrace) as refused:
        load_demand_model(spoilt, FEATURES)
    assert refused.value.slug == slug


def test_a_file_that_is_no_model_is_refused_although_its_hash_agrees(folder: Path, tmp_path: Path) -> None:
    spoilt = copied(folder, tmp_path / "copy")
    changed(spoilt)
    card = json.loads((spoilt / CARD).read_text())
    card["files"]["quantile-050.onnx"] = publish.hashlib.sha256(b"other").hexdigest()
    (spoilt / CARD).write_text(json.dumps(card))
    with pytest.raises(BadTrace, match="onnxruntime cannot load it"):
        load_demand_model(spoilt, FEATURES)


def test_a_model_for_other_features_is_refused(folder: Path) -> None:
    with pytest.raises(BadTrace, match="other features") as refused:
        load_demand_model(folder, (*FEATURES, "phase_of_the_moon"))
    assert refused.value.slug == "demand-model-other"


def test_the_model_says_its_quantiles_in_order_of_its_card(folder: Path) -> None:
    served = load_demand_model(folder, FEATURES)
    assert served.quantiles == (0.05, 0.5, 0.95)
    assert replace(served, threads=2).features == FEATURES
