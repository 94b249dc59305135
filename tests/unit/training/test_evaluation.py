"""What metrics.json says of a toy whose best possible score is known, and when its alarms ring."""

import json

import numpy as np
import polars as pl
import pytest

from leadtime.domain.borg import HORIZONS_MIN
from leadtime.testing.risk_toy import ToyTrace, write_features
from leadtime.training.evaluation import KEY, evaluate, summary

TOY = ToyTrace(tasks=500, windows=150, seed=3)
TWO = (5, 15)


@pytest.fixture(scope="module")
def scored(tmp_path_factory) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Predictions that are the best possible ones, and the truth beside them."""
    folder = tmp_path_factory.mktemp("features")
    truth = write_features(folder, TOY)
    rows = pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("cell=*/*.parquet"))])
    truth = truth.join(rows.select(*KEY, *(f"y_{m}" for m in HORIZONS_MIN)), on=list(KEY))
    known = {m: [pl.col(f"score_{n}").fill_null(0) for n in HORIZONS_MIN if n <= m] for m in HORIZONS_MIN}
    scores = {f"risk_{m}": pl.max_horizontal(columns) for m, columns in known.items()}
    predicted = rows.join(truth.select(*KEY, pl.col("^score_.*$")), on=list(KEY), how="left").with_columns(**scores)
    view = pl.when(pl.col("collection_id") % 5 == 0).then(pl.lit("collection")).otherwise(pl.lit("time"))
    return predicted.with_columns(view=view).drop(pl.col("^score_.*$")), truth


@pytest.fixture(scope="module")
def metrics(scored) -> dict:
    predictions, truth = scored
    return evaluate(predictions, horizons_min=TWO, truth=truth, seed=1, draws=60)


def standing(metrics: dict, name: str) -> set[str]:
    return {gate["standing"] for gate in metrics["gates"] if gate["name"] == name}


def test_every_field_of_the_contract_is_there_with_its_interval(metrics):
    for minutes in ("5", "15"):
        fields = metrics["horizons"][minutes]
        wanted = ("average_precision", "base_rate", "bayes_average_precision", "lift", "ece", "lead_time_s")
        assert set(wanted) <= set(fields)
        for name in ("average_precision", "base_rate", "lift", "ece", "brier", "lead_time_s"):
            assert {"low", "high", "se"} == set(fields["intervals"][name])
        assert set(fields["precision_at_k"]) == set(fields["intervals"]["precision_at_k"]) == {"10", "100", "1000"}
    json.dumps(metrics, allow_nan=False)


def test_the_best_score_reaches_all_of_the_optimum_and_no_alarm_rings(metrics):
    fields = metrics["horizons"]["15"]
    assert fields["share_of_bayes"] == pytest.approx(1.0, abs=0.01)
    assert fields["lift"] > 5
    assert fields["ece"] <= 2 * fields["ece_bayes"] + 1e-12
    assert fields["mean_probability"] == pytest.approx(fields["base_rate"], rel=0.15)
    assert metrics["usable"]
    assert standing(metrics, "above-optimum") == standing(metrics, "labels-equal-truth") == {"passed"}


def test_parts_add_up_to_the_whole(metrics):
    whole = metrics["horizons"]["15"]
    for part in ("by_tier", "by_cell", "views"):
        assert sum(fields["rows"] for fields in metrics[part].values()) == whole["rows"]
        assert sum(fields["positives"] for fields in metrics[part].values()) == whole["positives"]
        assert sum(fields["alerts"] for fields in metrics[part].values()) == whole["alerts_at_k"]["100"]
    assert set(metrics["views"]) == {"time", "collection"}


def test_causes_say_what_is_foretold_and_what_is_mistaken_for_it(metrics):
    assert {name for name, fields in metrics["by_cause"].items() if fields["foretold"]} == {"self"}
    assert metrics["by_cause"]["self"]["recall_at_k"] > metrics["by_cause"]["done"]["recall_at_k"]


def test_a_score_that_knows_the_future_rings_the_alarm_and_the_run_is_unusable(scored):
    predictions, truth = scored
    leaked = 0.5 * pl.col("risk_15") + 0.4 * pl.col("y_15").fill_null(0)
    metrics = evaluate(predictions.with_columns(risk_15=leaked), horizons_min=(15,), truth=truth, seed=1, draws=30)
    assert standing(metrics, "above-optimum") == {"failed"}
    assert not metrics["usable"]


def test_a_score_without_signal_has_the_base_rate_within_three_standard_errors(scored):
    predictions, truth = scored
    noise = pl.Series(np.random.default_rng(5).random(predictions.height))
    metrics = evaluate(predictions.with_columns(risk_15=noise), horizons_min=(15,), truth=truth, seed=1, draws=60)
    fields = metrics["horizons"]["15"]
    assert fields["average_precision"] <= fields["base_rate"] + 3 * fields["intervals"]["average_precision"]["se"]


def test_a_label_that_is_not_the_truths_rings_an_alarm(scored):
    predictions, truth = scored
    wrong = predictions.with_columns(
        y_15=pl.when(pl.int_range(pl.len()) == 7).then(1 - pl.col("y_15")).otherwise("y_15")
    )
    metrics = evaluate(wrong, horizons_min=(15,), truth=truth, seed=1, draws=10)
    (gate,) = (gate for gate in metrics["gates"] if gate["name"] == "labels-equal-truth")
    assert (gate["standing"], gate["measured"]) == ("failed", 1)


def test_horizons_out_of_order_are_counted(scored):
    predictions, _ = scored
    bent = predictions.with_columns(risk_15=pl.when(pl.int_range(pl.len()) < 3).then(0.0).otherwise("risk_15"))
    assert standing(evaluate(bent, horizons_min=TWO, seed=1, draws=5), "monotone-horizons") == {"failed"}


def test_sampled_negatives_give_the_same_ap_but_say_nothing_of_alerts(scored):
    predictions, _ = scored
    full = evaluate(predictions, horizons_min=(15,), seed=1, draws=40)["horizons"]["15"]
    kept = predictions.with_columns(pl.Series("u", np.random.default_rng(2).random(predictions.height)))
    kept = kept.filter((pl.col("y_60") != 0) | pl.col("y_60").is_null() | (pl.col("u") < 0.25))
    kept = kept.with_columns(weight=pl.when(pl.col("y_60") == 0).then(4.0).otherwise(1.0))
    sampled = evaluate(kept, horizons_min=(15,), seed=1, draws=40)["horizons"]["15"]
    assert abs(sampled["average_precision"] - full["average_precision"]) < full["intervals"]["average_precision"]["se"]
    assert "precision_at_k" not in sampled


def test_scores_that_arrive_late_have_less_ahead_of_them(metrics):
    fields = metrics["horizons"]["15"]
    assert fields["delayed"]["average_precision"] < fields["average_precision"]
    assert fields["delayed"]["base_rate"] == pytest.approx(fields["base_rate"], rel=0.1)


def test_an_average_precision_is_never_told_alone(metrics):
    line = summary(metrics, 15)
    assert "AP " in line
    assert "base rate" in line
    assert "lift" in line


def test_a_horizon_without_labels_is_refused(scored):
    predictions, _ = scored
    with pytest.raises(ValueError, match="no row has a label"):
        evaluate(predictions.with_columns(y_15=pl.lit(None, dtype=pl.Int8)), horizons_min=(15,), seed=1)
    with pytest.raises(ValueError, match="no column risk_7"):
        evaluate(predictions.with_columns(y_7=pl.lit(0)), horizons_min=(7,), seed=1)


def test_equal_inputs_give_equal_metrics(scored, metrics):
    predictions, truth = scored
    assert evaluate(predictions, horizons_min=TWO, truth=truth, seed=1, draws=60) == metrics
