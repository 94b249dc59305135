"""A calendar file (YAML) → Calendar: declared events and days off, as plain instants and dates.

Times without an offset are of the file's ``time_zone``. Where the clock goes back and a time happens twice, a start is
the first and an end the second of the two; where it goes forward, a time that is skipped is an error. A date alone is
the whole day there (23 or 25 hours when the clock changes); an end date is included. Public holidays come from the
package ``holidays`` (the extra ``calendar``) for the years asked for; days can also be listed.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from leadtime.domain.calendar import Calendar, CalendarEvent, EventKind, Factor, Holiday, day_window
from leadtime.domain.errors import BadCalendar, DependencyFailed
from leadtime.domain.time_window import TimeWindow

MAX_BYTES = 1_000_000
EVENT_FIELDS = {"name", "kind", "start", "end", "factor", "workloads"}
FIELDS = {"time_zone", "events", "holidays", "days"}


def read_calendar(path: Path, years: Iterable[int]) -> Calendar:
    """Read and check ``path``; ``years``: those for which holidays are wanted, of the history and of what is ahead.

    Raises BadCalendar naming the entry and the cure; DependencyFailed where holidays are asked for by country and the
    package is not installed.
    """
    content = _content(path)
    unknown = sorted(set(content) - FIELDS)
    if unknown:
        raise _bad(
            "calendar-field", path, "file", f"field {unknown[0]!r} is not known", f"write one of {_list(FIELDS)}"
        )
    zone = _zone(content.get("time_zone", "UTC"), path)
    events = tuple(_event(entry, i, zone, path) for i, entry in enumerate(_entries(content, "events", path), start=1))
    _refuse_twins(events, path)
    days = [_day(entry, i, path) for i, entry in enumerate(_entries(content, "days", path), start=1)]
    public = _public(content.get("holidays"), tuple(years), path)
    merged = {holiday.day: holiday for holiday in (*public, *days)}
    return Calendar(
        zone=zone,
        events=tuple(sorted(events, key=lambda event: (event.window.start, event.name))),
        holidays=tuple(merged[day] for day in sorted(merged)),
    )


def _bad(slug: str, path: Path, where: str, wrong: str, cure: str) -> BadCalendar:
    return BadCalendar(slug, f"reading calendar {path}, {where}", wrong, cure)


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _content(path: Path) -> Mapping[str, Any]:
    import yaml

    doing = f"reading calendar {path}"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadCalendar("calendar-too-large", doing, f"it is over {MAX_BYTES:,} bytes", "name the calendar file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise BadCalendar("calendar-unreadable", doing, reason, "name a readable YAML file") from None
    except UnicodeDecodeError:
        raise BadCalendar("calendar-unreadable", doing, "it is not UTF-8 text", "save it as UTF-8") from None
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-02-30
        raise BadCalendar("calendar-not-yaml", doing, " ".join(str(error).split()), "mend the YAML") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise BadCalendar("calendar-not-yaml", doing, "it holds no fields", f"begin with one of {_list(FIELDS)}")
    return content


def _entries(content: Mapping[str, Any], field: str, path: Path) -> list[Any]:
    entries = content.get(field)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise _bad("calendar-field", path, field, "it is not a list", "begin each entry with a dash")
    return entries


def _zone(name: Any, path: Path) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError, AttributeError):
        cure = "write an IANA name such as Europe/Berlin or UTC"
        raise _bad("calendar-time-zone", path, "time_zone", f"{name!r} is no time zone known here", cure) from None
    return str(name)


def _event(entry: Any, number: int, zone: str, path: Path) -> CalendarEvent:
    where = f"event {number}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
        raise _bad("calendar-event", path, where, "it has no name", "write name, kind, start and end")
    where = f"event {entry['name']!r}"
    unknown = sorted(str(field) for field in set(entry) - EVENT_FIELDS)
    if unknown:
        raise _bad("calendar-event", path, where, f"{unknown[0]!r} is not known", f"write {_list(EVENT_FIELDS)}")
    kinds = [kind.value for kind in EventKind]
    if entry.get("kind") not in kinds:
        raise _bad("calendar-event", path, where, f"kind is {entry.get('kind')!r}", f"write one of {_list(kinds)}")
    return CalendarEvent(
        name=entry["name"].strip(),
        kind=EventKind(entry["kind"]),
        window=_window(entry, zone, path, where),
        factor=_factor(entry.get("factor"), path, where),
        workloads=_workloads(entry.get("workloads"), path, where),
    )


def _window(entry: Mapping[str, Any], zone: str, path: Path, where: str) -> TimeWindow:
    start, end = entry.get("start"), entry.get("end", entry.get("start"))
    begun = _edge(start, zone, path, f"{where}, start", end=False)
    ended = _edge(end, zone, path, f"{where}, end", end=True)
    if ended <= begun:
        wrong = f"it ends ({ended:%Y-%m-%d %H:%M}Z) not after it starts ({begun:%Y-%m-%d %H:%M}Z)"
        raise _bad("calendar-event", path, where, wrong, "the end must lie after the start")
    return TimeWindow(start=begun, end=ended)


def _edge(value: Any, zone: str, path: Path, where: str, *, end: bool) -> datetime:
    """One edge of an event as an instant; a date is its day's beginning, or for an end the next day's."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        day = day_window(value, zone)
        return day.end if end else day.start
    if not isinstance(value, datetime):
        cure = "write a time such as 2026-11-27T09:00 or a date such as 2026-11-27"
        raise _bad("calendar-time", path, where, "it is no time", cure)
    if value.tzinfo is not None:
        return value.astimezone(UTC)
    local = value.replace(tzinfo=ZoneInfo(zone), fold=int(end))
    instant = local.astimezone(UTC)
    if instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != value:
        wrong = f"the time {value.isoformat()} does not exist in {zone}: its clock skips it"
        raise _bad("calendar-time", path, where, wrong, "write a time before or after the change of the clock")
    return instant


def _factor(value: Any, path: Path, where: str) -> Factor | None:
    """``factor: 2``, or ``{expected, lower, upper}`` of which expected or the bounds may be left out."""
    if value is None:
        return None
    parts = value if isinstance(value, Mapping) else {"expected": value}
    known = {"expected", "lower", "upper"}
    numbers: dict[Any, Any] = {name: parts[name] for name in parts if parts[name] is not None}
    good = set(parts) <= known and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers.values())
    cure = "write {expected: 2.0, lower: 1.5, upper: 3.0}, or the bounds alone where the size is not known"
    if not good or not numbers or ("expected" not in numbers and len(numbers) < 2):
        raise _bad("calendar-factor", path, where, f"factor is {value!r}", cure)
    expected: Any = numbers.get("expected")
    try:
        return Factor(
            expected=None if expected is None else float(expected),
            lower=float(numbers.get("lower", expected)),
            upper=float(numbers.get("upper", expected)),
        )
    except ValueError:
        wrong = f"factor is {value!r}: 0 ≤ lower ≤ expected ≤ upper does not hold"
        raise _bad("calendar-factor", path, where, wrong, cure) from None


def _workloads(value: Any, path: Path, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) and one.count("/") == 1 for one in value):
        cure = "write a list such as [serving/chat], or leave it out for all"
        raise _bad("calendar-event", path, where, f"workloads is {value!r}", cure)
    return tuple(value)


def _refuse_twins(events: tuple[CalendarEvent, ...], path: Path) -> None:
    """Two entries of one name that overlap and share a workload would multiply: almost surely one was written twice."""
    for i, one in enumerate(events):
        for other in events[:i]:
            overlap = one.window.start < other.window.end and other.window.start < one.window.end
            shared = not one.workloads or not other.workloads or set(one.workloads) & set(other.workloads)
            if one.name == other.name and overlap and shared:
                cure = "give them different names if both are meant: factors of events that overlap multiply"
                raise _bad("calendar-event", path, f"event {one.name!r}", "two of this name overlap", cure)


def _day(entry: Any, number: int, path: Path) -> Holiday:
    where = f"day {number}"
    parts = entry if isinstance(entry, Mapping) else {"date": entry}
    day, name = parts.get("date"), parts.get("name", "declared")
    if (
        not isinstance(day, date)
        or isinstance(day, datetime)
        or not isinstance(name, str)
        or set(parts) - {"date", "name"}
    ):
        raise _bad("calendar-day", path, where, f"it is {entry!r}", "write a date such as 2026-12-24, or {date, name}")
    return Holiday(day=day, name=name)


def _public(value: Any, years: tuple[int, ...], path: Path) -> list[Holiday]:
    """Public holidays of ``{country: DE, subdivision: BY}`` in ``years``."""
    if value is None:
        return []
    where, cure = "holidays", "write {country: DE} or {country: DE, subdivision: BY}, codes as of ISO 3166"
    if not isinstance(value, Mapping) or not isinstance(value.get("country"), str) or set(value) - {
        "country", "subdivision",
    }:  # fmt: skip
        raise _bad("calendar-holidays", path, where, f"it is {value!r}", cure)
    try:
        from holidays import country_holidays
    except ImportError:
        wrong = "public holidays are asked for by country, and the package holidays is not installed"
        raise DependencyFailed(
            "calendar-extra", f"reading calendar {path}", wrong, "install leadtime[calendar], or list the days"
        ) from None
    subdivision = value.get("subdivision")
    try:
        found = country_holidays(value["country"], subdiv=subdivision, years=sorted(set(years)), language="en_US")
    except NotImplementedError as error:
        raise _bad("calendar-holidays", path, where, str(error), cure) from None
    return [Holiday(day=day, name=str(name)) for day, name in sorted(found.items())]
