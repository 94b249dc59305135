"""Horizons without failures enough are told of before anything is fitted, all at once."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.testing.risk_toy import ToyTrace, write_features
from leadtime.training.sampling import FeatureSet, draw, open_features
from leadtime.training.train_horizons import NEEDED, Failures, count_failures, learnable, only
from leadtime.training.train_plan import Plan, plan_for

DOING = "training toy"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FeatureSet:
    folder = tmp_path_factory.mktemp("toy") / "features"
    write_features(folder, ToyTrace(tasks=2_000, windows=100, q=0.01, seed=3))
    return open_features(folder)


@pytest.fixture(scope="module")
def plan(data: FeatureSet) -> Plan:
    return plan_for(data, seed=0)


def with_failures(data: FeatureSet, root: Path, keep: Mapping[int, int]) -> FeatureSet:
    """A copy in which horizon m keeps ``keep[m]`` failures of each partition's first ones."""
    for path in data.partitions:
        target = root / path.relative_to(data.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        rows = pl.read_parquet(path).with_columns(
            pl.when(pl.col(f"y_{m}").eq(1) & (pl.col(f"y_{m}").fill_null(0).cum_sum() > count))
            .then(0).otherwise(pl.col(f"y_{m}")).cast(pl.Int8).alias(f"y_{m}")
            for m, count in keep.items()
        )  # fmt: skip
        rows.write_parquet(target)
    for name in ("forecaster.json", "features.json"):
        if (data.folder / name).exists():
            (root / name).write_bytes((data.folder / name).read_bytes())
    return open_features(root)


def test_failures_are_counted_as_the_blocks_that_are_drawn_hold_them(data: FeatureSet, plan: Plan) -> None:
    counted = count_failures(data, plan)
    assert [one.horizon_min for one in counted] == list(data.horizons_min)
    for name, block in (("fit", plan.fit), ("stop", plan.watch), ("calibrate", plan.calibrate)):
        drawn = draw(data, block, fraction=1.0, seed=0)
        assert [one.blocks[name] for one in counted] == [drawn.rows(m).positives for m in data.horizons_min]


def test_where_there_are_enough_nothing_changes(data: FeatureSet, plan: Plan) -> None:
    assert learnable(data, plan, doing=DOING) == (data, ())


def test_one_error_names_every_horizon_that_lacks_failures_and_what_to_do(
    data: FeatureSet, plan: Plan, tmp_path: Path
) -> None:
    few = with_failures(data, tmp_path, {5: 3, 15: 4})
    with pytest.raises(BadTrace) as refused:
        learnable(few, plan, doing=DOING)
    assert refused.value.slug == "too-few-failures"
    assert "5 min has " in refused.value.wrong
    assert "15 min has " in refused.value.wrong
    assert f"({NEEDED['fit']} needed)" in refused.value.wrong
    assert "30 min" not in refused.value.wrong
    assert "--horizons 30,45,60" in refused.value.cure
    assert "--leave-out-sparse" in refused.value.cure


def test_sparse_horizons_are_left_out_by_name_of_the_option(data: FeatureSet, plan: Plan, tmp_path: Path) -> None:
    few = with_failures(data, tmp_path, {5: 3})
    kept, left = learnable(few, plan, doing=DOING, leave_out=True)
    assert kept.horizons_min == (15, 30, 45, 60)
    assert [one.horizon_min for one in left] == [5]
    assert left[0].as_json()["needed"] == dict(NEEDED)


def test_without_any_horizon_left_it_is_refused_whatever_the_option(
    data: FeatureSet, plan: Plan, tmp_path: Path
) -> None:
    none = with_failures(data, tmp_path, dict.fromkeys(data.horizons_min, 0))
    with pytest.raises(BadTrace, match="too few failures") as refused:
        learnable(none, plan, doing=DOING, leave_out=True)
    assert "--horizons" not in refused.value.cure


def test_how_much_longer_a_trace_would_do() -> None:
    some = Failures(horizon_min=5, blocks={"fit": 40, "stop": 5, "calibrate": 20})
    assert some.times_more == 4
    assert some.words() == "5 min has 5 to stop by (20 needed)"


def test_horizons_can_be_named(data: FeatureSet) -> None:
    assert only(data, (30, 15)).horizons_min == (15, 30)
    assert only(data, ()) == data
    with pytest.raises(BadTrace, match="no labels for 7 min"):
        only(data, (7, 15))
