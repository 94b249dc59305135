"""The one interface of demand models: a state, minute values taken one by one → a band for every minute ahead.

A model forecasts the demand of single minutes; calibration and selection are not its business. Models that keep the
same memory (equal ``memory``) share one state, so that a value is stored once however many models read it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]
MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """What a model says, one element a minute ahead; raw, not calibrated. A model without bounds repeats expected."""

    expected: FloatColumn
    lower: FloatColumn
    upper: FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort:
    """A model's refusal: it was not fed enough. ``needed_s`` and ``have_s`` are lengths of history."""

    reason: str
    needed_s: int
    have_s: int


class DemandModel(Protocol):
    """One forecaster. Holds parameters only; what it learned is in the state."""

    @property
    def name(self) -> str:
        """The stable name shown to people."""
        ...

    @property
    def memory(self) -> str:
        """Name of the state: models with equal names share it, so their start and update must do the same."""
        ...

    def start(self, step_s: int = MINUTE_S) -> Any:
        """The state before the first bucket. Raises ValueError for a step other than one minute."""
        ...

    def update(self, state: Any, at_s: int, value: float | None) -> Any:
        """The state after the bucket [at_s, at_s + 60); None is a gap. O(1) in the length of history."""
        ...

    def predict(self, state: Any, steps: int) -> Band | TooShort:
        """The band for the next ``steps`` minutes; element 0 is the minute after the newest bucket."""
        ...


@runtime_checkable
class RowsModel(DemandModel, Protocol):
    """A model that answers for many states in one call: a tick's thousand workloads, a backtest's origins."""

    def row(self, state: Any) -> FloatColumn | TooShort:
        """What the model wants to know of one state, as numbers (columns,); NaN where unknown. O(1) in history."""
        ...

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """(origins, columns) rows → (3, origins, len(steps)): lower, expected, upper at path element ``steps[j]``.

        The same numbers as ``predict`` gives one by one, up to 1e-9 of them.
        """
        ...


def point(expected: FloatColumn) -> Band:
    """A band without width."""
    return Band(expected=expected, lower=expected, upper=expected)


def check_step(name: str, step_s: int) -> None:
    """Raises ValueError unless the step is one minute, the only one the loop uses."""
    if step_s != MINUTE_S:
        raise ValueError(f"starting model {name}: step is {step_s} s, must be {MINUTE_S} s; resample to minutes first")
