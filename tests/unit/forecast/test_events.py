"""Declared events in a path: exact minutes, overlap, unknown size, what is measured, a path that begins inside one."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.calendar import CalendarEvent, EventKind, Factor, day_window
from leadtime.domain.time_window import TimeWindow
from leadtime.forecast.events import MeasuredFactor, measured, with_events
from leadtime.forecast.model import Band

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())


def flat(steps: int = 60) -> Band:
    return Band(expected=np.full(steps, 100.0), lower=np.full(steps, 90.0), upper=np.full(steps, 110.0))


def event(
    from_min: float, to_min: float, factor: Factor | None, name: str = "launch", kind: EventKind = EventKind.LAUNCH
) -> CalendarEvent:
    window = TimeWindow(start=NOON + timedelta(minutes=from_min), end=NOON + timedelta(minutes=to_min))
    return CalendarEvent(name=name, kind=kind, window=window, factor=factor)


DOUBLE = Factor(expected=2.0, lower=1.5, upper=3.0)


def test_inside_start_to_end_the_path_is_multiplied_and_nowhere_else() -> None:
    said = with_events(flat(), NOON_S, [event(10, 20, DOUBLE)])
    assert said.band.expected.tolist() == [100.0] * 10 + [200.0] * 10 + [100.0] * 40
    assert said.band.lower.tolist() == [90.0] * 10 + [135.0] * 10 + [90.0] * 40
    assert said.band.upper.tolist() == [110.0] * 10 + [330.0] * 10 + [110.0] * 40
    (sentence,) = said.sentences
    assert sentence == (
        "launch 'launch' from 2026-03-02T12:10:00Z to 2026-03-02T12:20:00Z is declared × 2.00 (1.50 to 3.00); "
        "taken × 2.00 (1.50 to 3.00)"
    )


def test_a_part_of_a_minute_counts_for_that_part() -> None:
    said = with_events(flat(), NOON_S, [event(10.5, 11.25, DOUBLE)]).band.expected
    assert said[9:13].tolist() == [100.0, 150.0, 125.0, 100.0]


def test_events_that_overlap_multiply() -> None:
    sale = event(15, 30, Factor(expected=1.5, lower=1.0, upper=2.0), "sale", EventKind.SALE)
    said = with_events(flat(), NOON_S, [sale, event(10, 20, DOUBLE)])
    assert said.band.expected[[9, 12, 17, 25, 31]].tolist() == [100.0, 200.0, 300.0, 150.0, 100.0]
    assert said.band.upper[17] == 110.0 * 6.0
    assert [s.split(" ")[0] for s in said.sentences] == ["launch", "sale"]  # by start


def test_a_path_that_begins_inside_an_event_comes_down_at_its_end() -> None:
    said = with_events(flat(), NOON_S, [event(-30, 10, DOUBLE)]).band.expected
    assert said.tolist() == [100.0] * 10 + [50.0] * 50


def test_a_path_of_other_days_knows_nothing_of_today() -> None:
    said = with_events(flat(), NOON_S, [event(-30, 10, DOUBLE)], level_measured=False).band.expected
    assert said.tolist() == [200.0] * 10 + [100.0] * 50


def test_right_after_the_start_the_level_has_heard_a_part_of_it() -> None:
    said = with_events(flat(), NOON_S, [event(-2, 10, DOUBLE)]).band.expected
    # two of the five minutes the level was measured over were doubled: 1.4 times the usual; inside it is 2.0 times
    assert said[0] == pytest.approx(100.0 * 2.0 / 1.4)
    assert said[20] == pytest.approx(100.0 / 1.4)


def test_while_it_runs_what_is_measured_is_taken_back_at_the_end() -> None:
    running = event(-30, 10, DOUBLE)
    own = MeasuredFactor(name="launch", kind=EventKind.LAUNCH, window=running.window, ratio=4.0, minutes=30)
    said = with_events(flat(), NOON_S, [running], [own])
    assert said.band.expected.tolist() == [100.0] * 10 + [25.0] * 50
    assert "measured × 4.00 so far" in said.sentences[0]


def test_an_unknown_size_widens_the_bounds_only() -> None:
    said = with_events(flat(), NOON_S, [event(10, 20, Factor(expected=None, lower=1.2, upper=4.0))]).band
    assert said.expected.tolist() == [100.0] * 60
    assert said.lower.tolist() == [90.0] * 60  # it may also bring nothing
    assert said.upper[[9, 10, 19, 20]].tolist() == [110.0, 440.0, 440.0, 110.0]


def past(ratio: float, name: str = "launch", kind: EventKind = EventKind.LAUNCH, days: int = 7) -> MeasuredFactor:
    start = NOON - timedelta(days=days)
    window = TimeWindow(start=start, end=start + timedelta(hours=1))
    return MeasuredFactor(name=name, kind=kind, window=window, ratio=ratio, minutes=60)


def test_without_a_factor_its_like_give_the_bounds_and_without_them_nothing_is_changed() -> None:
    unsized = event(10, 20, None)
    said = with_events(flat(), NOON_S, [unsized])
    assert said.band.upper.tolist() == [110.0] * 60
    assert "none of its kind was measured: the forecast is unchanged" in said.sentences[0]
    same_kind = with_events(flat(), NOON_S, [unsized], [past(2.5, "other"), past(0.5, "load", EventKind.TEST)])
    assert same_kind.band.upper[15] == 275.0
    assert same_kind.band.expected[15] == 100.0
    same_name = with_events(flat(), NOON_S, [unsized], [past(2.5, "other"), past(1.5)])
    assert same_name.band.upper[15] == pytest.approx(165.0)


def test_a_measured_factor_stands_beside_the_declared_one_and_widens_its_bounds() -> None:
    said = with_events(flat(), NOON_S, [event(10, 20, DOUBLE)], [past(5.0)])
    assert said.band.expected[15] == 200.0
    assert said.band.upper[15] == 550.0
    assert (
        "declared × 2.00 (1.50 to 3.00); measured × 5.00 on 2026-02-23; taken × 2.00 (1.50 to 5.00)"
        in (said.sentences[0])
    )


def test_what_an_event_brought_is_demand_over_usual_demand_in_its_whole_minutes() -> None:
    one = event(10.5, 40, DOUBLE)
    actual, usual = np.full(60, 100.0), np.full(60, 100.0)
    actual[11:40] = 250.0
    actual[20] = np.nan
    found = measured(one, NOON_S, actual, usual)
    assert found is not None
    assert (found.ratio, found.minutes) == (2.5, 28)
    assert measured(event(10, 19, DOUBLE), NOON_S, actual, usual) is None  # nine minutes
    assert measured(one, NOON_S, actual, np.zeros(60)) is None


def test_events_before_and_after_the_path_say_nothing() -> None:
    said = with_events(flat(), NOON_S, [event(-60, -10, DOUBLE), event(60, 90, DOUBLE)])
    assert said.sentences == ()
    assert said.band.expected.tolist() == [100.0] * 60


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_a_whole_day_lasts_as_long_as_the_clock_says(day: date, hours: int) -> None:
    window = day_window(day, "Europe/Berlin")
    sale = CalendarEvent(name="sale", kind=EventKind.SALE, window=window, factor=DOUBLE)
    said = with_events(flat(30 * 60), int(window.start.timestamp()) - 3600, [sale]).band.expected
    assert int((said == 200.0).sum()) == hours * 60


factors = st.floats(0.0, 20.0)


@given(
    spans=st.lists(st.tuples(st.integers(-90, 90), st.integers(0, 90), factors, factors, factors), max_size=4),
    ratios=st.lists(st.floats(0.0, 20.0), max_size=3),
)
def test_bounds_stay_in_order_finite_and_not_below_nothing(
    spans: list[tuple[int, int, float, float, float]], ratios: list[float]
) -> None:
    events = []
    for start, length, *three in spans:
        low, middle, high = sorted(three)
        events.append(event(start, start + length, Factor(expected=middle, lower=low, upper=high)))
    band = flat()
    said = with_events(band, NOON_S, events, [past(r) for r in ratios]).band
    assert np.isfinite(said.upper).all()
    assert (said.lower >= 0).all()
    assert (said.lower <= said.expected + 1e-9).all()
    assert (said.expected <= said.upper + 1e-9).all()
    assert band.expected.tolist() == [100.0] * 60
