"""Whole collections are drawn, cheaply, and the spread is what copying rows would give."""

import numpy as np
import polars as pl
import pytest

from leadtime.risk import bootstrap, measures


def clustered(collections: int, rows_each: int, seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    risk = np.repeat(generator.choice([0.01, 0.3], collections), rows_each)
    y = (generator.random(collections * rows_each) < risk).astype(np.int8)
    return pl.DataFrame(
        {
            "cell": "b",
            "collection_id": np.repeat(np.arange(collections), rows_each),
            "y": y,
            "score": y + generator.normal(size=len(y)),
        }
    )


def test_the_standard_error_is_that_of_copying_rows():
    frame = clustered(60, 20, seed=1)
    fast = measures.ranked(frame["y"], frame["score"], group=frame["collection_id"])
    by_times = bootstrap.by_group(fast.average_precision, 60, n=400, seed=3)
    parts = frame.partition_by("collection_id", maintain_order=True)
    copied = []
    for times in bootstrap.draws(60, n=400, seed=3):
        rows = pl.concat([part for part, n in zip(parts, times, strict=True) for _ in range(int(n))])
        copied.append(measures.average_precision(rows["y"], rows["score"]))
    assert by_times.se == pytest.approx(np.std(copied, ddof=1))


def test_the_interval_by_row_weights_is_the_interval_by_collection():
    frame = clustered(40, 10, seed=2)
    y, score = frame["y"].to_numpy(), frame["score"].to_numpy()
    slow = bootstrap.by_collection(lambda weight: measures.average_precision(y, score, weight), frame, n=50, seed=5)
    rows = measures.ranked(y, score, group=bootstrap.groups_of(frame).code)
    fast = bootstrap.by_group(rows.average_precision, 40, n=50, seed=5)
    assert (slow.low, slow.high, slow.se) == pytest.approx((fast.low, fast.high, fast.se))


def test_rows_that_share_a_fate_spread_wider_than_rows_alone():
    frame = clustered(100, 50, seed=4)
    y = frame["y"].to_numpy().astype(float)
    by_collection = bootstrap.by_collection(lambda weight: measures.base_rate(y, weight), frame, seed=6)
    alone = frame.with_columns(collection_id=pl.int_range(pl.len()))
    by_row = bootstrap.by_collection(lambda weight: measures.base_rate(y, weight), alone, seed=6)
    assert by_collection.se > 2 * by_row.se  # design effect 1 + 49 x 0.15: about 2.9


def test_one_id_in_two_cells_is_two_collections():
    frame = pl.DataFrame({"cell": ["b", "c", "b"], "collection_id": [7, 7, 7]})
    groups = bootstrap.groups_of(frame)
    assert groups.count == 2
    assert groups.code[0] == groups.code[2] != groups.code[1]


def test_the_difference_of_a_score_with_itself_has_no_spread():
    frame = clustered(30, 10, seed=8)
    y, score = frame["y"].to_numpy(), frame["score"].to_numpy()

    def gap(weight):
        return measures.average_precision(y, score, weight) - measures.average_precision(y, score, weight)

    assert bootstrap.by_collection(gap, frame, n=20, seed=1) == bootstrap.Interval(low=0.0, high=0.0, se=0.0)


def test_draws_without_a_failure_are_left_out_and_none_at_all_is_no_interval():
    assert np.isnan(bootstrap.interval([float("nan")] * 10).se)
    assert bootstrap.interval([1.0, float("nan"), 3.0]).low == pytest.approx(1.05)


def test_equal_seeds_draw_equal_collections():
    first, again = (np.stack(list(bootstrap.draws(9, n=5, seed=2))) for _ in range(2))
    assert (first == again).all()
    assert (first.sum(axis=1) == 9).all()
