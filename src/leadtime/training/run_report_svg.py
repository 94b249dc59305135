"""Points and bars → one SVG chart as text, for pages that open offline. Colours come from the page's classes.

Axes run from 0, or in powers of ten where ``log`` is set. No script, no style of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leadtime.simulate.svg import nice_step, short_number

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 50
DOT = Markup('<circle class="dot s-{}" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}: {:.4g}, {:.4g}</title></circle>')
BAR = Markup(
    '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{:g}–{:g}: {:g}</title></rect>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """A line through points, or the points alone."""

    label: str
    css: str
    x: Sequence[float]
    y: Sequence[float]
    dots: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """``low`` is used by log axes alone; linear ones begin at 0."""

    name: str
    top: float
    low: float = 0.0
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0–1."""
        if not self.log:
            return min(max(value / self.top, 0.0), 1.0)
        span = math.log(self.top) - math.log(self.low)
        return min(max((math.log(max(value, self.low)) - math.log(self.low)) / span, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Values worth a mark."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.top) + 1e-9)
            return [10.0**k for k in range(first, last + 1)]
        step = nice_step(self.top)
        return [k * step for k in range(int(self.top / step + 1e-9) + 1)]


def draw_points(title: str, x: Axis, y: Axis, lines: Sequence[Points]) -> Markup:
    """Lines and dots over two axes."""
    drawn = [_frame(title, x, y, "; ".join(f"{line.label}, {len(line.x)} points" for line in lines))]
    for line in lines:
        at = [(_x(x, a), _y(y, b)) for a, b in zip(line.x, line.y, strict=True)]
        if line.dots:
            drawn += [
                DOT.format(line.css, px, py, line.label, a, b)
                for (px, py), a, b in zip(at, line.x, line.y, strict=True)
            ]  # fmt: skip
        elif at:
            path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in at)
            drawn.append(
                Markup('<path class="line s-{}" d="{}"><title>{}</title></path>').format(line.css, path, line.label)
            )
    return Markup("").join([*drawn, Markup("</svg>")])


def draw_bars(title: str, x: Axis, y: Axis, bars: Sequence[tuple[float, float, float]]) -> Markup:
    """Bars (from, until, height) over two axes."""
    drawn = [_frame(title, x, y, f"{len(bars)} bars, the highest {max((bar[2] for bar in bars), default=0):,.4g}")]
    for start, end, height in bars:
        left, right, above = _x(x, start), _x(x, end), _y(y, height)
        drawn.append(
            BAR.format(left + 1, above, max(right - left - 2, 1.0), HEIGHT - BOTTOM - above, start, end, height)
        )  # fmt: skip
    return Markup("").join([*drawn, Markup("</svg>")])


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def _frame(title: str, x: Axis, y: Axis, spoken: str) -> Markup:
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}, {} against {}: {}">').format(
            WIDTH, HEIGHT, title, y.name, x.name, spoken
        ),
        Markup('<text class="unit" x="4" y="18">{}</text>').format(y.name),
        Markup('<text class="unit" x="{}" y="{}" text-anchor="end">{}</text>').format(
            WIDTH - RIGHT, HEIGHT - 6, x.name
        ),
    ]
    for tick in y.ticks():
        at = _y(y, tick)
        parts.append(Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(LEFT, at, WIDTH - RIGHT))
        parts.append(
            Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
                LEFT - 7, at + 5, short_number(tick)
            )
        )
    for tick in x.ticks():
        at = _x(x, tick)
        parts.append(Markup('<path class="grid" d="M{:.1f} {}V{}"/>').format(at, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5))
        parts.append(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                at, HEIGHT - BOTTOM + 22, short_number(tick)
            )
        )
    return Markup("").join(parts)
