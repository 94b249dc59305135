"""Which earlier days resemble today: weekdays, holidays, days with events, midnights of a zone."""

from datetime import UTC, date, datetime, timedelta

import numpy as np

from leadtime.domain.calendar import Calendar, CalendarEvent, EventKind, Holiday, day_window
from leadtime.domain.time_window import TimeWindow
from leadtime.forecast.days import DayRules, local_day, resembling

HOUR_S = 3600


def at_s(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def days_ago(column: np.ndarray) -> list[int]:
    """1 is yesterday."""
    return [int(d) + 1 for d in np.flatnonzero(column)]


def test_a_monday_resembles_mondays_and_in_kind_every_working_day() -> None:
    alike = resembling(DayRules(), at_s("2026-03-16T10:00"), HOUR_S, 14)  # a Monday
    assert days_ago(alike.same_weekday) == [7, 14]
    assert days_ago(alike.same_kind) == [3, 4, 5, 6, 7, 10, 11, 12, 13, 14]


def test_a_holiday_resembles_sundays_and_earlier_holidays_and_no_weekday_resembles_it() -> None:
    rules = DayRules(holidays=frozenset(d.toordinal() for d in (date(2026, 3, 16), date(2026, 3, 11))))
    assert days_ago(resembling(rules, at_s("2026-03-16T10:00"), HOUR_S, 14).same_kind) == [1, 5, 8]
    tuesday_after = resembling(rules, at_s("2026-03-17T10:00"), HOUR_S, 14)
    assert days_ago(tuesday_after.same_kind) == [4, 5, 7, 8, 11, 12, 13, 14]


def test_a_path_over_midnight_compares_the_night_before_the_same_kind_of_day() -> None:
    sunday_night = resembling(DayRules(), at_s("2026-03-15T23:30"), HOUR_S, 14)
    assert days_ago(sunday_night.same_kind) == [7, 14]
    wednesday_night = resembling(DayRules(), at_s("2026-03-18T23:30"), HOUR_S, 7)
    assert days_ago(wednesday_night.same_kind) == [1, 2, 6, 7]  # not Sunday night, not Friday night


def test_a_day_with_a_declared_event_is_left_out_also_where_its_level_was_measured() -> None:
    event = CalendarEvent(
        name="launch", kind=EventKind.LAUNCH,
        window=TimeWindow(start=datetime(2026, 3, 14, 12, tzinfo=UTC), end=datetime(2026, 3, 14, 13, tzinfo=UTC)),
    )  # fmt: skip
    rules = DayRules.of(Calendar(events=(event,)))
    alike = resembling(rules, at_s("2026-03-16T11:30"), HOUR_S, 4)
    assert days_ago(alike.usable) == [1, 3, 4]  # the path of two days ago runs into it
    assert days_ago(resembling(rules, at_s("2026-03-16T14:30"), HOUR_S, 4).usable) == [1, 3, 4]  # its level does
    assert days_ago(resembling(rules, at_s("2026-03-16T15:00"), HOUR_S, 4).usable) == [1, 2, 3, 4]


def test_the_day_is_the_one_of_the_zone() -> None:
    assert local_day("Asia/Tokyo", at_s("2026-03-15T15:00")) == date(2026, 3, 16)
    assert local_day("America/New_York", at_s("2026-03-15T03:00")) == date(2026, 3, 14)


def test_rules_of_a_calendar_keep_its_zone_holidays_and_windows() -> None:
    calendar = Calendar(zone="Europe/Berlin", holidays=(Holiday(day=date(2026, 5, 1), name="Labour Day"),))
    rules = DayRules.of(calendar)
    assert rules.zone == "Europe/Berlin"
    assert rules.weekday(date(2026, 5, 1)) == 6
    assert rules.weekday(date(2026, 4, 30)) == 3


def test_days_with_a_change_of_the_clock_have_23_and_25_hours() -> None:
    assert day_window(date(2026, 3, 29), "Europe/Berlin").seconds == 23 * HOUR_S
    assert day_window(date(2026, 10, 25), "Europe/Berlin").seconds == 25 * HOUR_S
    skipped_midnight = day_window(date(2026, 4, 24), "Africa/Cairo")  # the clock goes from 00:00 to 01:00
    assert skipped_midnight.seconds == 23 * HOUR_S
    assert skipped_midnight.start == day_window(date(2026, 4, 23), "Africa/Cairo").end
    assert timedelta(seconds=day_window(date(2026, 4, 23), "Africa/Cairo").seconds) == timedelta(days=1)
