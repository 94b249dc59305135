"""Minutes of every world → the score card so far; and report.json's own figures once they are there.

The report is the authority (it counts requests and pod-seconds in fine steps). Until it is written, or while the
reader has turned the clock back, sums over the recorded minutes stand in, and the page says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leadtime.dashboard.clock_text import duration, number, percent
from leadtime.dashboard.harm import SHORTFALL_RATIO, shortfall
from leadtime.dashboard.story import report_value, world_rank
from leadtime.dashboard.views import Story, WorldMinutes

WORST_WINDOW_MINUTES = 5
WORLD_TITLES = {
    "hpa": "HPA alone",
    "leadtime": "leadtime",
    "oracle": "oracle",
    "hpa_equal_cost": "HPA, equal cost",
    "cron": "floors by clock",
    "cron_ahead": "floors by clock, ahead",
}
WORLD_NOTES = {
    "hpa": "the cluster as it is: HPA and node autoscaler alone",
    "leadtime": "the same cluster with leadtime beside the HPA",
    "oracle": "knows all demand and every start-up time: nobody can do better",
    "hpa_equal_cost": "HPA alone, its target lowered until it costs as much as leadtime",
    "cron": "floors set by clock from the days before, at leadtime's cost",
    "cron_ahead": "the same floors, set one lead earlier",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A column of the score card. ``why`` says what it counts; lower is better in all of them."""

    key: str
    title: str
    why: str
    show: Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure: its text, and why there is none when ``value`` is None."""

    value: float | None
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One world's row."""

    world: str
    title: str
    note: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """Worlds × measures; ``source`` says where the figures come from."""

    measures: tuple[Measure, ...]
    rows: tuple[ScoreRow, ...]
    source: str


MINUTE_MEASURES = (
    Measure(key="unserved_ratio", title="unserved", why="share of requests rejected or expired", show=percent),
    Measure(key="unserved_ratio_peak", title="worst 5 min", why="unserved share, worst five minutes", show=percent),
    Measure(
        key="shortfall_minutes",
        title="short minutes",
        why="minutes in which more than 0.1 % of requests went unserved",
        show=number,
    ),
    Measure(key="pod_hours", title="pod-hours", why="pods from bound to deleted", show=number),
    Measure(key="gpu_node_hours", title="node-hours", why="GPU nodes from launch to deleted", show=number),
    Measure(
        key="pending_pod_minutes", title="pending pod-min", why="pod-minutes between created and bound", show=number
    ),
)
REPORT_MEASURES = (
    *MINUTE_MEASURES,
    Measure(key="latency_p95_s", title="p95", why="95th percentile of waiting + service", show=lambda s: f"{s:.1f} s"),
    Measure(key="churn_pods_per_hour", title="churn/h", why="pods deleted while demand stayed", show=number),
    Measure(key="busy_pods_killed", title="busy killed", why="pods with work in flight at deletion", show=number),
    Measure(key="reversals", title="reversals", why="up-then-down or down-then-up within 10 min, a day", show=number),
)


def score_table(story: Story, until_s: int) -> ScoreTable:
    """The report's figures when the clock stands at the end and there is a report; else the minutes so far."""
    if story.report is not None and until_s >= story.full.end_s:
        return _from_report(story, story.report)
    rows = []
    for world, minutes in story.worlds.items():
        sums = minute_sums(minutes, until_s)
        cells = tuple(_cell(m, sums.get(m.key), "not to be had from the minutes on record") for m in MINUTE_MEASURES)
        rows.append(_row(world, cells))
    source = "summed over the recorded minutes up to the clock; the final card is counted in finer steps"
    return ScoreTable(measures=MINUTE_MEASURES, rows=tuple(rows), source=source)


def _from_report(story: Story, report: Any) -> ScoreTable:
    rows = []
    worlds = report_value(report, "worlds") or {}
    for world in sorted(worlds, key=world_rank):
        fields = report_value(report, "worlds", world, story.workload) or {}
        cells = []
        for measure in REPORT_MEASURES:
            reason = fields.get(f"{measure.key}_reason", "not in this report")
            cells.append(_cell(measure, fields.get(measure.key), reason))
        rows.append(_row(world, tuple(cells)))
    return ScoreTable(measures=REPORT_MEASURES, rows=tuple(rows), source="report.json, over the whole scored span")


def minute_sums(world: WorldMinutes, until_s: int) -> dict[str, float | None]:
    """The measures of one world summed over its minutes before ``until_s``; None where nothing was recorded."""
    n = sum(1 for at_s in world.at_s if at_s < until_s)
    if n == 0:
        return {}
    known = [i for i in range(n) if shortfall(world, i) is not None]
    arrived = sum(world.arrived[i] or 0.0 for i in known)
    hours = world.step_s / 3600
    pods = [(world.ready[i] or 0) + (world.starting[i] or 0) for i in range(n)]
    return {
        "unserved_ratio": _ratio(sum(world.unserved[i] or 0.0 for i in known), arrived) if known else None,
        "unserved_ratio_peak": worst_window(world, n),
        "shortfall_minutes": _shortfall_minutes(world, known),
        "pod_hours": sum(pods) * hours,
        "gpu_node_hours": sum(sum(nodes.values()) for nodes in world.nodes[:n]) * hours
        if any(world.nodes[:n])
        else None,
        "pending_pod_minutes": 60 * hours * sum(p or 0 for p in world.pending[:n]),
    }


def _shortfall_minutes(world: WorldMinutes, known: Sequence[int]) -> float | None:
    """None for a thinned world: a mean over many minutes hides the short ones."""
    if not known or world.step_s != 60:
        return None
    return sum(1 for i in known if (shortfall(world, i) or 0.0) > SHORTFALL_RATIO)


def worst_window(world: WorldMinutes, n: int) -> float | None:
    """Unserved share over the worst five full minutes among the first ``n``; None for fewer, or thinned rows."""
    if world.step_s != 60:
        return None
    worst: float | None = None
    for first in range(n - WORST_WINDOW_MINUTES + 1):
        window = range(first, first + WORST_WINDOW_MINUTES)
        if any(shortfall(world, i) is None for i in window):
            continue
        ratio = _ratio(sum(world.unserved[i] or 0.0 for i in window), sum(world.arrived[i] or 0.0 for i in window))
        worst = ratio if worst is None else max(worst, ratio)
    return worst


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _cell(measure: Measure, value: Any, reason: str) -> Cell:
    if not isinstance(value, int | float):
        return Cell(value=None, text="–", reason=reason)
    return Cell(value=float(value), text=measure.show(float(value)))


def _row(world: str, cells: Sequence[Cell]) -> ScoreRow:
    return ScoreRow(world=world, title=world_title(world), note=WORLD_NOTES.get(world, ""), cells=tuple(cells))


def world_title(world: str) -> str:
    """The world's name for people."""
    return WORLD_TITLES.get(world, world.replace("_", " "))


def signed_duration(seconds: float, earlier: str, later: str) -> str:
    """``53 min earlier`` / ``2 min later``; less than a second apart is ``at the same time``."""
    if abs(seconds) < 1:
        return "at the same time"
    return f"{duration(abs(seconds))} {earlier if seconds > 0 else later}"
