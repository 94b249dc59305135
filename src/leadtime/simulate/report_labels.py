"""Fields of a report → words and numbers for people. One place, so that the page and a terminal say the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WORLD_NAMES = {
    "hpa": "HPA alone",
    "hpa_equal_cost": "HPA at leadtime's cost",
    "cron": "cron floors",
    "cron_ahead": "cron floors, a lead ahead",
    "leadtime": "leadtime",
    "oracle": "oracle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A field's name in words, and how its number is written: share | s | count | hours | ratio | per_day."""

    field: str
    words: str
    form: str


SCORE_LABELS = (
    Label(field="unserved_ratio", words="Requests unserved", form="share"),
    Label(field="unserved_ratio_peak", words="Unserved in the worst 5 min", form="share"),
    Label(field="unserved_requests", words="Requests unserved, count", form="count"),
    Label(field="shortfall_minutes", words="Minutes of shortfall", form="count"),
    Label(field="late_ratio", words="Served, but late", form="share"),
    Label(field="latency_p95_s", words="Latency, 95th percentile", form="s"),
    Label(field="pod_hours", words="Pod-hours", form="hours"),
    Label(field="gpu_node_hours", words="GPU node-hours", form="hours"),
    Label(field="pending_pod_minutes", words="Pod-minutes pending", form="count"),
    Label(field="max_pods_added_per_minute", words="Pods added by floors, worst minute", form="count"),
    Label(field="hpa_max_pods_added_per_minute", words="Pods added by the HPA, worst minute", form="count"),
    Label(field="reversals", words="Reversals a day", form="per_day"),
    Label(field="churn_pods_per_hour", words="Pods deleted while demand stayed, an hour", form="per_day"),
    Label(field="busy_pods_killed", words="Busy pods killed", form="count"),
    Label(field="warm_pods_killed", words="Warm pods killed", form="count"),
)
COMPARISON_LABELS = (
    Label(field="oracle_gap_closed", words="Of what the oracle saves over the HPA, leadtime saved", form="share"),
    Label(field="early_warning_s", words="First raise before demand outgrew what was ready", form="s"),
    Label(field="learned_lead_p90_s", words="Learned lead, request to pod Ready (P90)", form="s"),
    Label(field="ready_ahead_s", words="That capacity ready before the same moment", form="s"),
    Label(field="first_request_ahead_s", words="First node request before the HPA's", form="s"),
    Label(field="pod_hours_ratio_to_oracle", words="Pod-hours against the oracle", form="ratio"),
    Label(field="gpu_node_hours_ratio_to_oracle", words="GPU node-hours against the oracle", form="ratio"),
    Label(field="pod_hours_ratio_to_hpa", words="Pod-hours against the HPA alone", form="ratio"),
)
FORECAST_LABELS = (
    Label(field="within_10pct_ratio", words="Forecasts within 10 % (10 min ahead)", form="share"),
    Label(field="naive_within_10pct_ratio", words="The naive forecast within 10 %", form="share"),
    Label(field="ceiling_within_10pct_ratio", words="The ceiling: knowing the smoothed future", form="share"),
    Label(field="skill", words="Skill: share of the way from naive to ceiling", form="share"),
    Label(field="coverage_ratio", words="Actual values inside the interval", form="share"),
    Label(field="mean_interval_width_ratio", words="Mean width of the interval", form="share"),
    Label(field="surges_total", words="Surges that came", form="count"),
    Label(field="surges_caught", words="… of them warned of in time", form="count"),
    Label(field="false_alarms_per_day", words="False alarms a day", form="per_day"),
)
TIMELINE_LABELS = (
    Label(field="threshold_crossed_at", words="The HPA asked for more than stood", form="instant"),
    Label(field="first_pod_placed_at", words="First extra pod placed", form="instant"),
    Label(field="pending_at_15min", words="Pods pending 15 min after the surge began", form="count"),
    Label(field="first_new_node_ready_at", words="First new node ready", form="instant"),
)


def written(label: Label, fields: Mapping[str, Any]) -> str:
    """The field's value in words and unit; an en dash where it is null (its reason is told beside)."""
    value = fields.get(label.field)
    if value is None:
        return "–"
    match label.form:
        case "share":
            return f"{100 * value:.2f} %" if 0 < abs(value) < 0.1 else f"{100 * value:.1f} %"
        case "s":
            return duration(value)
        case "hours":
            return f"{value:,.1f}"
        case "ratio":
            return f"{value:.3f} ×"
        case "per_day":
            return f"{value:,.1f}"
        case "instant":
            return clock(str(value))
    return f"{value:,.0f}"


def why_null(label: Label, fields: Mapping[str, Any]) -> str:
    """The reason beside a null; empty where there is a value."""
    return "" if fields.get(label.field) is not None else str(fields.get(f"{label.field}_reason", ""))


def duration(seconds: float) -> str:
    """Seconds as people say them: 42 s, 9 min 30 s, 3 h 05 min; a minus sign when negative."""
    sign, whole = ("−" if seconds < 0 else ""), abs(seconds)
    if whole < 120:
        return f"{sign}{whole:.3g} s"
    minutes, rest = divmod(round(whole), 60)
    if minutes < 120:
        return f"{sign}{minutes} min" + (f" {rest:02d} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours:,} h {minutes:02d} min"


def clock(instant: str) -> str:
    """``2026-03-02T06:05:15Z`` as ``2 Mar 06:05:15``; seconds only if there are any."""
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    day, month = int(instant[8:10]), months[int(instant[5:7]) - 1]
    time = instant[11:16] if instant[17:19] == "00" else instant[11:19]
    return f"{day} {month} {time}"


def world_name(world: str) -> str:
    """The world's name in words; an unknown one as it is."""
    return WORLD_NAMES.get(world, world)
