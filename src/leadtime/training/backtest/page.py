"""A backtest → one HTML page that opens offline: no script, nothing fetched, charts drawn here as SVG.

The page says what backtest.json says; the charts show the days, the coverage and the prices behind it.
"""

from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from leadtime.domain.time_window import from_epoch
from leadtime.forecast.model import FloatColumn
from leadtime.simulate.svg import Chart, Keep, Line, draw
from leadtime.training.backtest.board import draw_board
from leadtime.training.backtest.cost import cost
from leadtime.training.backtest.run import Backtest, Spoken
from leadtime.training.run_report_svg import Axis, Points, draw_points

DAY_S = 86_400
SCALES = np.geomspace(0.6, 2.5, 14)
Figure = tuple[str, str, Markup]


def build_html(result: Backtest, fields: dict[str, Any]) -> str:
    """The page of one backtest; ``fields`` as ``report.to_json`` returns them."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(room) for room in ("leadtime.training", "leadtime.simulate")]),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"share": _share, "number": _number, "signed": _signed}
    return environment.get_template("backtest.html.j2").render(
        fields=fields, board=draw_board(result), days=_days(result), others=[_coverage(result), _prices(result)]
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _number(value: float | None, form: str = "{:,.0f}") -> str:
    return "–" if value is None else form.format(value)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def _about_s(result: Backtest) -> FloatColumn:
    """The beginning of the bucket each origin's forecast is about, epoch seconds."""
    numbers = np.arange(result.plan.buckets) + result.sticks.ahead
    return np.asarray(result.series.start_s + result.series.step_s * numbers, dtype=np.float64)


def _days(result: Backtest) -> list[Figure]:
    """The worst day of what was served and a usual one: the day with the median error."""
    at_s, served = _about_s(result), result.served.spoken
    off = np.where(result.test, np.abs(served.expected - result.sticks.truth), np.nan)
    day = (at_s // DAY_S).astype(np.int64)
    whole = [int(d) for d in np.unique(day[result.test]) if np.isfinite(off[day == d]).mean() > 0.5]
    if not whole:
        return []
    ranked = sorted(whole, key=lambda d: float(np.nanmean(off[day == d])))
    chosen = [("Worst day", ranked[-1]), ("Usual day", ranked[len(ranked) // 2])]
    return [_day(result, served, name, d) for name, d in (chosen if len(ranked) > 1 else chosen[:1])]


def _day(result: Backtest, served: Spoken, name: str, day: int) -> Figure:
    at_s = _about_s(result)
    here = np.flatnonzero((at_s >= day * DAY_S) & (at_s < (day + 1) * DAY_S))
    columns = (
        ("lower bound", "oracle", served.bounds.lower, Keep.MIN),
        ("upper bound", "oracle", served.bounds.upper, Keep.MAX),
        ("actual", "demand", result.sticks.truth, Keep.MAX),
        ("forecast", "leadtime", served.expected, Keep.MAX),
    )
    lines = tuple(
        Line(label=label, css=css, at_s=at_s[here].tolist(), values=_plain(column[here]), keep=keep)
        for label, css, column, keep in columns
    )
    chart = Chart(
        title=name, unit="demand", from_s=day * DAY_S, until_s=(day + 1) * DAY_S, lines=lines, width=1180, height=320
    )
    minutes = result.options.horizon_s // 60
    said = f"{from_epoch(day * DAY_S):%d %B %Y}, UTC: what was said {minutes} min before, and what came"
    return name, said, draw(chart)


def _plain(column: FloatColumn) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in column]


def _coverage(result: Backtest) -> Figure:
    """Share of actuals inside the interval, over the last day before each instant."""
    served, truth = result.served.spoken, result.sticks.truth
    known = result.test & ~np.isnan(served.bounds.lower)
    inside = ((served.bounds.lower <= truth) & (truth <= served.bounds.upper))[known]
    at_s, window = _about_s(result)[known], max(1, DAY_S // result.series.step_s)
    total = np.concatenate(([0.0], np.cumsum(inside)))
    ends = np.arange(min(window, len(inside)), len(inside) + 1)
    share = (total[ends] - total[ends - min(window, len(inside))]) / min(window, len(inside))
    when = at_s[ends - 1]
    stated = result.options.level_ratio
    lines = (
        Line(label="stated", css="wanted", at_s=[float(when[0])], values=[100 * stated]),
        Line(label="inside", css="leadtime", at_s=when.tolist(), values=_plain(100 * share), keep=Keep.MIN),
    )
    chart = Chart(
        title="Coverage",
        unit="% inside",
        from_s=float(when[0]),
        until_s=float(when[-1]) + 1,
        lines=lines,
        top=100.0,
        width=560,
        height=340,
    )
    said = f"share of actuals inside the interval over the day before; stated {stated:.0%}"
    return "Coverage over time", said, draw(chart)


def _prices(result: Backtest) -> Figure:
    """Minutes above the target utilisation against pod-hours, as bounds are scaled: lower left is better."""
    by_name = {one.name: one for one in result.spoken}
    named = [("champion", "leadtime", result.served.spoken), ("last value", "hpa", by_name["last_value"])]
    if "seasonal_ratio" in by_name:
        named.append(("seasonal ratio", "cron", by_name["seasonal_ratio"]))
    truth = np.full(result.plan.buckets, np.nan)
    truth[: result.plan.buckets - result.plan.lead_ahead] = result.series.values[result.plan.lead_ahead :]
    truth[: result.plan.test_first] = np.nan
    lines = []
    for label, css, one in named:
        costs = [cost(one.at_lead.upper, truth, result.plan.capacity, result.series.bucket_min, s) for s in SCALES]
        x, y = [c.pod_hours for c in costs], [float(c.strained_minutes) for c in costs]
        lines.append(Points(label=label, css=css, x=x, y=y))
    axes = _axis("pod-hours", [line.x for line in lines]), _axis("minutes above target", [line.y for line in lines])
    lead = f"bounds {result.options.lead_s // 60} min ahead, scaled"
    said = f"blue: served, orange: last value, violet: seasonal ratio; {lead}; lower left is better"
    return "Cost against pod-hours", said, draw_points("Cost against pod-hours", *axes, lines)


def _axis(name: str, columns: Sequence[Sequence[float]]) -> Axis:
    return Axis(name=name, top=max(1.0, 1.05 * max(max(column) for column in columns)))
