"""Settings → their weighted average precision on each rolling fold, and their gain on a block no fold has seen.

Every block is read once and kept; a trial costs its boosting alone. Folds lie inside the training block; each holds its
own early-stopping part, the last rows before its origin.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from leadtime.risk.bootstrap import draws
from leadtime.risk.measures import average_precision
from leadtime.risk.splits import Fold, rolling_folds
from leadtime.training import booster as boosters
from leadtime.training.booster import Settings
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import (
    Array,
    FeatureSet,
    Rows,
    Sample,
    count_negatives,
    draw,
    fraction_for,
)
from leadtime.training.train_plan import WATCHED, Plan
from leadtime.training.tune_result import Gain

FOLDS = 3
DRAWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    fit: Rows
    watch: Rows
    valid: Rows


class FoldScorer:
    """Scores settings fold by fold; the sample of the training block and of the calibration block stays in memory."""

    def __init__(
        self, data: FeatureSet, plan: Plan, *, horizon_min: int, most_negatives: int, seed: int, threads: int,
        progress: Progress = silent,
    ) -> None:  # fmt: skip
        self._seed, self._threads, self._horizon = seed, threads, horizon_min
        self._progress = progress
        self.fraction = fraction_for(count_negatives(data, plan.learnt), most_negatives)
        confirm_fraction = fraction_for(count_negatives(data, plan.calibrate), most_negatives)
        self._learnt = draw(
            data, plan.learnt, fraction=self.fraction, seed=seed, progress=progress, what="reading: folds"
        )
        self._confirm = draw(
            data, plan.calibrate, fraction=confirm_fraction, seed=seed, progress=progress, what="reading: confirm"
        )
        ends = pl.concat([data.scan(path).select("end_time_us") for path in data.partitions])
        self.folds = rolling_folds(ends, plan.outer, n=FOLDS)
        self._purge_us = data.reach_us

    def facts(self) -> dict[str, Any]:
        """What a journal must agree on to be continued."""
        return {"folds": [asdict(fold) for fold in self.folds], "negatives_kept_ratio": self.fraction}

    def score(self, number: int, settings: Settings) -> float:
        """Weighted average precision of ``settings`` on fold ``number``'s validation rows."""
        parts = self._parts(self.folds[number])
        scores = self._fitted(parts, settings, f"fold {number + 1}")(parts.valid)
        return average_precision(parts.valid.y, scores, parts.valid.weight)

    def gain(self, before: Settings, after: Settings) -> Gain:
        """Both fitted on the training block and compared on the calibration block, collections drawn anew."""
        parts = self._whole()
        scores = [self._fitted(parts, one, "confirming")(parts.valid) for one in (before, after)]
        y, weight = parts.valid.y, parts.valid.weight
        code = np.unique(parts.valid.collection, return_inverse=True)[1]
        differences = []
        for times in draws(int(code.max()) + 1, n=DRAWS, seed=self._seed):
            drawn = weight * times[code]
            was, now = (average_precision(y, one, drawn) for one in scores)
            differences.append(now - was)
        known = np.asarray([value for value in differences if np.isfinite(value)])
        was, now = (average_precision(y, one, weight) for one in scores)
        low, high = np.quantile(known, [0.025, 0.975])
        return Gain(mean=now - was, low=float(low), high=float(high))

    def _fitted(self, parts: _Parts, settings: Settings, what: str) -> Any:
        fitted = boosters.fit(
            parts.fit, parts.watch, settings, seed=self._seed, threads=self._threads, progress=self._progress,
            what=what,
        )  # fmt: skip

        def score(rows: Rows) -> Array:
            return boosters.margins(fitted.booster, rows.x[rows.index])

        return score

    def _parts(self, fold: Fold) -> _Parts:
        p = self._learnt.end_us
        before = p + fold.horizon_us <= fold.valid_from_us
        valid = (fold.valid_from_us <= p) & (p + fold.horizon_us <= fold.valid_until_us)
        fit, watch = self._stopped_early(self._learnt, before)
        return _Parts(fit=fit, watch=watch, valid=self._learnt.rows(self._horizon, valid))

    def _whole(self) -> _Parts:
        fit, watch = self._stopped_early(self._learnt, np.ones(len(self._learnt.end_us), bool))
        return _Parts(fit=fit, watch=watch, valid=self._confirm.rows(self._horizon))

    def _stopped_early(self, sample: Sample, where: Array) -> tuple[Rows, Rows]:
        """The rows of ``where`` before and after its own cut, purged."""
        p = sample.end_us
        cut = int(np.quantile(p[where], 1 - WATCHED, method="lower")) if where.any() else 0
        fit, watch = where & (p + self._purge_us <= cut), where & (p >= cut)
        return sample.rows(self._horizon, fit), sample.rows(self._horizon, watch)
