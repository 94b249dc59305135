"""Features → a fitted, calibrated, measured and published failure model, or a refusal that says why.

Order: gates of the data, fit, calibrate, open the test block once, alarms, run folder, model folder. A run that was
stopped goes on with the horizons it had finished.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import primary_horizon_min
from leadtime.domain.errors import BadTrace
from leadtime.risk.calibration import monotone_across_horizons
from leadtime.training import booster as boosters
from leadtime.training import model_card
from leadtime.training.acted_rows import acted_on
from leadtime.training.booster import Settings
from leadtime.training.check import require_passed
from leadtime.training.evaluation import ALERTS_PER_DAY, evaluate
from leadtime.training.folder_lock import sole_writer
from leadtime.training.manifest import disk_errors, write_json
from leadtime.training.progress import Progress, silent
from leadtime.training.publish import Parity, RiskBoosters, publish
from leadtime.training.run_folder import write_run
from leadtime.training.sampling import KEY, Array, FeatureSet, count_negatives, fraction_for, matrix_of, open_features
from leadtime.training.train_fit import Recipe, batches, calibrate_all, fit_all
from leadtime.training.train_horizons import learnable, only
from leadtime.training.train_plan import Plan, plan_for

MOST_VALUES = 160_000_000  # of negatives in the fit block, features x rows: 0.64 GB
MOST_NEGATIVES = 2_000_000
MOST_WATCHED = 500_000
PARITY_ROWS = 20_000
CONTEXT = (
    "cell", "collection_id", "instance_index", "start_time_us", "end_time_us", "run_number", "tier",
    "next_terminal_time_us", "next_terminal_cause",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """One training run. ``fraction``: share of negatives kept (None: what MOST_VALUES allows); ``truth``: the
    generator's truth_rows.parquet of each cell, where there is one; ``horizons_min``: these alone (none: all of the
    features'); ``leave_out_sparse``: horizons with too few failures are left out instead of refused."""

    features: Path
    name: str
    model_folder: Path
    run_folder: Path
    journal: Path
    config: Path
    settings: Settings
    settings_from: str = "defaults"
    seed: int = 0
    threads: int = 2
    fraction: float | None = None
    unseen_cell: str | None = None
    allow: tuple[str, ...] = ()
    truth: tuple[Path, ...] = ()
    alerts_per_day: tuple[int, ...] = ALERTS_PER_DAY
    horizons_min: tuple[int, ...] = ()
    leave_out_sparse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a run left: metrics as in metrics.json, and the parity of the published files."""

    metrics: Mapping[str, Any]
    card: Mapping[str, Any]
    parity: Parity


def train(options: TrainOptions, progress: Progress = silent) -> Trained:
    """Run one training. Raises BadTrace when a gate of the data failed and was not allowed, when a horizon has too few
    failures (before anything is fitted), when another run writes into the run folder, or when an alarm of the
    evaluation rang (the run folder is then written, the model is not published).
    """
    data = only(open_features(options.features), options.horizons_min)
    require_passed(data.manifest, allow=options.allow, doing=f"training {options.name}")
    doing = f"training {options.name}"
    with disk_errors(doing, options.model_folder.parent), sole_writer(options.run_folder, doing=doing):
        plan = plan_for(data, seed=options.seed, unseen_cell=options.unseen_cell)
        data, sparse = learnable(data, plan, doing=doing, leave_out=options.leave_out_sparse)
        recipe = recipe_for(data, options)
        write_json(options.config, _resolved(data, options, recipe))
        fitted = fit_all(data, recipe, options.journal, progress)
        calibrated = calibrate_all(data, recipe, fitted, progress)
        predictions, changed_ratio = predict(data, recipe.plan, calibrated.model, progress)
        metrics = evaluate(
            predictions, horizons_min=data.horizons_min, primary_min=primary_horizon_min(data.horizons_min),
            truth=pl.scan_parquet(list(options.truth)) if options.truth else None,
            alerts_per_day=options.alerts_per_day, seed=options.seed,
        )  # fmt: skip
        card = model_card.build(
            name=options.name, data=data, recipe=recipe, fitted=fitted, metrics=metrics,
            base_rates=calibrated.base_rates, monotone_ratio=changed_ratio, allowed=options.allow,
            left_out=sparse,
        )  # fmt: skip
        kept = ("raised_to_stay_monotone_ratio", "fitted", "gain", "horizons_left_out")
        write_run(
            options.run_folder, predictions=predictions, metrics=metrics,
            gates=[*model_card.gates_of(data.manifest), acted_on(options.truth).to_json()],
            settings=recipe.as_json(), data=data.manifest, name=options.name, kind="train", allowed=options.allow,
            extra={name: card[name] for name in kept}, explain=explainer(data, calibrated.model), progress=progress,
        )  # fmt: skip
        refuse_alarms(metrics, options.allow, options.name)
        parity = publish(options.model_folder, calibrated.model, card, parity_rows(data, recipe.plan))
        shutil.rmtree(options.journal, ignore_errors=True)
    return Trained(metrics=metrics, card=card, parity=parity)


def _resolved(data: FeatureSet, options: TrainOptions, recipe: Recipe) -> dict[str, Any]:
    """Settings of the run, every default filled in."""
    return {
        "command": "borg train", "name": options.name, "data_hash": data.data_hash, "profile": data.profile,
        "settings_from": options.settings_from, "allow": list(options.allow), **recipe.as_json(),
    }  # fmt: skip


def recipe_for(data: FeatureSet, options: TrainOptions) -> Recipe:
    """Options resolved against the data: where the cuts lie, and the share of negatives kept."""
    plan = plan_for(data, seed=options.seed, unseen_cell=options.unseen_cell)
    most = min(MOST_NEGATIVES, MOST_VALUES // len(data.features))
    fraction = options.fraction or fraction_for(count_negatives(data, plan.fit), most)
    watched = fraction_for(count_negatives(data, plan.watch), min(MOST_WATCHED, most // 4))
    return Recipe(
        settings=options.settings, plan=plan, fraction=fraction, watch_fraction=watched, seed=options.seed,
        threads=options.threads,
    )  # fmt: skip


def predict(
    data: FeatureSet, plan: Plan, model: RiskBoosters, progress: Progress = silent
) -> tuple[pl.DataFrame, float]:
    """Score every row of the test block: the frame of design record 0015, and the share of rows (0–1) whose
    probabilities had to be raised to stay monotone."""
    labels = tuple(f"y_{m}" for m in data.horizons_min)
    parts: list[pl.DataFrame] = []
    rows, raised = 0, 0.0
    for frame, x in batches(data, plan.test, (*CONTEXT, *labels)):
        monotone = monotone_across_horizons(model.uncapped(x))
        raised += monotone.share_changed * frame.height
        rows += frame.height
        risks = [pl.Series(f"risk_{m}", monotone.probabilities[m]) for m in data.horizons_min]
        parts.append(frame.with_columns(plan.view, *risks))
        progress("scoring the last block", rows, None)
    if not parts:
        raise BadTrace("too-short-to-split", f"testing on {data.folder}", "the last block is empty", "bring more hours")
    primary = primary_horizon_min(data.horizons_min)
    whole = pl.concat(parts).with_columns(pl.col(f"risk_{primary}").alias("risk_score"))
    return whole, raised / rows


def refuse_alarms(metrics: Mapping[str, Any], allow: tuple[str, ...], name: str) -> None:
    """Raise BadTrace when an alarm of the evaluation rang and was not allowed: no such model is published."""
    rang = [gate for gate in metrics["gates"] if gate["standing"] == "failed" and gate["name"] not in allow]
    if rang:
        said = "; ".join(
            f"{gate['name']} ({gate['where']}) {gate['measured']:.4g} {gate['unit']}, limit {gate['limit']:.4g}"
            for gate in rang
        )
        cure = f"{rang[0]['cure']}, or allow it by name with --allow {rang[0]['name']}"
        raise BadTrace("leak-alarm", f"publishing {name}", said, cure)


def explainer(data: FeatureSet, model: RiskBoosters, *, most: int = 3) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Alert rows → key and ``reasons``: the ``most`` features with the largest TreeSHAP values, in log-odds."""
    primary = primary_horizon_min(data.horizons_min)

    def explain(alerts: pl.DataFrame) -> pl.DataFrame:
        wanted = alerts.select(KEY).lazy()
        parts = [
            data.scan(path).select(*KEY, *data.features).join(wanted, on=list(KEY), how="semi").collect()
            for path in data.partitions
        ]
        rows = pl.concat(parts)
        x = matrix_of(rows, data.features)
        parted = boosters.contributions(model.boosters[primary], x)[:, :-1]
        reasons = [reasons_of(data.features, x[row], parted[row], most) for row in range(len(x))]
        return rows.select(KEY).with_columns(pl.Series("reasons", reasons, dtype=pl.String))

    return explain


def reasons_of(features: Sequence[str], row: Array, parts: Array, most: int) -> str:
    """``ratio_mean6 0.81 (+1.92), …``: name, value, effect in log-odds, largest first; a missing value is a dash."""
    order = np.argsort(-np.abs(parts), kind="stable")[:most]
    known = (f"{features[j]} {'–' if np.isnan(row[j]) else format(row[j], '.4g')} ({parts[j]:+.2f})" for j in order)
    return ", ".join(known)


def parity_rows(data: FeatureSet, plan: Plan) -> Array:
    """Real rows of the test block for the parity check, every partition's first ones, some values taken away.

    One value in 20 is made missing, column after column in turn, because real rows may lack few.
    """
    each = max(1, PARITY_ROWS // len(data.partitions))
    parts = [
        matrix_of(data.scan(path).filter(plan.test).select(data.features).head(each).collect(), data.features)
        for path in data.partitions
    ]
    x = np.concatenate(parts)
    cells = np.arange(x.size).reshape(x.shape)
    return np.where((cells * 7919) % 20 == 0, np.float32("nan"), x).astype(np.float32)
