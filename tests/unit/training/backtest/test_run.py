"""A whole backtest on made demand: who is chosen, that equal seeds give equal numbers, and what is refused."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from leadtime.domain.errors import WrongUse
from leadtime.forecast.model import DemandModel, FloatColumn, TooShort
from leadtime.forecast.recent import LastValue, Mean5Min
from leadtime.training.backtest.page import build_html
from leadtime.training.backtest.plan import BacktestOptions, plan
from leadtime.training.backtest.report import encode, to_json
from leadtime.training.backtest.run import Backtest, backtest
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted, Ready, Trainee
from leadtime.training.progress import silent

START_S = 1_772_409_600
DAY = 144  # buckets of ten minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(LastValue):
    """Last value times what was learned from history: made demand doubles and halves from one bucket to the next."""

    name: str = "learned"
    factor: float = 1.0

    def predict(self, state: Any, steps: int) -> Any:
        band = LastValue.predict(self, state, steps)
        return band if isinstance(band, TooShort) else replace(band, expected=band.expected * self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """Learns how the next bucket compares with this one."""

    name: str = "learned"

    def fit(self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note) -> DemandModel:
        del seed, budget_s
        progress(1.0)
        buckets = history.values.reshape(-1, 10).mean(axis=1)
        return Scaled(factor=float(np.nanmedian(buckets[1:] / buckets[:-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Never finishes in time."""

    name: str = "late"

    def fit(self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note) -> NotFitted:
        del history, seed, progress
        return NotFitted(reason=f"not fitted within {budget_s:.0f} s")


NAIVE = (Ready(model=LastValue()), Ready(model=Mean5Min()))


def growing(days: int = 8, growth: float = 1.15, seed: int = 1) -> BacktestSeries:
    """Grows by ``growth`` each bucket for half an hour, then falls back: last value is wrong, and learnably so."""
    t = np.arange(days * DAY)
    noise = 1.0 + 0.01 * np.random.default_rng(seed).standard_normal(len(t))
    return BacktestSeries(name="made", start_s=START_S, step_s=600, values=100.0 * growth ** (t % 4) * noise)


def judged(series: BacktestSeries, field: tuple[Trainee, ...] = NAIVE, **options: Any) -> Backtest:
    return backtest(series, field, replace(BacktestOptions(lead_s=1200), **options), silent)


@pytest.fixture(scope="module")
def result() -> Backtest:
    return judged(growing(), (*NAIVE, Learner(), Late()))


def without_seconds(fields: dict[str, Any]) -> dict[str, Any]:
    lines = {name: {k: v for k, v in line.items() if k != "fit_s"} for name, line in fields["models"].items()}
    served = {k: v for k, v in fields["served"].items() if k != "fit_s"}
    return {**fields, "models": lines, "served": served}


def test_the_json_keeps_the_contract(result: Backtest) -> None:
    fields = json.loads(encode(to_json(result)))
    assert {
        "series", "horizon_s", "origins", "naive_within_10pct_ratio", "ceiling_within_10pct_ratio", "models",
        "champion", "reason", "acts", "surges",
    } <= set(fields)  # fmt: skip
    assert {
        "within_10pct_ratio", "skill", "coverage_ratio", "weighted_quantile_loss", "shortfall_minutes", "pod_hours",
        "fit_s",
    } <= set(fields["models"]["learned"])  # fmt: skip
    assert set(fields["surges"]) == {"caught", "total", "lead_s", "false_alarms_per_day"}
    assert fields["models"]["last_value"]["skill"] == pytest.approx(0.0)


def test_who_learned_is_champion_and_acts(result: Backtest) -> None:
    assert (result.chosen.champion, result.chosen.acts) == ("learned", True)
    lines = {line.name: line for line in result.scores}
    assert (lines["learned"].within_10pct_ratio or 0) > (lines["last_value"].within_10pct_ratio or 0) + 0.3


def test_who_is_not_fitted_in_time_is_named_with_the_reason(result: Backtest) -> None:
    late = next(line for line in result.scores if line.name == "late")
    assert (late.scored, late.refused, late.skill) == (0, "not fitted within 300 s", None)


def test_models_are_compared_at_the_pod_hours_of_last_value(result: Backtest) -> None:
    lines = {line.name: line for line in result.scores}
    assert lines["learned"].pod_hours == pytest.approx(lines["last_value"].pod_hours, rel=0.01)
    assert lines["last_value"].pod_hours == lines["last_value"].unscaled_pod_hours


def test_equal_seeds_give_equal_numbers(result: Backtest) -> None:
    again = judged(growing(), (*NAIVE, Learner(), Late()))
    assert without_seconds(to_json(again)) == without_seconds(to_json(result))


def test_the_choice_knows_nothing_of_the_test() -> None:
    series = growing()
    changed = series.values.copy()
    cut = plan(series, BacktestOptions(lead_s=1200)).cut
    changed[cut:] = np.random.default_rng(7).permutation(changed[cut:])
    one = judged(series, (*NAIVE, Learner()), per_pod=2.0)
    two = judged(replace(series, values=changed), (*NAIVE, Learner()), per_pod=2.0)
    assert one.chosen == two.chosen
    before = slice(0, cut)
    for mine, other in zip(one.spoken, two.spoken, strict=True):
        assert np.array_equal(mine.expected[before], other.expected[before], equal_nan=True)
        assert np.array_equal(mine.at_lead.upper[before], other.at_lead.upper[before], equal_nan=True)


def test_where_nothing_can_be_learned_a_naive_one_is_champion_and_nobody_acts() -> None:
    steps = 0.02 * np.random.default_rng(3).standard_normal(8 * DAY)
    walk = BacktestSeries(name="walk", start_s=START_S, step_s=600, values=100.0 * np.exp(np.cumsum(steps)))
    chosen = judged(walk, (*NAIVE, Learner())).chosen
    assert (chosen.champion, chosen.acts) == ("last_value", False)


def test_a_champion_that_fails_in_the_test_steps_down_and_what_was_served_shows_it() -> None:
    series = growing(12)
    values = series.values.copy()
    cut = plan(series, BacktestOptions(lead_s=1200)).cut
    values[cut:] = 100.0 + np.random.default_rng(4).standard_normal(len(values) - cut)  # the growth is gone
    found = judged(replace(series, values=values), (*NAIVE, Learner()), per_pod=2.0)
    champion = next(line for line in found.scores if line.name == found.chosen.champion)
    assert found.chosen.champion == "learned"
    assert found.served.stepped_down_ratio > 0.5
    assert (found.served.score.within_10pct_ratio or 0) > (champion.within_10pct_ratio or 0) + 0.5


def test_the_page_opens_offline_and_names_every_model(result: Backtest) -> None:
    page = build_html(result, to_json(result))
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    for name in ("last_value", "learned", "late", "Worst day", "Coverage over time", "Cost against pod-hours"):
        assert name in page


def flat(values: FloatColumn) -> BacktestSeries:
    return BacktestSeries(name="made", start_s=START_S, step_s=600, values=values)


@pytest.mark.parametrize(
    ("series", "options", "slug", "says"),
    [
        pytest.param(flat(np.ones(100)), {}, "backtest-too-short", "are needed to judge", id="too short"),
        pytest.param(growing(), {"horizon_s": 400 * 600}, "backtest-too-short", "shorter --lead", id="horizon > test"),
        pytest.param(
            growing(6), {"test_share": 0.95}, "backtest-too-short", "choose a model", id="nothing to choose on"
        ),
        pytest.param(flat(np.full(900, np.nan)), {}, "backtest-no-demand", "no bucket has a value", id="all gaps"),
        pytest.param(flat(np.zeros(900)), {}, "backtest-no-demand", "0 in all 900", id="all zero"),
        pytest.param(growing(), {"lead_s": 1500}, "backtest-not-whole-steps", "1200 s or 1800 s", id="lead off step"),
        pytest.param(growing(), {"horizon_s": 90}, "backtest-not-whole-steps", "no whole number", id="no whole minute"),
        pytest.param(growing(), {"models": ("x",)}, "backtest-unknown-model", "last_value, mean_5min", id="unknown"),
    ],
)
def test_what_cannot_be_judged_is_one_clear_error(
    series: BacktestSeries, options: dict[str, Any], slug: str, says: str
) -> None:
    with pytest.raises(WrongUse, match=says) as raised:
        judged(series, **options)
    assert raised.value.slug == slug


def test_models_that_were_asked_for_run_beside_the_naive_ones() -> None:
    found = judged(growing(), (*NAIVE, Learner(), Late()), models=("late",))
    assert [line.name for line in found.scores] == ["last_value", "mean_5min", "late"]


def test_gaps_that_leave_nothing_to_judge_are_refused_and_not_scored_as_zero() -> None:
    values = np.where(np.arange(4 * 1440) % 10 == 0, np.nan, 100.0)
    series = BacktestSeries(name="sparse", start_s=START_S, step_s=60, values=values)
    with pytest.raises(
        WrongUse, match="0 of the test's 2,295 forecasts can be judged, 50 are needed: 10% of the buckets"
    ):
        judged(series)
