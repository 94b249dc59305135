"""A package on the path that offers a model takes part in a backtest; one that is broken is named with its reason."""

import sys
from pathlib import Path

import numpy as np
import pytest

from leadtime.forecast.context_model import ContextModel
from leadtime.policy.schema import Policy
from leadtime.testing import forecast_battery
from leadtime.training.backtest.field import field
from leadtime.training.backtest.plugins import Broken, plugged_in
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted

STAND_IN = '''
"""A stand-in for a foundation model: it repeats the mean of its context's last ten minutes."""
import numpy as np
from leadtime.forecast.context_model import ContextModel
from leadtime.training.backtest.trainee import Ready

def read(contexts, ahead):
    newest = contexts[:, -10:]
    known = np.isfinite(newest)
    count = known.sum(axis=1)
    mean = np.where(count, newest.sum(axis=1, where=known) / np.maximum(count, 1), np.nan)[None, :, None]
    return np.repeat(np.concatenate([0.8 * mean, mean, 1.2 * mean]), ahead, axis=2)

def offer(zone):
    return Ready(model=ContextModel(reader=read, name="tiny_foundation", context_min=120))

def broken(zone):
    raise OSError("no weights at ./weights.bin")
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package as pip leaves it: a module and its metadata."""
    (tmp_path / "tiny_foundation.py").write_text(STAND_IN, encoding="utf-8")
    info = tmp_path / "tiny_foundation-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-foundation\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[leadtime.demand_models]\ntiny = tiny_foundation:offer\nweightless = tiny_foundation:broken\n"
        "absent = no_such_module:offer\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("tiny_foundation", None)


def test_a_model_of_an_installed_package_joins_the_field(package: Path) -> None:
    names = [one.name for one in field(Policy().forecast)]
    assert names[-3:] == ["absent", "tiny_foundation", "weightless"]


def test_without_such_packages_the_field_is_ours_alone() -> None:
    assert plugged_in("UTC", []) == ()


def test_a_plug_in_that_cannot_be_loaded_says_why(package: Path) -> None:
    refused = {one.name: one for one in plugged_in("UTC", []) if isinstance(one, Broken)}
    said = refused["weightless"].fit(
        MinuteHistory(start_s=0, values=np.ones(10)), seed=0, budget_s=1.0, progress=lambda _share: None
    )
    assert isinstance(said, NotFitted)
    assert "no weights at ./weights.bin" in said.reason
    assert "no_such_module" in refused["absent"].reason


def test_a_name_that_is_taken_is_refused(package: Path) -> None:
    offered = plugged_in("UTC", ["tiny_foundation"])
    assert [type(one) for one in offered] == [Broken] * 3
    assert "there is a model tiny_foundation already" in offered[1].reason


def test_the_stand_in_keeps_every_rule_of_a_model(package: Path) -> None:
    (tiny,) = (one for one in plugged_in("UTC", []) if one.name == "tiny_foundation")
    model = tiny.fit(MinuteHistory(start_s=0, values=np.ones(10)), seed=0, budget_s=1.0, progress=lambda _share: None)
    assert isinstance(model, ContextModel)
    forecast_battery.check(model)


def test_what_is_not_a_number_becomes_last_value() -> None:
    model = ContextModel(reader=lambda rows, ahead: np.full((3, len(rows), ahead), np.nan), name="nothing")
    state = model.start()
    for minute in range(60):
        state = model.update(state, minute * 60, float(minute))
    band = model.predict(state, 5)
    assert band.expected.tolist() == [59.0] * 5  # type: ignore[union-attr]


def test_an_answer_of_another_shape_is_an_error_of_the_plug_in() -> None:
    model = ContextModel(reader=lambda rows, ahead: np.zeros((3, len(rows), ahead + 1)), name="long")
    state = model.start()
    for minute in range(60):
        state = model.update(state, minute * 60, 1.0)
    with pytest.raises(ValueError, match="model long answered"):
        model.predict(state, 5)


@pytest.mark.parametrize("minutes", [59, 14 * 1440 + 1])
def test_a_context_must_fit_the_memory(minutes: int) -> None:
    with pytest.raises(ValueError, match="must lie between"):
        ContextModel(reader=lambda rows, ahead: rows, name="any", context_min=minutes)
