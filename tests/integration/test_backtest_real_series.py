"""Real series through the yardsticks and the whole backtest: the data folder's own table, coverage, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest

from leadtime.cli import entry
from leadtime.forecast.conformal import calibrated
from leadtime.sources.demand_file import DemandFileOptions, TimeUnit, read_demand
from leadtime.training.backtest.series import BacktestSeries, from_file
from leadtime.training.backtest.yardsticks import BoolColumn, within, yardsticks

# series → (file, options, last value, mean of 5 min, ceiling): per cent within ± 10 %, from the data folder's README
TABLE = {
    "mongo-01": ("cloud-monitoring/mongo-01.csv", ("timestamp", "value"), 85, 81, 98),
    "mongo-03": ("cloud-monitoring/mongo-03.csv", ("timestamp", "value"), 79, 82, 94),
    "ingress-03": ("cloud-monitoring/ingress-03.csv", ("timestamp", "value"), 89, 94, 99),
    "nasa": ("web-requests/nasa_1995-07_minute.csv", ("timestamp", "value"), 17, 20, 28),
    "twitter": ("web-requests/twitter_2021-08_minute.csv", ("timestamp", "value"), 73, 73, 84),
    "worldcup": ("web-requests/worldcup98_minute.csv", ("timestamp", "value"), 55, 59, 76),
    "elb": ("nab/realAWSCloudwatch/elb_request_count_8c0756.csv", ("timestamp", "value"), 6, 6, 11),
    "rds": ("nab/realAWSCloudwatch/rds_cpu_utilization_e47b3b.csv", ("timestamp", "value"), 98, 98, 100),
    "aapl": ("nab/realTweets/Twitter_volume_AAPL.csv", ("timestamp", "value"), 21, 21, 40),
    "pfe": ("nab/realTweets/Twitter_volume_PFE.csv", ("timestamp", "value"), 19, 19, 13),
    "m-mid": ("servegen/m-mid_total_10min.csv", ("t_s", "rate_rps"), 72, 72, 100),
    "google": ("datacenter-usage/google2019_5min.csv", ("t_s", "avg_cpu"), 94, 94, 100),
}


def load(data_dir: Path, name: str) -> BacktestSeries:
    file, (time, value), *_ = TABLE[name]
    unit = TimeUnit.S if time == "t_s" else None
    options = DemandFileOptions(time_column=time, value_column=value, time_unit=unit)
    return from_file(read_demand(data_dir / file, options), name)


@pytest.mark.parametrize("name", TABLE)
def test_naive_and_ceiling_are_those_of_the_data_folders_table(data_dir: Path, name: str) -> None:
    sticks = yardsticks(load(data_dir, name), 600)
    scored = sticks.scored()
    found = [
        100 * float(np.nanmean(within(said, sticks.truth)[scored]))
        for said in (sticks.last, sticks.mean5, sticks.ceiling)
    ]
    assert found == pytest.approx(TABLE[name][2:], abs=1.0)


def covered(name: str, data_dir: Path) -> float:
    """Share inside the calibrated interval around last value, over the last 60 % (at most 12,000 buckets)."""
    series = load(data_dir, name)
    series = BacktestSeries(
        name=name, start_s=series.start_s, step_s=series.step_s, values=series.values[: min(len(series.values), 12_000)]
    )
    sticks = yardsticks(series, 600)
    bounds = calibrated(sticks.last, sticks.truth, series.timing(sticks.ahead), 0.90, levels=())
    known: BoolColumn = sticks.scored() & (np.arange(len(series.values)) >= 0.4 * len(series.values))
    return float(((bounds.lower <= sticks.truth) & (sticks.truth <= bounds.upper))[known].mean())


@pytest.mark.parametrize(
    "name", ["mongo-01", "mongo-03", "ingress-03", "nasa", "worldcup", "elb", "rds", "m-mid", "google"]
)
def test_a_stated_90_percent_holds_87_to_93_on_real_series(data_dir: Path, name: str) -> None:
    assert 0.87 <= covered(name, data_dir) <= 0.93


@pytest.mark.slow
def test_the_command_writes_json_and_page_and_prints_the_same_json(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, (time, value), *_ = TABLE["m-mid"]
    line = ["forecast", "backtest", str(data_dir / file), "--time-column", time, "--value-column", value]
    line += ["--time-unit", "s", "--models", "ets", "--out", str(tmp_path / "out"), "--json"]
    assert entry.run(line) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "out" / "backtest.json").read_text(encoding="utf-8"))
    assert printed["step_s"] == 600
    assert printed["models"]["last_value"]["within_10pct_ratio"] == printed["naive_within_10pct_ratio"]
    assert "<svg" in (tmp_path / "out" / "backtest.html").read_text(encoding="utf-8")
    assert not [path for path in tmp_path.iterdir() if path.name != "out"]


def test_a_series_that_is_too_short_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "short.csv"
    file.write_text("t,v\n" + "".join(f"2026-03-02T00:{m:02d}:00Z,{m + 1}\n" for m in range(60)), encoding="utf-8")
    line = [
        "forecast",
        "backtest",
        str(file),
        "--time-column",
        "t",
        "--value-column",
        "v",
        "--out",
        str(tmp_path / "o"),
    ]
    assert entry.run(line) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "[backtest-too-short]" in said
    assert [path.name for path in tmp_path.iterdir()] == ["short.csv"]


@pytest.mark.slow
def test_explain_says_what_was_multiplied_and_which_days_it_comes_from(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, (time, value), *_ = TABLE["m-mid"]
    line = ["forecast", "explain", str(data_dir / file), "--time-column", time, "--value-column", value]
    line += ["--time-unit", "s", "--models", "usual_change"]
    assert entry.run([*line, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    usual = fields["level"] * (1 + fields["usual_change_ratio"])
    assert usual * (1 + fields["beyond_usual_ratio"]) == pytest.approx(fields["expected"])
    assert [day["change_ratio"] for day in fields["days"]] == fields["changes"]
    assert entry.run(line) == 0
    said = capsys.readouterr().err
    assert "drivers: level" in said
    assert "earlier days (" in said
