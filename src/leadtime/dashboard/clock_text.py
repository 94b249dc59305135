"""Instants and spans → the few text forms the page uses. All UTC; no clock is read here."""

from datetime import UTC, datetime


def epoch(text: str) -> int:
    """RFC 3339 → epoch seconds. Raises ValueError for text that is no instant, or has no zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"reading time {text!r}: it has no zone; write 2026-03-02T06:05:00Z")
    return int(at.timestamp())


def instant(at_s: float) -> str:
    """Epoch seconds → ``2026-03-02T06:05:00Z``."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at_s: float) -> str:
    """Epoch seconds → ``06:05`` (``06:05:15`` when the seconds count)."""
    at = datetime.fromtimestamp(at_s, UTC)
    return at.strftime("%H:%M:%S") if at.second else at.strftime("%H:%M")


def day_clock(at_s: float) -> str:
    """Epoch seconds → ``2 Mar 06:05``."""
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at.day} {at:%b} {at:%H:%M}"


def day(at_s: float) -> str:
    """Epoch seconds → ``Monday 2 March 2026``."""
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at:%A} {at.day} {at:%B %Y}"


def duration(seconds: float) -> str:
    """Seconds → ``45 s``, ``12 min``, ``1 h 5 min``, ``3 d 2 h``; a minus sign stands for earlier."""
    sign, s = ("−" if seconds < 0 else ""), abs(round(seconds))
    if s < 60:
        return f"{sign}{s} s"
    minutes = round(s / 60)
    if minutes < 60:
        return f"{sign}{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{sign}{hours} h" + (f" {minutes} min" if minutes else "")
    hours = round(s / 3600)
    return f"{sign}{hours // 24} d {hours % 24} h"


def pods(count: int, more: str = "") -> str:
    """``1 pod``, ``7 pods``; with ``more``: ``7 more pods``."""
    return f"{count} {more}pod{'' if count == 1 else 's'}"


def number(value: float | None, digits: int = 0) -> str:
    """A number for people: thin groups of three, a real minus; ``–`` for None."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}".replace(",", "\u202f").replace("-", "−")


def percent(ratio: float | None, digits: int = 1) -> str:
    """0.0312 → ``3.1 %``; ``–`` for None; a share above 0 never reads as 0, one below 1 never as all."""
    if ratio is None:
        return "–"
    least = 10.0 ** -(digits + 2)
    if 0 < ratio < least / 2:
        return f"<\u202f{number(least * 100, digits)} %"
    if 1 - least / 2 <= ratio < 1:
        return f">\u202f{number((1 - least) * 100, digits)} %"
    return f"{number(ratio * 100, digits)} %"
