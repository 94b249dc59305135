"""The battery finds planted leaks by name and nothing in an honest data set."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from leadtime.risk.features import Profile
from leadtime.risk.leaks import Probe
from leadtime.testing.borg_trace import small_trace
from leadtime.training.dataset import make_dataset
from leadtime.training.forecaster_dataset import make_forecaster_dataset
from leadtime.training.leak_battery import LeakReport, run_battery

ALLOW = ("enum-proof", "null-rate")
pytestmark = pytest.mark.slow  # every probe trains a few small models


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows and baseline features of one cell in which nothing can be learnt."""
    root = tmp_path_factory.mktemp("leak")
    small_trace(8, collections=90, tasks=5).write(root / "raw")
    make_dataset(root / "raw", root / "windows", allow=ALLOW)
    make_forecaster_dataset(root / "windows", root / "features")
    return root


def planted(root: Path, out: Path, column: pl.Expr, *, name: str) -> LeakReport:
    """The report on a copy of the features in which ``name`` is ``column``."""
    shutil.copytree(root / "features", out)
    told = json.loads((out / "forecaster.json").read_text())
    for part in told["partitions"]:
        rows = pl.read_parquet(out / part["path"])
        rows.with_columns(column.cast(pl.Float32).alias(name)).write_parquet(out / part["path"])
    if name not in told["features"]:
        told["features"].append(name)
    (out / "forecaster.json").write_text(json.dumps(told))
    return run_battery(out, root / "windows")


def test_an_honest_data_set_has_no_finding_and_its_probes_looked_at_rows(root: Path) -> None:
    report = run_battery(root / "features", root / "windows")
    assert report.findings == ()
    told = report.to_json()
    assert told["passed"]
    assert told["probes"]["future"]["rows"] > 0
    assert told["probes"]["reproduced"]["rows"] == told["probes"]["reproduced"]["stored_rows"] > 0
    learning = told["probes"]["learning"]
    assert learning["examined"]
    assert learning["placebo"]["ap"] == pytest.approx(learning["base_rate"], rel=0.5)
    json.dumps(told, allow_nan=False)


def test_the_advanced_profile_has_no_finding_either(root: Path) -> None:
    make_forecaster_dataset(root / "windows", root / "advanced", profile=Profile.ADVANCED)
    assert run_battery(root / "advanced", root / "windows").findings == ()


def test_a_column_that_knows_the_end_is_undeclared_and_too_strong_alone(root: Path, tmp_path: Path) -> None:
    """T1: the whole trace's last event time, as a plausible join would bring it in."""
    leak = pl.col("next_terminal_time_us") - pl.col("end_time_us")
    report = planted(root, tmp_path / "copy", leak, name="hours_left")
    found = {(one.probe, one.feature) for one in report.findings}
    assert (Probe.DECLARED, "hours_left") in found
    assert (Probe.SINGLE, "hours_left") in found


def test_a_declared_feature_with_other_values_is_not_reproduced_and_too_strong_alone(
    root: Path, tmp_path: Path
) -> None:
    report = planted(root, tmp_path / "copy", pl.col("y_15").fill_null(0) + pl.col("cpu_ratio") / 100, name="cpu_ratio")
    found = {(one.probe, one.feature) for one in report.findings}
    assert found == {(Probe.REPRODUCED, "cpu_ratio"), (Probe.SINGLE, "cpu_ratio")}


def test_features_of_other_windows_are_told(root: Path, tmp_path: Path) -> None:
    small_trace(9, collections=20).write(tmp_path / "raw")
    make_dataset(tmp_path / "raw", tmp_path / "windows", allow=ALLOW)
    report = run_battery(root / "features", tmp_path / "windows")
    assert any(one.probe is Probe.REPRODUCED and one.feature is None for one in report.findings)


def test_with_few_failures_nothing_is_claimed_of_what_can_be_learnt(tmp_path: Path) -> None:
    small_trace(2, collections=4).write(tmp_path / "raw")
    make_dataset(tmp_path / "raw", tmp_path / "windows", allow=ALLOW)
    make_forecaster_dataset(tmp_path / "windows", tmp_path / "features")
    learning = run_battery(tmp_path / "features", tmp_path / "windows").to_json()["probes"]["learning"]
    assert not learning["examined"]
    assert learning["all_features"] == {"ap": None, "se": None}
