"""train-baseline and report on a toy with a known optimum: artifacts, numbers, and what makes it refuse."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.testing.risk_toy import ToyTrace, write_features
from leadtime.training import baseline, compare_runs, run_folder
from leadtime.training.baseline import BaselineOptions, train_baseline
from leadtime.training.baseline_cells import ORDER
from leadtime.training.baseline_model import fit_logistic, logistic_from
from leadtime.training.evaluation import KEY
from leadtime.training.manifest import file_sha256
from leadtime.training.sampling import Rows

TOY = ToyTrace(tasks=600, windows=160, cells=("b", "c", "g"), parts=3, mu=2.0, seed=5)


@pytest.fixture(scope="module")
def features(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("features")
    write_features(folder, TOY).write_parquet(folder / "truth_rows.parquet")
    return folder


@pytest.fixture(scope="module")
def run(features, tmp_path_factory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("runs") / "baseline"
    options = BaselineOptions(
        features=features, out=out, unseen_cell="g", truth=(features / "truth_rows.parquet",),
        model_folder=out.parent / "model", config=out.parent / "config" / "baseline.json",
    )  # fmt: skip
    return out, train_baseline(options)


def test_exactly_the_artifacts_are_left_and_the_manifest_counts_and_hashes_them(run, features):
    out, _ = run
    assert {path.name for path in out.iterdir()} == {
        "validation_predictions.parquet", "top_risk_alerts.parquet", "metrics.json", "metrics.txt", "report.html",
        "run.json", "b_forecaster.parquet", "c_forecaster.parquet", "g_forecaster.parquet",
    }  # fmt: skip
    for name, file in json.loads((out / "run.json").read_text())["files"].items():
        assert file["sha256"] == file_sha256(out / name)
        if name.endswith(".parquet"):
            assert file["rows"] == pl.read_parquet(out / name).height
    told = json.loads((features / "forecaster.json").read_text())["partitions"]
    for cell in "bcg":
        rows = pl.read_parquet(out / f"{cell}_forecaster.parquet")
        assert rows.height == sum(part["rows"] for part in told if part["path"].startswith(f"cell={cell}/"))
        assert rows.select(ORDER).equals(rows.sort(ORDER).select(ORDER))
    assert (out.parent / "model" / "baseline.json").exists()
    assert json.loads((out.parent / "config" / "baseline.json").read_text())["cells"] == ["b", "c", "g"]


def test_predictions_are_every_row_of_the_last_block_sorted_by_risk(run, features):
    out, metrics = run
    rows = pl.read_parquet(out / "validation_predictions.parquet")
    cut = metrics["settings"]["split"]["test_from_us"]
    every = pl.concat([pl.read_parquet(path) for path in sorted(features.glob("cell=*/*.parquet"))])
    assert rows.height == every.filter(pl.col("end_time_us") >= cut).height == metrics["rows"]
    assert rows["risk_score"].is_sorted(descending=True)
    assert rows.filter((pl.col("risk_5") > pl.col("risk_15")) | (pl.col("risk_15") > pl.col("risk_60"))).is_empty()
    wanted = {*KEY, "run_number", "tier", "next_terminal_time_us", "next_terminal_cause", "view", "risk_score"}
    assert wanted | {f"{kind}_{m}" for kind in ("y", "risk") for m in (5, 15, 30, 45, 60)} == set(rows.columns)


def test_sorting_bucket_by_bucket_gives_the_same_file(run, tmp_path):
    out, _ = run
    rows = pl.read_parquet(out / "validation_predictions.parquet")
    tied = rows.with_columns(pl.col("risk_score").round(2)).sample(fraction=1.0, shuffle=True, seed=1)
    run_folder.write_sorted(tied.lazy(), tmp_path / "whole.parquet")
    run_folder.write_sorted(tied.lazy(), tmp_path / "buckets.parquet", at_once=500)
    assert pl.read_parquet(tmp_path / "whole.parquet").equals(pl.read_parquet(tmp_path / "buckets.parquet"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["buckets.parquet", "whole.parquet"]


def test_top_alerts_are_one_a_run_with_reasons_and_outcome(run):
    out, _ = run
    alerts = pl.read_parquet(out / "top_risk_alerts.parquet")
    assert alerts.height > 0
    assert alerts.select("cell", "collection_id", "instance_index", "run_number").is_duplicated().sum() == 0
    assert alerts.select("day_from_us", "rank").equals(alerts.select("day_from_us", "rank").sort("day_from_us", "rank"))
    assert alerts["reasons"].str.contains("ratio").any()
    assert alerts["reasons"].null_count() == 0


def test_the_model_beats_its_floors_stays_below_the_optimum_and_says_so(run):
    _, metrics = run
    fields, floors = metrics["horizons"]["15"], metrics["floors"]
    assert metrics["usable"]
    assert fields["average_precision"] > 0.6 * fields["bayes_average_precision"]
    assert floors["last window only"]["average_precision"] < fields["average_precision"]
    assert floors["base rate"]["average_precision"] == pytest.approx(fields["base_rate"])
    assert "above the best floor, “last window only”" in metrics["sentence"]
    assert set(metrics["views"]) == {"time", "collection", "cell"}


def test_the_text_names_base_rate_and_lift_beside_every_average_precision(run):
    out, _ = run
    text = (out / "metrics.txt").read_text()
    for heading in [line for line in text.splitlines() if " AP " in line and "rows" in line]:
        assert "base rate" in heading
        assert "lift" in heading
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 4
    assert "<script" not in page
    assert "http" not in page


@pytest.mark.slow
def test_equal_inputs_give_equal_bytes(run, features, tmp_path):
    out, _ = run
    again = tmp_path / "again"
    train_baseline(
        BaselineOptions(features=features, out=again, unseen_cell="g", truth=(features / "truth_rows.parquet",))
    )
    for name in ("metrics.json", "report.html", "validation_predictions.parquet", "run.json"):
        assert (again / name).read_bytes() == (out / name).read_bytes(), name


def test_a_run_against_itself_differs_by_nothing(run):
    out, metrics = run
    found = compare_runs.compare(out, out, draws=20)
    fields = found["horizons"]["15"]
    assert (fields["difference"], fields["interval"]["se"], fields["labels_differ"]) == (0.0, 0.0, 0)
    assert found["data"]["rows_in_both"] == metrics["rows"]
    assert found["data"]["rows_only_now"] == found["data"]["rows_only_before"] == 0
    assert "no difference beyond chance" in found["sentence"]
    assert found["data"]["settings"] == {}


def test_runs_are_compared_on_the_rows_both_scored(run, tmp_path):
    out, metrics = run
    rows = pl.read_parquet(out / "validation_predictions.parquet")
    noise = pl.Series(np.random.default_rng(1).random(rows.height))
    worse = rows.with_columns(**{f"risk_{m}": noise for m in (5, 15, 30, 45, 60)}, risk_score=noise)
    easier = worse.filter(pl.col("cell") != "g")
    data = {"data_hash": "other", "features": ["ratio"], "excluded": {"15": {"lost": 3}}}
    run_folder.write_run(
        tmp_path / "before", predictions=easier, metrics=metrics, settings={}, data=data, name="before", kind="test"
    )
    found = compare_runs.compare(out, tmp_path / "before", draws=30)
    fields = found["horizons"]["15"]
    labelled = rows.filter((pl.col("cell") != "g") & pl.col("y_15").is_not_null())
    assert fields["rows"] == labelled.height
    assert fields["base_rate"] == pytest.approx(labelled["y_15"].mean())
    assert fields["difference"] > 0
    assert fields["interval"]["low"] > 0
    assert found["data"]["rows_only_now"] == rows.filter(pl.col("cell") == "g").height
    assert found["data"]["features_only_before"] == []
    assert "better" in compare_runs.compared_text(found)


@pytest.mark.slow
def test_without_signal_the_model_has_the_base_rate_and_says_it_is_worth_nothing(tmp_path):
    write_features(tmp_path / "f", ToyTrace(tasks=500, windows=150, mu=0.0, cells=("b",), seed=8))
    metrics = train_baseline(BaselineOptions(features=tmp_path / "f", out=tmp_path / "run"))
    fields = metrics["horizons"]["15"]
    assert fields["average_precision"] <= fields["base_rate"] + 3 * fields["intervals"]["average_precision"]["se"]
    assert metrics["sentence"].startswith("The model hardly beats")


@pytest.mark.slow
def test_a_feature_that_knows_the_future_is_caught_with_and_without_the_truth(tmp_path):
    folder = tmp_path / "f"
    truth = write_features(folder, ToyTrace(tasks=500, windows=150, cells=("b",), seed=9))
    truth.write_parquet(tmp_path / "truth_rows.parquet")
    for path in folder.glob("cell=*/*.parquet"):
        ahead = (pl.col("next_terminal_time_us") - pl.col("end_time_us")).cast(pl.Float32)
        leaked = pl.when(pl.col("next_terminal_cause") == "self").then(-ahead.log())
        pl.read_parquet(path).with_columns(noise_0=leaked.otherwise(-40.0)).write_parquet(path)
    blind = train_baseline(BaselineOptions(features=folder, out=tmp_path / "blind"))
    failed = {gate["name"] for gate in blind["gates"] if gate["standing"] == "failed"}
    assert "feature-removal" in failed
    assert not blind["usable"]
    seeing = train_baseline(
        BaselineOptions(
            features=folder, out=tmp_path / "run", truth=(tmp_path / "truth_rows.parquet",), allow=("feature-removal",)
        )
    )
    standings = {gate["name"]: gate["standing"] for gate in seeing["gates"]}
    assert standings["above-optimum"] == "failed"
    assert standings["feature-removal"] == "allowed"
    assert seeing["allowed_gates"] == ["feature-removal"]
    assert "UNUSABLE" in (tmp_path / "run" / "metrics.txt").read_text()


def test_an_absent_cell_is_named_with_those_that_are_there(features, tmp_path):
    with pytest.raises(BadTrace, match="no cell d; there are: b, c, g") as refused:
        train_baseline(BaselineOptions(features=features, out=tmp_path, cells=("b", "d")))
    assert refused.value.slug == "features-no-such-cell"


def test_an_unfinished_run_is_no_run(run, tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps(run[1]))
    with pytest.raises(BadTrace, match=r"no run\.json"):
        run_folder.read_run(tmp_path)


def test_partitions_that_are_not_the_manifests_are_refused(features, tmp_path):
    data = baseline.of_cells(baseline.open_features(features), ("b",))
    told = json.loads((features / "forecaster.json").read_text())
    told["partitions"][0]["rows"] += 1
    changed = baseline.replace(data, manifest=told)
    with pytest.raises(BadTrace, match="the manifest says"):
        baseline.write_cells(changed, tmp_path)


def test_a_cell_sorted_slice_by_slice_is_the_same_cell(run, features, tmp_path):
    out, _ = run
    baseline.write_cells(baseline.of_cells(baseline.open_features(features), ("b",)), tmp_path, at_once=700)
    sliced, whole = (pl.read_parquet(folder / "b_forecaster.parquet") for folder in (tmp_path, out))
    assert sliced.equals(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["b_forecaster.parquet"]


def test_a_logistic_survives_json_and_a_missing_value_stands_at_the_centre():
    generator = np.random.default_rng(3)
    x = generator.normal(size=(4_000, 2)).astype(np.float32)
    y = (generator.random(4_000) < 1 / (1 + np.exp(2 - 1.5 * x[:, 0]))).astype(np.float32)
    x[generator.random(4_000) < 0.1, 1] = np.nan
    rows = Rows(x=x, index=np.arange(4_000), y=y, weight=np.ones(4_000, np.float32), collection=np.zeros(4_000))
    model = fit_logistic(rows, ("signal", "noise"))
    assert logistic_from(json.loads(json.dumps(model.to_json()))) == model
    assert model.coefficients[0] / model.scale[0] == pytest.approx(1.5, rel=0.15)
    assert abs(model.coefficients[1]) < 0.2
    centre = model.parts(np.array([[np.nan, np.nan]]))
    assert centre.tolist() == [[model.flags[0], model.flags[1]]]
    healthy = Rows(x=x, index=np.arange(9), y=np.zeros(9), weight=np.ones(9), collection=np.zeros(9))
    with pytest.raises(ValueError, match="nothing to tell apart"):
        fit_logistic(healthy, ("a", "b"))
