"""A plan and settings → boosters and calibrations of every horizon. Finished horizons survive a stop.

Each finished horizon is kept in the journal folder with the signature of everything that shaped it; a run with the same
signature takes it from there, any other begins anew.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.risk.calibration import Calibration, expit
from leadtime.training import booster as boosters
from leadtime.training.booster import Fitted, Settings
from leadtime.training.calibrate import fit_calibration
from leadtime.training.progress import Progress, silent
from leadtime.training.publish import RiskBoosters
from leadtime.training.sampling import EXCLUDED, Array, FeatureSet, Sample, draw, labels_of, matrix_of
from leadtime.training.train_plan import Plan

SIGNATURE = "signature.json"
BATCH_ROWS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that shapes a model beside the data. Equal recipe and data, equal model."""

    settings: Settings
    plan: Plan
    fraction: float
    watch_fraction: float
    seed: int
    threads: int

    def as_json(self) -> dict[str, Any]:
        """As it stands in the card and in the run's settings."""
        return {
            "settings": asdict(self.settings), "split": self.plan.as_json(), "negatives_kept_ratio": self.fraction,
            "watch_negatives_kept_ratio": self.watch_fraction, "seed": self.seed, "threads": self.threads,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSet:
    """Every horizon's booster with what it was grown on; ``reference``: each feature's median in the fit block."""

    fitted: Mapping[int, Fitted]
    reference: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The finished model, and the share of failures by horizon in the block it was calibrated on."""

    model: RiskBoosters
    base_rates: Mapping[int, float]
    positives: Mapping[int, int]


def signature(data: FeatureSet, recipe: Recipe) -> str:
    """SHA-256 of the data's hash and the recipe."""
    whole = {
        "data": data.data_hash, "partitions": [path.name for path in data.partitions], "features": data.features,
        "horizons": data.horizons_min, "recipe": recipe.as_json(),
    }  # fmt: skip
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def fit_all(data: FeatureSet, recipe: Recipe, journal: Path, progress: Progress = silent) -> FittedSet:
    """Fit every horizon, or take it from ``journal`` when it was finished by a run of the same signature."""
    _begin(journal, signature(data, recipe))
    plan = recipe.plan
    fit = draw(data, plan.fit, fraction=recipe.fraction, seed=recipe.seed, progress=progress, what="reading: fit")
    watch = draw(
        data, plan.watch, fraction=recipe.watch_fraction, seed=recipe.seed, progress=progress, what="reading: watch"
    )
    fitted: dict[int, Fitted] = {}
    longer: Fitted | None = None
    for m in sorted(data.horizons_min, reverse=True):
        own = _kept(journal, m) or _fit_one(journal, m, recipe, fit=fit, watch=watch, longer=longer, progress=progress)
        fitted[m] = longer = own
    return FittedSet(fitted=dict(sorted(fitted.items())), reference=_medians(fit.x))


def _fit_one(
    journal: Path, m: int, recipe: Recipe, *, fit: Sample, watch: Sample, longer: Fitted | None, progress: Progress
) -> Fitted:
    """One horizon, on top of the next longer one's trees."""
    rows = fit.rows(m)
    start = None if longer is None else boosters.started(longer, rows)
    done = boosters.fit(
        rows, watch.rows(m), recipe.settings, start=start, seed=recipe.seed, threads=recipe.threads,
        progress=progress, what=f"fitting {m} min",
    )  # fmt: skip
    boosters.save(done.booster, journal / f"model-{m}.json")
    facts = {
        "rounds": done.rounds, "watched": done.watched, "positives": done.positives, "rows": done.rows,
        "base_rate": done.base_rate,
    }  # fmt: skip
    unfinished = journal / f"fitted-{m}.unfinished"
    unfinished.write_text(json.dumps(facts), encoding="utf-8")
    unfinished.replace(journal / f"fitted-{m}.json")
    return done


def _kept(journal: Path, m: int) -> Fitted | None:
    try:
        facts = json.loads((journal / f"fitted-{m}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Fitted(booster=boosters.load(journal / f"model-{m}.json"), **facts)


def _begin(journal: Path, signed: str) -> None:
    """Make the journal, emptied unless it carries this signature."""
    try:
        before = json.loads((journal / SIGNATURE).read_text(encoding="utf-8"))["signature"]
    except (OSError, ValueError, KeyError):
        before = None
    if before != signed:
        shutil.rmtree(journal, ignore_errors=True)
        journal.mkdir(parents=True)
        (journal / SIGNATURE).write_text(json.dumps({"signature": signed}), encoding="utf-8")


def _medians(x: Array) -> tuple[float, ...]:
    """Each column's median over known values; NaN where at least half is missing (then missing is the usual case)."""
    mostly = np.isnan(x).mean(axis=0) >= 0.5 if len(x) else np.ones(x.shape[1], bool)
    return tuple(float("nan") if mostly[j] else float(np.nanmedian(x[:, j])) for j in range(x.shape[1]))


def batches(data: FeatureSet, block: pl.Expr, columns: tuple[str, ...]) -> Iterator[tuple[pl.DataFrame, Array]]:
    """Rows of ``block`` in order, BATCH_ROWS at a time: ``columns`` beside the float32 matrix of features."""
    for path in data.partitions:
        frame = data.scan(path).filter(block).select(*columns, *data.features).collect()
        for at in range(0, frame.height, BATCH_ROWS):
            part = frame.slice(at, BATCH_ROWS)
            yield part.select(columns), matrix_of(part, data.features)


def calibrate_all(data: FeatureSet, recipe: Recipe, fitted: FittedSet, progress: Progress = silent) -> Calibrated:
    """Fit each horizon's map on every row of the calibration block: nothing sampled there, so no weights."""
    labels = tuple(f"y_{m}" for m in data.horizons_min)
    scores: dict[int, list[Array]] = {m: [] for m in data.horizons_min}
    truths: list[Array] = [np.zeros((0, len(labels)), np.int8)]
    collections: list[Array] = [np.zeros(0, np.int64)]
    rows = 0
    for frame, x in batches(data, recipe.plan.calibrate, ("collection_id", *labels)):
        truths.append(labels_of(frame, data.horizons_min))
        collections.append(frame["collection_id"].to_numpy())
        for m in data.horizons_min:
            scores[m].append(boosters.margins(fitted.fitted[m].booster, x).astype(np.float32))
        rows += frame.height
        progress("calibrating", rows, None)
    y, group = np.concatenate(truths), np.concatenate(collections)
    maps: dict[int, Calibration] = {}
    base_rates, positives = {}, {}
    for column, m in enumerate(data.horizons_min):
        known = y[:, column] != EXCLUDED
        margin = np.concatenate(scores[m]) if scores[m] else np.zeros(0, np.float32)
        maps[m] = fit_calibration(expit(margin[known]), y[known, column], group=group[known])
        positives[m] = int(y[known, column].sum())
        base_rates[m] = positives[m] / max(1, int(known.sum()))
    model = RiskBoosters(boosters={m: one.booster for m, one in fitted.fitted.items()}, calibrations=maps)
    return Calibrated(model=model, base_rates=base_rates, positives=positives)
