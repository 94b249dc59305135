"""The lines of a scoreboard → one SVG of bars: share within ± 10 %, between naive and ceiling."""

from markupsafe import Markup

from leadtime.training.backtest.run import Backtest

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 900, 26, 190, 70, 26, 30
BAR = Markup('<rect class="bar {}" x="{}" y="{:.1f}" width="{:.1f}" height="{}"><title>{}: {:.1%}</title></rect>')
WORD = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
HEAD = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="Share within ± 10 %: {}">')
RULE = Markup('<path class="mark" d="M{:.1f} {}V{:.1f}"/>')


def draw_board(result: Backtest) -> Markup:
    """One bar a model that answered, the champion's marked; dotted lines at naive and ceiling."""
    lines = [line for line in result.scores if line.within_10pct_ratio is not None]
    height = TOP + ROW * len(lines) + BOTTOM
    spoken = "; ".join(f"{line.name} {line.within_10pct_ratio:.1%}" for line in lines)
    parts = [HEAD.format(WIDTH, height, spoken)]
    for row, line in enumerate(lines):
        ratio, y = line.within_10pct_ratio or 0.0, TOP + ROW * row
        css = "ours" if line.name == result.chosen.champion else ""
        parts += [
            WORD.format(LEFT - 8, y + 18, "end", line.name),
            BAR.format(css, LEFT, y + 4, max(1.0, _x(ratio) - LEFT), ROW - 8, line.name, ratio),
            WORD.format(WIDTH - 2, y + 18, "end", f"{ratio:.1%}"),
        ]
    naive, ceiling = result.naive.within_10pct_ratio, result.naive.ceiling_within_10pct_ratio
    for name, ratio, y, anchor in (("naive", naive, 14, "end"), ("ceiling", ceiling, height - 8, "end")):
        parts += [
            RULE.format(_x(ratio), TOP - 6, height - BOTTOM + 6),
            WORD.format(_x(ratio) - 4, y, anchor, f"{name} {ratio:.1%}"),
        ]
    return Markup("").join([*parts, Markup("</svg>")])


def _x(ratio: float) -> float:
    return LEFT + ratio * (WIDTH - LEFT - RIGHT)
