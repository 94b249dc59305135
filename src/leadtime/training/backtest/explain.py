"""A backtest that ends now → why the newest forecast is what it is: level, usual change, interval, and what more needs.

Everything is counted from the series and the backtest itself; a share never stands without what it is a share of.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.forecast.model import FloatColumn
from leadtime.training.backtest.run import Backtest

DAY_S, HOUR_S = 86_400, 3600
LATELY_S = 86_400
EARLIER_DAYS = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One model's newest forecast."""

    name: str
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChange:
    """An earlier day at this time of day: when, and demand one horizon later ÷ the hour before, less one."""

    at_s: int
    change_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The newest forecast and what it rests on; ratios are to the level; None where too little is known.

    ``days``: what earlier days did from this time of day on over the same horizon, oldest last.
    """

    series: str
    at_s: int
    horizon_s: int
    champion: str
    serves: bool
    expected: float
    lower: float
    upper: float
    level: float
    level_before: float | None
    usual_change_ratio: float | None
    days: tuple[DayChange, ...]
    coverage_lately_ratio: float | None
    scored_lately: int
    others: tuple[Said, ...]
    reason: str
    acts: bool
    unknown_s: int = 0  # how long the newest buckets have had no value

    @property
    def changes(self) -> tuple[float, ...]:
        """The days' changes alone."""
        return tuple(day.change_ratio for day in self.days)

    @property
    def beyond_usual_ratio(self) -> float | None:
        """What the forecast is above level × (1 + usual change): what the model saw in the last minutes or the week.

        None where the level or the usual change is not known, or is 0.
        """
        usual = None if self.usual_change_ratio is None else self.level * (1.0 + self.usual_change_ratio)
        return self.expected / usual - 1.0 if usual else None

    @property
    def needed_for_more_ratio(self) -> float:
        """How much demand must change from the level to leave the interval upwards."""
        return self.upper / self.level - 1.0 if self.level > 0 else float("inf")

    @property
    def days_with_more(self) -> int:
        """Earlier days that changed by more than that from here on."""
        return sum(change > self.needed_for_more_ratio for change in self.changes)


def explain(result: Backtest) -> Explained:
    """Why the forecast made at the end of the series is what it is.

    Raises WrongUse when nothing was forecast there: the series ends in a gap that no model bridges.
    """
    series, served, newest = result.series, result.served.spoken, result.plan.buckets - 1
    at_s = series.start_s + series.step_s * result.plan.buckets
    if np.isnan(served.expected[newest]) or np.isnan(served.bounds.upper[newest]):
        doing, wrong = f"explaining {series.name}", f"nothing is known at {rfc3339(from_epoch(at_s))}"
        raise WrongUse("explain-nothing-known", doing, wrong, "name a time at which the series has values with --at")
    level, before = _level(series.values, HOUR_S // series.step_s)
    days = _days(result)
    inside = _inside(result, LATELY_S // series.step_s)
    return Explained(
        series=series.name, at_s=at_s, horizon_s=result.options.horizon_s, champion=result.chosen.champion,
        serves=served.serves is None or bool(served.serves[newest]), expected=float(served.expected[newest]),
        lower=float(served.bounds.lower[newest]), upper=float(served.bounds.upper[newest]), level=level,
        level_before=before, days=days,
        usual_change_ratio=float(np.median([day.change_ratio for day in days])) if days else None,
        coverage_lately_ratio=float(inside.mean()) if len(inside) else None, scored_lately=len(inside),
        others=tuple(
            Said(name=one.name, expected=float(one.expected[newest]))
            for one in result.spoken
            if not np.isnan(one.expected[newest])
        ),
        reason=result.chosen.reason, acts=result.chosen.acts,
        unknown_s=series.step_s * (newest - int(np.flatnonzero(~np.isnan(series.values))[-1])),
    )  # fmt: skip


def _level(values: FloatColumn, hour: int) -> tuple[float, float | None]:
    """Mean of the last hour (one bucket at least), else the last value known; and mean of the hour before it."""
    hour = max(1, hour)
    now, before = values[-hour:], values[-2 * hour : -hour]
    known = now[~np.isnan(now)]
    level = float(known.mean()) if len(known) else float(values[~np.isnan(values)][-1])
    return level, None if np.isnan(before).all() or not len(before) else float(np.nanmean(before))


def _days(result: Backtest) -> tuple[DayChange, ...]:
    """Earlier days whose demand around this time of day is known, newest first."""
    series, hour = result.series, max(1, HOUR_S // result.series.step_s)
    day, last = DAY_S // series.step_s, len(series.values) - 1
    found = []
    for back in range(1, EARLIER_DAYS + 1):
        then = last - back * day
        if then < hour or DAY_S % series.step_s:
            break
        level = series.values[then - hour + 1 : then + 1]
        came = series.values[then + result.sticks.ahead] if then + result.sticks.ahead <= last else np.nan
        if not np.isnan(came) and not np.isnan(level).all() and np.nanmean(level) > 0:
            at_s = series.start_s + (then + 1) * series.step_s
            found.append(DayChange(at_s=at_s, change_ratio=float(came / np.nanmean(level)) - 1.0))
    return tuple(found)


def _inside(result: Backtest, count: int) -> FloatColumn:
    """1.0 where the actual lay inside, over the last ``count`` origins whose truth is known."""
    bounds, truth = result.served.spoken.bounds, result.sticks.truth
    known = np.flatnonzero(~(np.isnan(bounds.lower) | np.isnan(truth)))[-max(1, count) :]
    return np.asarray((bounds.lower[known] <= truth[known]) & (truth[known] <= bounds.upper[known]), dtype=np.float64)
