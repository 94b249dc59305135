"""Samples → a value an instant or a gap; every oddity has its name, and nothing becomes zero."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.sources.prometheus_findings import FindingKind
from leadtime.sources.prometheus_grid import Grid, Line, gap_findings, joined, on_grid, one_of_replicas, subject

GRID = Grid(start_s=600, step_s=60, count=5)  # 600, 660, 720, 780, 840


def read(*samples: tuple[float, object]) -> tuple[list[float | None], dict[FindingKind, int]]:
    """Values and findings of one series."""
    values, noticed = on_grid([list(sample) for sample in samples], GRID, non_negative=True)
    return values, dict(noticed)


def test_every_instant_has_its_value_or_none() -> None:
    assert read((600, "1.5"), (660, "0"), (840, "2")) == ([1.5, 0.0, None, None, 2.0], {})


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf"])
def test_what_is_not_finite_is_a_gap(text: str) -> None:
    assert read((600, "1"), (660, text)) == ([1.0, None, None, None, None], {FindingKind.NOT_FINITE: 1})


def test_below_zero_is_a_gap_only_where_it_cannot_be() -> None:
    assert read((600, "-1")) == ([None] * 5, {FindingKind.NEGATIVE: 1})
    assert on_grid([[600, "-1"]], GRID, non_negative=False)[0][0] == -1.0


def test_another_step_keeps_only_instants_that_were_asked_for() -> None:
    values, noticed = read((600, "1"), (630, "9"), (690, "9"), (720, "2"))
    assert values == [1.0, None, 2.0, None, None]
    assert noticed == {FindingKind.OTHER_GRID: 2}


def test_the_future_and_the_past_are_left_out() -> None:
    values, noticed = read((540, "9"), (600, "1"), (900, "9"), (9_000, "9"))
    assert values == [1.0, None, None, None, None]
    assert noticed == {FindingKind.BEFORE: 1, FindingKind.FUTURE: 2}


def test_out_of_order_is_sorted_and_said() -> None:
    assert read((660, "2"), (600, "1")) == ([1.0, 2.0, None, None, None], {FindingKind.OUT_OF_ORDER: 1})


def test_repeated_equal_counts_once_and_repeated_differently_is_a_gap() -> None:
    assert read((600, "1"), (600, "1")) == ([1.0, None, None, None, None], {FindingKind.REPEATED: 1})
    assert read((600, "1"), (600, "2")) == ([None] * 5, {FindingKind.REPEATED_DIFFERENTLY: 1})


def test_no_number_is_a_gap() -> None:
    assert read((600, "one"), (660, None)) == ([None] * 5, {FindingKind.UNREADABLE: 2})


@given(st.lists(st.tuples(st.floats(0, 2_000), st.sampled_from(["0", "1", "NaN", "+Inf", "-3", "x", ""])), max_size=30))
def test_no_value_appears_that_nobody_sent(samples: list[tuple[float, str]]) -> None:
    values, noticed = on_grid(samples, GRID, non_negative=True)
    assert len(values) == GRID.count
    zeros = sum(value == 0 for value in values)
    assert zeros <= sum(text == "0" for _, text in samples)
    assert all(value in {None, 0.0, 1.0} for value in values)
    assert isinstance(noticed, Counter)
    assert sum(value is not None for value in values) <= len({at for at, _ in samples})


@given(st.integers(1, 50), st.integers(1, 20))
def test_pieces_meet_and_do_not_overlap(count: int, most: int) -> None:
    grid = Grid(start_s=0, step_s=60, count=count)
    pieces = list(grid.pieces(most))
    assert [at for piece in pieces for at in piece.instants()] == list(grid.instants())
    assert max(piece.count for piece in pieces) <= most


def line(values: list[float | None], **labels: str) -> Line:
    """A series on the grid."""
    return Line(labels=labels, values=tuple(values))


def test_of_two_replicas_one_is_taken_and_its_gaps_are_filled() -> None:
    a = line([1, 2, None, 4, 5], job="x", replica="a")
    b = line([1, None, 3, 4, None], job="x", replica="b")
    (taken,), findings = one_of_replicas([b, a], ["replica"], GRID)
    assert (taken.labels, taken.values) == ({"job": "x"}, (1, 2, 3, 4, 5))
    assert [each.kind for each in findings] == [FindingKind.REPLICAS_MERGED]
    assert "1 of its gaps filled" in findings[0].what


def test_replicas_that_disagree_are_named_and_not_summed() -> None:
    a = line([1, 2, 3, 4, 5], job="x", replica="a")
    b = line([1, 2.05, 6, 4, None], job="x", replica="b")
    (taken,), findings = one_of_replicas([a, b], ["replica"], GRID)
    assert taken.values == (1, 2, 3, 4, 5)
    (disagree,) = [each for each in findings if each.kind is FindingKind.REPLICAS_DISAGREE]
    assert (disagree.count, disagree.at and disagree.at.timestamp()) == (1, 720)
    assert "by up to 50% (3 and 6)" in disagree.what


def test_series_that_differ_elsewhere_are_not_replicas() -> None:
    lines = [line([1] * 5, pod="a", replica="x"), line([1] * 5, pod="b", replica="x")]
    taken, findings = one_of_replicas(lines, ["replica"], GRID)
    assert [each.labels for each in taken] == [{"pod": "a"}, {"pod": "b"}]
    assert findings == []


def test_one_series_after_another_is_joined_and_two_at_once_are_not() -> None:
    old, new = line([1, 2, None, None, None], pod="a"), line([None, None, None, 4, 5], pod="b")
    both = joined([new, old])
    assert both is not None
    assert (both.labels, both.values) == ({"pod": "b"}, (1, 2, None, 4, 5))
    assert joined([old, line([None, 2, 3, 4, 5], pod="b")]) is None


def test_gaps_and_an_end_are_told_apart() -> None:
    findings = list(gap_findings(line([None, 1, None, 3, None], pod="a"), GRID))
    assert [(each.kind, each.count) for each in findings] == [(FindingKind.GAPS, 1), (FindingKind.ENDED, 1)]
    assert findings[1].at is not None
    assert findings[1].at.timestamp() == 840


def test_a_series_is_named_with_its_labels_in_order() -> None:
    assert subject({"pod": "a", "__name__": "up", "job": "x"}) == 'up{job="x",pod="a"}'
