"""Candidates that differ in their constants → the one with the smallest error on the last days of a history.

The error is the mean absolute error at each horizon ÷ that of last value, so that near and far count alike. A candidate
must beat those before it by three hundredths: constants that stand first bear more.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from leadtime.forecast.model import MINUTE_S, Band, DemandModel, FloatColumn, TooShort
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted

JUDGED_SHARE = 0.4  # the last part of a history, on which candidates are compared
MOST_JUDGED_MIN = 8 * 1440
ORIGINS = 240
BETTER_RATIO = 0.97
DAY_MIN = 1440


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A Trainee that picks among ``candidates``, all of one name. ``warm_min``: minutes a candidate has to hear first.

    ``horizons_min``: where errors are measured, minutes ahead.
    """

    candidates: tuple[DemandModel, ...]
    warm_min: int
    horizons_min: tuple[int, ...] = (10, 40)

    @property
    def name(self) -> str:
        """See Trainee."""
        return self.candidates[0].name

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """See Trainee. When the budget is used up, the best of those tried."""
        del seed
        return choose(self.candidates, history, self, budget_s=budget_s, progress=progress)


def choose(
    candidates: Sequence[DemandModel], history: MinuteHistory, grid: Grid, *, budget_s: float, progress: Note
) -> DemandModel | TooShort:
    """The best of ``candidates`` by the rule of the module; TooShort where fewer than ten origins can be judged."""
    origins = judged(history, grid.warm_min, max(grid.horizons_min))
    if len(origins) < 10:
        known = int(np.count_nonzero(~np.isnan(history.values)))
        needed = int((grid.warm_min + max(grid.horizons_min) + 20) / (1.0 - JUDGED_SHARE))
        reason = f"{grid.name} needs {needed / DAY_MIN:.1f} days to choose its constants"
        return TooShort(reason=reason, needed_s=needed * MINUTE_S, have_s=min(known, needed - 1) * MINUTE_S)
    until = time.monotonic() + budget_s
    best, least = candidates[0], np.inf
    groups = _by_memory(candidates)
    for done, group in enumerate(groups):
        for model, loss in zip(group, losses(group, history, origins, grid.horizons_min, grid.warm_min), strict=True):
            if loss < least * BETTER_RATIO:
                best, least = model, loss
        progress((done + 1) / len(groups))
        if time.monotonic() > until:
            break
    return best


def judged(history: MinuteHistory, warm_min: int, reach_min: int) -> list[int]:
    """Minutes (index of the newest bucket) at which candidates are asked: at most ``ORIGINS``, evenly, at odd steps.

    An odd step, because many series repeat every five, ten or sixty minutes, and an even one would always meet the same
    part of that.
    """
    count = len(history.values)
    first = max(warm_min, count - min(int(count * JUDGED_SHARE), MOST_JUDGED_MIN))
    last = count - reach_min - 1
    step = max(1, (last - first) // ORIGINS) | 1
    return list(range(first, last + 1, step))


def losses(
    models: Sequence[DemandModel], history: MinuteHistory, origins: Sequence[int], horizons_min: tuple[int, ...],
    warm_min: int,
) -> list[float]:  # fmt: skip
    """Each model's error relative to last value; inf for one that refuses often. ``models`` share one memory."""
    actual = np.array([[history.values[o + h] for h in horizons_min] for o in origins])
    naive = _filled(history.values)[np.asarray(origins)][:, None]
    said = np.stack(_said(models, history, origins, horizons_min, warm_min))
    known = ~np.isnan(actual) & ~np.isnan(naive)
    off = np.where(known, np.abs(said - actual), np.nan)
    base = np.where(known, np.abs(naive - actual), 0.0).sum(axis=0)
    found = []
    for one in off:
        answered = ~np.isnan(one)
        if 2 * answered.sum() < known.sum() or not known.any():
            found.append(float("inf"))
            continue
        # where it refused, last value speaks for it
        total = np.where(answered, one, np.where(known, np.abs(naive - actual), 0.0)).sum(axis=0)
        found.append(float(np.mean(total / np.maximum(base, 1e-12 * (1.0 + total)))))
    return found


def _said(
    models: Sequence[DemandModel], history: MinuteHistory, origins: Sequence[int], horizons_min: tuple[int, ...],
    warm_min: int,
) -> list[FloatColumn]:  # fmt: skip
    """Per model (origins, horizons): what it expects; NaN where it refuses."""
    values, first = history.values.tolist(), max(0, origins[0] - max(warm_min, 28 * DAY_MIN))
    said = [np.full((len(origins), len(horizons_min)), np.nan) for _ in models]
    steps, element = max(horizons_min), np.array(horizons_min) - 1
    update, state, at = models[0].update, models[0].start(), first
    for i, origin in enumerate(origins):
        state = _heard(update, state, values, history.start_s, range(at, origin + 1))
        at = origin + 1
        for model, column in zip(models, said, strict=True):
            band = model.predict(state, steps)
            if isinstance(band, Band):
                column[i] = band.expected[element]
    return said


def _heard(update: Any, state: Any, values: list[float], start_s: int, minutes: range) -> Any:
    for i in minutes:
        value = values[i]
        state = update(state, start_s + MINUTE_S * i, None if isnan(value) else value)
    return state


def _by_memory(candidates: Sequence[DemandModel]) -> list[list[DemandModel]]:
    """Candidates with equal memories are fed once."""
    groups: dict[str, list[DemandModel]] = {}
    for model in candidates:
        groups.setdefault(model.memory, []).append(model)
    return list(groups.values())


def _filled(values: FloatColumn) -> FloatColumn:
    """Gaps take the last known value."""
    index = np.where(np.isnan(values), 0, np.arange(len(values)))
    return np.asarray(values[np.maximum.accumulate(index)])
