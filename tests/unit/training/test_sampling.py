"""Negatives are sampled by a stable hash of their key; failures are all kept, and weights keep the base rate."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.testing.risk_toy import ToyTrace, write_features
from leadtime.training.sampling import KEY, FeatureSet, count_negatives, draw, fraction_for, key_hash, open_features

EVERY = pl.lit(value=True)
GOLDEN = 12339843390970075465


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FeatureSet:
    folder = tmp_path_factory.mktemp("features")
    write_features(folder, ToyTrace(tasks=400, windows=100, cells=("b", "c")))
    return open_features(folder)


def rows_of(data: FeatureSet) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in data.partitions])


def test_every_failure_is_kept_and_weights_keep_the_base_rate(data: FeatureSet) -> None:
    frame = rows_of(data)
    sample = draw(data, EVERY, fraction=0.1, seed=1)
    for m in data.horizons_min:
        rows = sample.rows(m)
        assert rows.positives == frame[f"y_{m}"].sum()
        assert rows.base_rate == pytest.approx(frame[f"y_{m}"].mean(), rel=0.05)
        assert set(np.unique(rows.weight)) == {1.0, 10.0}


def test_a_failure_of_a_longer_horizon_is_no_negative_of_a_shorter_one_unless_chosen(data: FeatureSet) -> None:
    sample = draw(data, EVERY, fraction=0.1, seed=1)
    rows = sample.rows(5)
    negatives = rows.index[rows.y == 0]
    assert sample.chosen[negatives].all()


def test_fraction_one_keeps_every_labelled_row_with_weight_one(data: FeatureSet) -> None:
    rows = draw(data, EVERY, fraction=1.0, seed=1).rows(15)
    assert len(rows.index) == rows_of(data)["y_15"].drop_nulls().len()
    assert set(rows.weight) == {1.0}


def test_missing_values_become_nan(data: FeatureSet) -> None:
    sample = draw(data, EVERY, fraction=1.0, seed=1)
    column = data.features.index("noise_0")
    assert np.isnan(sample.x[:, column]).sum() == rows_of(data)["noise_0"].null_count() > 0


def test_the_hash_depends_on_the_key_and_the_seed_alone(data: FeatureSet) -> None:
    frame = rows_of(data).select(KEY).head(500)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    ours = dict(zip(frame.rows(), key_hash(frame, 1), strict=True))
    assert dict(zip(shuffled.rows(), key_hash(shuffled, 1), strict=True)) == ours
    assert not np.array_equal(key_hash(frame, 2), key_hash(frame, 1))


def test_the_hash_is_the_same_in_every_version() -> None:
    row = pl.DataFrame(
        {"cell": ["b"], "collection_id": [7], "instance_index": [0], "start_time_us": [0], "end_time_us": [300]}
    )
    assert int(key_hash(row, 1)[0]) == GOLDEN


def test_ids_that_repeat_between_cells_are_other_collections(data: FeatureSet) -> None:
    frame = rows_of(data)
    sample = draw(data, EVERY, fraction=1.0, seed=1)
    assert len(np.unique(sample.collection)) == frame.select(pl.struct("cell", "collection_id").n_unique()).item()


def test_a_budget_sets_the_fraction(data: FeatureSet) -> None:
    negatives = count_negatives(data, EVERY)
    assert fraction_for(negatives, negatives) == 1.0
    kept = draw(data, EVERY, fraction=fraction_for(negatives, 2_000), seed=1).chosen.sum()
    assert kept == pytest.approx(2_000, rel=0.1)


@pytest.mark.parametrize(
    ("content", "slug"), [(None, "features-absent"), ("{", "features-broken"), ("{}", "features-broken")]
)
def test_a_folder_that_is_no_finished_data_set_is_refused(tmp_path: Path, content: str | None, slug: str) -> None:
    if content is not None:
        (tmp_path / "forecaster.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadTrace) as refused:
        open_features(tmp_path)
    assert refused.value.slug == slug
