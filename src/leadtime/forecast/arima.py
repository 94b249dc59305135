"""Minutes one by one → an ARIMA(p, 1, q) carried on by its recursion; coefficients are fitted offline.

The state is what the recursion needs: the last p changes, the last q errors, the last value. Coefficients of changes
have no unit, so they hold when demand is ten times what it was. A constant is left out: a drift per minute, carried
on for hours, is no forecast.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step, point


@dataclass(frozen=True, slots=True, kw_only=True)
class ArimaState:
    """``changes`` and ``errors`` newest first, at most p and q; ``seen`` counts known minutes."""

    last: float = 0.0
    changes: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arima:
    """change_t = Σ ar_i · change_{t−i} + error_t + Σ ma_i · error_{t−i}. The default is simple smoothing with 0.5."""

    ar: tuple[float, ...] = ()
    ma: tuple[float, ...] = (-0.5,)
    name: str = "arima"

    @property
    def memory(self) -> str:
        """See DemandModel: the state depends on the coefficients."""
        return f"arima {self.ar} {self.ma}"

    @property
    def needed_minutes(self) -> int:
        """Ten, and enough that the recursion's beginning is forgotten."""
        return 10 + 2 * (len(self.ar) + len(self.ma))

    def start(self, step_s: int = MINUTE_S) -> ArimaState:
        """See DemandModel."""
        check_step(self.name, step_s)
        return ArimaState()

    def update(self, state: ArimaState, at_s: int, value: float | None) -> ArimaState:
        """See DemandModel. In a gap what was expected is taken as come, with no error."""
        del at_s
        if state.seen == 0:
            return state if value is None else ArimaState(last=value, seen=1)
        expected = self._change(state.changes, state.errors)
        change = expected if value is None else value - state.last
        return ArimaState(
            last=state.last + change if value is None else value,
            changes=(change, *state.changes)[: len(self.ar)],
            errors=(change - expected, *state.errors)[: len(self.ma)],
            seen=state.seen if value is None else state.seen + 1,
        )

    def predict(self, state: ArimaState, steps: int) -> Band | TooShort:
        """See DemandModel."""
        if state.seen < self.needed_minutes:
            return TooShort(
                reason=f"{self.name} needs {self.needed_minutes} known minutes",
                needed_s=self.needed_minutes * MINUTE_S,
                have_s=state.seen * MINUTE_S,
            )
        state_now = np.zeros(len(self.ar) + len(self.ma))
        state_now[: len(state.changes)] = state.changes
        state_now[len(self.ar) : len(self.ar) + len(state.errors)] = state.errors
        return point(np.maximum(0.0, state.last + _carried_on(self.ar, self.ma, steps) @ state_now))

    def _change(self, changes: tuple[float, ...], errors: tuple[float, ...]) -> float:
        """The next change that is expected; what is not known yet counts as none."""
        known = sum(a * c for a, c in zip(self.ar, changes, strict=False))
        return known + sum(m * e for m, e in zip(self.ma, errors, strict=False))


@lru_cache(maxsize=64)
def _carried_on(ar: tuple[float, ...], ma: tuple[float, ...], steps: int) -> FloatColumn:
    """(steps, p + q): how much each change and error of the state moves each minute; errors to come are 0."""
    p, q = len(ar), len(ma)
    moved = np.zeros((steps, p + q))
    changes = list(np.eye(p + q)[:p])  # newest first, each as weights on the state
    errors = list(np.eye(p + q)[p:])
    total, nothing = np.zeros(p + q), np.zeros(p + q)
    for k in range(steps):
        known = sum((a * c for a, c in zip(ar, changes, strict=True)), nothing)
        change = sum((m * e for m, e in zip(ma, errors, strict=True)), known)
        total = total + change
        moved[k] = total
        changes, errors = [change, *changes][:p], [nothing, *errors][:q]
    return moved


def pulled_in(coefficients: tuple[float, ...], most: float) -> tuple[float, ...]:
    """Autoregressive coefficients whose roots lie within ``most`` (< 1): scaled towards 0 by powers where they do not.

    A root of 1 carries a change on for ever; one beyond it makes the path explode.

    >>> pulled_in((1.25,), 0.95)
    (0.95,)
    """
    largest = max(np.abs(np.roots((1.0, *(-c for c in coefficients)))), default=0.0)
    if largest <= most:
        return coefficients
    return tuple(float(c * (most / largest) ** (i + 1)) for i, c in enumerate(coefficients))
