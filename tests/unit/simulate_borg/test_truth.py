"""Truth against the contract read off the events, calibration of the score, what truth.json says."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from leadtime.domain.borg import HORIZONS_MIN
from leadtime.simulate.borg.generate import Generated, Knobs, generate

KEY = ["collection_id", "instance_index"]


@pytest.mark.parametrize("minutes", HORIZONS_MIN)
def test_truth_equals_the_contract_read_off_the_events(trace: Generated, minutes: int, reading: Any) -> None:
    rows = pl.read_parquet(trace.truth_rows)
    read = reading.labelled_by_events(trace, minutes)
    assert rows[f"excluded_{minutes}"].equals(read["excluded"], null_equal=True)
    assert rows[f"y_{minutes}"].equals(read["y"], null_equal=True)
    assert {"not_running", "censored", "lost"} <= set(read["excluded"].drop_nulls())


def test_labels_and_scores_rise_with_the_horizon(trace: Generated) -> None:
    rows = pl.read_parquet(trace.truth_rows).filter(pl.col("excluded_60").is_null())
    for kind in ("y", "score"):
        for less, more in pairwise(HORIZONS_MIN):
            assert (rows[f"{kind}_{less}"] <= rows[f"{kind}_{more}"]).all()


def test_truth_rows_are_the_usage_rows_of_tasks_in_order(trace: Generated, reading: Any, knobs: Knobs) -> None:
    rows = pl.read_parquet(trace.truth_rows)
    order = [*KEY, "end_time_us", "start_time_us"]
    assert rows.select(order).equals(rows.select(order).sort(order))
    usage = reading.table(trace, "instance_usage").filter(pl.col("collection_type") == 0)
    mine = usage.select(*KEY, pl.col("start_time").alias("start_time_us"), pl.col("end_time").alias("end_time_us"))
    assert mine.cast(rows.select(mine.columns).schema).sort(order).equals(rows.select(mine.columns))
    assert knobs.rows <= rows.height == trace.rows <= knobs.rows * 1.05
    assert set(rows["cell"]) == {"c"}


@pytest.mark.parametrize("minutes", [5, 15, 60])
def test_the_score_is_calibrated_in_every_part_of_its_range(trace: Generated, minutes: int) -> None:
    rows = pl.read_parquet(trace.truth_rows).drop_nulls(f"y_{minutes}").sort(f"score_{minutes}")
    score, y = rows[f"score_{minutes}"].to_numpy(), rows[f"y_{minutes}"].to_numpy()
    for part in np.array_split(np.arange(len(score)), 10):
        expected = score[part].mean()
        # rows of one run fail together: about `minutes` / 5 rows share one failure
        error = np.sqrt(expected * (1 - expected) / len(part) * minutes / 5)
        assert abs(y[part].mean() - expected) < 4 * error + 0.03 * expected


@pytest.mark.slow
@pytest.mark.parametrize("base_rate", [0.01, 0.001, 0.03])
def test_the_realised_base_rate_is_the_one_asked_for(tmp_path: Path, base_rate: float, reading: Any) -> None:
    made = generate(tmp_path / "c", Knobs(rows=1_500_000, base_rate=base_rate, seed=5, alloc_sets=0.0))
    found = reading.truth(made)["horizons"]["15"]
    failures = found["positives"] / 3
    assert found["base_rate"] == pytest.approx(base_rate, rel=max(0.05, 3 / np.sqrt(failures)))
    assert found["mean_score"] == pytest.approx(base_rate, rel=0.05)


def test_the_placebo_has_nothing_to_find(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    made = generate(tmp_path / "c", replace(knobs, mu=0.0, rows=60_000))
    for found in reading.truth(made)["horizons"].values():
        assert found["average_precision"] < 1.1 * found["base_rate"] + 3 * found["average_precision_se"]
        assert found["average_precision"] < 1.5 * found["base_rate"]


def test_bad_collections_are_found_by_their_siblings(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    """With a signal too weak for one run, knowing the siblings lifts the optimum far above the base rate."""
    weak = replace(knobs, mu=0.1, rows=60_000)
    with_siblings = reading.truth(generate(tmp_path / "c", weak))["horizons"]["15"]
    without = reading.truth(generate(tmp_path / "d", replace(weak, bad_collections=0.0)))["horizons"]["15"]
    assert with_siblings["average_precision"] > 1.6 * with_siblings["base_rate"]
    assert without["average_precision"] < 1.3 * without["base_rate"]


def test_truth_json_says_what_the_rows_say(trace: Generated, reading: Any) -> None:
    rows, said = pl.read_parquet(trace.truth_rows), reading.truth(trace)
    assert said["seed"] == 3
    assert said["knobs"]["lost"] == 0.02
    assert said["windows"] == rows.height
    for minutes in HORIZONS_MIN:
        found, y = said["horizons"][str(minutes)], rows[f"y_{minutes}"]
        assert found["positives"] == y.sum()
        assert found["rows"] == y.count()
        assert found["excluded"] == {
            why: rows.filter(pl.col(f"excluded_{minutes}") == why).height for why in ("not_running", "censored", "lost")
        }
        score = rows.drop_nulls(f"y_{minutes}")[f"score_{minutes}"].to_numpy()
        outcome = y.drop_nulls().to_numpy()
        order = np.argsort(-score, kind="stable")
        hits = np.cumsum(outcome[order])
        exact = (hits / np.arange(1, len(hits) + 1))[outcome[order] == 1].mean()
        assert found["average_precision"] == pytest.approx(exact, rel=0.005)
        assert found["brier"] == pytest.approx(((score - outcome) ** 2).mean())
        top = outcome[order][: round(0.01 * len(order))].mean()
        assert found["precision_at_top"]["0.01"] == pytest.approx(top, rel=0.03)
