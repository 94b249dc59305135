"""What ``leadtime forecast explain`` does: demand file up to a time → backtest → why its newest forecast is so."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import typer

from leadtime.cli import console
from leadtime.cli.borg.progress import shown
from leadtime.cli.forecast.explain import ExplainRequest
from leadtime.cli.options import plain_duration
from leadtime.domain.errors import WrongUse
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.policy.schema import Policy
from leadtime.sources.demand_file import read_demand
from leadtime.training.backtest.explain import DayChange, Explained, explain
from leadtime.training.backtest.field import field
from leadtime.training.backtest.plan import BacktestOptions
from leadtime.training.backtest.run import backtest
from leadtime.training.backtest.series import BacktestSeries, from_file
from leadtime.training.progress import Progress

HOUR_S = 3600


def run(asked: ExplainRequest) -> None:
    """Say it as sentences, or as JSON."""
    policy, out = Policy(), console.stderr()
    series = _until(from_file(read_demand(asked.path, asked.file), asked.path.stem), asked)
    horizon_s = int(asked.horizon.total_seconds())
    options = BacktestOptions(
        horizon_s=horizon_s, lead_s=horizon_s, target_ratio=policy.scaling.target_utilisation_ratio,
        level_ratio=policy.forecast.level_ratio, models=asked.models, seed=asked.seed,
    )  # fmt: skip
    with shown(out) as progress:
        found = _explained(series, options, progress)
    if asked.json:
        typer.echo(json.dumps(_fields(found), indent=2, ensure_ascii=False, allow_nan=False))
        return
    for sentence in _sentences(found, options.level_ratio):
        out.print(sentence, markup=False, soft_wrap=True)


def _explained(series: BacktestSeries, options: BacktestOptions, progress: Progress) -> Explained:
    """The newest forecast. What is too short for a backtest is told in this command's own options."""
    try:
        return explain(backtest(series, field(Policy().forecast), options, progress))
    except WrongUse as error:
        if error.slug != "backtest-too-short":
            raise
        have = plain_duration(len(series.values) * series.step_s)
        raise WrongUse(
            error.slug, f"explaining {series.name}",
            f"{have} of history are too short to choose a model {plain_duration(options.horizon_s)} ahead",
            "give a longer series, a later --at or a shorter --horizon",
        ) from None  # fmt: skip


def _until(series: BacktestSeries, asked: ExplainRequest) -> BacktestSeries:
    """The buckets that had ended at ``--at``."""
    if asked.at is None:
        return series
    count = (int(asked.at.timestamp()) - series.start_s) // series.step_s
    if not 0 < count <= len(series.values):
        end = rfc3339(from_epoch(series.start_s + series.step_s * len(series.values)))
        raise WrongUse(
            "explain-outside-series", f"explaining {series.name}", f"--at {rfc3339(asked.at)} lies outside the series",
            f"name a time after {rfc3339(from_epoch(series.start_s))} and not after {end}",
        )  # fmt: skip
    return replace(series, values=series.values[:count])


def _fields(found: Explained) -> dict[str, object]:
    return asdict(found) | {
        "at": rfc3339(from_epoch(found.at_s)),
        "changes": found.changes,
        "beyond_usual_ratio": found.beyond_usual_ratio,
        "needed_for_more_ratio": found.needed_for_more_ratio if found.level > 0 else None,
        "days_with_more": found.days_with_more,
    }


def _sentences(found: Explained, level_ratio: float) -> Iterator[str]:
    """Number, level, usual change, who says so, the interval and how it held, and what more would take."""
    ahead = plain_duration(found.horizon_s)
    yield (
        f"{found.series}, {rfc3339(from_epoch(found.at_s))}: {_number(found.expected)} expected {ahead} later, between "
        f"{_number(found.lower)} and {_number(found.upper)} ({level_ratio:.0%})"
    )
    moved = "" if not found.level_before else f", {found.level / found.level_before - 1:+.1%} against the hour before"
    if found.unknown_s >= HOUR_S:
        age = plain_duration(found.unknown_s)
        yield f"level: {_number(found.level)}, the last value known; nothing is known of the last {age}"
    else:
        yield f"level: {_number(found.level)} in the last hour{moved}"
    if found.usual_change_ratio is None:
        yield "usual change: not known, no earlier day at this time"
    else:
        yield (
            f"usual change: {found.usual_change_ratio:+.1%}, demand {ahead} later against the mean of the hour before, "
            f"the median of {_earlier(len(found.changes))} ({_extreme(found, min)} to {_extreme(found, max)})"
        )
    if found.beyond_usual_ratio is not None and found.usual_change_ratio is not None:
        speaker = found.champion if found.serves else "the naive forecast"
        yield (
            f"drivers: level {_number(found.level)} × {1.0 + found.usual_change_ratio:.3f} (usual change) × "
            f"{1.0 + found.beyond_usual_ratio:.3f} (what {speaker} makes of the rest) = {_number(found.expected)}"
        )
    stepped = "" if found.serves else f"; {found.champion} has stepped down, the naive forecast speaks"
    yield f"champion: {found.reason}; acts: {'yes' if found.acts else 'no'}{stepped}"
    yield "others say: " + ", ".join(f"{one.name} {_number(one.expected)}" for one in found.others)
    if found.coverage_lately_ratio is not None:
        share = f"{found.coverage_lately_ratio:.1%} of the last {found.scored_lately:,} actuals lay inside"
        yield f"interval: {share}, stated {level_ratio:.0%}"
    if found.level > 0:
        yield (
            f"for more than {_number(found.upper)}: demand must change by {found.needed_for_more_ratio:+.1%} from its "
            f"level; {found.days_with_more} of {_earlier(len(found.changes))} did at this time"
        )
    else:
        yield f"for more than {_number(found.upper)}: demand must rise from 0, so no share can be given"


def _earlier(days: int) -> str:
    return f"{days} earlier day{'' if days == 1 else 's'}"


def _extreme(found: Explained, pick: Callable[..., DayChange]) -> str:
    """The day that changed least or most, with its date."""
    day = pick(found.days, key=lambda one: one.change_ratio)
    return f"{day.change_ratio:+.1%} on {from_epoch(day.at_s):%Y-%m-%d}"


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
