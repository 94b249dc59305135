"""A job-level trace → a run folder: metrics.json, metrics.txt, predictions.parquet, features.json.

``predictions.parquet`` holds the test block: one row a job, most likely to fail first.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.jobs import DEFAULT_FAILURES, JobFormat, Outcome
from leadtime.risk.jobs_features import FEATURES, job_table
from leadtime.risk.jobs_labels import failures
from leadtime.risk.measures import Array
from leadtime.sources.jobs_file import read_jobs
from leadtime.training.jobs_outcome import run_outcome
from leadtime.training.jobs_split import blocks
from leadtime.training.jobs_text import jobs_text
from leadtime.training.jobs_wait import run_wait
from leadtime.training.manifest import disk_errors, file_sha256, write_json, written
from leadtime.training.progress import Progress, silent

METRICS, TEXT, PREDICTIONS, DICTIONARY = "metrics.json", "metrics.txt", "predictions.parquet", "features.json"
SCHEMA = "leadtime.jobs-run/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsRun:
    """What was written, and the measures."""

    folder: Path
    metrics: Mapping[str, Any]
    text: str


def run_jobs(
    path: Path, form: JobFormat, out: Path, *, time_zone: str | None = None,
    failing: Iterable[Outcome] = DEFAULT_FAILURES, queue_time: bool = True, seed: int = 1, progress: Progress = silent,
) -> JobsRun:  # fmt: skip
    """Read, train, measure, write. Equal file, options and seed give equal bytes.

    Raises BadTrace for a file that cannot be used (docs/errors.md, ``jobs-…``) or holds too few failures,
    DependencyFailed for a disk that cannot be written.
    """
    jobs = read_jobs(path, form, time_zone=time_zone)
    kinds = frozenset(failing)
    failed = failures(jobs.frame, kinds)
    progress("features", 0, jobs.frame.height, "jobs")
    table = job_table(jobs.frame, failed)
    progress("features", jobs.frame.height, jobs.frame.height, "jobs")
    cut = blocks(_reals(jobs.frame, "submitted_s"), f"splitting the jobs of {path}")
    outcome = run_outcome(table, failed, _reals(jobs.frame, "ended_s"), cut, seed=seed, progress=progress)
    wait = run_wait(
        table, jobs.frame, cut, observed_until_s=jobs.observed_until_s, seed=seed, progress=progress
    ) if queue_time else None  # fmt: skip
    counted = jobs.frame["outcome"].value_counts().sort("outcome")
    metrics = {
        "schema": SCHEMA, "format": form.value, "file_sha256": file_sha256(path), "jobs": jobs.frame.height,
        "users": jobs.frame["user"].drop_nulls().n_unique(), "outcomes": dict(counted.iter_rows()),
        "failing": sorted(kind.value for kind in kinds), "notes": dict(jobs.notes), "clock_is_calendar": jobs.epoch,
        "observed_until_s": jobs.observed_until_s,
        "split": {"by": "submission", "tune_from_s": cut.tune_from_s, "test_from_s": cut.test_from_s}, "seed": seed,
        "outcome": _plain(outcome.metrics), "queue_time": None if wait is None else _plain(wait.metrics),
    }  # fmt: skip
    rows = jobs.frame.select("job", "user", "queue", "submitted_s", "outcome").with_columns(
        failed=pl.Series(failed).fill_nan(None).cast(pl.Int8), p_fails=pl.Series(outcome.p),
        user_base_rate=pl.Series(table.user_rate if table.has_users else np.full(len(failed), np.nan)).fill_nan(None),
        **({} if wait is None else {f"wait_p{round(100 * s)}_s": pl.Series(q) for s, q in wait.quantiles.items()}),
    )  # fmt: skip
    rows = rows.filter(pl.Series(cut.test)).sort(["p_fails", "job"], descending=[True, False])
    text = jobs_text(metrics)
    _write(out, metrics, text, rows)
    return JobsRun(folder=out, metrics=metrics, text=text)


def _write(out: Path, metrics: Mapping[str, Any], text: str, rows: pl.DataFrame) -> None:
    with disk_errors(f"writing {out}", out):
        written(out / PREDICTIONS, rows.write_parquet)
        dictionary = json.dumps([asdict(feature) for feature in FEATURES], indent=2) + "\n"
        for name, content in ((DICTIONARY, dictionary), (TEXT, text)):
            written(out / name, partial(_put, content))
        write_json(out / METRICS, metrics)


def _put(content: str, path: Path) -> None:
    path.write_text(content, encoding="utf-8")


def _reals(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _plain(content: Any) -> Any:
    """NaN has no place in JSON: what could not be said is null."""
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not np.isfinite(content) else content
