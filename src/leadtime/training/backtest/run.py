"""A series and a field of models → what they said (``hear``) → a judged backtest (``judge``); ``backtest`` is both.

Models are fitted on the first 60 % of the first part and compared on what is left of it; the champion is fixed there.
Then they are fitted on all of the first part, and the test is opened once. Bounds are calibrated by the misses of both
walks in the order of time: those of the first were made without knowing what came.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.forecast import selection
from leadtime.forecast.conformal import Bounds, calibrated
from leadtime.forecast.model import MINUTE_S, DemandModel, FloatColumn, TooShort
from leadtime.forecast.naive import CEILING_MINUTES
from leadtime.forecast.selection import Chosen, Contestant
from leadtime.scorecard.surge_episodes import Episode
from leadtime.training.backtest import score as scores
from leadtime.training.backtest.cost import Cost, at_pod_hours, bound_loss, cost
from leadtime.training.backtest.labels import inside as labels_inside
from leadtime.training.backtest.plan import LEAST_TEST_ORIGINS, BacktestOptions, Plan, plan
from leadtime.training.backtest.score import Judged, ModelScore, Naive
from leadtime.training.backtest.series import BacktestSeries
from leadtime.training.backtest.surges import SurgeScore, judge_surges
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted, Trainee
from leadtime.training.backtest.walk import Asked, walk
from leadtime.training.backtest.yardsticks import BoolColumn, Yardsticks, within, yardsticks
from leadtime.training.progress import Progress

NAIVE = ("last_value", "mean_5min")
EXPECTED = 1  # row of Said.values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """What one model expected at every origin: ``expected[0]`` at the horizon, ``[1]`` at the lead; NaN nothing.

    Origins before the test are answered by the model of the first fit, those of the test by that of the second.
    """

    name: str
    expected: FloatColumn
    fit_s: float
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spoken:
    """What one model said at every origin, by horizon: expected values and calibrated bounds; NaN where nothing."""

    name: str
    expected: FloatColumn
    bounds: Bounds
    at_lead: Bounds
    fit_s: float
    refused: str | None
    serves: BoolColumn | None = None  # of what was served: where it was the champion's


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """What the champion said, or the naive forecast while it had stepped down; and how that did over the test."""

    spoken: Spoken
    score: ModelScore
    stepped_down_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backtest:
    """The whole result; ``spoken`` keeps the columns that the pages draw."""

    series: BacktestSeries
    options: BacktestOptions
    plan: Plan
    sticks: Yardsticks
    test: BoolColumn
    naive: Naive
    spoken: tuple[Spoken, ...]
    scores: tuple[ModelScore, ...]
    chosen: Chosen
    served: Served
    surges: SurgeScore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """A model of one phase, or why there is none."""

    name: str
    model: DemandModel | None
    refused: str | None
    fit_s: float


def backtest(
    series: BacktestSeries,
    field: Sequence[Trainee],
    options: BacktestOptions,
    progress: Progress,
    labels: tuple[Episode, ...] | None = None,
) -> Backtest:
    """Fit, choose, fit again, judge. ``field`` simplest first, the two naive models among them.

    ``labels``: surges a person marked, which then are the truth the detector is judged by.

    Raises WrongUse when the series or the options do not allow a judgement. Equal input gives an equal result, except
    for seconds.
    """
    racing = _chosen_field(field, options, series.name)
    _refuse_unjudgeable(series, options)
    labels = None if labels is None else labels_inside(labels, series)
    return judge(series, hear(series, racing, options, progress), options, progress, labels)


def _refuse_unjudgeable(series: BacktestSeries, options: BacktestOptions) -> None:
    """Raise WrongUse where gaps leave too few origins of the test with a ceiling and both naive forecasts."""
    laid, sticks = plan(series, options), yardsticks(series, options.horizon_s)
    judged, possible = int(sticks.scored()[laid.test_first :].sum()), laid.buckets - laid.ahead - laid.test_first
    if judged < LEAST_TEST_ORIGINS:
        raise WrongUse(
            "backtest-too-many-gaps", f"backtesting {series.name}",
            f"{judged} of the test's {possible:,} forecasts can be judged, {LEAST_TEST_ORIGINS} are needed: "
            f"{np.isnan(series.values).mean():.0%} of the buckets have no value, and each forecast needs "
            f"{CEILING_MINUTES} minutes in a row around its target",
            "give a series with fewer gaps, or average it to longer buckets",
        )  # fmt: skip


def judge(
    series: BacktestSeries,
    heard: Sequence[Heard],
    options: BacktestOptions,
    progress: Progress,
    labels: tuple[Episode, ...] | None = None,
) -> Backtest:
    """Calibrate, choose, score: ``backtest`` without the dear part. ``heard`` simplest first, the naive two first."""
    laid = plan(series, options)
    sticks, at_lead = yardsticks(series, options.horizon_s), yardsticks(series, options.lead_s)
    spoken = _calibrated(series, heard, (sticks, at_lead), options.level_ratio, progress)
    numbers = np.arange(laid.buckets)
    choice = (numbers >= laid.choice_first) & (numbers + max(laid.ahead, laid.lead_ahead) < laid.cut)
    test = (numbers >= laid.test_first) & sticks.scored()
    reference = calibrated(sticks.seasonal, sticks.truth, series.timing(sticks.ahead), options.level_ratio)
    judged = Judged(
        series=series, sticks=sticks, origins=test, reference=reference, level_ratio=options.level_ratio
    )  # fmt: skip
    chosen = _choose(spoken, judged, at_lead.truth, choice & sticks.scored(), laid)
    scored = numbers >= laid.test_first
    served = _served(spoken, judged, at_lead.truth, chosen, laid)
    lines = _scores([*spoken, served], judged, at_lead.truth, scored, laid)
    return Backtest(
        series=series, options=options, plan=laid, sticks=sticks, test=test, naive=scores.naive_of(sticks, test),
        spoken=spoken, scores=lines[:-1], chosen=chosen, surges=judge_surges(series, labels),
        served=Served(spoken=served, score=lines[-1], stepped_down_ratio=_stepped_down(served, test)),
    )  # fmt: skip


def _chosen_field(field: Sequence[Trainee], options: BacktestOptions, name: str) -> tuple[Trainee, ...]:
    """The models asked for, and the two naive ones always."""
    if options.models is None:
        return tuple(field)
    names = [one.name for one in field]
    for wanted in options.models:
        if wanted not in names:
            raise WrongUse(
                "backtest-unknown-model", f"backtesting {name}", f"there is no model {wanted}",
                f"choose among {', '.join(names)}",
            )  # fmt: skip
    return tuple(one for one in field if one.name in (*NAIVE, *options.models))


def hear(
    series: BacktestSeries, field: Sequence[Trainee], options: BacktestOptions, progress: Progress
) -> tuple[Heard, ...]:
    """Fit everybody twice and walk once: in the order of ``field`` what each said. Raises as ``backtest`` does.

    What a model says depends on nobody else, so a field may be heard in parts.
    """
    laid = plan(series, options)
    first = [_fit(one, series, laid.fitted, options, progress) for one in field]
    second = [_fit(one, series, laid.cut, options, progress) for one in field]
    asked, places = [], []
    for number, (early, late) in enumerate(zip(first, second, strict=True)):
        for one, origins in ((early, (laid.choice_first, laid.test_first)), (late, (laid.test_first, laid.buckets))):
            if one.model is not None:
                stride = options.stride * getattr(one.model, "stride", 1)
                asked.append(Asked(model=one.model, first=origins[0], until=origins[1], stride=stride))
                places.append(number)
    steps = (options.horizon_s // MINUTE_S - 1, options.lead_s // MINUTE_S - 1)
    said = walk(series, asked, steps, lambda share: progress("origins", int(100 * share), 100, "%"))
    expected = np.full((len(field), 2, laid.buckets), np.nan)
    refused = [late.refused for late in second]
    for number, answer in zip(places, said, strict=True):
        answered = ~np.isnan(answer.values[EXPECTED])
        expected[number][answered] = answer.values[EXPECTED][answered]
        if second[number].model is not None:  # the walk of the second fit comes last and has the last word
            refused[number] = None if answer.answered else answer.refusal
    return tuple(
        Heard(name=late.name, expected=expected[number], fit_s=late.fit_s, refused=refused[number])
        for number, late in enumerate(second)
    )


def _calibrated(
    series: BacktestSeries,
    heard: Sequence[Heard],
    sticks: tuple[Yardsticks, Yardsticks],
    level_ratio: float,
    progress: Progress,
) -> tuple[Spoken, ...]:
    """Everybody's bounds at the horizon (with quantiles) and at the lead; ``sticks``: of the one and the other."""
    (horizon, lead), found = sticks, []
    for number, one in enumerate(heard):
        progress("calibrating", number, len(heard), "models")
        near, far = one.expected
        bounds = calibrated(near, horizon.truth, series.timing(horizon.ahead), level_ratio)
        at_lead = calibrated(far, lead.truth, series.timing(lead.ahead), level_ratio, levels=())
        spoken = Spoken(
            name=one.name, expected=near, bounds=bounds, at_lead=at_lead, fit_s=one.fit_s, refused=one.refused
        )
        found.append(spoken)
    return tuple(found)


def _fit(trainee: Trainee, series: BacktestSeries, until: int, options: BacktestOptions, progress: Progress) -> _Fitted:
    """Fit on the first ``until`` buckets, held over their minutes."""
    history = MinuteHistory(start_s=series.start_s, values=np.repeat(series.values[:until], series.bucket_min))
    what, begun = f"fitting {trainee.name}", perf_counter()
    result = trainee.fit(
        history, seed=options.seed, budget_s=options.fit_budget_s,
        progress=lambda share: progress(what, int(100 * share), 100, "%"),
    )  # fmt: skip
    refused = result.reason if isinstance(result, TooShort | NotFitted) else None
    model = None if isinstance(result, TooShort | NotFitted) else result
    return _Fitted(name=trainee.name, model=model, refused=refused, fit_s=perf_counter() - begun)


def _costs(
    spoken: Sequence[Spoken], truth: FloatColumn, where: BoolColumn, laid: Plan, bucket_min: int
) -> dict[str, tuple[Cost, Cost | None]]:
    """Each model's cost as asked, and at the pod-hours of last value on the buckets it answered for."""
    naive = np.where(where, spoken[0].at_lead.upper, np.nan)
    found = {}
    for one in spoken:
        upper = np.where(where, one.at_lead.upper, np.nan)
        came = np.where(np.isnan(upper) | np.isnan(naive), np.nan, truth)
        wanted = cost(naive, came, laid.capacity, bucket_min).pod_hours
        equal = at_pod_hours(wanted, upper, came, laid.capacity, bucket_min) if wanted else None
        found[one.name] = (cost(upper, truth, laid.capacity, bucket_min), equal)
    return found


def _choose(
    spoken: Sequence[Spoken], judged: Judged, lead_truth: FloatColumn, choice: BoolColumn, laid: Plan
) -> Chosen:
    """The champion, from what was said about the part before the test."""
    costs = _costs(spoken, lead_truth, choice, laid, judged.series.bucket_min)
    nothing = np.full(laid.buckets, np.nan)
    contestants = []
    for one in spoken:
        equal = costs[one.name][1]
        hit = np.where(choice, within(one.expected, judged.sticks.truth), np.nan)
        contestants.append(Contestant(name=one.name, hit=hit, short=equal.strained if equal else nothing))
    return selection.choose(contestants, NAIVE, judged.times_s())


def _served(spoken: Sequence[Spoken], judged: Judged, lead_truth: FloatColumn, chosen: Chosen, laid: Plan) -> Spoken:
    """The champions' words, and naive ones where a champion has stepped down or says nothing.

    At the horizon it steps down for the better naive by hits; at the lead for last value by the loss of upper bounds.
    """
    by_name, times_s = {one.name: one for one in spoken}, judged.times_s()
    champion, naive = by_name[chosen.champion], by_name[chosen.better_naive]
    lost = [1.0 - within(one.expected, judged.sticks.truth) for one in (champion, naive)]
    serves = selection.serving(lost[0], lost[1], times_s, laid.ahead) & ~np.isnan(champion.expected)
    lead, last = by_name[chosen.lead_champion], spoken[0]
    off = [bound_loss(one.at_lead.upper, lead_truth, judged.level_ratio) for one in (lead, last)]
    leads = selection.serving(off[0], off[1], times_s, laid.lead_ahead) & ~np.isnan(lead.at_lead.upper)
    return Spoken(
        name="served",
        expected=np.where(serves, champion.expected, naive.expected),
        bounds=_either(serves, champion.bounds, naive.bounds),
        at_lead=_either(leads, lead.at_lead, last.at_lead),
        fit_s=champion.fit_s,
        refused=None,
        serves=serves,
    )


def _stepped_down(served: Spoken, test: BoolColumn) -> float:
    """Share of the test's origins at which the champion did not serve."""
    return 0.0 if served.serves is None else float((~served.serves[test]).mean())


def _either(serves: BoolColumn, champion: Bounds, naive: Bounds) -> Bounds:
    return Bounds(
        lower=np.where(serves, champion.lower, naive.lower),
        upper=np.where(serves, champion.upper, naive.upper),
        quantiles=np.where(serves, champion.quantiles, naive.quantiles),
    )


def _scores(
    spoken: Sequence[Spoken], judged: Judged, lead_truth: FloatColumn, where: BoolColumn, laid: Plan
) -> tuple[ModelScore, ...]:
    """Everybody's line, over the test."""
    costs = _costs(spoken, lead_truth, where, laid, judged.series.bucket_min)
    lines = []
    for one in spoken:
        line = scores.score(judged, one.name, one.expected, one.bounds)
        money = scores.cost_fields(*costs[one.name]) if line.scored else {}
        lines.append(replace(line, fit_s=one.fit_s, refused=one.refused, **money))  # type: ignore[arg-type]
    return tuple(lines)
