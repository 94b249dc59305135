"""The report's minute rows → the charts of the page: the whole span once, then the hours that matter.

What matters is drawn close up: around the HPA's threshold crossing, or around the worst minute of any world.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from leadtime.simulate import svg
from leadtime.simulate.report_labels import world_name

BEFORE_S, AFTER_S = 5400, 7200
AT_MOST_BEFORE_S = 10_800  # back to leadtime's first raise, but no further than this
SAME_SURGE_S = 10_800
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """A line's word and the class that colours it."""

    label: str
    css: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with its caption and legend."""

    caption: str
    chart: Markup
    legend: tuple[LegendEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """The hours drawn close up, [from_s, until_s), and what is marked in them."""

    from_s: float
    until_s: float
    marks: tuple[svg.Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCharts:
    """All charts of one workload."""

    span: Figure
    served: tuple[Figure, ...]
    pods: tuple[Figure, ...]
    nodes: tuple[Figure, ...]


def charts(report: Fields, workload: str) -> WorkloadCharts:
    """Draw everything about ``workload`` (its key)."""
    worlds = {world: fields[workload] for world, fields in report["worlds"].items()}
    focus = find_focus(report, workload)
    first = next(iter(worlds.values()))
    whole = Focus(from_s=_at_s(first)[0], until_s=_at_s(first)[-1] + first["minutes_step_s"], marks=())
    stages = sorted(
        {stage for fields in worlds.values() for row in fields["minutes"] for stage in row["nodes_by_stage"]}
    )
    order = _stage_order(worlds, stages)
    pods_top = _top(worlds, focus, _pods_of)
    nodes_top = _top(worlds, focus, _nodes_of)
    return WorkloadCharts(
        span=_figure("Demand over the whole span", "requests/s", whole, (_demand(first),), height=170),
        served=(
            _figure(
                "Demand, and what the ready pods can serve, by world", "requests/s", focus,
                (_demand(first), *(_capacity(world, fields) for world, fields in worlds.items())),
            ),
            _figure(
                f"Requests unserved within each {_step_words(first)}, by world", "requests", focus,
                tuple(_unserved(world, fields) for world, fields in worlds.items()),
            ),
        ),
        pods=tuple(_small(name, "pods", focus, _pod_lines(fields), pods_top) for name, fields in worlds.items()),
        nodes=tuple(_small(name, "nodes", focus, _stage_lines(of, order), nodes_top) for name, of in worlds.items()),
    )  # fmt: skip


def find_focus(report: Fields, workload: str) -> Focus:
    """90 min before to two hours after the moment that matters, kept inside the span; a shorter span as a whole."""
    worlds = {world: fields[workload] for world, fields in report["worlds"].items()}
    first = next(iter(worlds.values()))
    begin_s, end_s = _at_s(first)[0], _at_s(first)[-1] + first["minutes_step_s"]
    marks = _marks(report, workload)
    centre_s = _worst_s(worlds)
    for mark in marks[:1]:  # the threshold comes first, and is the better middle where it is about the same surge
        if centre_s is None or abs(centre_s - mark.at_s) <= SAME_SURGE_S:
            centre_s = mark.at_s
    if centre_s is None or end_s - begin_s <= BEFORE_S + AFTER_S:
        return Focus(from_s=begin_s, until_s=end_s, marks=marks)
    earliest_s = min([centre_s - BEFORE_S, *(mark.at_s - 600 for mark in marks)])
    from_s = max(earliest_s, centre_s - AT_MOST_BEFORE_S, begin_s)
    return Focus(from_s=from_s, until_s=min(centre_s + AFTER_S, end_s), marks=marks)


def _marks(report: Fields, workload: str) -> tuple[svg.Mark, ...]:
    """The HPA's threshold and leadtime's first raise, where there were such."""
    found = []
    threshold = report["timeline"].get("hpa", {}).get(workload, {}).get("threshold_crossed_at")
    if threshold is not None:
        found.append(svg.Mark(at_s=_epoch_s(threshold), label="HPA's threshold"))
    raises = (
        span["first_at"]
        for span in report["story"]["decision_spans"]
        if workload in span["workloads"] and span["action"] in ("SetFloor", "SetBuffer")
    )
    first = next(raises, None)
    if first is not None:
        found.append(svg.Mark(at_s=_epoch_s(first), label="leadtime's first raise"))
    return tuple(found)


def _worst_s(worlds: Mapping[str, Fields]) -> float | None:
    """The row with the most unserved requests in any world; the earliest of equals; None where all are served."""
    worst = [(-(row["unserved_requests"] or 0.0), row["at"]) for fields in worlds.values() for row in fields["minutes"]]
    least, at = min(worst, default=(0.0, ""))
    return _epoch_s(at) if least < 0 else None


def _figure(
    caption: str, unit: str, focus: Focus, lines: Sequence[svg.Line], *, height: int = 260, width: int = svg.WIDE,
    top: float | None = None,
) -> Figure:  # fmt: skip
    chart = svg.Chart(
        title=caption, unit=unit, from_s=focus.from_s, until_s=focus.until_s, lines=tuple(lines), marks=focus.marks,
        height=height, width=width, top=top,
    )  # fmt: skip
    legend = tuple(LegendEntry(label=line.label, css=line.css) for line in lines)
    return Figure(caption=caption, chart=svg.draw(chart), legend=legend)


def _small(world: str, unit: str, focus: Focus, lines: Sequence[svg.Line], top: float | None = None) -> Figure:
    """One of the small charts that stand side by side, one a world."""
    return _figure(world_name(world), unit, focus, lines, height=230, width=svg.NARROW, top=top)


def _demand(fields: Fields) -> svg.Line:
    return _row_line("demand", "demand", fields, "demand_rps")


def _capacity(world: str, fields: Fields) -> svg.Line:
    each = fields["capacity_per_pod_rps"]
    values = [row["ready"] * each for row in fields["minutes"]]
    return svg.Line(label=world_name(world), css=world, at_s=_at_s(fields), values=values, keep=svg.Keep.MIN)


def _unserved(world: str, fields: Fields) -> svg.Line:
    return _row_line(world_name(world), world, fields, "unserved_requests")


def _row_line(label: str, css: str, fields: Fields, column: str, keep: svg.Keep = svg.Keep.MAX) -> svg.Line:
    return svg.Line(
        label=label, css=css, at_s=_at_s(fields), values=[row[column] for row in fields["minutes"]], keep=keep
    )


def _pod_lines(fields: Fields) -> tuple[svg.Line, ...]:
    return (
        _row_line("wanted", "wanted", fields, "wanted"),
        _row_line("ready", "ready", fields, "ready", svg.Keep.MIN),
        _row_line("pending", "pending", fields, "pending"),
    )


def _stage_lines(fields: Fields, order: Sequence[str]) -> tuple[svg.Line, ...]:
    at_s = _at_s(fields)
    return tuple(
        svg.Line(
            label=stage,
            css="ready" if stage == "ready" else f"stage{i % 5}",
            at_s=at_s,
            values=[row["nodes_by_stage"].get(stage, 0) for row in fields["minutes"]],
        )
        for i, stage in enumerate(order)
    )


def _stage_order(worlds: Mapping[str, Fields], stages: Sequence[str]) -> list[str]:
    """Stages as the rows have them (the pool's own order), ``ready`` last."""
    named = [stage for fields in worlds.values() for row in fields["minutes"][:1] for stage in row["nodes_by_stage"]]
    known = list(dict.fromkeys([*named, *stages]))
    return [stage for stage in known if stage != "ready"] + [stage for stage in known if stage == "ready"]


def _top(worlds: Mapping[str, Fields], focus: Focus, of: Callable[[Fields], int]) -> float | None:
    """One scale for all worlds, or they could not be compared by eye."""
    return max(
        (
            float(of(row))
            for fields in worlds.values()
            for at_s, row in zip(_at_s(fields), fields["minutes"], strict=True)
            if focus.from_s <= at_s < focus.until_s
        ),
        default=None,
    )


def _pods_of(row: Fields) -> int:
    return int(max(row["wanted"], row["ready"], row["pending"]))


def _nodes_of(row: Fields) -> int:
    return int(max(row["nodes_by_stage"].values(), default=0))


def _step_words(fields: Fields) -> str:
    step_s = fields["minutes_step_s"]
    return "minute" if step_s == 60 else f"{step_s // 60} minutes"


def _at_s(fields: Fields) -> list[float]:
    return [_epoch_s(row["at"]) for row in fields["minutes"]]


def _epoch_s(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
