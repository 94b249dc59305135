"""How a demand file is to be read: the flags of ``leadtime replay`` as one frozen value. Imports nothing heavy.

Kept apart from the reader so that ``--help`` does not load numpy.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)  # where "0 seconds" lies when a file counts from zero and says no more
EPOCH_FROM_S = 1e9  # numbers from here on (September 2001) are seconds since 1970, not seconds from a start


class TimeUnit(StrEnum):
    """Unit of a time column of numbers."""

    S = "s"
    MS = "ms"


class Aggregate(StrEnum):
    """How the groups of one instant become one value."""

    SUM = "sum"
    MEAN = "mean"


class OnDuplicate(StrEnum):
    """What happens to rows that carry the same time."""

    ERROR = "error"
    FIRST = "first"
    SUM = "sum"
    MEAN = "mean"


class ValueUnit(StrEnum):
    """Unit of the value column: requests per second, or requests counted per minute."""

    RPS = "rps"
    PER_MINUTE = "per_minute"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandFileOptions:
    """Which columns, and how to read them. ``where`` keeps rows whose column equals the text, all pairs at once.

    ``time_unit`` None: the times are text (RFC 3339 or ISO 8601). ``start`` is the instant of number 0.
    ``time_zone`` is for text without an offset. ``aggregate`` None with ``group_by`` set means sum.
    """

    time_column: str
    value_column: str
    time_unit: TimeUnit | None = None
    start: datetime | None = None
    time_zone: str | None = None
    group_by: str | None = None
    aggregate: Aggregate | None = None
    on_duplicate: OnDuplicate = OnDuplicate.ERROR
    value_unit: ValueUnit = ValueUnit.RPS
    where: tuple[tuple[str, str], ...] = ()
