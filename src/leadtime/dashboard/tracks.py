"""A story → the tracks of the page, on one minute grid: what is drawn, not how. SVG and uPlot both draw from this.

Colours are names (``hpa``, ``leadtime``, …) that the style sheet gives a value; every difference of colour goes with a
difference of dash, width or height, so that nothing rests on colour alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from leadtime.dashboard import lanes
from leadtime.dashboard.answers import Told
from leadtime.dashboard.clock_text import clock, number, percent
from leadtime.dashboard.forecast_check import actual_demand, issued_band
from leadtime.dashboard.harm import shortfall
from leadtime.dashboard.lanes import LaneTrack, Mark
from leadtime.dashboard.scores import world_title
from leadtime.dashboard.views import Span, Story, WorldMinutes

MINUTE_S = 60
BRIDGED_MINUTES = 10
DASHES = {
    "leadtime": "",
    "hpa": "7 4",
    "oracle": "2 3",
    "hpa_equal_cost": "9 3 2 3",
    "cron": "14 4",
    "cron_ahead": "14 3 3 3",
}
NODE_WORLDS = ("hpa", "leadtime")
DEFAULT_WORLDS = ("hpa", "leadtime", "oracle")
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line over the grid. ``dash`` as in SVG; ``stepped`` holds a value until the next minute."""

    label: str
    colour: str
    values: Values
    width: float = 1.5
    dash: str = ""
    stepped: bool = False
    fill_opacity: float = 0.0  # > 0: filled down to 0
    ahead: bool = False  # known before its time (a forecast): drawn beyond the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """An area between two lines over the grid."""

    label: str
    colour: str
    lower: Values
    upper: Values
    opacity: float
    stepped: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericTrack:
    """Lines and bands in one unit. ``absent`` says why there is nothing to draw (empty: there is)."""

    id: str
    title: str
    unit: str
    height: int
    top: float
    lines: tuple[Line, ...]
    bands: tuple[Band, ...] = ()
    marks: tuple[Mark, ...] = ()
    said: str = ""
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All tracks over one grid of minutes."""

    window: Span
    grid: tuple[int, ...]
    tracks: tuple[NumericTrack | LaneTrack, ...] = field(default_factory=tuple)


def board(told: Told, worlds: Sequence[str]) -> Board:
    """The tracks of one window, in the order they are read."""
    story = told.story
    start_s = story.window.start_s // MINUTE_S * MINUTE_S
    grid = tuple(range(start_s, story.window.end_s, MINUTE_S))
    shown = [w for w in worlds if w in story.worlds]
    whole = told.whole.worlds  # scales stand still while the clock moves
    top_pods = _nice(max((_most_pods(whole[w], grid) for w in shown), default=1.0))
    top_nodes = _nice(max((_most_nodes(whole[w], grid) for w in NODE_WORLDS if w in whole), default=1.0))
    return Board(
        window=story.window,
        grid=grid,
        tracks=(
            demand_track(told, grid),
            *(replica_track(story.worlds[w], grid, top_pods) for w in shown),
            *(node_track(story.worlds[w], grid, top_nodes) for w in NODE_WORLDS if w in story.worlds),
            unserved_track(told, shown, grid),
            lanes.queue_lanes(told),
            lanes.agent_lanes(told),
            lanes.decision_lanes(told),
        ),
    )


def demand_track(told: Told, grid: Sequence[int]) -> NumericTrack:
    """Demand, the band issued one lead earlier, misses and surges as marks."""
    story, check = told.story, told.check
    demand = _demand(story, grid)
    by_minute = {f.target_s // MINUTE_S * MINUTE_S: f for f in check.band}
    lower = _bridged([f.lower if (f := by_minute.get(at)) else None for at in grid])
    upper = _bridged([f.upper if (f := by_minute.get(at)) else None for at in grid])
    expected = _bridged([f.expected if (f := by_minute.get(at)) else None for at in grid])
    marks = [*_miss_marks(told), *_surge_marks(told)]
    level = f"{percent(check.level_ratio, 0)} band" if check.level_ratio else "band"
    issued = f"{level}, issued one lead earlier"
    known = [v for v in (*demand, *upper) if v is not None]
    top = _nice(max(_known_demand(told, grid), default=1.0))
    surges = "1 surge" if len(check.surges) == 1 else f"{len(check.surges)} surges"
    return NumericTrack(
        id="demand", title="Demand", unit=story.unit, height=150, top=top,
        lines=(
            Line(label="expected", colour="band", values=expected, width=1.2, dash="3 3", ahead=True),
            Line(label="demand", colour="ink", values=demand, width=1.6),
        ),
        bands=(Band(label=issued, colour="band", lower=lower, upper=upper, opacity=0.22, ahead=True),),
        marks=tuple(marks),
        said=f"{len(check.misses)} of {check.checked} minutes outside; {surges} detected.",
        absent="" if known else "no demand and no forecast is on record in this window",
    )  # fmt: skip


def replica_track(world: WorldMinutes, grid: Sequence[int], top: float) -> NumericTrack:
    """Wanted, ready and pending of one world; all worlds share one scale."""
    name = world.world
    return NumericTrack(
        id=f"replicas-{name}", title=f"Replicas · {world_title(name)}", unit="pods", height=96, top=top,
        lines=(
            Line(label="ready", colour=name, values=_pick(world, world.ready, grid), width=1.8, stepped=True,
                 fill_opacity=0.16),
            Line(label="wanted", colour=name, values=_pick(world, world.wanted, grid), width=1.4, dash="5 3",
                 stepped=True),
            Line(label="pending", colour="pending", values=_pick(world, world.pending, grid), width=1.4, dash="1.5 2",
                 stepped=True, fill_opacity=0.30),
        ),
        said=_peak_words("pending", world, world.pending, grid),
    )  # fmt: skip


def node_track(world: WorldMinutes, grid: Sequence[int], top: float) -> NumericTrack:
    """Nodes by stage, stacked: ready at the bottom, the earliest stage on top."""
    stages = list(dict.fromkeys(stage for nodes in world.nodes for stage in nodes))
    ordered = sorted(stages, key=lambda stage: stage != "ready")
    ordered = [*ordered[:1], *reversed(ordered[1:])] if ordered and ordered[0] == "ready" else ordered
    bands, lines = [], []
    floor: Values = [0.0 if world.index_at(at) is not None else None for at in grid]
    for depth, stage in enumerate(ordered):
        counts: Values = _pick(world, [nodes.get(stage, 0) for nodes in world.nodes], grid)
        roof = [None if a is None or b is None else a + b for a, b in zip(floor, counts, strict=True)]
        opacity = 0.55 if stage == "ready" else max(0.12, 0.34 - 0.07 * depth)
        bands.append(Band(label=stage, colour=world.world, lower=floor, upper=roof, opacity=opacity, stepped=True))
        floor = roof
    if ordered:
        lines.append(Line(label="all", colour=world.world, values=floor, width=1.2,
                          dash=DASHES.get(world.world, ""), stepped=True))  # fmt: skip
    return NumericTrack(
        id=f"nodes-{world.world}", title=f"Nodes by stage · {world_title(world.world)}", unit="nodes", height=84,
        top=top, lines=tuple(lines), bands=tuple(bands),
        absent="" if ordered else "this world's rows name no node stage",
    )  # fmt: skip


def unserved_track(told: Told, worlds: Sequence[str], grid: Sequence[int]) -> NumericTrack:
    """Share of each minute's requests that went unserved, per world."""
    lines = []
    for world in worlds:
        values = _unserved_percent(told.story.worlds[world], grid)
        lines.append(Line(label=world_title(world), colour=world, values=values, width=1.8,
                          dash=DASHES.get(world, "4 4"), fill_opacity=0.10))  # fmt: skip
    known = (v for world in worlds for v in _unserved_percent(told.whole.worlds[world], grid) if v is not None)
    top = _nice(max(known, default=1.0), least=1.0)
    return NumericTrack(
        id="unserved", title="Unserved requests", unit="% of the minute's requests", height=96, top=top,
        lines=tuple(lines), absent="" if lines else "no world's minutes are on record in this window",
    )  # fmt: skip


def _bridged(values: list[float | None]) -> Values:
    """Short holes in the band closed by straight lines.

    When the learned lead grows by two minutes, two target minutes are named by no tick. Only the drawing is bridged:
    such minutes are not checked against demand.
    """
    filled = list(values)
    known = [i for i, value in enumerate(values) if value is not None]
    for left, right in pairwise(known):
        a, b = values[left], values[right]
        if 1 < right - left <= BRIDGED_MINUTES and a is not None and b is not None:
            for i in range(left + 1, right):
                filled[i] = a + (b - a) * (i - left) / (right - left)
    return filled


def _unserved_percent(world: WorldMinutes, grid: Sequence[int]) -> Values:
    ratios = [shortfall(world, i) for i in range(len(world.at_s))]
    return [None if v is None else 100 * v for v in _pick(world, ratios, grid)]


def _known_demand(told: Told, grid: Sequence[int]) -> list[float]:
    """Everything the demand track may ever show in this window, so that its scale stands still."""
    first, last = (grid[0], grid[-1]) if grid else (0, 0)
    uppers = [f.upper for f in issued_band(told.whole) if first <= f.target_s <= last]
    return [v for v in (*_demand(told.whole, grid), *uppers) if v is not None]


def _miss_marks(told: Told) -> list[Mark]:
    """A stroke from each actual to the bound it broke; a triangle at the worst of each stretch."""
    window, unit = told.story.window, told.story.unit
    worst = {stretch.worst.at_s for stretch in told.check.stretches}
    marks = []
    for m in told.check.misses:
        if not window.start_s <= m.at_s < window.end_s:
            continue
        bound = m.band.upper if m.excess_ratio > 0 else m.band.lower
        label = f"{clock(m.at_s)}: {number(m.actual)} {unit}, band {number(m.band.lower)}–{number(m.band.upper)}"
        marks.append(Mark(at_s=m.at_s, shape="miss", colour="miss", value=m.actual, bound=bound, label=label))
        if m.at_s in worst:
            shape = "miss-high" if m.excess_ratio > 0 else "miss-low"
            worst_label = f"worst of its stretch, {label}"
            marks.append(Mark(at_s=m.at_s, shape=shape, colour="miss", value=m.actual, label=worst_label))
    return marks


def _surge_marks(told: Told) -> list[Mark]:
    window = told.story.window
    return [
        Mark(
            at_s=run[0].at_s,
            shape="surge",
            colour="surge",
            label=f"surge seen at {clock(run[0].at_s)}: {percent(run[0].excess_ratio, 0)} above the forecast",
        )
        for run in told.check.surges
        if window.start_s <= run[0].at_s < window.end_s
    ]


def _demand(story: Story, grid: Sequence[int]) -> Values:
    by_minute = actual_demand(story)
    return [by_minute.get(at) for at in grid]


def _pick(world: WorldMinutes, column: Sequence[float | None], grid: Sequence[int]) -> list[float | None]:
    """``column`` on the grid; a row of a thinned world stands for all its minutes."""
    found = (world.index_at(at) for at in grid)
    return [None if i is None else column[i] for i in found]


def _most_pods(world: WorldMinutes, grid: Sequence[int]) -> float:
    columns = (world.wanted, world.ready, world.pending)
    return max((v for column in columns for v in _pick(world, column, grid) if v is not None), default=1.0)


def _most_nodes(world: WorldMinutes, grid: Sequence[int]) -> float:
    return max((v for v in _pick(world, [sum(n.values()) for n in world.nodes], grid) if v is not None), default=1.0)


def _peak_words(noun: str, world: WorldMinutes, column: Sequence[int | None], grid: Sequence[int]) -> str:
    known = [(v, -at) for v, at in zip(_pick(world, column, grid), grid, strict=True) if v is not None]
    if not known:
        return "nothing on record in this window"
    most, at = max(known)
    return f"at most {number(most)} {noun}" + (f", at {clock(-at)}" if most else "")


def _nice(value: float, least: float = 1.0) -> float:
    """The next of 1, 1.2, 1.6, 2, 3, 4, 5, 6, 8 × 10^n that holds ``value``: halves of them read well too."""
    value = max(value * 1.02, least)
    power = 10.0 ** math.floor(math.log10(value))
    return next((f * power for f in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8) if f * power >= value), 10 * power)
