"""Job-level traces → measures and files: a gain where there is one to be had, and "no gain" where there is none."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leadtime.cli import entry
from leadtime.domain.errors import BadTrace
from leadtime.domain.jobs import JobFormat
from leadtime.training.jobs_run import run_jobs

HEADER = "JobID|User|Partition|State|ExitCode|Submit|Start|End|Timelimit|ReqCPUS|ReqMem"


def accounts(path: Path, *, by_request: bool, jobs: int = 2500, seed: int = 3) -> Path:
    """Jobs of 40 users, each with a failure rate of their own; ``by_request``: the CPUs asked for decide besides."""
    draw = np.random.default_rng(seed)
    rates = draw.beta(1, 6, 40)
    lines, at = [HEADER], 1_772_400_000
    for number in range(jobs):
        at += int(draw.exponential(120)) + 1
        user, cpus = int(draw.integers(40)), int(draw.choice([1, 2, 4, 64]))
        rate = 0.85 if by_request and cpus == 64 else rates[user]
        state = "FAILED" if draw.random() < rate else "COMPLETED"
        start = at + int(draw.exponential(30))
        lines.append(f"{number}|u{user}|gpu|{state}|0:0|{at}|{start}|{start + 200}|01:00:00|{cpus}|4G")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_where_requests_tell_more_than_the_user_the_model_gains(tmp_path: Path) -> None:
    run = run_jobs(accounts(tmp_path / "a.txt", by_request=True), JobFormat.SACCT, tmp_path / "run", queue_time=False)
    told = run.metrics["outcome"]
    assert told["against"] == "the user's base rate"
    assert told["is_gain"]
    assert run.text.startswith("outcome: a gain over the user's base rate")
    assert told["average_precision"] > told["base_rate"] * 2
    rows = pl.read_parquet(tmp_path / "run" / "predictions.parquet")
    assert rows.height == told["rows"]["test"] + told["purged"]["test, end not seen"]
    assert rows["p_fails"].is_sorted(descending=True)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["outcome"]["base_rate"] == told["base_rate"]


def test_where_only_the_user_tells_no_gain_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    path = accounts(tmp_path / "a.txt", by_request=False)
    out = tmp_path / "run"
    assert entry.run(["borg", "jobs", str(path), "--format", "sacct", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "no gain over the user's base rate" in shown.err
    told = json.loads((out / "metrics.json").read_text())
    for name, wanted in (("p50", 0.5), ("p90", 0.9)):  # waits are drawn alike: nobody can do better than their quantile
        low, high = told["queue_time"]["quantiles"][name]["coverage"]
        assert low - 0.05 <= wanted <= high + 0.05


def test_equal_accounts_and_seed_give_equal_bytes(tmp_path: Path) -> None:
    path = accounts(tmp_path / "a.txt", by_request=True, jobs=900)
    for name in ("one", "two"):
        run_jobs(path, JobFormat.SACCT, tmp_path / name, queue_time=False)
    for file in ("metrics.json", "predictions.parquet", "metrics.txt"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_too_few_jobs_or_failures_are_said(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="150 jobs, 200 are the least"):
        run_jobs(accounts(tmp_path / "a.txt", by_request=False, jobs=150), JobFormat.SACCT, tmp_path / "run")
    path = accounts(tmp_path / "b.txt", by_request=False, jobs=400)
    path.write_text(path.read_text().replace("FAILED", "COMPLETED"))
    with pytest.raises(BadTrace, match="0 failures"):
        run_jobs(path, JobFormat.SACCT, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.data
@pytest.mark.slow
def test_on_the_mit_sample_the_model_is_held_against_each_users_past(data_dir: Path, tmp_path: Path) -> None:
    run = run_jobs(data_dir / "mit-supercloud-slurm" / "jobs.parquet", JobFormat.MIT, tmp_path / "run")
    told = run.metrics["outcome"]
    assert told["drawn"] == "users"
    assert told["floors"]["the user's base rate"]["average_precision"] > told["base_rate"] * 2
    assert told["average_precision"] > told["floors"]["the user's base rate"]["average_precision"]
    assert 0.8 < told["mean_p_over_base_rate"] < 1.25
    assert run.metrics["queue_time"]["not_seen_to_start"]["train"] > 0  # censored at the cut, not left out


@pytest.mark.data
@pytest.mark.slow
def test_on_openb_there_is_no_user_and_that_is_said(data_dir: Path, tmp_path: Path) -> None:
    run = run_jobs(data_dir / "openb-gpu-2023" / "pods_default.csv", JobFormat.OPENB, tmp_path / "run")
    told = run.metrics["outcome"]
    assert "the user's base rate" not in told["floors"]
    assert "these accounts name no users" in run.text
    assert "5 days of submission are few to draw from" in run.text
    low, high = run.metrics["queue_time"]["quantiles"]["p90"]["coverage"]
    assert low < high < 0.85  # pods given up before they were scheduled leave the coverage open
    assert "it does not hold: waits of the test jobs are not those" in run.text
