"""A calendar file: events and days as instants and dates; what is wrong is named with its entry and a cure."""

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from leadtime.domain.calendar import Calendar, EventKind, Factor
from leadtime.domain.errors import BadCalendar, DependencyFailed
from leadtime.sources.calendar_file import read_calendar

YEARS = (2025, 2026)


def read(tmp_path: Path, text: str, years: tuple[int, ...] = YEARS) -> Calendar:
    path = tmp_path / "calendar.yaml"
    path.write_text(text, encoding="utf-8")
    return read_calendar(path, years)


GOOD = """
time_zone: Europe/Berlin
events:
  - {name: black friday, kind: sale, start: 2026-11-27, factor: {expected: 3, lower: 2, upper: 5}}
  - name: v2
    kind: launch
    start: 2026-03-10T09:00
    end: 2026-03-10T12:30
    factor: 2
    workloads: [serving/chat]
  - {name: load, kind: test, start: "2026-02-01T10:00:00+00:00", end: "2026-02-01T11:00:00Z"}
  - {name: quiet, kind: freeze, start: 2026-12-24, end: 2026-12-26, factor: {lower: 0.5, upper: 1.0}}
days:
  - 2026-12-24
  - {date: 2026-12-31, name: new year's eve}
"""


def test_events_become_instants_by_start_and_days_dates(tmp_path: Path) -> None:
    calendar = read(tmp_path, GOOD)
    assert [event.name for event in calendar.events] == ["load", "v2", "black friday", "quiet"]
    load, v2, friday, quiet = calendar.events
    assert (load.window.start, load.window.end) == (
        datetime(2026, 2, 1, 10, tzinfo=UTC), datetime(2026, 2, 1, 11, tzinfo=UTC)
    )  # fmt: skip
    assert load.factor is None
    assert v2.window.start == datetime(2026, 3, 10, 8, tzinfo=UTC)
    assert (v2.factor, v2.kind) == (Factor(expected=2.0, lower=2.0, upper=2.0), EventKind.LAUNCH)
    assert v2.concerns("serving/chat")
    assert not v2.concerns("serving/other")
    assert friday.window.seconds == 86_400
    assert friday.concerns("anything/else")
    assert quiet.window.seconds == 3 * 86_400  # an end date is included
    assert quiet.factor == Factor(expected=None, lower=0.5, upper=1.0)
    assert [holiday.day for holiday in calendar.holidays] == [date(2026, 12, 24), date(2026, 12, 31)]
    assert [event.name for event in calendar.of("serving/other").events] == ["load", "black friday", "quiet"]


def test_an_empty_file_is_an_empty_calendar(tmp_path: Path) -> None:
    assert read(tmp_path, "") == Calendar()


def test_public_holidays_of_the_country_and_subdivision_for_the_years_asked(tmp_path: Path) -> None:
    pytest.importorskip("holidays", reason="the extra 'calendar' is not installed")
    whole = read(tmp_path, "holidays: {country: DE}").holidays
    bavaria = read(tmp_path, "holidays: {country: DE, subdivision: BY}").holidays
    assert {h.day.year for h in whole} == set(YEARS)
    assert date(2026, 10, 3) in {h.day for h in whole}
    assert date(2026, 1, 6) in {h.day for h in bavaria} - {h.day for h in whole}


def test_without_the_package_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(DependencyFailed, match="leadtime\\[calendar\\], or list the days") as told:
        read(tmp_path, "holidays: {country: DE}")
    assert told.value.slug == "calendar-extra"


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("2026-10-25T02:30", "2026-10-25T02:30", 1.0, id="a time that happens twice: first to second"),
        pytest.param("2026-03-29T01:00", "2026-03-29T04:00", 2.0, id="over the change forward"),
        pytest.param("2026-03-29", "2026-03-29", 23.0, id="a day of 23 hours"),
        pytest.param("2026-10-25", "2026-10-25", 25.0, id="a day of 25 hours"),
    ],
)
def test_times_over_a_change_of_the_clock(tmp_path: Path, start: str, end: str, hours: float) -> None:
    text = f"time_zone: Europe/Berlin\nevents: [{{name: x, kind: sale, start: '{start}', end: '{end}'}}]"
    text = text.replace("'2026-03-29'", "2026-03-29").replace("'2026-10-25'", "2026-10-25")
    assert read(tmp_path, text).events[0].window.seconds == hours * 3600


def event(rest: str) -> str:
    return "time_zone: Europe/Berlin\nevents: [{name: v2, kind: launch, " + rest + "}]"


HOURS = "start: 2026-03-10T09:00, end: 2026-03-10T12:00"
TWICE = event(HOURS).replace("]", f", {{name: v2, kind: sale, {HOURS}}}]")


@pytest.mark.parametrize(
    ("text", "slug", "told"),
    [
        ("event: []", "calendar-field", "'event' is not known"),
        ("events: {name: x}", "calendar-field", "begin each entry with a dash"),
        ("time_zone: Mars/Olympus", "calendar-time-zone", "Europe/Berlin"),
        ("time_zone: 5", "calendar-time-zone", "5 is no time zone"),
        ("- a", "calendar-not-yaml", "holds no fields"),
        ("events: [", "calendar-not-yaml", "mend the YAML"),
        ("days: [2026-02-30]", "calendar-not-yaml", "mend the YAML"),
        ("days: [tomorrow]", "calendar-day", "day 1: it is 'tomorrow'"),
        ("events: [{kind: sale}]", "calendar-event", "event 1: it has no name"),
        ("events: [{name: x, kind: party}]", "calendar-event", "write one of freeze, launch, sale, test"),
        (event(HOURS + ", size: 3"), "calendar-event", "'size' is not known"),
        (event("start: 2026-03-10T12:00, end: 2026-03-10T09:00"), "calendar-event", "not after it starts"),
        (event("start: soon"), "calendar-time", "event 'v2', start: it is no time"),
        (event("start: 2026-03-29T02:30"), "calendar-time", "its clock skips it"),
        (event(HOURS + ", factor: big"), "calendar-factor", "write {expected: 2.0"),
        (event(HOURS + ", factor: -1"), "calendar-factor", "does not hold"),
        (event(HOURS + ", factor: {expected: 2, lower: 3}"), "calendar-factor", "does not hold"),
        (event(HOURS + ", factor: {upper: 3}"), "calendar-factor", "factor is"),
        (event(HOURS + ", factor: .nan"), "calendar-factor", "does not hold"),
        (event(HOURS + ", workloads: chat"), "calendar-event", "[serving/chat]"),
        (TWICE, "calendar-event", "two of this name overlap"),
        ("holidays: DE", "calendar-holidays", "write {country: DE}"),
        ("holidays: {country: XX}", "calendar-holidays", "XX"),
        ("holidays: {country: DE, subdivision: ZZ}", "calendar-holidays", "ZZ"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_cure(tmp_path: Path, text: str, slug: str, told: str) -> None:
    with pytest.raises(BadCalendar) as raised:
        read(tmp_path, text)
    assert raised.value.slug == slug
    assert told in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCalendar, match="No such file"):
        read_calendar(tmp_path / "absent.yaml", YEARS)
    with pytest.raises(BadCalendar, match="readable YAML"):
        read_calendar(tmp_path, YEARS)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadCalendar, match="UTF-8"):
        read_calendar(tmp_path / "binary.yaml", YEARS)
    (tmp_path / "large.yaml").write_text("#" * 1_000_001)
    with pytest.raises(BadCalendar, match="1,000,000 bytes"):
        read_calendar(tmp_path / "large.yaml", YEARS)
