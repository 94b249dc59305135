"""Forecast demand, surges and risk: what is coming, with bounds, never as a replica count."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leadtime.domain.evidence import Explanation
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandForecast:
    """Demand at ``issued_at + horizon``. ``level_ratio`` 0.9: nine of ten actuals should fall into [lower, upper]."""

    subject: WorkloadRef
    issued_at: datetime  # the last instant the model has seen
    horizon: timedelta
    expected: float
    lower: float
    upper: float
    level_ratio: float
    unit: Unit
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPath:
    """Demand for every minute ahead: element i is about [issued_at + i·step, issued_at + (i+1)·step).

    ``may_act`` is False when the model does not beat last value on this series; ``standing`` says why or why not.
    """

    subject: WorkloadRef
    issued_at: datetime
    step_s: int
    expected: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    level_ratio: float
    unit: Unit
    model: str
    may_act: bool
    standing: Explanation

    def at(self, horizon: timedelta) -> DemandForecast:
        """The forecast for one horizon (rounded down to the path's step; the last element beyond its end)."""
        i = min(int(horizon.total_seconds() // self.step_s), len(self.expected) - 1)
        return DemandForecast(
            subject=self.subject, issued_at=self.issued_at, horizon=horizon,
            expected=self.expected[i], lower=self.lower[i], upper=self.upper[i],
            level_ratio=self.level_ratio, unit=self.unit, model=self.model,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """Demand runs away from the forecast: seen at ``detected_at``, ``excess_ratio`` = actual / forecast − 1.

    ``extrapolated`` is the demand the detector expects one pod lead ahead if the rise goes on, in the workload's unit.
    """

    subject: WorkloadRef
    detected_at: datetime
    began_at: datetime
    actual: float
    forecast: float
    excess_ratio: float
    threshold_ratio: float
    rise_per_min: float
    extrapolated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeAlarm:
    """What people are told of a surge, and what is scored: raised at ``raised_at``, standing until it has been quiet.

    ``kind``: what saw it first (``expected``, ``deviation``, ``rise``, ``saturation``); ``ratio``: how many times what
    stood ten minutes earlier (``expected``: how many times what stands now).
    """

    raised_at: datetime
    kind: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskScore:
    """A probability of failure within ``horizon``, only where it was calibrated; ``calibrated_on`` names the data."""

    subject: WorkloadRef
    as_of: datetime
    horizon: timedelta
    probability_ratio: float
    calibrated_on: str
    because: tuple[str, ...] = ()
