"""A calendar and a moment → which earlier days resemble today: by weekday, holidays, and days with events left out.

Kinds: working day, Saturday, Sunday; a holiday counts as a Sunday. Resemblance is asked of the day a forecast begins
on and of the day it ends on, so that Sunday night is compared with the nights before working days.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Self
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from leadtime.domain.calendar import Calendar
from leadtime.domain.time_window import from_epoch

BoolColumn = npt.NDArray[np.bool_]
DAY_S = 86_400
LEVEL_S = 7200  # before a path lies the level it starts from: an hour at most, and what it is smoothed with
SATURDAY, SUNDAY = 5, 6
WORKING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRules:
    """What of a calendar concerns days: ``holidays`` as ordinals, ``left_out`` windows [start_s, end_s) of events.

    Small, hashable and picklable: a model's parameter.
    """

    zone: str = "UTC"
    holidays: frozenset[int] = frozenset()
    left_out: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, calendar: Calendar) -> Self:
        """The rules of ``calendar``; a day touched by any of its events is no usual day."""
        windows = (event.window for event in calendar.events)
        return cls(
            zone=calendar.zone,
            holidays=frozenset(holiday.day.toordinal() for holiday in calendar.holidays),
            left_out=tuple(sorted((int(w.start.timestamp()), int(w.end.timestamp())) for w in windows)),
        )

    def weekday(self, day: date) -> int:
        """Monday 0 … Sunday 6; a holiday is a Sunday."""
        return SUNDAY if day.toordinal() in self.holidays else day.weekday()

    def kind(self, day: date) -> int:
        """WORKING, SATURDAY or SUNDAY."""
        weekday = self.weekday(day)
        return weekday if weekday in (SATURDAY, SUNDAY) else WORKING


@lru_cache(maxsize=4096)
def local_day(zone: str, epoch_s: int) -> date:
    """The date in ``zone`` at ``epoch_s``."""
    return from_epoch(epoch_s).astimezone(ZoneInfo(zone)).date()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resembling:
    """(days,) each, newest first: yesterday is element 0. ``usable`` is False for days with events."""

    usable: BoolColumn
    same_kind: BoolColumn  # usable, and of the same kind at the path's beginning and end
    same_weekday: BoolColumn  # usable, and of the same weekday at both


@lru_cache(maxsize=256)
def resembling(rules: DayRules, now_s: int, reach_s: int, days: int) -> Resembling:
    """Compare today (the local day at ``now_s``, and the one at ``now_s + reach_s``) with each of ``days`` before."""
    today, then = local_day(rules.zone, now_s), local_day(rules.zone, now_s + reach_s)
    before = [(today - timedelta(days=d), then - timedelta(days=d)) for d in range(1, days + 1)]
    weekday = [(rules.weekday(a), rules.weekday(b)) == (rules.weekday(today), rules.weekday(then)) for a, b in before]
    kind = [(rules.kind(a), rules.kind(b)) == (rules.kind(today), rules.kind(then)) for a, b in before]
    usable = np.array([not _touched(rules, now_s - d * DAY_S, reach_s) for d in range(1, days + 1)], dtype=np.bool_)
    return Resembling(
        usable=usable,
        same_kind=usable & np.array(kind, dtype=np.bool_),
        same_weekday=usable & np.array(weekday, dtype=np.bool_),
    )


def _touched(rules: DayRules, at_s: int, reach_s: int) -> bool:
    """True where an event lies in ``LEVEL_S`` before ``at_s`` or within the path from it: such a day is not usual."""
    return any(start < at_s + reach_s and end > at_s - LEVEL_S for start, end in rules.left_out)
