"""Samples → one booster a quantile, stopped where the newest part of the time no longer gains, the same every time.

XGBoost's histogram method and its quantile loss: a leaf says the quantile of its residuals, so where most of them are
exactly 0 (demand that mostly stays) it says 0, and the forecast remains the naive one. One booster a quantile because
boosters of several outputs are exported to ONNX wrongly (onnxmltools 1.16).
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import xgboost

from leadtime.forecast.lag_features import Matrix
from leadtime.forecast.model import FloatColumn
from leadtime.training.demand.samples import Samples
from leadtime.training.demand.settings import Settings

QUANTILES = (0.05, 0.5, 0.95)
WATCHED_SHARE = 0.15  # the newest part of the time, on which the number of trees is chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantileBoosters:
    """A ``lag_trees.Reader``: one booster for each of QUANTILES. Pickles."""

    boosters: tuple[xgboost.Booster, ...]

    def __call__(self, features: Matrix) -> FloatColumn:
        """See Reader."""
        if not len(features):
            return np.empty((0, len(self.boosters)))
        said = [booster.inplace_predict(features) for booster in self.boosters]
        return np.stack(said, axis=1).astype(np.float64)


def fit(
    samples: Samples, settings: Settings, *, seed: int, threads: int = 1, budget_s: float = 300.0,
    note: Callable[[float], None] = lambda _share: None,
) -> QuantileBoosters:  # fmt: skip
    """Grow the boosters. Each may take a third of ``budget_s`` and then keeps what it has; within the budget equal
    samples, settings and seed give equal boosters, whatever the number of threads. ``note`` may raise to stop."""
    cut = np.quantile(samples.at_s, 1.0 - WATCHED_SHARE)
    grown, watched = samples.at_s < cut, samples.at_s >= cut
    matrix = xgboost.QuantileDMatrix(samples.x[grown], samples.y[grown], max_bin=settings.max_bin)
    watch = xgboost.QuantileDMatrix(samples.x[watched], samples.y[watched], max_bin=settings.max_bin, ref=matrix)
    boosters = []
    for done, quantile in enumerate(QUANTILES):
        told = _Told(note, done / len(QUANTILES), len(QUANTILES) * settings.rounds, budget_s / len(QUANTILES))
        booster = xgboost.train(
            settings.parameters(quantile, seed=seed, threads=threads), matrix, settings.rounds,
            evals=[(watch, "watch")], early_stopping_rounds=settings.patience, verbose_eval=False, callbacks=[told],
        )  # fmt: skip
        boosters.append(_plain(booster[: int(booster.attr("best_iteration") or 0) + 1]))
    return QuantileBoosters(boosters=tuple(boosters))


def _plain(booster: xgboost.Booster) -> xgboost.Booster:
    """Without the attributes of early stopping: equal trees are equal bytes."""
    booster.set_attr(best_iteration=None, best_score=None)
    booster.set_param({"nthread": 1})
    return booster


class _Told(xgboost.callback.TrainingCallback):  # type: ignore[misc] # xgboost is not read for types
    """Tells the progress of each round and stops at the end of the budget."""

    def __init__(self, note: Callable[[float], None], done: float, rounds: int, budget_s: float) -> None:
        super().__init__()
        self._note, self._done, self._rounds = note, done, rounds
        self._until = perf_counter() + budget_s

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        """True at the end of the budget."""
        self._note(self._done + (epoch + 1) / self._rounds)
        return perf_counter() > self._until
