"""What an operator knows beforehand: events with the factor they put on demand, and days on which nobody works.

An event says by how much demand is multiplied inside [start, end), with bounds; or only bounds; or nothing but that it
happens. Days are dates of a named zone: a day lasts from midnight to midnight there, so 23 or 25 hours twice a year.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from leadtime.domain.time_window import TimeWindow


class EventKind(StrEnum):
    """What kind of event; a new one learns its bounds from measured ones of its kind."""

    LAUNCH = "launch"
    SALE = "sale"
    TEST = "test"
    FREEZE = "freeze"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Demand with the event ÷ demand without it: 0 ≤ lower ≤ expected ≤ upper; ``expected`` None: size unknown."""

    expected: float | None
    lower: float
    upper: float

    def __post_init__(self) -> None:
        low, high = self.lower, self.upper
        middle = low if self.expected is None else self.expected
        if not 0.0 <= low <= middle <= high < float("inf"):
            raise ValueError(f"building a Factor: 0 ≤ lower ≤ expected ≤ upper does not hold: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEvent:
    """``window`` is half-open. ``workloads``: ``namespace/name`` keys it concerns; empty means every workload."""

    name: str
    kind: EventKind
    window: TimeWindow
    factor: Factor | None = None
    workloads: tuple[str, ...] = ()

    def concerns(self, workload: str) -> bool:
        """True where the event is about ``workload`` (``namespace/name``)."""
        return not self.workloads or workload in self.workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Holiday:
    """A day on which people live as on a Sunday."""

    day: date
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Events by start, holidays by day, and the zone whose midnights bound a day."""

    zone: str = "UTC"
    events: tuple[CalendarEvent, ...] = ()
    holidays: tuple[Holiday, ...] = ()

    def of(self, workload: str) -> "Calendar":
        """The calendar with only the events that concern ``workload``."""
        mine = tuple(event for event in self.events if event.concerns(workload))
        return Calendar(zone=self.zone, events=mine, holidays=self.holidays)


def day_window(day: date, zone: str) -> TimeWindow:
    """[midnight, next midnight) of ``day`` in ``zone``: 23 h or 25 h where the clock is changed on it.

    >>> day_window(date(2026, 3, 29), "Europe/Berlin").seconds / 3600
    23.0
    """
    return TimeWindow(start=_midnight(day, zone), end=_midnight(day + timedelta(days=1), zone))


def _midnight(day: date, zone: str) -> datetime:
    """The first instant of ``day``; where the clock skips midnight, the instant of the skip."""
    local = datetime.combine(day, time(), ZoneInfo(zone))
    return local.astimezone(UTC)
