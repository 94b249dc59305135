"""metrics.json → one HTML page that opens offline: no script, nothing fetched, charts drawn here as SVG.

The page says what metrics.json says and nothing more. An average precision never stands without base rate and lift.
"""

from collections.abc import Mapping
from typing import Any

import jinja2
from markupsafe import Markup

from leadtime.training import run_report_text as words
from leadtime.training.run_report_svg import Axis, Points, draw_bars, draw_points

Fields = Mapping[str, Any]
PARTS = (
    (
        "floors",
        "Floors",
        "What simpler scores reach on the same rows: a model is worth what it has above the best of them.",
    ),
    (
        "views",
        "Views",
        "time: later rows of collections that were learnt from; collection, cell: none of it was learnt from.",
    ),
    ("by_cell", "By cell", "Cells differ; a mean over them may describe none."),
    ("by_tier", "By tier", "Priority tiers of 2019."),
)


def build_html(metrics: Fields, comparison: Fields | None = None) -> str:
    """The page of one run; with ``comparison`` (as ``compare_runs.compare`` returns it) against another."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(room) for room in ("leadtime.training", "leadtime.simulate")]),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "share": words.share, "four": words.four, "times": words.times, "between": words.between, "plain": plain,
    }  # fmt: skip
    primary = str(metrics["primary_min"])
    return environment.get_template("run.html.j2").render(
        metrics=metrics,
        primary=primary,
        main=metrics["horizons"][primary],
        charts=_charts(metrics, primary),
        recall_falls=words.recall_falls(metrics["horizons"][primary]),
        parts=[(key, title, why, metrics[key]) for key, title, why in PARTS if metrics.get(key)],
        told=[gate for gate in metrics["gates"] if gate.get("standing") != "passed"],
        passed=[gate for gate in metrics["gates"] if gate.get("standing") == "passed"],
        comparison=comparison,
        spread=words.spread,
    )


def plain(value: Any) -> str:
    """Any JSON value in one line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or "none"
    if value is None:
        return words.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _charts(metrics: Fields, primary: str) -> list[tuple[str, str, Markup]]:
    """(caption, what to read off it, drawing) of the primary horizon; what cannot be drawn is left out."""
    fields = metrics["horizons"][primary]
    drawn: list[tuple[str, str, Markup]] = []
    curves = fields["charts"]["precision_recall"]
    if curves["p"]["recall"]:
        drawn.append((
            "Precision against recall, rows", f"the flat line is the base rate, {words.share(fields['base_rate'])}",
            _precision_recall(fields, curves),
        ))  # fmt: skip
    bins = fields["charts"]["calibration"]
    if bins["foretold"] and max(bins["happened"]) > 0:
        said = "on the diagonal a foretold 1 % fails 1 time in 100; bins of equal mass, axes in powers of ten"
        drawn.append(("What happened against what was foretold", said, _calibration(bins)))
    lead = (fields.get("lead_time_s") or {}).get("minutes")
    if lead:
        said = f"true alerts at {fields['lead_time_s']['alerts_per_day']} a day, minutes from alert to failure"
        drawn.append(("Lead time", said, _lead(lead, int(primary))))
    if fields.get("precision_at_k"):
        drawn.append(("Precision at k alerts a day", "one alert a run; k in powers of ten", _at_k(fields)))
    return drawn


def _precision_recall(fields: Fields, curves: Fields) -> Markup:
    top = min(1.0, 1.15 * max(max(curve["precision"]) for curve in curves.values()))
    base = fields["base_rate"] or 0.0
    lines = [Points(label="this run", css="leadtime", x=curves["p"]["recall"], y=curves["p"]["precision"])]
    if "bayes" in curves:
        lines.append(
            Points(label="best possible", css="oracle", x=curves["bayes"]["recall"], y=curves["bayes"]["precision"])
        )
    lines.append(Points(label="base rate", css="wanted", x=[0.0, 1.0], y=[base, base]))
    return draw_points("Precision against recall", Axis(name="recall", top=1.0), Axis(name="precision", top=top), lines)


def _calibration(bins: Fields) -> Markup:
    known = [value for value in (*bins["foretold"], *bins["happened"]) if value > 0]
    low = 10.0 ** _floor_power(min(known))
    top = min(1.0, 10.0 ** (_floor_power(max(known)) + 1))
    lines = [
        Points(label="as foretold", css="wanted", x=[low, top], y=[low, top]),
        Points(label="bin", css="leadtime", x=bins["foretold"], y=bins["happened"], dots=True),
    ]
    return draw_points(
        "Calibration", Axis(name="foretold probability", top=top, low=low, log=True),
        Axis(name="share that failed", top=top, low=low, log=True), lines,
    )  # fmt: skip


def _floor_power(value: float) -> int:
    power = 0
    while 10.0**power > value and power > -9:
        power -= 1
    return power


def _lead(minutes: Mapping[str, int], horizon_min: int) -> Markup:
    bars = [(float(m), float(m) + 1.0, float(n)) for m, n in minutes.items()]
    return draw_bars(
        "Lead time", Axis(name="minutes", top=float(horizon_min)),
        Axis(name="true alerts", top=max(bar[2] for bar in bars) * 1.1), bars,
    )  # fmt: skip


def _at_k(fields: Fields) -> Markup:
    k = [float(each) for each in fields["precision_at_k"]]
    kept = [
        (each, value) for each, value in zip(k, fields["precision_at_k"].values(), strict=True) if value is not None
    ]
    dots = Points(label="precision", css="leadtime", x=[a for a, _ in kept], y=[b for _, b in kept], dots=True)
    base = fields["base_rate"] or 0.0
    low, top = min(k) / 2, max(k) * 2
    line = Points(label="base rate", css="wanted", x=[low, top], y=[base, base])
    return draw_points(
        "Precision at k", Axis(name="alerts a day", top=top, low=low, log=True), Axis(name="precision", top=1.0),
        [line, dots],
    )  # fmt: skip
