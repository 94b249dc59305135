"""The last hour of minutes → last value and five-minute mean, the two baselines every other model has to beat."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from leadtime.forecast.model import MINUTE_S, Band, TooShort, check_step, point

KEPT_MINUTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The newest ``KEPT_MINUTES`` buckets, oldest first; None is a gap. ``last`` outlives gaps of any length."""

    minutes: tuple[float | None, ...] = ()
    last: float | None = None


def add(state: Recent, value: float | None) -> Recent:
    """The state after one more minute."""
    minutes = (*state.minutes[-(KEPT_MINUTES - 1) :], value)
    return Recent(minutes=minutes, last=state.last if value is None else value)


def level(state: Recent, count: int = KEPT_MINUTES) -> float | None:
    """Mean of the known values among the newest ``count`` minutes; the last known value when all are gaps."""
    known = [v for v in state.minutes[-count:] if v is not None]
    return sum(known) / len(known) if known else state.last


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRecent:
    """What both models share: the newest minutes, remembered once for the two of them."""

    name: str
    memory: str = "recent"

    def start(self, step_s: int = MINUTE_S) -> Recent:
        """See DemandModel."""
        check_step(self.name, step_s)
        return Recent()

    def update(self, state: Recent, at_s: int, value: float | None) -> Recent:
        """See DemandModel."""
        del at_s
        return add(state, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastValue(_OfRecent):
    """What is now stays. Source: the naive forecast of every forecasting text."""

    name: str = "last_value"

    def predict(self, state: Recent, steps: int) -> Band | TooShort:
        """See DemandModel."""
        if state.last is None:
            return TooShort(reason=f"{self.name} needs one known minute", needed_s=MINUTE_S, have_s=0)
        return point(np.full(steps, state.last))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean5Min(_OfRecent):
    """The mean of the last five known minutes stays: last value with less noise."""

    name: str = "mean_5min"

    def predict(self, state: Recent, steps: int) -> Band | TooShort:
        """See DemandModel."""
        newest = list(islice((v for v in reversed(state.minutes) if v is not None), 5))
        if len(newest) < 5 and state.last is None:
            return TooShort(reason=f"{self.name} needs one known minute", needed_s=MINUTE_S, have_s=0)
        mean = sum(newest) / len(newest) if newest else state.last
        return point(np.full(steps, mean))
