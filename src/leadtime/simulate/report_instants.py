"""Epoch seconds → the text of an instant in a report."""

from leadtime.domain.time_window import from_epoch, rfc3339


def instant(at_s: int) -> str:
    """RFC 3339 in UTC, e.g. ``2026-03-02T06:05:00Z``."""
    return rfc3339(from_epoch(at_s))


def instant_or_none(at_s: int | None) -> str | None:
    """The same, None as None."""
    return None if at_s is None else instant(at_s)
