"""How a series is to be judged: horizon, lead, split and capacity, checked against the series before any work."""

from dataclasses import dataclass

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.forecast.model import MINUTE_S
from leadtime.training.backtest.cost import Capacity
from leadtime.training.backtest.series import BacktestSeries

FITTED_SHARE = 0.6  # of the first part: models are fitted on it, and compared on what is left of that part
PODS_AT_PEAK = 100
LEAST_TEST_ORIGINS = 50
LEAST_CHOICE_ORIGINS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestOptions:
    """What the user asked for. ``per_pod`` None: a hundredth of the peak. ``models`` None: all of the field.

    ``stride``: models are asked at every so-manieth origin, for a quick look.
    """

    horizon_s: int = 600
    lead_s: int = 2400
    per_pod: float | None = None
    target_ratio: float = 0.70
    level_ratio: float = 0.90
    test_share: float = 0.4
    models: tuple[str, ...] | None = None
    seed: int = 0
    fit_budget_s: float = 300.0
    stride: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The split in bucket numbers: fitted on [0, fitted), compared on [fitted, cut), judged on [cut, buckets)."""

    fitted: int
    cut: int
    buckets: int
    ahead: int
    lead_ahead: int
    capacity: Capacity

    @property
    def choice_first(self) -> int:
        """The first origin at which models are compared: the end of what they were fitted on."""
        return max(0, self.fitted - 1)

    @property
    def test_first(self) -> int:
        """The first origin of the test."""
        return max(0, self.cut - 1)


def plan(series: BacktestSeries, options: BacktestOptions) -> Plan:
    """The split for ``series``. Raises WrongUse for what cannot be judged: each case names number and cure."""
    doing = f"backtesting {series.name}"
    _check_times(series, options, doing)
    known = series.values[~np.isnan(series.values)]
    if not len(known) or not known.any():
        what = "no bucket has a value" if not len(known) else f"the demand is 0 in all {len(known):,} buckets"
        raise WrongUse("backtest-no-demand", doing, what, "name the column of demand with --value-column")
    buckets = len(series.values)
    cut = round(buckets * (1.0 - options.test_share))
    fitted = round(cut * FITTED_SHARE)
    ahead, lead_ahead = series.ahead(options.horizon_s), series.ahead(options.lead_s)
    test, choice = buckets - cut - max(ahead, lead_ahead), cut - fitted - max(ahead, lead_ahead)
    if test < LEAST_TEST_ORIGINS or choice < LEAST_CHOICE_ORIGINS:
        raise _too_short(series, options, doing)
    peak = float(known.max())
    capacity = Capacity(per_pod=options.per_pod or peak / PODS_AT_PEAK, target_ratio=options.target_ratio)
    return Plan(fitted=fitted, cut=cut, buckets=buckets, ahead=ahead, lead_ahead=lead_ahead, capacity=capacity)


def _check_times(series: BacktestSeries, options: BacktestOptions, doing: str) -> None:
    """Horizon and lead are whole buckets; an origin is the end of one."""
    for name, value_s in (("--horizon", options.horizon_s), ("--lead", options.lead_s)):
        if value_s < MINUTE_S or value_s % MINUTE_S:
            raise WrongUse(
                "backtest-not-whole-steps", doing, f"{name} is {value_s} s, which is no whole number of minutes",
                "give at least 1m, in whole minutes",
            )  # fmt: skip
        if value_s % series.step_s and value_s > series.step_s:
            below_s = value_s // series.step_s * series.step_s
            raise WrongUse(
                "backtest-not-whole-steps", doing,
                f"{name} is {value_s} s, which is no multiple of the series' step of {series.step_s} s",
                f"give {below_s} s or {below_s + series.step_s} s",
            )  # fmt: skip


def _too_short(series: BacktestSeries, options: BacktestOptions, doing: str) -> WrongUse:
    """The series, or its test part, does not reach beyond the longer of horizon and lead."""
    ahead_s = max(options.horizon_s, options.lead_s)
    test_s = int(len(series.values) * options.test_share) * series.step_s
    needed_s = ahead_s + LEAST_TEST_ORIGINS * series.step_s
    if test_s < needed_s:
        wrong = f"the test is the last {test_s:,} s, and {needed_s:,} s are needed to judge {ahead_s:,} s ahead"
        return WrongUse(
            "backtest-too-short", doing, wrong, "give a longer series, a shorter --lead or more --test-share"
        )
    choice_s = int(len(series.values) * (1 - options.test_share) * (1 - FITTED_SHARE)) * series.step_s
    wrong = f"{choice_s:,} s are left to choose a model on, and more than {ahead_s:,} s are needed"
    return WrongUse("backtest-too-short", doing, wrong, "give a longer series, a shorter --lead or less --test-share")
