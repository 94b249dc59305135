"""What one model said over the judged origins → its measures, beside naive and ceiling. Missing stays None."""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.conformal import QUANTILES, Bounds
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.selection import Difference, difference
from leadtime.scorecard.forecasts import MIN_ROOM_RATIO
from leadtime.training.backtest.cost import Cost
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.yardsticks import BoolColumn, Yardsticks, within


@dataclass(frozen=True, slots=True, kw_only=True)
class Naive:
    """The better of last value and mean of five minutes over the judged origins, and the ceiling on the same."""

    name: str
    within_10pct_ratio: float
    ceiling_within_10pct_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore:
    """One model's line on the scoreboard; None where it cannot be said. ``scored``: origins it answered."""

    name: str
    scored: int
    within_10pct_ratio: float | None = None
    skill: float | None = None
    hits_above_naive: Difference | None = None
    coverage_ratio: float | None = None
    mean_interval_width_ratio: float | None = None
    weighted_quantile_loss: float | None = None
    relative_quantile_loss: float | None = None
    shortfall_minutes: int | None = None
    strained_minutes: int | None = None
    pod_hours: float | None = None
    unscaled_shortfall_minutes: int | None = None
    unscaled_pod_hours: float | None = None
    fit_s: float | None = None
    refused: str | None = None


def naive_of(sticks: Yardsticks, judged: BoolColumn) -> Naive:
    """The naive forecast that hits more often over ``judged`` (last value where they are equal); 0 if empty."""
    rates = {name: _mean(within(said, sticks.truth), judged) for name, said in naive_columns(sticks).items()}
    name = max(rates, key=lambda one: rates[one] or 0.0)
    ceiling = _mean(within(sticks.ceiling, sticks.truth), judged)
    return Naive(name=name, within_10pct_ratio=rates[name] or 0.0, ceiling_within_10pct_ratio=ceiling or 0.0)


def naive_columns(sticks: Yardsticks) -> dict[str, FloatColumn]:
    """Both naive forecasts by the names of the models that make them."""
    return {"last_value": sticks.last, "mean_5min": sticks.mean5}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What everybody is judged by: the series, the yardsticks, and the origins that count."""

    series: BacktestSeries
    sticks: Yardsticks
    origins: BoolColumn
    reference: Bounds  # the seasonal naive forecast, calibrated like every other
    level_ratio: float

    def times_s(self) -> np.ndarray:
        """When each origin is: the end of its bucket."""
        return self.series.start_s + self.series.step_s * (1 + np.arange(len(self.series.values), dtype=np.int64))


def score(judged: Judged, name: str, expected: FloatColumn, bounds: Bounds) -> ModelScore:
    """Hits, skill, coverage, width and quantile loss; naive and ceiling are taken over the origins it answered."""
    sticks = judged.sticks
    mine = judged.origins & ~np.isnan(expected)
    if not mine.any():
        return ModelScore(name=name, scored=0)
    hit = within(expected, sticks.truth)
    naive = naive_of(sticks, mine)
    rate = _mean(hit, mine)
    room = naive.ceiling_within_10pct_ratio - naive.within_10pct_ratio
    inside = np.where(np.isnan(bounds.lower), np.nan, (bounds.lower <= sticks.truth) & (sticks.truth <= bounds.upper))
    width = _mean(bounds.upper - bounds.lower, mine)
    level = _mean(sticks.truth, mine) or 0.0
    loss, relative = _losses(judged, bounds, mine)
    other = within(naive_columns(sticks)[naive.name], sticks.truth)
    return ModelScore(
        name=name,
        scored=int(mine.sum()),
        within_10pct_ratio=rate,
        skill=None if rate is None or room < MIN_ROOM_RATIO else (rate - naive.within_10pct_ratio) / room,
        hits_above_naive=difference(np.where(mine, hit, np.nan), other, judged.times_s()),
        coverage_ratio=_mean(inside, mine),
        mean_interval_width_ratio=None if width is None or level <= 0 else width / level,
        weighted_quantile_loss=loss,
        relative_quantile_loss=relative,
    )


def cost_fields(unscaled: Cost | None, equal: Cost | None) -> dict[str, float | int | None]:
    """The money part of a line: at equal pod-hours, and as asked."""
    return {
        "shortfall_minutes": equal.shortfall_minutes if equal else None,
        "strained_minutes": equal.strained_minutes if equal else None,
        "pod_hours": equal.pod_hours if equal else None,
        "unscaled_shortfall_minutes": unscaled.shortfall_minutes if unscaled else None,
        "unscaled_pod_hours": unscaled.pod_hours if unscaled else None,
    }


def _mean(column: FloatColumn, where: BoolColumn) -> float | None:
    """Mean of the known values among ``where``; None without one."""
    known = column[where & ~np.isnan(column)]
    return float(known.mean()) if len(known) else None


def _losses(judged: Judged, bounds: Bounds, mine: BoolColumn) -> tuple[float | None, float | None]:
    """Weighted quantile loss (GIFT-Eval: 2 Σ pinball ÷ Σ |truth|, mean over nine levels), and ÷ seasonal naive's.

    The second over the origins where both are known.
    """
    truth = judged.sticks.truth
    known = mine & ~np.isnan(bounds.quantiles).any(axis=0)
    both = known & ~np.isnan(judged.reference.quantiles).any(axis=0)
    loss = _quantile_loss(bounds, truth, known)
    reference = _quantile_loss(judged.reference, truth, both)
    on_both = _quantile_loss(bounds, truth, both)
    return loss, on_both / reference if on_both is not None and reference else None


def _quantile_loss(bounds: Bounds, truth: FloatColumn, where: BoolColumn) -> float | None:
    total = float(np.abs(truth[where]).sum())
    if not total:
        return None
    levels = np.array(QUANTILES)[:, None]
    off = truth[where] - bounds.quantiles[:, where]
    return float(2.0 * np.maximum(levels * off, (levels - 1.0) * off).sum() / total / len(QUANTILES))
