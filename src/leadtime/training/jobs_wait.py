"""Features and waits of jobs → quantiles of the wait (p50, p90); waits that nobody saw the end of are accounted for.

A job that had not started when its block closed, or was cancelled before it started, waited longer than was seen.
Leaving such jobs out makes waits look short. They are kept: the seen waits are weighed up by inverse probability of
censoring, and coverage is told as the range the unseen ones leave open. Floors: the survival curve (Kaplan and Meier)
of the training block, the queue's own past, the user's own past.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import xgboost

from leadtime.domain.errors import BadTrace
from leadtime.forecast.kaplan_meier import curve
from leadtime.risk.bootstrap import by_group
from leadtime.risk.jobs_features import JobTable
from leadtime.risk.jobs_labels import Waits, censoring_weights, waits
from leadtime.risk.measures import Array, Whole
from leadtime.training.jobs_split import JobBlocks, Mask
from leadtime.training.progress import Progress, silent

SHARES = (0.5, 0.9)
ROUNDS, PATIENCE = 300, 30
PARAMETERS = {
    "tree_method": "hist", "max_depth": 4, "eta": 0.06, "min_child_weight": 20.0, "subsample": 0.8,
    "colsample_bytree": 0.8, "verbosity": 0, "nthread": 1,
}  # fmt: skip
FEWEST_STARTS = 100
SURVIVAL, QUEUE, USER = "the training block's survival curve", "the queue's past", "the user's past"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRun:
    """``quantiles``: share → s [jobs], never falling with the share; ``metrics`` as they stand in metrics.json."""

    quantiles: Mapping[float, Array]
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    where: Whole
    told: Waits
    weight: Array


def run_wait(
    table: JobTable, frame: pl.DataFrame, cut: JobBlocks, *, observed_until_s: int, seed: int,
    progress: Progress = silent,
) -> WaitRun:  # fmt: skip
    """Learn waits from what was known at each block's close; measure on later jobs. Raises BadTrace(jobs-no-starts)."""
    train, tune = _block(frame, cut.train, cut.tune_from_s), _block(frame, cut.tune, cut.test_from_s)
    test = _block(frame, cut.test, observed_until_s)
    for name, one in (("training", train), ("tuning", tune), ("test", test)):
        if one.told.seen.sum() < FEWEST_STARTS:
            raise BadTrace(
                "jobs-no-starts", "training the queue-time model",
                f"{int(one.told.seen.sum())} of {len(one.where)} jobs of the {name} block were seen to start",
                f"bring at least {FEWEST_STARTS} started jobs a block, or leave it out with --no-queue-time",
            )  # fmt: skip
    grown: dict[float, Array] = {}
    for number, share in enumerate(SHARES):
        progress("training the queue-time model", number, len(SHARES), "quantiles")
        grown[share] = _grown(table, train, tune, share, seed=seed)
    stacked = np.maximum.accumulate(np.stack([grown[share] for share in SHARES]), axis=0)
    quantiles = dict(zip(SHARES, stacked, strict=True))
    floors = _floors(table, train)
    return WaitRun(quantiles=quantiles, metrics=_measured(table, quantiles, floors, test, train, seed=seed))


def _block(frame: pl.DataFrame, where: Mask, until_s: float) -> _Block:
    told = waits(frame.filter(pl.Series(where, dtype=pl.Boolean)), known_until_s=until_s)
    return _Block(where=np.flatnonzero(where), told=told, weight=censoring_weights(told))


def _grown(table: JobTable, train: _Block, tune: _Block, share: float, *, seed: int) -> Array:
    """One quantile in s [jobs]: grown on log(1 + s), then shifted so that it holds on the tuning block."""

    def matrix(one: _Block) -> xgboost.DMatrix:
        seen = one.weight > 0
        return xgboost.DMatrix(table.x[one.where[seen]], label=np.log1p(one.told.wait_s[seen]), weight=one.weight[seen])

    parameters = {**PARAMETERS, "objective": "reg:quantileerror", "quantile_alpha": share, "seed": seed}
    booster = xgboost.train(
        parameters, matrix(train), ROUNDS, evals=[(matrix(tune), "tune")], verbose_eval=False,
        early_stopping_rounds=PATIENCE,
    )  # fmt: skip
    best = (0, booster.best_iteration + 1)
    raw = np.asarray(booster.predict(xgboost.DMatrix(table.x), iteration_range=best), dtype=np.float64)
    seen = tune.weight > 0
    over = np.log1p(tune.told.wait_s[seen]) - raw[tune.where[seen]]
    shift = _weighted_quantile(over, tune.weight[seen], share)
    return np.expm1(np.maximum(raw + shift, 0.0))


def _weighted_quantile(values: Array, weight: Array, share: float) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return float(values[order][min(np.searchsorted(total, share * total[-1]), len(order) - 1)])


def _floors(table: JobTable, train: _Block) -> dict[str, dict[float, Array]]:
    """Name → share → s [jobs]. Where a user or queue has no past yet, the next wider one speaks."""
    survival = curve(train.told.wait_s, train.told.seen, np.ones(len(train.where)))
    at = survival.quantile(np.asarray(SHARES))
    everybody = {share: np.full(len(table.x), float(one)) for share, one in zip(SHARES, at, strict=True)}
    floors = {SURVIVAL: everybody}
    below = everybody
    for name, prefix in ((QUEUE, "queue"), (USER, "user")):
        own = {share: table.column(f"{prefix}_wait_p{round(share * 100)}_s") for share in SHARES}
        below = {share: np.where(np.isnan(own[share]), below[share], own[share]) for share in SHARES}
        floors[name] = below
    return floors if table.has_users else {name: floors[name] for name in (SURVIVAL, QUEUE)}


def _measured(
    table: JobTable, quantiles: Mapping[float, Array], floors: Mapping[str, Mapping[float, Array]], test: _Block,
    train: _Block, *, seed: int,
) -> dict[str, Any]:  # fmt: skip
    group = np.unique(table.user[test.where], return_inverse=True)[1].astype(np.int64)
    told: dict[str, Any] = {
        "rows": {"train": len(train.where), "test": len(test.where)},
        "not_seen_to_start": {
            "train": int((train.told.seen == 0).sum()), "test": int((test.told.seen == 0).sum()),
        },
        "wait_s": {f"p{round(100 * share)}": float(np.quantile(test.told.wait_s, share)) for share in SHARES},
        "drawn": "users" if table.has_users else "days of submission", "quantiles": {},
    }  # fmt: skip
    for share in SHARES:
        mine = _losses(quantiles[share], test, share)
        rivals = {name: _losses(of[share], test, share) for name, of in floors.items()}
        best = min(rivals, key=lambda name: _mean(rivals[name], test.weight))
        better = partial(_mean_drawn, rivals[best] - mine, test.weight, group)
        gain = by_group(better, int(group.max()) + 1, seed=seed)
        told["quantiles"][f"p{round(100 * share)}"] = {
            "pinball_s": _mean(mine, test.weight), "coverage": _coverage(quantiles[share], test),
            "floors": {
                name: {"pinball_s": _mean(one, test.weight), "coverage": _coverage(floors[name][share], test)}
                for name, one in rivals.items()
            },
            "best_floor": best, "gain_s": _mean(rivals[best] - mine, test.weight),
            "gain_interval_s": [gain.low, gain.high], "is_gain": bool(gain.low > 0),
        }  # fmt: skip
    return told


def _losses(quantile: Array, test: _Block, share: float) -> Array:
    """Pinball loss in s [test rows]: share x (what it waited longer), (1 - share) x (what it waited less)."""
    over = test.told.wait_s - quantile[test.where]
    return np.maximum(share * over, (share - 1) * over)


def _mean(values: Array, weight: Array) -> float:
    total = float(weight.sum())
    return float((values * weight).sum() / total) if total > 0 else float("nan")


def _mean_drawn(values: Array, weight: Array, group: Whole, times: Array) -> float:
    """The mean when group g is drawn ``times[g]`` times."""
    return _mean(values, weight * times[group])


def _coverage(quantile: Array, test: _Block) -> list[float]:
    """Share of waits at or below the quantile, as a range: an unseen wait that is below so far may go either way."""
    within = test.told.wait_s <= quantile[test.where]
    seen = test.told.seen > 0
    return [float((within & seen).mean()), float(within.mean())]
