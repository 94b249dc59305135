"""Tracks → SVG text, drawn on the server: the page without scripts, and the first paint with them.

x is in per cent of the plot's width and y in pixels, so that texts and signs keep their shape at 390 px and at 1280 px;
only lines and areas live in a stretched box (with strokes that do not stretch). No style attribute: the page's content
security policy forbids them. Colours come from classes of the style sheet.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from leadtime.dashboard.clock_text import clock, day_clock, number
from leadtime.dashboard.lanes import LANE_HEIGHT, Bar, Lane, Mark
from leadtime.dashboard.tracks import Band, Board, Line, NumericTrack, Values
from leadtime.dashboard.views import Span

BOX = 1000.0  # width of the stretched box
GUTTER = 58
AXIS_HEIGHT = 22
TICK_STEPS_S = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def numeric_svg(track: NumericTrack, shown: Board, until_s: int) -> str:
    """The plot of a numeric track up to ``until_s``."""
    end_s = shown.window.end_s
    inner = [_area(track, band, shown, end_s if band.ahead else until_s) for band in track.bands]
    inner += [_line(track, line, shown, end_s if line.ahead else until_s) for line in track.lines]
    box = (
        f'<svg x="0" y="0" width="100%" height="{track.height}" viewBox="0 0 {BOX:.0f} {track.height}" '
        f'preserveAspectRatio="none" class="ink">{"".join(inner)}</svg>'
    )
    label = escape(f"{track.title}, {track.unit}. {track.said}")
    return (
        f'<svg class="plot" width="100%" height="{track.height}" role="img" aria-label="{label}">'
        f"{_grid(shown.window, track.height)}{_levels(track)}{box}</svg>"
    )


def marks_svg(track: NumericTrack, shown: Board, until_s: int) -> str:
    """The signs of a numeric track, on a sheet of their own above the lines."""
    marks = "".join(
        _mark(m, shown.window, _y(track, m.value) if m.value is not None else 9.0)
        for m in track.marks
        if m.at_s < until_s and m.bound is None
    )
    strokes = "".join(_stroke(track, m, shown.window) for m in track.marks if m.bound is not None and m.at_s < until_s)
    marks = strokes + marks
    return f'<svg class="marks" width="100%" height="{track.height}" aria-hidden="true">{marks}</svg>' if marks else ""


def value_at(values: Values, shown: Board, until_s: int) -> str:
    """The last value before the clock, for the key; – when it is a gap."""
    i = min(len(shown.grid), max(1, -(-(until_s - shown.window.start_s) // 60))) - 1
    value = values[i] if values else None
    return number(value, 0 if value is None or value >= 100 or value == int(value) else 1)


def band_at(band: Band, shown: Board, until_s: int) -> str:
    """The thickness of a stacked area before the clock."""
    thick = [None if a is None or b is None else b - a for a, b in zip(band.lower, band.upper, strict=True)]
    return value_at(thick, shown, until_s)


def gutter_svg(track: NumericTrack) -> str:
    """The y axis: 0, half, top."""
    labels = ((0.0, track.height - 3), (track.top / 2, track.height / 2 + 4), (track.top, 11.0))
    texts = "".join(
        f'<text x="{GUTTER - 8}" y="{y:.1f}" text-anchor="end">{_short(value)}</text>' for value, y in labels
    )
    return f'<svg class="gutter" width="{GUTTER}" height="{track.height}" aria-hidden="true">{texts}</svg>'


def lane_svg(lane: Lane, shown: Board, until_s: int) -> str:
    """One lane up to ``until_s``."""
    window = shown.window
    bars = "".join(_bar(b, window, until_s) for b in lane.bars if b.end_s > window.start_s and b.start_s < window.end_s)
    marks = "".join(
        _mark(m, window, LANE_HEIGHT / 2) for m in lane.marks if window.start_s <= m.at_s < min(window.end_s, until_s)
    )
    return (
        f'<svg class="lane" width="100%" height="{LANE_HEIGHT}" role="img" aria-label="{_lane_words(lane, window)}">'
        f"{_grid(window, LANE_HEIGHT)}{bars}{marks}</svg>"
    )


def axis_svg(window: Span) -> str:
    """The time axis with its labels; every second label leaves on a narrow screen (class ``odd``)."""
    texts = []
    for i, at_s in enumerate(ticks_of(window)):
        share = window.share(at_s)
        if 0.02 < share < 0.98:
            text = day_clock(at_s) if window.end_s - window.start_s > 172_800 else clock(at_s)
            texts.append(
                f'<text x="{100 * share:.3f}%" y="15" text-anchor="middle" class="{"odd" if i % 2 else "even"}">'
                f"{text}</text>"
            )
    return f'<svg class="axis" width="100%" height="{AXIS_HEIGHT}" aria-hidden="true">{"".join(texts)}</svg>'


def key_svg(shape: str, colour: str) -> str:
    """A swatch for a lane's key."""
    body = _sign("harm", "harm") if shape == "harm" else _shape(shape, colour, 4.0, 92.0)
    inner = f'<svg x="9" y="{LANE_HEIGHT / 2:.0f}" overflow="visible">{body}</svg>' if shape == "harm" else body
    return f'<svg class="swatch" width="18" height="{LANE_HEIGHT}" aria-hidden="true">{inner}</svg>'


def line_key_svg(line: Line) -> str:
    """A swatch for a line."""
    return (
        f'<svg class="swatch" width="22" height="12" aria-hidden="true"><line x1="0" x2="22" y1="6" y2="6" '
        f'class="s-{line.colour}" stroke-width="{line.width + 0.4:.1f}" stroke-dasharray="{line.dash}"/></svg>'
    )


def band_key_svg(band: Band) -> str:
    """A swatch for an area."""
    return (
        f'<svg class="swatch" width="14" height="12" aria-hidden="true"><rect width="14" height="12" '
        f'class="f-{band.colour}" fill-opacity="{band.opacity:.2f}"/></svg>'
    )


def ticks_of(window: Span, most: int = 12) -> list[int]:
    """Instants with a label: whole steps, at most ``most`` of them."""
    step = next((s for s in TICK_STEPS_S if (window.end_s - window.start_s) / s <= most), TICK_STEPS_S[-1])
    while (window.end_s - window.start_s) / step > most:
        step *= 2
    first = -(-window.start_s // step) * step
    return list(range(first, window.end_s + 1, step))


def _grid(window: Span, height: int) -> str:
    shares = [f"{100 * window.share(at):.3f}%" for at in ticks_of(window)]
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{height}"/>' for x in shares)


def _levels(track: NumericTrack) -> str:
    lines = (track.height - 0.5, track.height / 2, 0.5)
    return "".join(f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>' for y in lines)


def _y(track: NumericTrack, value: float) -> float:
    return track.height - 1 - (track.height - 4) * min(1.0, max(0.0, value / track.top))


def _points(values: Values, track: NumericTrack, shown: Board, until_s: int) -> list[list[tuple[float, float]]]:
    """Stretches without a gap, as (x, y) in the box; nothing at or after ``until_s``."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for at_s, value in zip(shown.grid, values, strict=True):
        if value is None or at_s >= until_s:
            if stretches[-1]:
                stretches.append([])
            continue
        stretches[-1].append((BOX * shown.window.share(at_s), _y(track, value)))
    return [stretch for stretch in stretches if stretch]


def _trace(points: Sequence[tuple[float, float]], stepped: bool) -> str:  # noqa: FBT001 - two ways to join points
    """Path commands without the first move; points that add nothing are left out."""
    parts = [f"{points[0][0]:.1f} {points[0][1]:.1f}"]
    for i in range(1, len(points)):
        x, y = points[i]
        before = points[i - 1][1]
        last = i == len(points) - 1
        if stepped:
            if y != before:
                parts.append(f"H{x:.1f}V{y:.1f}")
            elif last:
                parts.append(f"H{x:.1f}")
        elif last or y != before or points[i + 1][1] != y:
            parts.append(f"L{x:.1f} {y:.1f}")
    return "".join(parts)


def _line(track: NumericTrack, line: Line, shown: Board, until_s: int) -> str:
    found = []
    for stretch in _points(line.values, track, shown, until_s):
        trace = _trace(stretch, line.stepped)
        if line.fill_opacity:
            base = track.height - 1
            found.append(
                f'<path class="f-{line.colour}" fill-opacity="{line.fill_opacity:.2f}" '
                f'd="M{stretch[0][0]:.1f} {base}L{trace}V{base}Z"/>'
            )
        found.append(
            f'<path class="s-{line.colour}" fill="none" stroke-width="{line.width}" stroke-dasharray="{line.dash}" '
            f'vector-effect="non-scaling-stroke" d="M{trace}"/>'
        )
    return "".join(found)


def _area(track: NumericTrack, band: Band, shown: Board, until_s: int) -> str:
    uppers = _points(band.upper, track, shown, until_s)
    lowers = _points(band.lower, track, shown, until_s)
    found = []
    for upper, lower in zip(uppers, lowers, strict=False):
        back = _trace([*reversed(_stepped_corners(lower) if band.stepped else lower)], stepped=False)
        found.append(
            f'<path class="f-{band.colour}" fill-opacity="{band.opacity:.2f}" '
            f'd="M{_trace(upper, band.stepped)}L{back}Z"/>'
        )
    return "".join(found)


def _stepped_corners(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = [points[0]]
    for (_, before), (x, y) in pairwise(points):
        corners += [(x, before), (x, y)] if y != before else []
    return [*corners, points[-1]]


def _bar(bar: Bar, window: Span, until_s: int) -> str:
    start, end = max(bar.start_s, window.start_s), min(bar.end_s, window.end_s, until_s)
    if end <= start:
        return ""
    x, width = 100 * window.share(start), max(0.18, 100 * (end - start) / max(1, window.end_s - window.start_s))
    shape = _shape(bar.shape, bar.colour, x, width)
    return _linked(f"<g><title>{escape(bar.label)}</title>{shape}</g>", bar.href)


def _shape(shape: str, colour: str, x: float, width: float) -> str:
    """A bar from ``x`` over ``width``, both in per cent."""
    h, at = LANE_HEIGHT, f'x="{x:.3f}%" width="{width:.3f}%"'
    hit = f'<rect class="hit" {at} y="0" height="{h}"/>'
    if shape == "hair":
        ends = f'x1="{x:.3f}%" x2="{x + width:.3f}%" y1="{h / 2}" y2="{h / 2}"'
        return f'{hit}<line class="s-{colour}" stroke-width="1.5" {ends}/>'
    if shape in {"outline", "hatch"}:
        fill = ' fill="url(#hatch)"' if shape == "hatch" else ' fill="none"'
        return f'{hit}<rect class="o-{colour}"{fill} {at} y="4.5" height="{h - 9}" stroke-width="1.2"/>'
    y, height = {"full": (3, h - 6), "low": (h / 2, h / 2 - 3), "thin": (h / 2 - 1.5, 3)}[shape]
    return f'{hit}<rect class="f-{colour}" {at} y="{y}" height="{height}"/>'


def _mark(mark: Mark, window: Span, y: float) -> str:
    share = window.share(mark.at_s)
    sign = _sign(mark.shape, mark.colour)
    body = f'<svg x="{100 * share:.3f}%" y="{y:.1f}" overflow="visible"><title>{escape(mark.label)}</title>{sign}</svg>'
    return _linked(body, mark.href)


def _stroke(track: NumericTrack, mark: Mark, window: Span) -> str:
    """How far an actual lies outside its band."""
    x = 100 * window.share(mark.at_s)
    y1, y2 = _y(track, mark.value or 0.0), _y(track, mark.bound or 0.0)
    return (
        f'<line class="s-{mark.colour} stroke" x1="{x:.3f}%" x2="{x:.3f}%" y1="{y1:.1f}" y2="{y2:.1f}">'
        f"<title>{escape(mark.label)}</title></line>"
    )


def _sign(shape: str, colour: str) -> str:
    paths = {
        "miss-high": "M-3 -4L0 -9L3 -4Z",
        "miss-low": "M-3 4L0 9L3 4Z",
        "surge": "M0 -8L6 0L0 8L-6 0Z",
        "harm": "M-6 -6L6 6M6 -6L-6 6",
    }
    if shape == "harm":
        return (
            f'<circle r="8.5" class="o-{colour} disc"/><path class="s-{colour}" stroke-width="2.4" d="{paths[shape]}"/>'
        )
    return f'<path class="f-{colour} sign" d="{paths[shape]}"/>'


def _linked(body: str, href: str) -> str:
    """A link for the pointer; the keyboard has the table of decisions, so a lane's hundred links are no tab stops."""
    if not href:
        return body
    return f'<a href="{escape(href)}" tabindex="-1" data-decision="1">{body}</a>'


def _lane_words(lane: Lane, window: Span) -> str:
    inside = [b for b in lane.bars if b.end_s > window.start_s and b.start_s < window.end_s]
    return escape(f"{lane.label}: {len(inside)} stretches, {len(lane.marks)} marks")


def _short(value: float) -> str:
    """An axis label: 1 200 000 → 1.2 M, 12 000 → 12 k."""
    for limit, letter in ((1e6, "M"), (1e4, "k")):
        if value >= limit:
            scaled = value / (1e6 if letter == "M" else 1e3)
            return f"{number(scaled, 0 if scaled == int(scaled) else 1)} {letter}"
    return number(value, 0 if value == int(value) else 1)
