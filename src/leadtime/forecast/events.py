"""A path of demand and the events an operator declared → the path with their factors in it, and a sentence for each.

Minute i of a path covers [start + i·60 s, +60 s); an event that covers part of a minute counts for that part, because a
minute's value is a mean. The rules:

- Inside [start, end) expected is multiplied by the expected factor, lower and upper by the factor's bounds.
- Events that overlap multiply: what a launch and a sale bring are taken as independent.
- A path that began inside an event already knows it: a model's level was measured there. So every minute is divided by
  the factor that was in force while the level was measured; after the event demand comes down by it.
- Size unknown (no expected factor): expected stays, the bounds are widened by the factor's bounds, 1 included.
- No factor at all: the bounds of what earlier events of the same name, else of the same kind, were measured to bring;
  where there are none nothing is changed, and the sentence says so.
- A measured factor stands beside the declared one. It never replaces what the operator declared, but the bounds are
  widened to hold it; and while an event runs, what it is measured to bring is what is taken back at its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadtime.domain.calendar import CalendarEvent, EventKind
from leadtime.domain.time_window import TimeWindow, rfc3339
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn

HEARD_MIN = 5  # the minutes a model's level is taken to be measured over
FEWEST_MINUTES = 10  # of an event, before what was measured in it counts
MOST_FACTOR = 1000.0  # a measured factor beyond it says that usual demand was nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFactor:
    """What an event brought: demand in it ÷ usual demand, over ``minutes`` in which both are known."""

    name: str
    kind: EventKind
    window: TimeWindow
    ratio: float
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithEvents:
    """The path with events in it, and one sentence for each event that touches it, in order of start."""

    band: Band
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """The factors one event is taken to have."""

    expected: float
    lower: float
    upper: float


def measured(event: CalendarEvent, first_s: int, actual: FloatColumn, usual: FloatColumn) -> MeasuredFactor | None:
    """What ``event`` brought by the minutes known so far; None with fewer than ``FEWEST_MINUTES`` or no usual demand.

    ``actual`` and ``usual`` (n,): demand of [first_s + 60·i, +60), NaN where unknown; ``usual`` is what would have come
    without the event, for example a path issued before it. Only minutes wholly inside the event count.
    """
    at_s = first_s + MINUTE_S * np.arange(len(actual))
    start_s, end_s = event.window.start.timestamp(), event.window.end.timestamp()
    inside = (at_s >= start_s) & (at_s + MINUTE_S <= end_s) & ~np.isnan(actual) & ~np.isnan(usual)
    minutes, base = int(inside.sum()), float(usual[inside].sum())
    if minutes < FEWEST_MINUTES or base <= 0.0:
        return None
    ratio = float(actual[inside].sum()) / base
    if ratio > MOST_FACTOR:
        return None
    return MeasuredFactor(name=event.name, kind=event.kind, window=event.window, ratio=ratio, minutes=minutes)


def with_events(
    band: Band, start_s: int, events: Sequence[CalendarEvent], learned: Sequence[MeasuredFactor] = (),
    *, level_measured: bool = True,
) -> WithEvents:  # fmt: skip
    """Put ``events`` into a path whose first minute is [start_s, start_s + 60). Nothing given is changed.

    ``level_measured``: the path starts from what demand is now (every model but seasonal naive and Prophet); False for
    a path made of other days alone, which knows no event of today.
    """
    steps = len(band.expected)
    until_s = start_s + steps * MINUTE_S
    expected, lower, upper = np.ones(steps), np.ones(steps), np.ones(steps)
    sentences = []
    for event in sorted(events, key=lambda one: (one.window.start, one.name)):
        if event.window.end.timestamp() <= start_s - HEARD_MIN * MINUTE_S or event.window.start.timestamp() >= until_s:
            continue
        size = _size(event, learned)
        sentences.append(_sentence(event, size, learned))
        if size is None:
            continue
        share = _share(event, start_s, steps)
        heard = float(_share(event, start_s - HEARD_MIN * MINUTE_S, HEARD_MIN).mean()) if level_measured else 0.0
        known = _running(event, learned) or size.expected
        base = 1.0 + heard * (known - 1.0)
        expected *= _moved(share, size.expected, base, heard, known)
        lower *= _moved(share, size.lower, base, heard, known)
        upper *= _moved(share, size.upper, base, heard, known)
    return WithEvents(
        band=Band(
            expected=np.maximum(0.0, band.expected * expected),
            lower=np.maximum(0.0, band.lower * np.minimum(lower, expected)),
            upper=np.maximum(0.0, band.upper * np.maximum(upper, expected)),
        ),
        sentences=tuple(sentences),
    )


def _moved(share: FloatColumn, factor: float, base: float, heard: float, known: float) -> FloatColumn:
    """What each minute is multiplied by. Inside a running event its factor is what it is measured to be, not a guess.

    ``heard`` is the share of the level's minutes that lay in the event: as far as the event was heard, what it brings
    is ``known``; as far as not, ``factor``.
    """
    inside = heard * known + (1.0 - heard) * factor
    return np.asarray((1.0 + share * (inside - 1.0)) / max(base, 1e-3))


def _share(event: CalendarEvent, start_s: int, steps: int) -> FloatColumn:
    """(steps,) share of each minute from ``start_s`` on that lies in the event."""
    at_s = start_s + MINUTE_S * np.arange(steps, dtype=np.float64)
    begun = np.maximum(at_s, event.window.start.timestamp())
    ended = np.minimum(at_s + MINUTE_S, event.window.end.timestamp())
    return np.asarray(np.maximum(0.0, ended - begun) / MINUTE_S)


def _size(event: CalendarEvent, learned: Sequence[MeasuredFactor]) -> _Size | None:
    """The factors of ``event``, bounds wide enough for those of its like; None where its size is not known at all."""
    like = [one.ratio for one in _like(event, learned)]
    if event.factor is None:
        return _Size(expected=1.0, lower=min(1.0, *like), upper=max(1.0, *like)) if like else None
    bounds = (event.factor.lower, event.factor.upper, *like)
    expected = 1.0 if event.factor.expected is None else event.factor.expected
    if event.factor.expected is None:
        bounds = (*bounds, 1.0)
    return _Size(expected=expected, lower=min(bounds), upper=max(bounds))


def _like(event: CalendarEvent, learned: Sequence[MeasuredFactor]) -> list[MeasuredFactor]:
    """Earlier measured events of the same name; for one without a factor, else those of the same kind."""
    others = [one for one in learned if one.window.end <= event.window.start]
    named = [one for one in others if one.name == event.name]
    if named or event.factor is not None:
        return named
    return [one for one in others if one.kind is event.kind]


def _running(event: CalendarEvent, learned: Sequence[MeasuredFactor]) -> float | None:
    """What this very event was measured to bring so far."""
    own = [one.ratio for one in learned if one.name == event.name and one.window == event.window]
    return own[-1] if own else None


def _sentence(event: CalendarEvent, size: _Size | None, learned: Sequence[MeasuredFactor]) -> str:
    """What is declared, what was measured, what is taken."""
    window = f"{rfc3339(event.window.start)} to {rfc3339(event.window.end)}"
    told = f"{event.kind.value} {event.name!r} from {window}"
    like = _like(event, learned)
    was = ", ".join(f"× {one.ratio:.2f} on {one.window.start:%Y-%m-%d}" for one in like[-3:])
    now = _running(event, learned)
    if event.factor is None:
        told += " is declared without a factor"
    elif event.factor.expected is None:
        told += f" is declared with bounds only, × {event.factor.lower:.2f} to {event.factor.upper:.2f}"
    else:
        declared = event.factor
        told += f" is declared × {declared.expected:.2f} ({declared.lower:.2f} to {declared.upper:.2f})"
    if was:
        told += f"; measured {was}"
    if now is not None:
        told += f"; measured × {now:.2f} so far"
    if size is None:
        return f"{told}; none of its kind was measured: the forecast is unchanged"
    return f"{told}; taken × {size.expected:.2f} ({size.lower:.2f} to {size.upper:.2f})"
