"""The last hours or days of minutes → the demand ahead, by a model that reads contexts, such as a foundation model.

Models trained on many series (Toto, Chronos-2, TimesFM) are asked with a context and answer with quantiles. Their code
and weights are the user's: a ``ContextReader`` wraps them, and this makes of it a model like any other. It must beat
last value on each series like any other, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leadtime.forecast.lag_memory import DAY_MIN, KEPT_DAYS, Lags
from leadtime.forecast.model import MINUTE_S, FloatColumn, TooShort
from leadtime.forecast.on_lags import OnLags

NEEDED_MINUTES = 60


class ContextReader(Protocol):
    """A model of somebody else's: contexts → quantiles."""

    def __call__(self, contexts: FloatColumn, ahead: int) -> FloatColumn:
        """(n, minutes) of demand, oldest first, NaN for a gap and before the history → (3, n, ahead).

        Quantiles 0.05, 0.5, 0.95 of the next ``ahead`` minutes, in the demand's unit. What is not a number, or below
        0, is not believed: last value, or 0, stands instead.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextModel(OnLags):
    """See the module; a RowsModel. ``context_min``: how many minutes the reader wants, at most two weeks."""

    reader: ContextReader
    context_min: int = DAY_MIN

    def __post_init__(self) -> None:
        most = KEPT_DAYS * DAY_MIN
        if not NEEDED_MINUTES <= self.context_min <= most:
            raise ValueError(
                f"model {self.name}: context is {self.context_min} min, must lie between {NEEDED_MINUTES} and {most}"
            )

    def row(self, state: Lags) -> FloatColumn | TooShort:
        """See RowsModel: the context, and last value behind it."""
        have = len(state.minutes) + len(state.open)
        if have < NEEDED_MINUTES or state.recent.last is None:
            return TooShort(
                reason=f"{self.name} needs {NEEDED_MINUTES} minutes, one of them known",
                needed_s=NEEDED_MINUTES * MINUTE_S,
                have_s=min(have, NEEDED_MINUTES - 1) * MINUTE_S,
            )
        made = np.full(self.context_min + 1, np.nan)
        opened = [np.nan if value is None else value for value in state.open]
        newest = np.concatenate((state.minutes[-self.context_min :], opened))[-self.context_min :]
        made[self.context_min - len(newest) : self.context_min] = newest
        made[-1] = state.recent.last
        return made

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel. Raises ValueError when the reader's answer has another shape."""
        ahead = max(steps) + 1
        said = np.asarray(self.reader(rows[:, :-1], ahead), dtype=np.float64)
        if said.shape != (3, len(rows), ahead):
            raise ValueError(f"model {self.name} answered {said.shape}, must be {(3, len(rows), ahead)}")
        said = np.where(np.isfinite(said), said, rows[None, :, -1:])
        return np.sort(np.maximum(said, 0.0), axis=0)[:, :, list(steps)]
