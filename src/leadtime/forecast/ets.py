"""Minutes one by one → damped-trend exponential smoothing, with the smoothing picked by its own recent errors.

Source: damped Holt method (Gardner and McKenzie 1985). A small bank of smoothing constants runs side by side, because
fitting constants each minute would cost more than the forecast is worth.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.model import MINUTE_S, Band, TooShort, check_step, point

# (level gain, trend gain, damping): slow, middle, fast. A trend of 1 %/min grows to at most 1 % × phi/(1 − phi):
#   49 %, 19 % and 9 % of the level.
BANK = ((0.1, 0.01, 0.98), (0.3, 0.03, 0.95), (0.6, 0.06, 0.90))
ERROR_MEMORY = 0.99  # errors fade with a half-life of about 70 minutes
NEEDED_MINUTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed:
    """One (level, trend, faded absolute error) a bank entry; ``seen`` counts known minutes."""

    levels: tuple[float, ...] = ()
    trends: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ets:
    """Damped Holt as a state."""

    name: str = "ets"
    memory: str = "ets"

    def start(self, step_s: int = MINUTE_S) -> Smoothed:
        """See DemandModel."""
        check_step(self.name, step_s)
        return Smoothed()

    def update(self, state: Smoothed, at_s: int, value: float | None) -> Smoothed:
        """See DemandModel. In a gap the level runs on along its damped trend."""
        del at_s
        if not state.levels:
            if value is None:
                return state
            return Smoothed(levels=(value,) * len(BANK), trends=(0.0,) * len(BANK), errors=(0.0,) * len(BANK), seen=1)
        levels, trends, errors = [], [], []
        for (alpha, beta, phi), level, trend, error in zip(BANK, state.levels, state.trends, state.errors, strict=True):
            ahead = level + phi * trend
            off = 0.0 if value is None else value - ahead
            levels.append(ahead + alpha * off)
            trends.append(phi * trend + beta * off)
            errors.append(error if value is None else ERROR_MEMORY * error + abs(off))
        seen = state.seen if value is None else state.seen + 1
        return Smoothed(levels=tuple(levels), trends=tuple(trends), errors=tuple(errors), seen=seen)

    def predict(self, state: Smoothed, steps: int) -> Band | TooShort:
        """See DemandModel."""
        if state.seen < NEEDED_MINUTES:
            return TooShort(
                reason=f"{self.name} needs {NEEDED_MINUTES} known minutes",
                needed_s=NEEDED_MINUTES * MINUTE_S,
                have_s=state.seen * MINUTE_S,
            )
        best = state.errors.index(min(state.errors))
        phi = BANK[best][2]
        growth = phi * (1.0 - phi ** np.arange(1, steps + 1)) / (1.0 - phi)
        return point(np.maximum(0.0, state.levels[best] + state.trends[best] * growth))
