"""A two-state hidden Markov trace → a folder of features in the form of design record 0015, with its known optimum.

For tests and benchmarks of what learns from features, without the chain before it. One task is healthy (H) or degrading
(D); in each 300 s window it may go H→D ``q``, D→H ``rho``, fail (H ``h0``, D ``r``) or end otherwise (``c``). The
usage ratio of a window is 0.5 + 0.1·(mu·[D] + e), e ~ N(0, 1). The forward filter over the window's past gives the
exact probability of a failure within k windows: no function of the past has a better average precision.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import HORIZONS_MIN, TRACE_START_US, WINDOW_US, EventType

LAGS = 6
NOISE = 3
TASKS_A_COLLECTION = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyTrace:
    """How the toy behaves, rates a window. ``mu``: the signal in standard deviations, 0 = none (the placebo)."""

    tasks: int = 3_000
    windows: int = 300
    mu: float = 2.0
    q: float = 0.004
    r: float = 0.25
    rho: float = 0.02
    h0: float = 2e-4
    c: float = 0.012
    seed: int = 1
    cells: tuple[str, ...] = ("c",)
    parts: int = 2
    extra: Mapping[str, Any] = field(default_factory=dict)  # put into forecaster.json as it is


@dataclass(frozen=True, slots=True)
class _Lives:
    ratio: np.ndarray[Any, Any]  # [tasks, windows], NaN where not running
    belief: np.ndarray[Any, Any]  # P(D | past), NaN where not running
    end_window: np.ndarray[Any, Any]  # the task's last window, inclusive; windows-1 where it outlives the trace
    failed: np.ndarray[Any, Any]  # bool
    end_us: np.ndarray[Any, Any]  # when it ended; meaningless where it outlives the trace
    start: np.ndarray[Any, Any]


def write_features(folder: Path, toy: ToyTrace) -> pl.DataFrame:
    """Write ``folder`` as make-forecaster-dataset does; return the truth: key, ``score_<m>`` (null where excluded)."""
    truths, partitions = [], []
    for index, cell in enumerate(toy.cells):
        frame = _cell(cell, toy, toy.seed * 1_000 + index)
        key = ["cell", "collection_id", "instance_index", "start_time_us", "end_time_us"]
        truths.append(frame.select(*key, *(f"score_{m}" for m in HORIZONS_MIN)))
        frame = frame.drop([f"score_{m}" for m in HORIZONS_MIN])
        (folder / f"cell={cell}").mkdir(parents=True, exist_ok=True)
        for part in range(toy.parts):
            path = folder / f"cell={cell}" / f"part-{part:04d}.parquet"
            rows = frame.filter(pl.col("collection_id") % toy.parts == part)
            rows.write_parquet(path)
            partitions.append({"path": str(path.relative_to(folder)), "rows": rows.height})
    names = _names()
    manifest = {
        "schema": "leadtime.borg-forecaster/1", "profile": "baseline", "horizons_min": list(HORIZONS_MIN),
        "failure_types": [int(EventType.FAIL)], "features": names, "rows": sum(t.height for t in truths),
        "partitions": partitions, "data_hash": f"toy-{toy.seed}-{toy.tasks}-{toy.mu}", "gates": [],
        "allowed_gates": [], "observed_until_us": {c: _until(toy) for c in toy.cells}, **toy.extra,
    }  # fmt: skip
    dictionary = [
        {"name": name, "unit": "ratio", "formula": name, "known_at_p": "windows with end <= p"} for name in names
    ]
    (folder / "features.json").write_text(json.dumps(dictionary), encoding="utf-8")
    (folder / "forecaster.json").write_text(json.dumps(manifest), encoding="utf-8")
    return pl.concat(truths)


def _until(toy: ToyTrace) -> int:
    return TRACE_START_US + toy.windows * WINDOW_US


def _names() -> list[str]:
    lags = [f"ratio_lag{k}" for k in range(1, LAGS + 1)]
    means = ["ratio_mean3", "ratio_mean6", "ratio_mean12", "ratio_decayed"]
    return ["ratio", *lags, *means, "run_age_windows", *(f"noise_{k}" for k in range(NOISE))]


def _live(toy: ToyTrace, rng: np.random.Generator) -> _Lives:
    """Run every task through the hidden states, and the filter beside it."""
    n, windows = toy.tasks, toy.windows
    start = np.where(rng.random(n) < 0.25, 0, rng.integers(0, windows, n))
    degrading, belief_now = np.zeros(n, bool), np.zeros(n)
    ended, failed = np.zeros(n, bool), np.zeros(n, bool)
    ratio, belief = np.full((n, windows), np.nan, np.float32), np.full((n, windows), np.nan)
    end_window, end_us = np.full(n, windows - 1), np.zeros(n, np.int64)
    for t in range(windows):
        on = (start <= t) & ~ended
        x = toy.mu * degrading + rng.standard_normal(n)
        odds = belief_now / (1 - belief_now) * np.exp(toy.mu * x - toy.mu**2 / 2)
        now = odds / (1 + odds)
        ratio[on, t], belief[on, t] = (0.5 + 0.1 * x)[on], now[on]
        u, fail = rng.random(n), np.where(degrading, toy.r, toy.h0)
        ends = on & (u < fail + toy.c)
        ended |= ends
        failed |= on & (u < fail)
        end_window[ends] = t
        end_us[ends] = TRACE_START_US + (t + 1) * WINDOW_US + 1 + (rng.random(ends.sum()) * (WINDOW_US - 2)).astype(int)
        flips = rng.random(n) < np.where(degrading, toy.rho / (1 - toy.r - toy.c), toy.q / (1 - toy.h0 - toy.c))
        degrading = np.where(on & flips, ~degrading, degrading)
        stay = now * (1 - toy.r - toy.c) + (1 - now) * (1 - toy.h0 - toy.c)
        to_d = now * (1 - toy.r - toy.c - toy.rho) + (1 - now) * toy.q
        belief_now = np.where(on, to_d / stay, belief_now)
    return _Lives(ratio=ratio, belief=belief, end_window=end_window, failed=failed, end_us=end_us, start=start)


def within(toy: ToyTrace, windows: int) -> tuple[float, float]:
    """P(fail within the next ``windows``) from H and from D."""
    step = np.array([
        [1 - toy.q - toy.h0 - toy.c, toy.q, toy.h0], [toy.rho, 1 - toy.rho - toy.r - toy.c, toy.r], [0.0, 0.0, 1.0],
    ])  # fmt: skip
    power = np.linalg.matrix_power(step, windows)
    return float(power[0, 2]), float(power[1, 2])


def _shifted(values: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
    out = np.full_like(values, np.nan)
    out[:, by:] = values[:, : values.shape[1] - by]
    return out


def _mean(values: np.ndarray[Any, Any], over: int) -> np.ndarray[Any, Any]:
    lags = [values, *(_shifted(values, k) for k in range(1, over))]
    known = sum(np.isfinite(lag).astype(np.float32) for lag in lags)
    total = sum(np.nan_to_num(lag) for lag in lags)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan).astype(np.float32)


def _decayed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out, state = np.full_like(values, np.nan), np.full(values.shape[0], np.nan, np.float32)
    for t in range(values.shape[1]):
        x = values[:, t]
        state = np.where(np.isnan(state), x, 0.8 * state + 0.2 * x)
        out[:, t] = np.where(np.isnan(x), np.nan, state)
    return out


def _features(lives: _Lives, rng: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    ratio = lives.ratio
    columns = {"ratio": ratio} | {f"ratio_lag{k}": _shifted(ratio, k) for k in range(1, LAGS + 1)}
    columns |= {f"ratio_mean{k}": _mean(ratio, k) for k in (3, 6, 12)}
    columns["ratio_decayed"] = _decayed(ratio)
    columns["run_age_windows"] = (np.arange(ratio.shape[1])[None, :] - lives.start[:, None]).astype(np.float32)
    for k in range(NOISE):
        noise = rng.standard_normal(ratio.shape, np.float32)
        noise[rng.random(ratio.shape) < 0.05] = np.nan
        columns[f"noise_{k}"] = noise
    return columns


def _cell(cell: str, toy: ToyTrace, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    lives = _live(toy, rng)
    task, window = np.nonzero(np.isfinite(lives.ratio))
    p = TRACE_START_US + (window + 1) * WINDOW_US
    lived_on = lives.end_us[task] == 0
    terminal = np.where(lives.failed, int(EventType.FAIL), int(EventType.FINISH))[task]
    frame = pl.DataFrame({
        "cell": pl.Series([cell], dtype=pl.String).new_from_index(0, len(task)),
        "collection_id": (task // TASKS_A_COLLECTION + 1).astype(np.int64),
        "instance_index": (task % TASKS_A_COLLECTION).astype(np.int32),
        "start_time_us": p - WINDOW_US, "end_time_us": p,
        "run_number": np.ones(len(task), np.int32), "tier": (task % 5).astype(np.int8),
        "next_terminal_time_us": lives.end_us[task], "next_terminal_type": terminal.astype(np.int8),
        "next_terminal_cause": np.where(lives.failed[task], "self", "done"),
    }).with_columns(
        pl.when(pl.Series(~lived_on)).then(pl.col(name)).alias(name)
        for name in ("next_terminal_time_us", "next_terminal_type", "next_terminal_cause")
    )  # fmt: skip
    frame = frame.with_columns(_outcomes(toy, lives, task, window, p))
    columns = _features(lives, rng)
    features = [pl.Series(name, values[task, window]).fill_nan(None) for name, values in columns.items()]
    order = ["collection_id", "instance_index", "end_time_us", "start_time_us"]
    return frame.with_columns(features).filter(pl.col("y_5").is_not_null()).sort(order)


def _outcomes(
    toy: ToyTrace, lives: _Lives, task: np.ndarray[Any, Any], window: np.ndarray[Any, Any], p: np.ndarray[Any, Any]
) -> list[pl.Series]:
    """``y_<m>``, ``excluded_<m>`` and ``score_<m>`` of every row; only censoring occurs in the toy."""
    outcomes: list[pl.Series] = []
    belief = lives.belief[task, window]
    for m in HORIZONS_MIN:
        ahead = m * 60_000_000
        censored = pl.Series(p + ahead > _until(toy))
        y = lives.failed[task] & (lives.end_us[task] > p) & (lives.end_us[task] <= p + ahead)
        from_h, from_d = within(toy, m // 5)
        score = pl.Series(belief * from_d + (1 - belief) * from_h)
        keep = pl.select(
            pl.when(censored).then(None).otherwise(pl.Series(y.astype(np.int8))).alias(f"y_{m}"),
            pl.when(censored).then(pl.lit("censored")).otherwise(None).alias(f"excluded_{m}"),
            pl.when(censored).then(None).otherwise(score).alias(f"score_{m}"),
        )
        outcomes += keep.get_columns()
    return outcomes
