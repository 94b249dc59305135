"""One series → a backtest → the figures the acceptance table needs, and what rivals do on the same origins."""

from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.selection import Difference, difference
from leadtime.policy.schema import Policy
from leadtime.training.backtest.cost import Cost, at_pod_hours, cost
from leadtime.training.backtest.field import field
from leadtime.training.backtest.plan import BacktestOptions
from leadtime.training.backtest.report import to_json
from leadtime.training.backtest.run import Backtest, Heard, Spoken, hear, judge
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.trainee import Trainee
from leadtime.training.backtest.yardsticks import BoolColumn, within, yardsticks
from leadtime.training.progress import Progress
from leadtime.training.rivals import rivals

POLICY = Policy()
SHIFTS, AFTER = 5, 200  # level shifts looked at, and the origins after each
LEVEL_S = 3600  # a level is the mean of an hour


def heard(
    series: BacktestSeries, trainees: Sequence[Trainee], shelf: Path, options: BacktestOptions, told: Progress
) -> list[Heard]:
    """What models said of ``series``, from their files below ``shelf``; those without one are asked, in one walk."""
    files = {one.name: shelf / f"{series.name}.{one.name}.npz" for one in trainees}
    new = [one for one in trainees if not files[one.name].exists()]
    if new:
        begun = process_time()
        found = hear(series, new, options, told)
        took_s = (process_time() - begun) / len(new)
        shelf.mkdir(parents=True, exist_ok=True)
        for one in found:
            part = files[one.name].with_suffix(".part")
            with part.open("wb") as opened:
                np.savez_compressed(
                    opened, expected=one.expected, fit_s=one.fit_s, refused=one.refused or "", cpu_s=took_s
                )
            part.replace(files[one.name])
    return [_kept(name, file) for name, file in files.items()]


def _kept(name: str, file: Path) -> Heard:
    kept = np.load(file)
    refused = str(kept["refused"]) or None
    return Heard(name=name, expected=kept["expected"], fit_s=float(kept["fit_s"]), refused=refused)


def cpu_s(series: BacktestSeries, names: Sequence[str], shelf: Path) -> float:
    """Seconds of CPU that hearing these models took; of those heard together each has an equal share."""
    return sum(float(np.load(shelf / f"{series.name}.{name}.npz")["cpu_s"]) for name in names)


def line_of(
    series: BacktestSeries, shelf: Path, options: BacktestOptions, told: Progress, *, with_rivals: bool
) -> dict[str, Any]:
    """The whole field on one series: the report of ``leadtime forecast backtest``, and what the table needs beyond it.

    Raises WrongUse where the series is too short to be judged.
    """
    trainees = field(POLICY.forecast)
    heards = heard(series, trainees, shelf, options, told)
    begun = process_time()
    result = judge(series, heards, options, told)
    judged_s = process_time() - begun
    served, last = result.served.spoken, result.spoken[0]
    return {
        "report": to_json(result),
        "more_short": _said(_more_short(result, served, last)),
        "last_value_width_ratio": _width_at(result, last, served),
        "covered_after_shifts_ratio": _after_shifts(result, served),
        "rivals": _rivals(result, shelf, options, told) if with_rivals else {},
        "cpu_s": round(judged_s + cpu_s(series, [one.name for one in trainees], shelf), 1),
    }


def _rivals(result: Backtest, shelf: Path, options: BacktestOptions, told: Progress) -> dict[str, Any]:
    """Each rival's hits less those of what was served, at the origins it answered."""
    served, found = within(result.served.spoken.expected, result.sticks.truth), dict[str, Any]()
    for one in heard(result.series, rivals(), shelf, options, told):
        hit = np.where(result.test, within(one.expected[0], result.sticks.truth), np.nan)
        both = ~np.isnan(hit) & ~np.isnan(served)
        if not both.any():
            found[one.name] = {"refused": one.refused}
            continue
        found[one.name] = {
            "origins": int(both.sum()), "within_10pct_ratio": float(hit[both].mean()),
            "served_within_10pct_ratio": float(served[both].mean()),
            "served_above": _said(difference(served, hit, _times(result.series))),
        }  # fmt: skip
    return found


def _times(series: BacktestSeries) -> Any:
    return series.start_s + series.step_s * (1 + np.arange(len(series.values), dtype=np.int64))


def _said(off: Difference | None) -> dict[str, Any] | None:
    return None if off is None else {"mean": off.mean, "error": off.error}


def _more_short(result: Backtest, served: Spoken, last: Spoken) -> Difference | None:
    """Share of minutes short with what was served, less that with last value, at last value's pod-hours."""
    numbers, truth = np.arange(result.plan.buckets), yardsticks(result.series, result.options.lead_s).truth
    where = numbers >= result.plan.test_first
    where &= ~(np.isnan(served.at_lead.upper) | np.isnan(last.at_lead.upper))
    came, minutes = np.where(where, truth, np.nan), result.series.bucket_min
    naive = cost(last.at_lead.upper, came, result.plan.capacity, minutes)
    ours: Cost | None = at_pod_hours(naive.pod_hours, served.at_lead.upper, came, result.plan.capacity, minutes)
    return None if ours is None else difference(ours.short, naive.short, _times(result.series))


def _width_at(result: Backtest, last: Spoken, served: Spoken) -> float | None:
    """Mean width ÷ mean demand of last value's intervals, scaled until they cover as much as what was served."""
    truth = result.sticks.truth
    where = result.test & ~(np.isnan(served.bounds.upper) | np.isnan(last.bounds.upper))
    if not where.any() or not truth[where].mean() > 0:
        return None
    said, came = last.expected[where], truth[where]
    below, above = said - last.bounds.lower[where], last.bounds.upper[where] - said
    wanted = _inside(served.bounds.lower[where], served.bounds.upper[where], came)
    widths = []
    for slack in (-0.5, 0.5):  # of one origin: the least and the most that covers as much; in between lies the answer
        low, high = 0.0, 8.0
        for _ in range(40):
            middle = (low + high) / 2.0
            inside = _inside(np.maximum(0.0, said - middle * below), said + middle * above, came)
            low, high = (middle, high) if inside * len(came) < wanted * len(came) + slack else (low, middle)
        widths.append(float((said + high * above - np.maximum(0.0, said - high * below)).mean()))
    return float(np.mean(widths) / came.mean())


def _inside(lower: FloatColumn, upper: FloatColumn, truth: FloatColumn) -> float:
    return float(((lower <= truth) & (truth <= upper)).mean())


def _after_shifts(result: Backtest, served: Spoken) -> float | None:
    """Share inside over the 200 origins after each of the five largest changes of the hourly level in the test.

    The first origin is the end of the first bucket on the new level.
    """
    values, hour = result.series.values, max(1, LEVEL_S // result.series.step_s)
    means = np.convolve(values, np.ones(hour) / hour, mode="valid")  # means[i]: of the hour that begins at i
    change = np.full(len(values), np.nan)
    change[hour : len(values) - hour + 1] = np.abs(means[hour:] - means[:-hour]) / np.maximum(
        np.minimum(means[hour:], means[:-hour]), 0.05 * float(np.nanmean(values)) + 1e-12
    )
    change[: result.plan.test_first] = np.nan
    change[len(values) - AFTER :] = np.nan
    after: BoolColumn = np.zeros(len(values), dtype=bool)
    for _ in range(SHIFTS):
        if np.isnan(change).all():
            break
        at = int(np.nanargmax(change))
        after[at : at + AFTER] = True
        change[max(0, at - AFTER) : at + AFTER] = np.nan
    where = after & result.test & ~np.isnan(served.bounds.upper)
    if not where.any():
        return None
    return _inside(served.bounds.lower[where], served.bounds.upper[where], result.sticks.truth[where])
