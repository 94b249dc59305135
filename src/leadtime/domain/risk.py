"""How likely a pod is to fail soon, who says so, and from what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskDriver:
    """One feature's part in a score: ``effect`` in log-odds (above 0 raises the risk), ``value`` in its own unit."""

    feature: str
    value: float | None
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskScore:
    """P(the pod's next end is a failure within ``horizon`` after ``as_of``), calibrated; ``base_rate`` beside it.

    ``window_end``: the end (open) of the newest usage window the score knows. ``expires_at``: after it the score is
    stale and may not be used. ``model``: name and data hash of the published model.
    """

    pod: str
    node: str | None
    as_of: datetime
    window_end: datetime
    horizon: timedelta
    probability: float
    base_rate: float
    expires_at: datetime
    model: str
    drivers: tuple[RiskDriver, ...] = ()

    @property
    def lift(self) -> float:
        """How many times the base rate; 1 = as everybody."""
        return self.probability / self.base_rate if self.base_rate > 0 else 1.0


class RiskModel(Protocol):
    """A published model as the loop sees it: rows of features in, calibrated probabilities out. Pure once loaded."""

    @property
    def name(self) -> str:
        """Name and data hash, as its card has them."""
        ...

    @property
    def features(self) -> Sequence[str]:
        """Names of the columns of a row, in order."""
        ...

    @property
    def base_rates(self) -> Mapping[int, float]:
        """Horizon (minutes) → share of failures in the data the model was calibrated on."""
        ...

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Mapping[int, Sequence[float]]:
        """Rows [n, features] (NaN = missing) → horizon (minutes) → n probabilities, never falling with the horizon."""
        ...
