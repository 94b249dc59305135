"""How fast failure models are trained and asked, in row·rounds and rows a second, beside scikit-learn in the same run.

Run: python benchmarks/bench_borg_train.py [ROWS]. Both learners get the same rows, trees, depth, bins and one thread a
core; seconds are of the wall, so nothing else should run. The aims: faster than HistGradientBoosting; scoring at 0.3 M
rows/s with 300 trees in all, as the published ONNX files do it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier

from leadtime.risk.calibration import Calibration, Kind
from leadtime.risk.measures import average_precision
from leadtime.sources.risk_model import CARD_SCHEMA, load_risk_model
from leadtime.testing.risk_toy import ToyTrace, write_features
from leadtime.training import booster as boosters
from leadtime.training.booster import Settings
from leadtime.training.publish import RiskBoosters, publish
from leadtime.training.sampling import FeatureSet, Rows, draw, open_features
from leadtime.training.train_plan import plan_for

ROUNDS, DEPTH, ETA = 60, 5, 0.1
HORIZONS = (5, 15, 30, 45, 60)
ROWS_A_TASK = 52.0


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    done = work()
    return time.perf_counter() - begun, done


def ours(train: Rows, watch: Rows, threads: int) -> boosters.Fitted:
    settings = Settings(rounds=ROUNDS, patience=ROUNDS, max_depth=DEPTH, eta=ETA, subsample=1.0, colsample_bytree=1.0)
    return boosters.fit(train, watch, settings, seed=1, threads=threads)


def theirs(train: Rows) -> HistGradientBoostingClassifier:
    rival = HistGradientBoostingClassifier(
        max_iter=ROUNDS, max_depth=DEPTH, learning_rate=ETA, early_stopping=False, max_bins=255, random_state=1
    )
    return rival.fit(train.x[train.index], train.y, sample_weight=train.weight)


def scoring(data: FeatureSet, fitted: boosters.Fitted, x: np.ndarray, threads: int) -> tuple[float, float]:
    """Seconds for ``x`` with five horizons of 60 trees by the published files, and by XGBoost."""
    same = RiskBoosters(
        boosters=dict.fromkeys(HORIZONS, fitted.booster),
        calibrations={m: Calibration(kind=Kind.IDENTITY) for m in HORIZONS},
    )
    card = {
        "schema": CARD_SCHEMA, "name": "bench", "data_hash": "0", "horizons_min": list(HORIZONS),
        "features": list(data.features), "base_rates": dict.fromkeys(map(str, HORIZONS), 0.01),
        "reference": [None] * len(data.features),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        publish_without_page(Path(folder) / "model", same, card, x[:1000])
        model = load_risk_model(Path(folder) / "model", threads=threads)
        by_files, _ = timed(lambda: model.scores(x))
    by_xgboost, _ = timed(lambda: same.scores(x))
    return by_files, by_xgboost


def publish_without_page(folder: Path, model: RiskBoosters, card: dict[str, object], rows: np.ndarray) -> None:
    """The whole publishing; the page's entries are empty."""
    page = {
        "failure_types": [], "profile": "baseline", "allowed_gates": [], "gain": {}, "not_for": [],
        "seen": {"rows": 0, "collections": 0, "cells": [], "tiers": []}, "training": {"negatives_kept_ratio": 1.0},
        "raised_to_stay_monotone_ratio": 0.0, "metrics": {"horizons": {}},
    }  # fmt: skip
    publish(folder, model, {**page, **card}, rows)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    threads = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        write_features(Path(folder), ToyTrace(tasks=int(rows / ROWS_A_TASK), windows=300, mu=1.5, seed=9))
        data = open_features(Path(folder))
        plan = plan_for(data, seed=0)
        read_s, fit = timed(lambda: draw(data, plan.fit, fraction=1.0, seed=0))
        watch = draw(data, plan.watch, fraction=1.0, seed=0)
        test = draw(data, plan.test, fraction=1.0, seed=0).rows(15)
        every = draw(data, pl.lit(value=True), fraction=1.0, seed=0).x
    train, watched = fit.rows(15), watch.rows(15)
    n = len(train.index)
    shape = f"{n:,} rows x {len(data.features)} features"
    print(f"{shape} read in {read_s:.1f} s; {threads} threads, load {os.getloadavg()[0]:.1f}")
    our_s, fitted = timed(lambda: ours(train, watched, threads))
    their_s, rival = timed(lambda: theirs(train))
    our_ap = average_precision(test.y, boosters.margins(fitted.booster, test.x[test.index]))
    their_ap = average_precision(test.y, rival.predict_proba(test.x[test.index])[:, 1])
    print(f"leadtime: {n * ROUNDS / our_s / 1e6:.1f} M row·rounds/s (early stopping included), AP {our_ap:.4f}")
    print(
        f"scikit-learn: {n * ROUNDS / their_s / 1e6:.1f} M row·rounds/s, AP {their_ap:.4f}; ratio {their_s / our_s:.2f}"
    )
    by_files, by_xgboost = scoring(data, fitted, every, threads)
    print(
        f"scoring, 5 horizons, {5 * fitted.rounds} trees: published files {len(every) / by_files / 1e6:.2f} M rows/s, "
        f"XGBoost {len(every) / by_xgboost / 1e6:.2f} M rows/s"
    )


if __name__ == "__main__":
    main()
