"""Half-open time windows [start, end), UTC; and the one text form of an instant (RFC 3339, ``Z``)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


def rfc3339(at: datetime) -> str:
    """Write an aware instant as RFC 3339 UTC, e.g. ``2026-03-02T06:05:00Z``; microseconds only if there are any.

    Raises ValueError for a naive instant: a time without a zone is not an instant.
    """
    if at.tzinfo is None:
        raise ValueError(f"writing {at!r}: it has no time zone; attach one")
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_epoch(epoch_s: float) -> datetime:
    """The aware UTC instant ``epoch_s`` seconds after 1970-01-01T00:00:00Z."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=epoch_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """[start, end): ``start`` belongs to it, ``end`` does not."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("building a TimeWindow: start and end need a time zone")
        if self.end < self.start:
            raise ValueError(f"building a TimeWindow: end {self.end} lies before start {self.start}")

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.start).total_seconds()

    def contains(self, at: datetime) -> bool:
        """True for start ≤ at < end."""
        return self.start <= at < self.end
