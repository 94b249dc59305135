"""Features and outcomes of jobs → a model of P(the job fails), and its measure against what its user's past says alone.

Floors, all as of each submission: everybody's base rate so far, the user's, that of jobs with the same request, and
whether the user's last job failed. A model that does not gain on the user's base rate says so in its first sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leadtime.risk.bootstrap import by_group
from leadtime.risk.calibration import expit
from leadtime.risk.jobs_features import NAMES, JobTable
from leadtime.risk.measures import (
    Array,
    Ranked,
    average_precision,
    base_rate,
    brier,
    calibration_in_the_large,
    ece_equal_mass,
    ranked,
)
from leadtime.training.booster import Settings, fit, gains, margins
from leadtime.training.calibrate import fit_calibration
from leadtime.training.jobs_split import JobBlocks, Mask
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import Rows

SETTINGS = Settings(rounds=300, patience=30, eta=0.06, max_depth=4, min_child_weight=5.0)
USER, GLOBAL, LAST = "the user's base rate", "everybody's base rate", "the user's last job failed"
REQUEST = "the base rate of jobs with the same request"
TOP = 0.05  # of the jobs: precision there


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRun:
    """``p`` [jobs] calibrated probabilities, of every job; ``metrics`` as they stand in metrics.json."""

    p: Array
    metrics: Mapping[str, Any]


def run_outcome(
    table: JobTable, failed: Array, ended_s: Array, cut: JobBlocks, *, seed: int, progress: Progress = silent
) -> OutcomeRun:
    """Train on jobs that had ended when training closed, tune likewise, measure on later jobs whose end was seen.

    ``failed``, ``ended_s`` [jobs], NaN where not seen. Raises BadTrace(too-few-failures).
    """
    known = ~np.isnan(failed)
    train = cut.train & known & (ended_s <= cut.tune_from_s)
    tune = cut.tune & known & (ended_s <= cut.test_from_s)
    test = cut.test & known
    doing = "training the outcome model"
    # one thread: trees of a few thousand jobs are too small to share, and threads that wait for each other cost more
    fitted = fit(_rows(table, failed, train), _rows(table, failed, tune), SETTINGS, seed=seed, threads=1,
                 progress=progress, what=doing)  # fmt: skip
    raw = expit(margins(fitted.booster, table.x))
    calibration = fit_calibration(raw[tune], failed[tune])
    p = calibration.apply(raw)
    metrics = {
        "rows": {"train": int(train.sum()), "tune": int(tune.sum()), "test": int(test.sum())},
        "positives": {"train": int(failed[train].sum()), "test": int(failed[test].sum())},
        "purged": {
            "train, not ended when the block closed": int((cut.train & ~train).sum()),
            "tune, not ended when the block closed": int((cut.tune & ~tune).sum()),
            "test, end not seen": int((cut.test & ~known).sum()),
        },
        **_measured(table, failed, p, test, seed=seed),
        "calibration": calibration.to_json(), "rounds": fitted.rounds, "gains": gains(fitted.booster, NAMES),
    }  # fmt: skip
    return OutcomeRun(p=p, metrics=metrics)


def _rows(table: JobTable, failed: Array, where: Mask) -> Rows:
    index = np.flatnonzero(where)
    ones = np.ones(len(index), np.float32)
    return Rows(x=table.x, index=index, y=failed[index].astype(np.float32), weight=ones, collection=table.user[index])


def floors(table: JobTable) -> dict[str, Array]:
    """Name → score [jobs] as of each submission. Without users no user's rate is among them."""
    everybody = {REQUEST: table.column("request_rate"), GLOBAL: table.global_rate}
    if not table.has_users:
        return everybody
    return {USER: table.user_rate, LAST: np.nan_to_num(table.column("user_last_failed"), nan=0.0), **everybody}


def _measured(table: JobTable, failed: Array, p: Array, test: Mask, *, seed: int) -> dict[str, Any]:
    y, score = failed[test], p[test]
    group = np.unique(table.user[test], return_inverse=True)[1].astype(np.int64)
    drawn = int(group.max(initial=-1)) + 1
    base = base_rate(y)
    rivals = {name: ranked(y, one[test], group=group) for name, one in floors(table).items()}
    mine = ranked(y, score, group=group)
    best = max(rivals, key=lambda name: np.nan_to_num(rivals[name].average_precision()))
    against = USER if USER in rivals else REQUEST
    worth = by_group(mine.average_precision, drawn, seed=seed)
    gain = {name: by_group(partial(_gain, mine, of), drawn, seed=seed) for name, of in rivals.items()}
    top = np.argsort(-score, kind="stable")[: max(1, int(TOP * len(score)))]
    ap = mine.average_precision()
    return {
        "average_precision": ap, "base_rate": base, "lift": ap / base if base else None,
        "average_precision_interval": [worth.low, worth.high],
        "floors": {
            name: {
                "average_precision": of.average_precision(), "gain": ap - of.average_precision(),
                "gain_interval": [gain[name].low, gain[name].high],
            } for name, of in rivals.items()
        },
        "best_floor": best, "against": against, "is_gain": bool(gain[against].low > 0),
        "precision_at_top": {"share": TOP, "precision": float(y[top].mean()), "recall": float(y[top].sum() / y.sum())},
        "brier": brier(y, score), "brier_of_base_rate": base * (1 - base),
        "ece": ece_equal_mass(y, score), "mean_p_over_base_rate": calibration_in_the_large(y, score),
        "ece_of_floor": ece_equal_mass(y, floors(table)[against][test]),
        "drawn": "users" if table.has_users else "days of submission", "drawn_count": drawn,
        "new_users": _new(table, failed, p, test),
    }  # fmt: skip


def _gain(mine: Ranked, floor: Ranked, times: Array) -> float:
    """Average precision more than the floor's, on the same draw."""
    return mine.average_precision(times) - floor.average_precision(times)


def _new(table: JobTable, failed: Array, p: Array, test: Mask) -> dict[str, Any] | None:
    """The same on jobs of users of whom no job had ended before: what the model knows beyond the person."""
    if not table.has_users:
        return None
    fresh = test & (table.column("user_ended") == 0)
    y = failed[fresh]
    if not len(y) or not 0 < y.sum() < len(y):
        return {"rows": len(y), "average_precision": None, "base_rate": float(y.mean()) if len(y) else None}
    return {"rows": len(y), "average_precision": average_precision(y, p[fresh]), "base_rate": float(y.mean())}
