"""One model for many workloads: the order of names does not matter, short histories are left out by name."""

from pathlib import Path

import numpy as np
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.forecast.lag_features import FEATURES
from leadtime.forecast.lag_trees import LagTrees
from leadtime.forecast.model import Band
from leadtime.sources.demand_model import load_demand_model, read_card
from leadtime.testing.forecast_battery import DAY_MIN, START_S, demand, fed
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.demand import fleet
from leadtime.training.demand.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
FEW = Settings(rounds=20)


def history(minutes: int, *, scale: float = 1.0) -> MinuteHistory:
    values = np.array([np.nan if v is None else scale * v for v in demand(minutes)])
    return MinuteHistory(start_s=START_S, values=values)


def test_one_model_serves_a_workload_it_never_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "MOST_FLEET_ORIGINS", 1000)
    known = {"b": history(2 * DAY_MIN), "a": history(2 * DAY_MIN, scale=1e4), "short": history(300)}
    made = fleet.fit_fleet(known, settings=FEW)
    assert made.workloads == ("a", "b")
    assert made.left_out == ("short",)
    turned = fleet.fit_fleet(dict(reversed(known.items())), settings=FEW)
    assert [b.save_raw() for b in made.reader.boosters] == [b.save_raw() for b in turned.reader.boosters]
    parity = fleet.publish_fleet(tmp_path / "demand", made, zone="UTC")
    assert parity.largest_ratio <= 1e-5
    card = read_card(tmp_path / "demand")
    assert (card["workloads"], card["left_out"]) == (["a", "b"], ["short"])
    assert card["to_s"] == START_S + 2 * DAY_MIN * 60
    model = LagTrees(reader=load_demand_model(tmp_path / "demand", FEATURES))
    band = model.predict(fed(model, [v and 37.0 * v for v in demand(90)]), 10)
    assert isinstance(band, Band)
    assert 37.0 * 80.0 < band.expected[9] < 37.0 * 180.0


def test_histories_of_hours_are_refused() -> None:
    with pytest.raises(BadTrace, match=r"longest of 2 histories has 5\.0 h") as refused:
        fleet.fit_fleet({"a": history(300), "b": history(200)})
    assert refused.value.slug == "demand-history-too-short"
