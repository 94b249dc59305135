"""Which rows train, tune and test, to the microsecond; and what both sides know."""

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.risk import splits

H = 900_000_000
CUT = 10_000_000_000
SPLIT = splits.TimeSplit(tune_from_us=CUT, test_from_us=2 * CUT, horizon_us=H)


def side(p: int) -> str:
    row = pl.DataFrame({"end_time_us": [p]})
    sides = ("train", "tune", "test", "purged")
    (inside,) = (name for name in sides if row.select(getattr(SPLIT, name).alias("in"))["in"].item())
    return inside


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        pytest.param(CUT - H, "train", id="a label that is over exactly at the cut may train"),
        pytest.param(CUT - H + 1, "purged", id="one microsecond across the cut is purged"),
        pytest.param(CUT - 1, "purged", id="just before the cut is purged"),
        pytest.param(CUT, "tune", id="the cut itself belongs to the later side"),
        pytest.param(2 * CUT - H, "tune", id="a tuning label may end at the second cut"),
        pytest.param(2 * CUT - H + 1, "purged", id="and not cross it"),
        pytest.param(2 * CUT, "test", id="the second cut belongs to the test"),
    ],
)
def test_purge_at_the_edges(p, expected):
    assert side(p) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 500), min_size=20, max_size=200, unique=True))
def test_every_row_is_on_exactly_one_side_and_counted(windows):
    frame = pl.DataFrame({"end_time_us": [window * 300_000_000 for window in windows]})
    split = splits.by_time(frame, train=0.5, tune=0.2, horizon_us=H)
    counted = split.count(frame)
    assert counted.train + counted.tune + counted.test + counted.purged == frame.height
    assert counted.test > 0
    late = frame.filter(split.train)["end_time_us"].max()
    assert late is None or late + H <= split.tune_from_us


def test_shares_are_of_rows_not_of_time():
    # nine rows at one instant, then one each: 60 % of the rows are over after the first instant
    frame = pl.DataFrame({"end_time_us": [0] * 9 + [1, 2, 3, 4, 5, 6]})
    split = splits.by_time(frame, train=0.6, tune=0.2, horizon_us=0)
    assert (split.tune_from_us, split.test_from_us) == (1, 4)


@pytest.mark.parametrize(("train", "tune"), [(0.0, 0.2), (0.8, 0.2), (1.2, 0.0)])
def test_shares_that_leave_nothing_to_test_are_refused(train, tune):
    with pytest.raises(ValueError, match="must be above 0 and leave something"):
        splits.by_time(pl.DataFrame({"end_time_us": [1, 2]}), train=train, tune=tune)


def test_folds_roll_forward_inside_the_training_block():
    frame = pl.DataFrame({"end_time_us": [i * 300_000_000 for i in range(400)]})
    split = splits.by_time(frame, horizon_us=H)
    folds = splits.rolling_folds(frame, split, n=4)
    assert len(folds) == 4
    assert folds[-1].valid_until_us == split.tune_from_us
    for fold in folds:
        learnt, checked = frame.filter(fold.train), frame.filter(fold.valid)
        assert learnt["end_time_us"].max() + H <= checked["end_time_us"].min()
        assert checked["end_time_us"].max() + H <= split.tune_from_us
        assert checked.height > 0
    assert all(a.valid_until_us == b.valid_from_us for a, b in pairwise(folds))


def test_fewer_than_three_folds_are_refused():
    frame = pl.DataFrame({"end_time_us": range(100)})
    with pytest.raises(ValueError, match="at least 3"):
        splits.rolling_folds(frame, splits.by_time(frame, horizon_us=1), n=2)


def test_a_collection_is_held_out_whole_and_about_as_often_as_asked():
    frame = pl.DataFrame({"cell": "b", "collection_id": [i // 3 for i in range(30_000)]})
    held = frame.with_columns(out=splits.by_collection(0.2, seed=1))
    assert held.group_by("collection_id").agg(pl.col("out").n_unique())["out"].max() == 1
    assert held["out"].mean() == pytest.approx(0.2, abs=0.02)


def test_the_hash_depends_on_cell_and_seed_and_nothing_else():
    frame = pl.DataFrame({"cell": ["b", "c", "b"], "collection_id": [2**62 + 7, 2**62 + 7, -3]})
    first = frame.select(splits.unit_hash(seed=1).alias("h"))["h"]
    assert first.n_unique() == 3
    assert first.to_list() == frame[::-1].select(splits.unit_hash(seed=1).alias("h"))["h"].to_list()[::-1]
    assert first.to_list() != frame.select(splits.unit_hash(seed=2).alias("h"))["h"].to_list()
    # written down: a changed hash would move rows between sides of runs that are to be compared
    assert first[0] == pytest.approx(0.17871089181470245, abs=1e-15)


def test_a_split_by_time_alone_says_what_both_sides_know():
    train = pl.DataFrame({"cell": ["b", "b", "c"], "collection_id": [1, 2, 1]})
    test = pl.DataFrame({"cell": ["b", "b", "b", "c"], "collection_id": [1, 1, 3, 3]})
    found = splits.overlap(train, test)
    assert (found.collections, found.test_collections, found.test_rows_ratio) == (1, 3, 0.5)
    assert not found.clean
    assert splits.overlap(train, test.filter(pl.col("collection_id") == 3)).clean


def test_a_split_of_random_rows_is_not_offered():
    assert not [name for name in dir(splits) if "random" in name or "row" in name.lower().split("_")]


def test_the_cell_held_out_is_that_cell():
    frame = pl.DataFrame({"cell": ["b", "g"]})
    assert frame.filter(splits.by_cell("g"))["cell"].to_list() == ["g"]
