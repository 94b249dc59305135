"""A report → one HTML page that opens offline: no script, nothing fetched, charts drawn here as SVG.

The page says the same as report.json and nothing more; what the JSON leaves null, the page shows with its reason.
"""

from collections.abc import Mapping
from typing import Any

import jinja2

from leadtime.simulate import report_labels as labels
from leadtime.simulate.report_charts import charts
from leadtime.simulate.report_labels import Label


def build_html(report: dict[str, Any]) -> str:
    """Write ``report`` (as build_report returns it, or as read back from report.json) as a page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leadtime.simulate"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clock": labels.clock, "world_name": labels.world_name, "duration": labels.duration}
    template = environment.get_template("report.html.j2")
    report = report | {"worlds": _in_order(report["worlds"]), "timeline": _in_order(report["timeline"])}
    workloads = list(report["comparison"])
    return template.render(
        report=report,
        workloads=[_workload(report, workload) for workload in workloads],
        worlds=list(report["worlds"]),
        extras=[
            (name, value) for name, value in report.items() if name not in _KNOWN and not (name == "risk" and value)
        ],
    )


# The three a reader compares first stand first: on a phone the others lie to the right.
_ORDER = ("hpa", "leadtime", "oracle", "hpa_equal_cost", "cron")


def _in_order(worlds: Mapping[str, Any]) -> dict[str, Any]:
    return {world: worlds[world] for world in (*_ORDER, *worlds) if world in worlds}


_KNOWN = (
    "schema", "class", "scenario", "seed", "policy_hash", "verdict", "worlds", "comparison", "timeline", "story",
)  # fmt: skip


def _workload(report: Mapping[str, Any], workload: str) -> dict[str, Any]:
    """What the template draws for one workload."""
    worlds = {world: fields[workload] for world, fields in report["worlds"].items()}
    times = {world: fields[workload] for world, fields in report["timeline"].items()}
    ours = worlds.get("leadtime", {})
    return {
        "key": workload,
        "charts": charts(report, workload),
        "answers": _answers(report, workload),
        "score_rows": _across(labels.SCORE_LABELS, worlds),
        "timeline_rows": _across(labels.TIMELINE_LABELS, times),
        "comparison_rows": _down(labels.COMPARISON_LABELS, report["comparison"][workload]),
        "forecast_rows": _down(labels.FORECAST_LABELS, ours) if ours else [],
        "reasons": {"decided": ours.get("decisions") or {}, "lost": ours.get("rejections") or {}},
    }


def _across(rows: tuple[Label, ...], worlds: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a field, one cell a world."""
    return [
        {
            "words": label.words,
            "field": label.field,
            "cells": [
                {"world": world, "value": labels.written(label, fields), "why": labels.why_null(label, fields)}
                for world, fields in worlds.items()
            ],
        }
        for label in rows
    ]


def _down(rows: tuple[Label, ...], fields: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "words": label.words,
            "field": label.field,
            "value": labels.written(label, fields),
            "why": labels.why_null(label, fields),
        }
        for label in rows
    ]


def _answers(report: Mapping[str, Any], workload: str) -> list[dict[str, str]]:
    """The first questions of a reader, each answered with numbers that stand elsewhere on the page too."""
    worlds, compared = report["worlds"], report["comparison"][workload]
    peak = Label(field="unserved_ratio_peak", words="", form="share")
    said = " · ".join(
        f"{labels.world_name(world)} {labels.written(peak, worlds[world][workload])}"
        for world in ("hpa", "leadtime", "oracle")
        if world in worlds
    )
    answers = [{"asks": "How bad was the worst five minutes?", "says": f"{said} of the requests unserved"}]
    if "hpa" in worlds:
        at = Label(field="threshold_crossed_at", words="", form="instant")
        answers.append(_answer("When did the HPA react?", at, report["timeline"]["hpa"][workload], "at {}"))
    early = Label(field="early_warning_s", words="", form="s")
    answers.append(_answer("When did leadtime?", early, compared, "{} before demand outgrew what was ready"))
    cost = Label(field="pod_hours_ratio_to_hpa", words="", form="ratio")
    answers.append(_answer("What did it cost?", cost, compared, "{} the pod-hours of the HPA alone"))
    missed = [miss for miss in report["story"]["missed_forecasts"] if miss["workload"] == workload]
    wrong = "no forecast lay outside its interval" if "leadtime" in worlds else "nobody forecasts in this run"
    if missed:
        worst = max(missed, key=lambda miss: max(miss["lower"] - miss["actual"], miss["actual"] - miss["upper"]))
        wrong = (
            f"most at {labels.clock(worst['about'])}: {worst['expected']:,.4g} requests/s expected, "
            f"{worst['actual']:,.4g} came"
        )
    return [*answers, {"asks": "Where was the forecast wrong?", "says": wrong}, *_why(report, workload)]


def _why(report: Mapping[str, Any], workload: str) -> list[dict[str, str]]:
    """The first decision that raised something, in its own words, and what lost against it."""
    for span in report["story"]["decision_spans"]:
        if workload in span["workloads"] and span["action"] in ("SetFloor", "SetBuffer"):
            first = f"{labels.clock(span['first_at'])}, {span['reason']}: {span['sentence']}"
            lost = "; ".join(f"{lost['agent'] or 'a proposal'} ({lost['reason']})" for lost in span["lost"])
            return [{"asks": "What lost?", "says": lost or "nothing stood against it"}, {"asks": "Why?", "says": first}]
    return []


def _answer(asks: str, label: Label, fields: Mapping[str, Any], form: str) -> dict[str, str]:
    why_null = labels.why_null(label, fields)
    return {"asks": asks, "says": f"no answer: {why_null}" if why_null else form.format(labels.written(label, fields))}
