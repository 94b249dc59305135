"""Tracks → SVG."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.dashboard import pages, svg_tracks, tracks
from leadtime.dashboard.lanes import LaneTrack
from leadtime.dashboard.story import Choice, LedgerBook
from leadtime.dashboard.tracks import Band, Board, Line, NumericTrack
from leadtime.dashboard.views import Span

SPAN = Span(start_s=0, end_s=600)
BOARD = Board(window=SPAN, grid=tuple(range(0, 600, 60)))


def numeric(*lines, bands=()):
    return NumericTrack(id="t", title="T <b>", unit="pods", height=100, top=10.0, lines=lines, bands=bands)


def paths(track, until_s=600):
    root = ET.fromstring(svg_tracks.numeric_svg(track, BOARD, until_s))
    return [p.attrib["d"] for p in root.iter("path")]


def test_every_track_of_a_story_is_well_formed_and_has_no_style_attribute(incident_ledger):
    story = LedgerBook("r", incident_ledger).story(Choice())
    board = tracks.board(pages.told_until(story, story.full.end_s), ("hpa", "leadtime", "oracle"))
    texts = [svg_tracks.axis_svg(board.window)]
    for track in board.tracks:
        if isinstance(track, LaneTrack):
            texts += [svg_tracks.lane_svg(lane, board, story.full.end_s) for lane in track.lanes]
            texts += [svg_tracks.key_svg(shape, colour) for shape, colour, _ in track.key]
        else:
            texts += [svg_tracks.numeric_svg(track, board, story.full.end_s), svg_tracks.gutter_svg(track)]
            texts += [svg_tracks.marks_svg(track, board, story.full.end_s) or "<svg/>"]
    assert len(texts) > 20
    for text in texts:
        ET.fromstring(text)
        assert "style=" not in text
        assert "onclick" not in text


def test_a_gap_breaks_the_line():
    line = Line(label="l", colour="hpa", values=[1, 1, None, None, 2, 2, 2, 2, 2, 2])
    assert len(paths(numeric(line))) == 2


def test_a_stepped_line_holds_its_value_until_the_next_minute():
    line = Line(label="l", colour="hpa", values=[0, 10, 10, 10, 10, 10, 10, 10, 10, 10], stepped=True)
    assert paths(numeric(line)) == ["M0.0 99.0H100.0V3.0H900.0"]


def test_nothing_is_drawn_after_the_clock_but_forecasts():
    values = [5.0] * 10
    line = Line(label="l", colour="hpa", values=values)
    ahead = Line(label="f", colour="band", values=values, ahead=True)
    drawn = paths(numeric(line, ahead), until_s=300)
    assert drawn[0].endswith("L400.0 51.0")
    assert drawn[1].endswith("L900.0 51.0")


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=10, max_size=10), st.booleans())
def test_whatever_the_values_the_drawing_stays_inside_its_box(values, stepped):
    band = Band(label="b", colour="band", lower=values, upper=values, opacity=0.2, stepped=stepped)
    text = svg_tracks.numeric_svg(
        numeric(Line(label="l", colour="hpa", values=values, stepped=stepped), bands=(band,)), BOARD, 600
    )
    ET.fromstring(text)
    assert "nan" not in text
    assert "inf" not in text
    assert "-" not in "".join(paths(numeric(Line(label="l", colour="hpa", values=values))))


def test_titles_are_escaped():
    assert "T &lt;b&gt;" in svg_tracks.numeric_svg(numeric(), BOARD, 600)


@pytest.mark.parametrize("length_s", [600, 3600, 12_600, 86_400, 30 * 86_400])
def test_the_axis_has_few_labels_on_whole_steps(length_s):
    ticks = svg_tracks.ticks_of(Span(start_s=1_772_409_723, end_s=1_772_409_723 + length_s))
    assert 3 <= len(ticks) <= 13
    assert len({b - a for a, b in pairwise(ticks)}) == 1
    assert all(t % 60 == 0 for t in ticks)


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), max_size=40))
def test_bridging_keeps_every_known_value_and_closes_only_short_holes(values):
    filled = tracks._bridged(list(values))
    known = [i for i, v in enumerate(values) if v is not None]
    assert all(filled[i] == values[i] for i in known)
    for left, right in pairwise(known):
        closed = right - left <= tracks.BRIDGED_MINUTES
        assert all((filled[i] is not None) == closed for i in range(left + 1, right))
