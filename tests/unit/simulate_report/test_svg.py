"""The chart drawer: axes that read well, lines that hide nothing bad."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadtime.simulate import svg


def chart(values, *, keep=svg.Keep.MAX, top=None):
    at_s = [60.0 * i for i in range(len(values))]
    line = svg.Line(label="x", css="x", at_s=at_s, values=values, keep=keep)
    return svg.Chart(title="t", unit="u", from_s=0, until_s=60.0 * len(values), lines=(line,), top=top)


def line_path(drawn):
    return re.search(r'class="line s-x" d="([^"]*)"', drawn).group(1)


# at most 5 parts: 1000/5 = 200 → 200; 1100/5 = 220 → 500; 7/5 = 1.4 → 2; 0.3/5 = 0.06 → 0.1
@pytest.mark.parametrize(("top", "step"), [(1000, 200), (1100, 500), (7, 2), (0.3, 0.1)])
def test_ticks_stand_at_round_numbers(top, step):
    assert svg.nice_step(top) == pytest.approx(step)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (250, "250"), (1500, "1,500"), (15_000, "15k"), (2_500_000, "2.5M")]
)
def test_axis_numbers_are_short(value, text):
    assert svg.short_number(value) == text


def test_a_level_line_is_drawn_from_edge_to_edge():
    # 0 … 1.05 of the top over a plot of 260 − 40 − 34 = 186: value 1 of 1.05 lies 177.1 above the base at 226
    assert line_path(svg.draw(chart([1.0] * 10))) == "M74 48.9H886"


def test_a_gap_lifts_the_pen():
    path = line_path(svg.draw(chart([1.0, None, 1.0])))
    assert path.count("M") == 2


def test_no_value_at_all_draws_no_line_and_says_so():
    drawn = svg.draw(chart([None, None]))
    assert line_path(drawn) == ""
    assert "x without values" in drawn


def test_labels_cannot_become_markup():
    mark = svg.Mark(at_s=0, label="<b>")
    drawn = svg.draw(svg.Chart(title='"><b>', unit="u", from_s=0, until_s=60, lines=(), marks=(mark,)))
    assert "<b>" not in drawn


@example([5e-324])
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=1200))
def test_thinning_keeps_the_highest_peak_and_the_deepest_hole(values):
    highest = svg.draw(chart(values))
    assert f"x up to {svg.short_number(max(values))}" in highest
    lowest = svg._within(chart(values, keep=svg.Keep.MIN).lines[0], chart(values))
    assert min(lowest.values) == min(values)
    assert len(lowest.values) <= svg.MAX_POINTS
