"""Measured values over time, and the absence of them. A gap is ``None``; 0 is a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Unit(StrEnum):
    """Units of measured series. Demand is in one of the first three; replica counts are never demand."""

    REQUESTS_PER_S = "requests/s"
    TOKENS_PER_S = "tokens/s"
    GPUS = "GPUs"
    CORES = "cores"
    BYTES = "bytes"
    SECONDS = "s"
    RATIO = "ratio"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """No value, and why. ``since`` is the first instant without one (None: never had one)."""

    source: str
    reason: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Start-stamped buckets: value i covers [start + i·step, start + (i+1)·step).

    Visible only from the bucket's end plus ``lag_s`` on: a reader at ``as_of`` gets no bucket whose end + lag_s lies
    after ``as_of``. Values are means over the bucket in ``unit``; ``None`` is a gap (NaN and ±Inf are gaps too).
    """

    name: str
    start: datetime
    step_s: int
    values: Sequence[float | None]
    unit: Unit
    lag_s: float = 0.0

    @property
    def end(self) -> datetime:
        """End of the last bucket (open)."""
        return self.start + timedelta(seconds=self.step_s * len(self.values))

    @property
    def last_known(self) -> float | None:
        """The newest value that is not a gap, or None."""
        for value in reversed(self.values):
            if value is not None:
                return value
        return None
