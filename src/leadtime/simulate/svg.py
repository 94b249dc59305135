"""Columns over time → one SVG chart as text: lines, steps, marks, axes. No script, no style of its own.

Colours and dashes come from CSS classes of the page (``s-<class>``), so that dark, light and print stay one drawing.
Times are epoch seconds, shown in UTC.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup

from leadtime.domain.time_window import from_epoch

WIDE, NARROW = 900, 560
LEFT, RIGHT, TOP, BOTTOM = 74, 14, 40, 34
MAX_POINTS = 450
SMALLEST_TOP = 1e-9  # below this everything is 0 to the eye, and ticks would have no room between them
_STEPS_S = (60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)


class Keep(StrEnum):
    """What stands for several values that fall on one spot: the one that hides nothing bad."""

    MAX = "max"  # demand, wanted, pending, unserved
    MIN = "min"  # ready, capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: ``values[i]`` holds from ``at_s[i]`` to the next instant (drawn as steps); None is a gap."""

    label: str
    css: str
    at_s: Sequence[float]
    values: Sequence[float | None]
    keep: Keep = Keep.MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A vertical line at an instant, with a word."""

    at_s: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart over [from_s, until_s) from 0 to ``top`` (None: the largest value drawn)."""

    title: str
    unit: str
    from_s: float
    until_s: float
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    width: int = WIDE
    height: int = 260
    top: float | None = None


def draw(chart: Chart) -> Markup:
    """The chart as an ``<svg>`` element with a title a screen reader speaks."""
    drawn = [_within(line, chart) for line in chart.lines]
    top = chart.top or max((value for line in drawn for value in line.values if value is not None), default=1.0)
    top = top * 1.05 if top > SMALLEST_TOP else 1.0
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            chart.width, chart.height, _spoken(chart, drawn)
        ),
        _value_axis(chart, top),
        _time_axis(chart),
        _marks(chart),
        *(
            Markup('<path class="line s-{}" d="{}"><title>{}</title></path>').format(
                line.css, Markup(_path(chart, line, top)), line.label
            )
            for line in drawn
        ),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def nice_step(top: float, at_most: int = 5) -> float:
    """The smallest of 1, 2, 5 × 10^k that divides [0, top] into at most ``at_most`` parts."""
    raw = top / at_most
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def short_number(value: float) -> str:
    """A number as an axis writes it: 0, 0.5, 250, 1.2k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (value >= size and letter != "k"):
            return f"{value / size:.4g}{letter}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _within(line: Line, chart: Chart) -> Line:
    """The part of a line inside the chart, at most MAX_POINTS points; a gap inside a bucket gives way to a value."""
    inside = [i for i, at_s in enumerate(line.at_s) if chart.from_s <= at_s < chart.until_s]
    size = max(1, -(-len(inside) // MAX_POINTS))
    choose = max if line.keep is Keep.MAX else min
    at_s: list[float] = []
    values: list[float | None] = []
    for first in range(0, len(inside), size):
        bucket = [line.values[i] for i in inside[first : first + size]]
        at_s.append(line.at_s[inside[first]])
        values.append(choose((value for value in bucket if value is not None), default=None))
    return Line(label=line.label, css=line.css, at_s=at_s, values=values, keep=line.keep)


def _x(chart: Chart, at_s: float) -> float:
    share = (at_s - chart.from_s) / max(chart.until_s - chart.from_s, 1.0)
    return round(LEFT + share * (chart.width - LEFT - RIGHT), 1)


def _y(chart: Chart, value: float, top: float) -> float:
    return round(chart.height - BOTTOM - min(value / top, 1.0) * (chart.height - TOP - BOTTOM), 1)


def _path(chart: Chart, line: Line, top: float) -> str:
    """Steps: across to the next instant, then up or down; equal neighbours add nothing; a gap lifts the pen."""
    parts: list[str] = []
    pen: float | None = None
    for at_s, value in zip(line.at_s, line.values, strict=True):
        x = _x(chart, at_s)
        if value is None:
            parts += [f"H{x:g}"] if pen is not None else []
            pen = None
            continue
        y = _y(chart, value, top)
        if pen is None:
            parts.append(f"M{x:g} {y:g}")
        elif y != pen:
            parts.append(f"H{x:g}V{y:g}")
        pen = y
    if pen is not None:
        parts.append(f"H{chart.width - RIGHT}")
    return "".join(parts)


def _value_axis(chart: Chart, top: float) -> Markup:
    step = nice_step(top)
    parts = [Markup('<text class="unit" x="4" y="31">{}</text>').format(chart.unit)]
    for i in range(int(top / step) + 1):
        y = _y(chart, i * step, top)
        parts.append(Markup('<path class="grid" d="M{} {}H{}"/>').format(LEFT, y, chart.width - RIGHT))
        parts.append(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>').format(
                LEFT - 8, y + 5, short_number(i * step)
            )
        )
    return Markup("").join(parts)


def _time_axis(chart: Chart) -> Markup:
    span_s = chart.until_s - chart.from_s
    step_s = next((step for step in _STEPS_S if span_s / step <= 8), _STEPS_S[-1])
    form = "%H:%M" if step_s < 86_400 else "%d %b"
    parts = []
    at_s = math.ceil(chart.from_s / step_s) * step_s
    while at_s < chart.until_s:
        x = _x(chart, at_s)
        y = chart.height - BOTTOM
        parts.append(Markup('<path class="grid" d="M{} {}V{}"/>').format(x, y, y + 5))
        parts.append(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                x, y + 22, f"{from_epoch(at_s):{form}}"
            )
        )
        at_s += step_s
    return Markup("").join(parts)


def _marks(chart: Chart) -> Markup:
    """Dotted lines, then their words above the plot, taking turns between two rows so that they do not collide."""
    lines, words = [], []
    inside = [mark for mark in chart.marks if chart.from_s <= mark.at_s < chart.until_s]
    for i, mark in enumerate(inside):
        x, y = _x(chart, mark.at_s), 14 + 17 * (i % 2)
        # Beyond the middle the word stands left of its line, or it would leave the drawing.
        anchor, dx = ("end", -5) if x > chart.width * 0.6 else ("start", 5)
        lines.append(Markup('<path class="mark" d="M{} {}V{}"/>').format(x, y - 10, chart.height - BOTTOM))
        words.append(
            Markup('<text class="word" x="{}" y="{}" text-anchor="{}">{}</text>').format(x + dx, y, anchor, mark.label)
        )
    return Markup("").join([*lines, *words])


def _spoken(chart: Chart, drawn: Sequence[Line]) -> str:
    """What the picture says in words: each line with its largest value."""
    said = []
    for line in drawn:
        known = [value for value in line.values if value is not None]
        said.append(f"{line.label} up to {short_number(max(known))}" if known else f"{line.label} without values")
    return f"{chart.title}, {chart.unit}: {'; '.join(said)}"
