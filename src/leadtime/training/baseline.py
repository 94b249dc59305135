"""Features → the baseline: a logistic regression beside its floors, measured on the whole last block, in a run folder.

A sanity instrument before anything clever: if it is hardly better than "failed in the last hour in this collection", it
says so in its first sentence. Steps: gates of the data, split, sample, fit, calibrate, score, floors, alarms, files.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import primary_horizon_min
from leadtime.domain.errors import BadTrace
from leadtime.risk import floors, splits
from leadtime.risk.calibration import monotone_across_horizons
from leadtime.risk.gates import Gate, reported
from leadtime.training import baseline_fit, baseline_floors
from leadtime.training.acted_rows import acted_on
from leadtime.training.baseline_cells import write_cells
from leadtime.training.baseline_fit import Baseline
from leadtime.training.check import require_passed
from leadtime.training.evaluation import ALERTS_PER_DAY, KEY, evaluate
from leadtime.training.folder_lock import sole_writer
from leadtime.training.manifest import disk_errors, write_json
from leadtime.training.progress import Progress, silent
from leadtime.training.run_folder import write_run
from leadtime.training.sampling import FeatureSet, count_negatives, draw, fraction_for, matrix_of, open_features
from leadtime.training.train_plan import Plan, plan_for

MODEL = "baseline.json"
MODEL_SCHEMA = "leadtime.borg-baseline/1"
MOST_NEGATIVES = 500_000  # a line through 17 features needs no more; all failures are kept beside them
SCRATCH = ".scoring"
REASONS = 3
CONTEXT = (*KEY, "run_number", "tier", "next_terminal_time_us", "next_terminal_cause")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineOptions:
    """One run. ``cells``: none = all that are there. ``unseen_cell``: held out of training (None: none is). ``truth``:
    the generator's truth_rows.parquet files, of generated data."""

    features: Path
    out: Path
    model_folder: Path | None = None
    config: Path | None = None
    cells: tuple[str, ...] = ()
    unseen_cell: str | None = None
    seed: int = 0
    name: str = "baseline"
    fraction: float | None = None
    most_negatives: int = MOST_NEGATIVES
    allow: tuple[str, ...] = ()
    truth: tuple[Path, ...] = ()
    alerts_per_day: tuple[int, ...] = ALERTS_PER_DAY


def train_baseline(options: BaselineOptions, progress: Progress = silent) -> dict[str, Any]:
    """Run it; returns what metrics.json says (``usable`` False when a gate failed and was not allowed).

    Raises BadTrace when there is no finished data set, a gate of the data failed, a cell is not there, there is too
    little to split or learn, or another run writes into ``out``; DependencyFailed on a full disk.
    """
    with sole_writer(options.out, doing=f"training {options.name}"):
        return _trained(options, progress)


def _trained(options: BaselineOptions, progress: Progress) -> dict[str, Any]:
    data = of_cells(open_features(options.features), options.cells)
    require_passed(data.manifest, allow=options.allow, doing=f"training {options.name}")
    plan = plan_for(data, seed=options.seed, unseen_cell=options.unseen_cell)
    fraction = options.fraction or fraction_for(count_negatives(data, plan.learnt), options.most_negatives)
    sample = draw(data, plan.learnt, fraction=fraction, seed=options.seed, progress=progress, what="reading")
    primary = primary_horizon_min(data.horizons_min)
    model = baseline_fit.fit(data, plan, sample, primary_min=primary, seed=options.seed, progress=progress)
    settings = _settings(options, data, plan, fraction)
    scratch = options.out / SCRATCH
    with disk_errors(f"training {options.name}", options.out):
        cells = write_cells(data, options.out, progress)
        try:
            scored = score_test(data, plan, model, scratch, progress)
            floor_names = baseline_floors.columns(scored)
            metrics = evaluate(
                scored, horizons_min=data.horizons_min, primary_min=primary, truth=_truth(options.truth),
                alerts_per_day=options.alerts_per_day, seed=options.seed, failure_is_self=_fails_alone(data),
            )  # fmt: skip
            beside = baseline_floors.measure(scored, primary, metrics, seed=options.seed)
            gates = [
                *baseline_fit.leak_alarms(data, sample, primary, baseline_floors.best_lift(beside)),
                both_sides(data, plan), acted_on(options.truth),
            ]  # fmt: skip
            written = write_run(
                options.out, predictions=scored.drop(floor_names), metrics=metrics, settings=settings,
                gates=[*(data.manifest.get("gates") or ()), *(gate.to_json() for gate in gates)], data=data.manifest,
                name=options.name, kind="train-baseline", allowed=options.allow, also=cells, progress=progress,
                extra={"floors": beside, "sentence": baseline_floors.sentence(beside, primary)},
                explain=lambda alerts: explain(data, model, alerts),
            )  # fmt: skip
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _write_model(options, data, model, settings)
    return written


def of_cells(data: FeatureSet, cells: Sequence[str]) -> FeatureSet:
    """The same data set, of ``cells`` alone. Raises BadTrace, naming the cells that are there."""
    absent = [cell for cell in cells if cell not in data.cells]
    if absent:
        raise BadTrace(
            "features-no-such-cell", f"reading the features in {data.folder}", f"there is no cell {', '.join(absent)}",
            f"there are: {', '.join(data.cells)}; make the others with 'leadtime borg make-forecaster-dataset'",
        )  # fmt: skip
    if not cells:
        return data
    return replace(
        data, partitions=tuple(path for path in data.partitions if path.parent.name.removeprefix("cell=") in cells)
    )


def score_test(
    data: FeatureSet, plan: Plan, model: Baseline, scratch: Path, progress: Progress = silent
) -> pl.LazyFrame:
    """Every row of the test block with its probabilities and floors, written by partition below ``scratch``, scanned.

    A partition is read whole: what its collections did in the hour before is a floor.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rows = 0
    for number, path in enumerate(data.partitions):
        for place, frame in enumerate(_scored(data, plan, model, path)):
            frame.write_parquet(scratch / f"{number:05d}-{place:04d}.parquet")
            rows += frame.height
        progress("scoring", number + 1, len(data.partitions), "partitions")
    if not rows:
        raise BadTrace("too-short-to-split", f"testing on {data.folder}", "the last block is empty", "bring more hours")
    return pl.scan_parquet(sorted(scratch.glob("*.parquet")))


def _scored(data: FeatureSet, plan: Plan, model: Baseline, path: Path) -> Iterator[pl.DataFrame]:
    seen = data.scan(path).select(CONTEXT).collect()
    looped = seen.select(KEY).with_columns(floors.failed_in_last_hour(seen).alias(floors.CRASH_LOOP))
    labels = [f"y_{m}" for m in data.horizons_min]
    test = data.scan(path).filter(plan.test).select(*CONTEXT, *labels, *data.features).collect()
    for at in range(0, test.height, 262_144):
        part = test.slice(at, 262_144)
        x = matrix_of(part, data.features)
        fixed = monotone_across_horizons(model.probabilities(x)).probabilities
        yield (
            part.select(*CONTEXT, *labels)
            .with_columns(plan.view, *(pl.Series(f"risk_{m}", fixed[m]) for m in data.horizons_min))
            .with_columns(pl.Series("risk_score", fixed[model.primary_min]))
            .with_columns(pl.Series(name, score.astype(np.float32)) for name, score in model.floors(x).items())
            .join(looped, on=list(KEY), how="left", maintain_order="left")
        )


def both_sides(data: FeatureSet, plan: Plan) -> Gate:
    """``collections-on-both-sides`` (T10): told, not failed: the views of unseen ones are measured beside it."""
    rows = pl.concat([data.scan(path).select(KEY) for path in data.partitions])
    found = splits.overlap(rows.filter(plan.learnt), rows.filter(plan.test))
    return reported(
        "collections-on-both-sides", found.test_rows_ratio,
        sentence=f"share of test rows whose collection was learnt from earlier in time ({found.collections:,} of "
        f"{found.test_collections:,} collections); the views collection and cell hold none of them",
    )  # fmt: skip


def explain(data: FeatureSet, model: Baseline, alerts: pl.DataFrame) -> pl.DataFrame:
    """Alert rows → key and ``reasons``: the features with the largest parts of the log-odds."""
    wanted = alerts.select(KEY).lazy()
    rows = pl.concat([
        data.scan(path).select(*KEY, *data.features).join(wanted, on=list(KEY), how="semi").collect()
        for path in data.partitions
    ])  # fmt: skip
    x = matrix_of(rows, data.features)
    parts = model.logistic[model.primary_min].parts(x)
    order = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :REASONS]
    said = [
        ", ".join(_reason(data.features[j], float(x[row, j]), float(parts[row, j])) for j in order[row])
        for row in range(len(x))
    ]
    return rows.select(KEY).with_columns(pl.Series("reasons", said, dtype=pl.String))


def _reason(feature: str, value: float, effect: float) -> str:
    """``cpu_ratio 0.81 (+1.92)``: name, value, part of the log-odds; a missing value is a dash."""
    return f"{feature} {'–' if np.isnan(value) else format(value, '.4g')} ({effect:+.2f})"


def _truth(paths: Sequence[Path]) -> pl.LazyFrame | None:
    return pl.concat([pl.scan_parquet(path) for path in paths]) if paths else None


def _fails_alone(data: FeatureSet) -> bool:
    return [str(kind) for kind in data.manifest.get("failure_types", ["FAIL"])] in (["FAIL"], ["5"])


def _settings(options: BaselineOptions, data: FeatureSet, plan: Plan, fraction: float) -> dict[str, Any]:
    return {
        "command": "borg train-baseline", "cells": list(data.cells), "profile": data.profile, "seed": options.seed,
        "split": plan.as_json(), "negatives_kept_ratio": fraction, "alerts_per_day": list(options.alerts_per_day),
        "allow": list(options.allow), "data_hash": data.data_hash,
    }  # fmt: skip


def _write_model(options: BaselineOptions, data: FeatureSet, model: Baseline, settings: Mapping[str, Any]) -> None:
    """The model's numbers, and the resolved settings of the run, each where the workspace keeps them."""
    if options.model_folder is not None:
        write_json(options.model_folder / MODEL, {
            "schema": MODEL_SCHEMA, "name": options.name, "data_hash": data.data_hash, "features": list(data.features),
            "horizons": {
                str(m): {"logistic": one.to_json(), "calibration": model.calibrations[m].to_json()}
                for m, one in model.logistic.items()
            },
        })  # fmt: skip
    if options.config is not None:
        write_json(options.config, settings)
