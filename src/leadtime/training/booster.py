"""Weighted rows → one gradient-boosted model of P(failure within the horizon), stopped early, the same every time.

XGBoost's histogram method, one binary model a horizon (design record 0017). ``scale_pos_weight`` stays 1: it ruins
probabilities and leaves the ranking as it is. Rows reach the quantiser in chunks, so the raw matrix is never copied.
"""

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from leadtime.domain.errors import BadTrace
from leadtime.risk.calibration import expit, logit
from leadtime.risk.measures import average_precision
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import Array, Rows

CHUNK_ROWS = 262_144
METRIC = "average_precision"
WORTH_RATIO = 0.01  # least share by which a shorter horizon's own trees must raise the watched precision
LEAVES = 50  # so many leaves at least may hold the failures there are
FEWEST_POSITIVES = 20  # below this neither a split nor an early stop means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one horizon's model is grown; names are XGBoost's. ``patience``: rounds without a gain.

    ``min_child_weight`` sums p(1 − p), so about the failures of a leaf: of few failures it is at most 1 / LEAVES.
    """

    rounds: int = 300
    patience: int = 40
    eta: float = 0.06
    max_depth: int = 4
    min_child_weight: float = 50.0
    subsample: float = 0.6
    colsample_bytree: float = 0.4
    gamma: float = 0.0
    reg_lambda: float = 20.0
    reg_alpha: float = 0.0
    max_bin: int = 256
    max_delta_step: float = 0.0

    def parameters(self, *, seed: int, threads: int, positives: int) -> dict[str, Any]:
        """As ``xgboost.train`` takes them, for rows with so many failures."""
        grown = {key: value for key, value in asdict(self).items() if key not in {"rounds", "patience"}}
        fixed = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "disable_default_eval_metric": 1,
            "verbosity": 0,
        }
        weight = min(self.min_child_weight, max(1.0, positives / LEAVES))
        return {**grown, **fixed, "min_child_weight": weight, "seed": seed, "nthread": threads}


def settings_from(plain: Mapping[str, Any]) -> Settings:
    """Settings out of JSON; what is left out keeps its default. Raises BadTrace on a name that is none."""
    names = {field.name: field.type for field in fields(Settings)}
    unknown = sorted(set(plain) - set(names))
    if unknown:
        raise BadTrace(
            "settings-unknown", "reading training settings", f"there is no setting {', '.join(unknown)}",
            f"use {', '.join(sorted(names))}",
        )  # fmt: skip
    whole = {"rounds", "patience", "max_depth", "max_bin"}
    read: dict[str, Any] = {key: int(value) if key in whole else float(value) for key, value in plain.items()}
    return replace(Settings(), **read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One horizon's model, cut at its best round. ``watched``: the weighted average precision there."""

    booster: xgboost.Booster
    rounds: int
    watched: float
    positives: int
    rows: int
    base_rate: float


class _Chunks(xgboost.DataIter):  # type: ignore[misc] # xgboost is not read for types
    """``Rows`` in chunks, each copied out of the matrix only while it is being binned."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._at = 0
        super().__init__()

    def reset(self) -> None:
        """Begin again."""
        self._at = 0

    def next(self, input_data: Callable[..., Any]) -> bool:
        """Hand one chunk to XGBoost; False when there is none left."""
        rows, at = self._rows, self._at
        if at >= len(rows.index):
            return False
        to = at + CHUNK_ROWS
        input_data(data=rows.x[rows.index[at:to]], label=rows.y[at:to], weight=rows.weight[at:to])
        self._at = to
        return True


class _Told(xgboost.callback.TrainingCallback):  # type: ignore[misc] # xgboost is not read for types
    """Tells the progress of each round."""

    def __init__(self, progress: Progress, what: str, rounds: int) -> None:
        super().__init__()
        self._progress, self._what, self._rounds = progress, what, rounds

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        """Never stops the training."""
        self._progress(self._what, epoch + 1, self._rounds, "rounds")
        return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block is left.

    Raised inside a callback from C they would be printed and lost, and XGBoost would take the chunk for the last one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    for one in before:
        signal.signal(one, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(came[0])


def binned(rows: Rows, settings: Settings, like: xgboost.QuantileDMatrix | None = None) -> xgboost.QuantileDMatrix:
    """Rows as XGBoost trains on them, at most 2 bytes a value; ``like``: the matrix whose bins are to be used."""
    with undisturbed():
        return xgboost.QuantileDMatrix(_Chunks(rows), max_bin=settings.max_bin, ref=like)


def _enough(train: Rows, watch: Rows, what: str) -> None:
    """Raise BadTrace when either block has fewer than FEWEST_POSITIVES failures."""
    for name, rows in (("training", train), ("early-stopping", watch)):
        if rows.positives < FEWEST_POSITIVES:
            raise BadTrace(
                "too-few-failures", what, f"the {name} block has {rows.positives} failures in {len(rows.index)} rows",
                f"bring at least {FEWEST_POSITIVES}: more days, more cells, or a longer horizon",
            )  # fmt: skip


def fit(
    train: Rows, watch: Rows, settings: Settings, *, start: xgboost.Booster | None = None, seed: int, threads: int = 2,
    progress: Progress = silent, what: str = "fitting",
) -> Fitted:  # fmt: skip
    """Grow trees on ``train`` (on top of ``start``'s) until what is watched stops rising: weighted average precision.

    ``watch``: rows later in time than ``train``.

    ``start``: the next longer horizon's trees. It has many times the failures, so what it ranks by is known better;
    own trees are added only where they raise the watched precision by WORTH_RATIO.
    Equal rows, settings, seed and thread count give equal trees. Raises BadTrace when either block has fewer than
    FEWEST_POSITIVES failures.
    """
    _enough(train, watch, what)
    matrix = binned(train, settings)
    watched = binned(watch, settings, like=matrix)

    before = 0.0 if start is None else average_precision(watch.y, _watched(start, watch), watch.weight)

    def measure(predicted: Array, _matrix: xgboost.DMatrix) -> tuple[str, float]:
        return METRIC, average_precision(watch.y, predicted, watch.weight)

    stop = xgboost.callback.EarlyStopping(
        rounds=settings.patience, metric_name=METRIC, data_name="watch", maximize=True, save_best=True,
        min_delta=WORTH_RATIO * before,
    )  # fmt: skip
    parameters = settings.parameters(seed=seed, threads=threads, positives=train.positives)
    booster = xgboost.train(
        parameters, matrix, settings.rounds, evals=[(watched, "watch")],
        custom_metric=measure, verbose_eval=False, xgb_model=start,
        callbacks=[stop, _Told(progress, what, settings.rounds)],
    )  # fmt: skip
    best = float(booster.attributes().get("best_score") or "nan")
    if start is not None and not best > before * (1 + WORTH_RATIO):
        booster, best = start, before
    return Fitted(
        booster=booster, rounds=booster.num_boosted_rounds(), watched=best, positives=train.positives,
        rows=len(train.index), base_rate=train.base_rate,
    )  # fmt: skip


def _watched(booster: xgboost.Booster, rows: Rows) -> Array:
    chunks = range(0, len(rows.index), CHUNK_ROWS)
    return np.concatenate([margins(booster, rows.x[rows.index[at : at + CHUNK_ROWS]]) for at in chunks])


def started(longer: Fitted, rows: Rows) -> xgboost.Booster:
    """A longer horizon's trees as the start of a shorter one's: ``rows``' base rate instead of its own."""
    return raised(longer.booster, float(logit([rows.base_rate])[0] - logit([longer.base_rate])[0]))


def raised(booster: xgboost.Booster, by: float) -> xgboost.Booster:
    """The same trees with ``by`` added to every log-odds, so that a model of one base rate can start another's."""
    plain = json.loads(booster.save_raw("json"))
    parameters = plain["learner"]["learner_model_param"]
    known = json.loads(parameters["base_score"])
    base = float(known[0] if isinstance(known, list) else known)  # a probability
    moved = float(expit(logit([base]) + by)[0])
    parameters["base_score"] = f"[{moved!r}]" if isinstance(known, list) else repr(moved)
    copy = xgboost.Booster()
    copy.load_model(bytearray(json.dumps(plain).encode()))
    return copy


def margins(booster: xgboost.Booster, x: Array) -> Array:
    """Log-odds [rows] float64 before calibration; NaN in ``x`` is missing."""
    if len(x) == 0:
        return np.zeros(0)
    return np.asarray(booster.inplace_predict(x, predict_type="margin"), dtype=np.float64)


def contributions(booster: xgboost.Booster, x: Array) -> Array:
    """TreeSHAP values [rows, features + 1] in log-odds (last: the bias); they add up to the margin. Slow: few rows."""
    return np.asarray(booster.predict(xgboost.DMatrix(x), pred_contribs=True), dtype=np.float64)


def save(booster: xgboost.Booster, path: Path) -> None:
    """Write XGBoost's JSON, without the attributes of early stopping, so that equal trees are equal bytes."""
    booster.set_attr(best_iteration=None, best_score=None)
    booster.save_model(path)


def load(path: Path) -> xgboost.Booster:
    """Read a booster back."""
    booster = xgboost.Booster()
    booster.load_model(path)
    return booster


def gains(booster: xgboost.Booster, features: tuple[str, ...]) -> dict[str, float]:
    """Share of the total gain each feature brought, largest first; features that no tree uses are left out."""
    total = booster.get_score(importance_type="total_gain")
    whole = sum(total.values()) or 1.0
    named = {features[int(name[1:])]: float(value) / whole for name, value in total.items()}
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))
