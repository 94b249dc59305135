"""Forecasts made earlier, and what then came → how good they were, beside the naive one and the ceiling.

Points are judged on the minute that holds issued_at + horizon. All three shares (model, naive, ceiling) are taken over
the same points: those where every one of them, and the actual value, is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from leadtime.forecast.naive import NAIVE_MEAN_MINUTES, centred_mean, is_within, trailing_mean
from leadtime.scorecard import windows
from leadtime.scorecard.digest import HORIZON_S, TickDigest
from leadtime.scorecard.run import FloatColumn, IntColumn, WorkloadRun
from leadtime.scorecard.surge_episodes import SurgeScore

MIN_ROOM_RATIO = 0.03  # DESIGN §6: skill is null where ceiling − naive is below this


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPoints:
    """Columns of equal length, one entry a forecast: about issued_at_s + horizon_s, demand in the workload's unit."""

    issued_at_s: IntColumn
    horizon_s: IntColumn
    expected: FloatColumn
    lower: FloatColumn
    upper: FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteSeries:
    """Actual demand: value i is the mean over [start_s + 60·i, start_s + 60·(i+1)); NaN is a gap."""

    start_s: int
    values: FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastScore:
    """How the forecasts of one workload did; ``scored`` points, horizon ``horizon_s``; None fields have a reason."""

    horizon_s: int
    scored: int
    within_10pct_ratio: float | None
    naive_within_10pct_ratio: float | None
    ceiling_within_10pct_ratio: float | None
    skill: float | None
    coverage_ratio: float | None
    mean_interval_width_ratio: float | None
    surges_caught: int | None
    surges_total: int | None
    false_alarms_per_day: float | None
    reasons: Mapping[str, str] = field(default_factory=dict)


def points_from(ticks: Sequence[TickDigest], workload: str) -> ForecastPoints:
    """What each tick expected ten minutes later."""
    found = [
        (tick.as_of_s, state.forecast)
        for tick in ticks
        for state in tick.workloads
        if state.workload == workload and state.forecast is not None
    ]
    return ForecastPoints(
        issued_at_s=np.array([as_of_s for as_of_s, _ in found], dtype=np.int64),
        horizon_s=np.full(len(found), HORIZON_S, dtype=np.int64),
        expected=np.array([bounds.expected for _, bounds in found], dtype=np.float64),
        lower=np.array([bounds.lower for _, bounds in found], dtype=np.float64),
        upper=np.array([bounds.upper for _, bounds in found], dtype=np.float64),
    )


def actual_series(columns: WorkloadRun) -> MinuteSeries:
    """The demand of a run as minutes."""
    return MinuteSeries(
        start_s=columns.start_s // 60 * 60,
        values=windows.minute_means(columns.demand_rps, start_s=columns.start_s, step_s=columns.step_s),
    )


def score_forecasts(
    points: ForecastPoints, actual: MinuteSeries, surges: SurgeScore | None = None, *, horizon_s: int = HORIZON_S
) -> ForecastScore:
    """Judge ``points`` against ``actual``; ``surges`` (None: not judged) is carried into the score."""
    truth = value_at(actual.values, (points.issued_at_s + points.horizon_s - actual.start_s) // 60)
    ceiling = value_at(centred_mean(actual.values), (points.issued_at_s + points.horizon_s - actual.start_s) // 60)
    newest = (points.issued_at_s - actual.start_s) // 60 - 1  # the last minute that had ended when it was issued
    last = value_at(actual.values, newest)
    mean5 = value_at(trailing_mean(actual.values, NAIVE_MEAN_MINUTES), newest)
    known = ~np.isnan(np.stack((truth, ceiling, last, mean5, points.expected))).any(axis=0)
    if not known.any():
        return _nothing_scored(horizon_s, surges)
    model = _within_ratio(points.expected[known], truth[known])
    naive = max(_within_ratio(last[known], truth[known]), _within_ratio(mean5[known], truth[known]))
    best = _within_ratio(ceiling[known], truth[known])
    inside = (points.lower <= truth) & (truth <= points.upper)
    width = _mean_width_ratio(points.upper[known] - points.lower[known], truth[known])
    return _finish(
        surges,
        ForecastScore(
            horizon_s=horizon_s,
            scored=int(known.sum()),
            within_10pct_ratio=model,
            naive_within_10pct_ratio=naive,
            ceiling_within_10pct_ratio=best,
            skill=(model - naive) / (best - naive) if best - naive >= MIN_ROOM_RATIO else None,
            coverage_ratio=float(inside[known].mean()),
            mean_interval_width_ratio=width,
            surges_caught=None,
            surges_total=None,
            false_alarms_per_day=None,
        ),
    )


def value_at(values: FloatColumn, index: IntColumn) -> FloatColumn:
    """``values[index]``, NaN where the index lies outside."""
    inside = (index >= 0) & (index < len(values))
    found = np.full(len(index), np.nan)
    found[inside] = values[index[inside]]
    return found


def _within_ratio(expected: FloatColumn, truth: FloatColumn) -> float:
    """Share within 10 % of the actual."""
    return float(is_within(expected, truth).mean())


def _mean_width_ratio(width: FloatColumn, truth: FloatColumn) -> float | None:
    """Mean width over mean actual: a ratio of means stays finite where single actuals are 0."""
    level = float(truth.mean())
    return float(width.mean()) / level if level > 0 else None


def _nothing_scored(horizon_s: int, surges: SurgeScore | None) -> ForecastScore:
    return _finish(
        surges,
        ForecastScore(
            horizon_s=horizon_s, scored=0, within_10pct_ratio=None, naive_within_10pct_ratio=None,
            ceiling_within_10pct_ratio=None, skill=None, coverage_ratio=None, mean_interval_width_ratio=None,
            surges_caught=None, surges_total=None, false_alarms_per_day=None,
        ),
    )  # fmt: skip


def _finish(surges: SurgeScore | None, part: ForecastScore) -> ForecastScore:
    nothing = "no forecast could be compared with an actual value"
    reasons = {
        name: nothing
        for name in (
            "within_10pct_ratio", "naive_within_10pct_ratio", "ceiling_within_10pct_ratio", "skill", "coverage_ratio",
            "mean_interval_width_ratio",
        )
        if part.scored == 0
    }  # fmt: skip
    if part.scored and part.skill is None:
        reasons["skill"] = "the ceiling lies less than 3 points above the naive forecast: there is no room for skill"
    if part.scored and part.mean_interval_width_ratio is None:
        reasons["mean_interval_width_ratio"] = "the actual demand was 0 throughout"
    if surges is None:
        reasons |= dict.fromkeys(("surges_caught", "surges_total", "false_alarms_per_day"), "warnings were not judged")
        return replace(part, reasons=reasons)
    if surges.false_alarms_per_day is None:
        reasons["false_alarms_per_day"] = "the span is empty"
    return replace(
        part,
        surges_caught=surges.caught,
        surges_total=surges.total,
        false_alarms_per_day=surges.false_alarms_per_day,
        reasons=reasons,
    )
