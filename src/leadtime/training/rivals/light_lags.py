"""Minutes → LightGBM on lags relative to the level, trained once: the plain model a day of work begins with.

Features: twelve lags and yesterday's and last week's change, as logarithms of ratios to the mean of the last five
minutes; hour and weekday; the horizon. Target: the same ratio at the horizon, absolute error. No tuning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from leadtime.forecast import day_cells, recent
from leadtime.forecast.day_cells import CELL_S, CELLS_A_DAY, DayCells
from leadtime.forecast.model import MINUTE_S, Band, DemandModel, FloatColumn, TooShort, check_step
from leadtime.forecast.recent import KEPT_MINUTES, Recent
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted
from leadtime.training.rivals.cells import MAX_DAYS, absent

LAGS_MIN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45, 60)
AHEAD_CELLS = 20
HORIZONS_MIN = (5, 10, 20, 40, 60, 90)
ROWS = 20_000
TREES, LEAVES, RATE = 200, 31, 0.05
DAY_MIN = 1440


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LagState:
    """The last hour, and days of cells."""

    recent: Recent
    days: DayCells


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LightLags:
    """A RowsModel. ``booster``: the LightGBM model."""

    booster: Any
    name: str = "lightgbm_lags"
    memory: str = "light_lags"

    def start(self, step_s: int = MINUTE_S) -> LagState:
        """See DemandModel."""
        check_step(self.name, step_s)
        return LagState(recent=Recent(), days=day_cells.empty())

    def update(self, state: LagState, at_s: int, value: float | None) -> LagState:
        """See DemandModel."""
        return LagState(recent=recent.add(state.recent, value), days=day_cells.add(state.days, at_s, value, MAX_DAYS))

    def row(self, state: LagState) -> FloatColumn | TooShort:
        """Level, floor, minute of the week, lags and the changes of yesterday and last week per cell ahead."""
        found = _row(state)
        if found is None:
            have = len(state.recent.minutes) * MINUTE_S
            needed = KEPT_MINUTES * MINUTE_S + 1
            return TooShort(reason=f"{self.name} needs an hour", needed_s=needed, have_s=min(have, needed - 1))
        return found

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel."""
        said = np.empty((len(steps), len(rows)))
        for k, step in enumerate(steps):
            ratio = self.booster.predict(_features(rows, step + 1), num_threads=1)
            said[k] = np.maximum(0.0, np.exp(np.clip(ratio, -3.0, 3.0)) * (rows[:, 0] + rows[:, 1]) - rows[:, 1])
        return np.stack((said.T,) * 3)

    def predict(self, state: LagState, steps: int) -> Band | TooShort:
        """See DemandModel."""
        row = self.row(state)
        if isinstance(row, TooShort):
            return row
        lower, expected, upper = self.read(row[None, :], range(steps))[:, 0]
        return Band(expected=expected, lower=lower, upper=upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class LightTrainee:
    """Trains on at most ``ROWS`` rows of the whole history."""

    name: str = "lightgbm_lags"

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """See Trainee. Takes seconds; the budget is not watched."""
        del budget_s
        refusal = absent(self.name, "lightgbm")
        if refusal is not None:
            return refusal
        if len(history.values) < DAY_MIN:
            have = len(history.values) * MINUTE_S
            return TooShort(reason=f"{self.name} needs a day", needed_s=86_400, have_s=have)
        import lightgbm

        features, target = _training_rows(history, progress)
        settings = {
            "objective": "l1", "learning_rate": RATE, "num_leaves": LEAVES, "seed": seed, "num_threads": 1,
            "deterministic": True, "force_row_wise": True, "verbosity": -1,
        }  # fmt: skip
        return LightLags(booster=lightgbm.train(settings, lightgbm.Dataset(features, target), num_boost_round=TREES))


def _row(state: LagState) -> FloatColumn | None:
    minutes = state.recent.minutes
    known = [v for v in minutes[-5:] if v is not None]
    if len(minutes) < KEPT_MINUTES or not known:
        return None
    level, floor = sum(known) / len(known), 0.02 * state.days.mean + 1e-12
    lags = [np.nan if minutes[-lag] is None else minutes[-lag] for lag in LAGS_MIN]
    change = np.full((2, AHEAD_CELLS), np.nan)
    if len(state.days.cells) >= CELLS_A_DAY:
        laid = day_cells.day_rows(state.days, back=1, ahead=AHEAD_CELLS, max_days=7, zone="UTC").rows
        for place, day in enumerate((0, 6)):
            if day < len(laid):
                change[place] = np.log((laid[day, 1:] + floor) / (laid[day, :1] + floor))
    relative = np.log((np.array(lags, dtype=np.float64) + floor) / (level + floor))
    return np.concatenate(((level, floor, float(state.days.next_s)), relative, change.ravel()))


def _features(rows: FloatColumn, ahead_min: int) -> FloatColumn:
    """Rows → features for one horizon (minutes ahead, 1: the next)."""
    at_min = rows[:, 2] / MINUTE_S + ahead_min
    cell = np.minimum((rows[:, 2] % CELL_S / MINUTE_S + ahead_min - 1) // 5, AHEAD_CELLS - 1).astype(np.intp)
    first = 3 + len(LAGS_MIN)
    every = np.arange(len(rows))
    return np.column_stack((
        rows[:, 3:first], rows[every, first + cell], rows[every, first + AHEAD_CELLS + cell],
        at_min % DAY_MIN / 60.0, at_min // DAY_MIN % 7, np.full(len(rows), float(ahead_min)),
    ))  # fmt: skip


def _training_rows(history: MinuteHistory, progress: Note) -> tuple[FloatColumn, FloatColumn]:
    """Features and targets at evenly spaced origins, an odd step apart, every horizon of each."""
    model, values = LightLags(booster=None), history.values
    state = model.start()
    step = max(1, len(values) * len(HORIZONS_MIN) // ROWS) | 1
    rows: list[FloatColumn] = []
    at: list[int] = []
    for i, value in enumerate(values.tolist()):
        state = model.update(state, history.start_s + i * MINUTE_S, None if isnan(value) else value)
        if i % step == 0 and i + HORIZONS_MIN[-1] < len(values) and (row := _row(state)) is not None:
            rows.append(row)
            at.append(i)
        if i % 10_000 == 0:
            progress(0.5 * i / len(values))
    stacked, origins = np.stack(rows), np.array(at)
    features = np.concatenate([_features(stacked, h) for h in HORIZONS_MIN])
    level, floor = stacked[:, 0], stacked[:, 1]
    target = np.concatenate([np.log((values[origins + h] + floor) / (level + floor)) for h in HORIZONS_MIN])
    known = ~np.isnan(target)
    progress(0.6)
    return features[known], target[known]
