"""A data set and its split → logistic models by horizon, calibrated, and the floors' models beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from leadtime.domain.errors import BadTrace
from leadtime.risk import floors, measures
from leadtime.risk.calibration import Calibration
from leadtime.risk.gates import Gate
from leadtime.training import evaluation_alarms as alarms
from leadtime.training.baseline_model import Logistic, fit_logistic
from leadtime.training.calibrate import fit_calibration
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import EXCLUDED, Array, FeatureSet, Rows, Sample, labels_of
from leadtime.training.train_fit import batches
from leadtime.training.train_plan import Plan

LEAF = 0.002  # smallest share of the weighted rows a leaf of the static table may hold
DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Horizon (minutes) → model and map; floors of the primary horizon where the features for them are there."""

    logistic: Mapping[int, Logistic]
    calibrations: Mapping[int, Calibration]
    primary_min: int
    static: Any  # a decision tree over ``static_columns``, or None
    static_columns: tuple[int, ...]
    last_window: Logistic | None
    last_window_columns: tuple[int, ...]

    def probabilities(self, x: Array) -> dict[int, Array]:
        """x [rows, features] → horizon → calibrated p [rows], not yet monotone."""
        return {m: self.calibrations[m].apply(model.probabilities(x)) for m, model in self.logistic.items()}

    def floors(self, x: Array) -> dict[str, Array]:
        """x [rows, features] → floor → score [rows] for the primary horizon."""
        scores: dict[str, Array] = {}
        if self.static is not None:
            scores[floors.STATIC] = self.static.predict_proba(x[:, self.static_columns])[:, 1]
        if self.last_window is not None:
            scores[floors.LAST_WINDOW] = self.last_window.probabilities(x[:, self.last_window_columns])
        return scores


def fit(
    data: FeatureSet, plan: Plan, sample: Sample, *, primary_min: int, seed: int, progress: Progress = silent
) -> Baseline:
    """Fit every horizon on the sample and calibrate it on every row of the calibration block.

    Raises BadTrace where a horizon has no failure to learn from.
    """
    logistic: dict[int, Logistic] = {}
    for number, m in enumerate(data.horizons_min):
        progress("fitting", number, len(data.horizons_min), "horizons")
        try:
            logistic[m] = fit_logistic(sample.rows(m), data.features)
        except ValueError as error:
            raise BadTrace(
                "too-few-failures", f"fitting {m} min on {data.folder}", str(error), "bring more hours, or leave it out"
            ) from None
    progress("fitting", len(data.horizons_min), len(data.horizons_min), "horizons")
    rows = sample.rows(primary_min)
    static = _places(data, floors.STATIC_FEATURES)
    last = _places(data, floors.LAST_WINDOW_FEATURES)
    names = tuple(data.features[place] for place in last)
    return Baseline(
        logistic=logistic, calibrations=_calibrated(data, plan, logistic, progress), primary_min=primary_min,
        static=_table(rows, static, seed) if static else None, static_columns=static,
        last_window=fit_logistic(rows, names, columns=last) if last else None, last_window_columns=last,
    )  # fmt: skip


def _places(data: FeatureSet, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(data.features.index(name) for name in floors.present(names, data.features))


def _table(rows: Rows, columns: tuple[int, ...], seed: int) -> Any:
    """Static values → share that failed, as a shallow tree: a table whose cuts are found, not chosen."""
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_weight_fraction_leaf=LEAF, random_state=seed)
    return tree.fit(rows.x[rows.index][:, columns], rows.y, sample_weight=rows.weight)


def _calibrated(
    data: FeatureSet, plan: Plan, logistic: Mapping[int, Logistic], progress: Progress
) -> dict[int, Calibration]:
    """One map a horizon, fitted on whole rows of a block nothing was fitted on."""
    labels = tuple(f"y_{m}" for m in data.horizons_min)
    truths: list[Array] = [np.zeros((0, len(labels)), np.int8)]
    scores: dict[int, list[Array]] = {m: [np.zeros(0)] for m in data.horizons_min}
    seen = 0
    collections: list[Array] = [np.zeros(0, np.int64)]
    for frame, x in batches(data, plan.calibrate, ("collection_id", *labels)):
        truths.append(labels_of(frame, data.horizons_min))
        collections.append(frame["collection_id"].to_numpy())
        for m, model in logistic.items():
            scores[m].append(model.probabilities(x))
        seen += frame.height
        progress("calibrating", seen, None)
    y, group = np.concatenate(truths), np.concatenate(collections)
    known = y != EXCLUDED
    return {
        m: fit_calibration(
            np.concatenate(scores[m])[known[:, column]], y[known[:, column], column], group=group[known[:, column]]
        )
        for column, m in enumerate(data.horizons_min)
    }


def leak_alarms(data: FeatureSet, sample: Sample, primary_min: int, best_floor_lift: float) -> list[Gate]:
    """``one-feature`` and ``feature-removal`` on the rows learnt from: alarms that need no truth."""
    rows = sample.rows(primary_min)
    lifts = single_lifts(data, rows)
    found = [alarms.alone(lifts, best_floor_lift)]
    if lifts:
        strongest = max(lifts, key=lambda name: lifts[name])
        kept = [place for place, name in enumerate(data.features) if name != strongest]
        whole, without = _ap(rows, data, list(range(len(data.features)))), _ap(rows, data, kept)
        found.append(alarms.carried(strongest, whole, without))
    return found


def single_lifts(data: FeatureSet, rows: Rows) -> dict[str, float]:
    """Feature → AP over base rate of its better direction (missing values lowest); constant ones are left out."""
    base = measures.base_rate(rows.y, rows.weight)
    lifts = {}
    for place, name in enumerate(data.features):
        column = rows.x[rows.index, place].astype(np.float64)
        known = column[np.isfinite(column)]
        if not len(known) or known.min() == known.max() == np.nan_to_num(column, nan=known.min() - 1).min():
            continue
        low = known.min() - 1
        rising = np.where(np.isfinite(column), column, low)
        falling = np.where(np.isfinite(column), -column, -known.max() - 1)
        lifts[name] = max(measures.average_precision(rows.y, score, rows.weight) for score in (rising, falling)) / base
    return lifts


def _ap(rows: Rows, data: FeatureSet, columns: list[int]) -> float:
    if not columns:
        return measures.base_rate(rows.y, rows.weight)
    names = tuple(data.features[place] for place in columns)
    model = fit_logistic(rows, names, columns=columns)
    return measures.average_precision(rows.y, model.probabilities(rows.x[rows.index][:, columns]), rows.weight)
