"""Minutes one by one → a smoothed level plus a part of the line through the last hours, in three numbers.

The theta method (Assimakopoulos and Nikolopoulos 2000) is simple smoothing with drift (Hyndman and Billah 2003):
forecast h = level + (1 − 1/θ) · slope · (h − 1 + 1/α). Dynamic (Fiorucci et al. 2016): the line is learned on. Here its
observations fade, because over weeks of minutes one straight line through all of them is flat.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.model import MINUTE_S, Band, TooShort, check_step, point

NEEDED_MINUTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ThetaState:
    """The level, and the discounted least-squares line: its value ``at`` the newest minute and its ``slope`` a minute.

    ``passed`` counts minutes since the first value, gaps too; ``seen`` the known ones.
    """

    level: float = 0.0
    at: float = 0.0
    slope: float = 0.0
    passed: int = 0
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Theta:
    """See the module. ``line_min``: how long a minute counts in the line; ``theta`` 1 is no line at all, 2 is half."""

    alpha: float = 0.3
    theta: float = 2.0
    line_min: int = 60
    name: str = "theta"

    @property
    def memory(self) -> str:
        """See DemandModel: the state depends on the constants."""
        return f"theta {self.alpha:g} {self.line_min}"

    def start(self, step_s: int = MINUTE_S) -> ThetaState:
        """See DemandModel."""
        check_step(self.name, step_s)
        return ThetaState()

    def update(self, state: ThetaState, at_s: int, value: float | None) -> ThetaState:
        """See DemandModel. In a gap the level stays and the line runs on.

        The line is Brown's double smoothing, which is discounted least squares (Brown 1963) with discount ``1 − 1/m``;
        while fewer than m minutes have passed, m is that number, so that a young line is an ordinary regression.
        """
        del at_s
        if state.seen == 0:
            return state if value is None else ThetaState(level=value, at=value, passed=1, seen=1)
        passed, ahead = state.passed + 1, state.at + state.slope
        if value is None:
            return ThetaState(level=state.level, at=ahead, slope=state.slope, passed=passed, seen=state.seen)
        keep = 1.0 - 2.0 / (min(passed, self.line_min) + 1.0)
        off = value - ahead
        return ThetaState(
            level=state.level + max(self.alpha, 1.0 / (state.seen + 1)) * (value - state.level),
            at=ahead + (1.0 - keep**2) * off,
            slope=state.slope + (1.0 - keep) ** 2 * off,
            passed=passed,
            seen=state.seen + 1,
        )

    def predict(self, state: ThetaState, steps: int) -> Band | TooShort:
        """See DemandModel. The line is carried on for as long as it was seen: beyond ``line_min`` it stays level."""
        if state.seen < NEEDED_MINUTES:
            return TooShort(
                reason=f"{self.name} needs {NEEDED_MINUTES} known minutes",
                needed_s=NEEDED_MINUTES * MINUTE_S,
                have_s=state.seen * MINUTE_S,
            )
        ahead = np.minimum(np.arange(1, steps + 1), self.line_min) - 1.0 + 1.0 / self.alpha
        return point(np.maximum(0.0, state.level + (1.0 - 1.0 / self.theta) * state.slope * ahead))
