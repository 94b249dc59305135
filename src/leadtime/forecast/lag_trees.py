"""Rows of relative lags → the demand ahead, by a fitted model of what follows such rows: the learned demand model.

The model answers with logarithms of demand ÷ level, the level being the better naive forecast (``lag_features``): an
answer of 0 is that forecast, bit for bit, which is why trees that learned nothing cost nothing. Who answers is handed
in: XGBoost while training, the published ONNX files in the controller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leadtime.forecast import lag_features, lag_memory, lag_rows
from leadtime.forecast.lag_features import Matrix
from leadtime.forecast.lag_memory import Lags
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step
from leadtime.forecast.recent import KEPT_MINUTES


class Reader(Protocol):
    """A fitted model: ``lag_features.FEATURES`` (n, …) float32, NaN unknown → (n, 3) logarithms of demand ÷ level."""

    def __call__(self, features: Matrix) -> FloatColumn:
        """Lower, expected, upper; need not be ordered."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LagTrees:
    """See the module; a RowsModel. ``zone``: of the local hour and weekday."""

    reader: Reader
    zone: str = "UTC"
    name: str = "lag_trees"
    memory: str = "lags"

    def start(self, step_s: int = MINUTE_S) -> Lags:
        """See DemandModel."""
        check_step(self.name, step_s)
        return lag_memory.empty()

    def update(self, state: Lags, at_s: int, value: float | None) -> Lags:
        """See DemandModel."""
        return lag_memory.add(state, at_s, value)

    def row(self, state: Lags) -> FloatColumn | TooShort:
        """See RowsModel; the columns are those of ``lag_rows.row``."""
        made = lag_rows.row(state, self.zone)
        if made is None:
            return TooShort(
                reason=f"{self.name} needs an hour of minutes, one of them known",
                needed_s=KEPT_MINUTES * MINUTE_S,
                have_s=min(len(state.recent.minutes), KEPT_MINUTES - 1) * MINUTE_S,
            )
        return made

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel."""
        made = lag_features.relative(rows)
        seen = lag_features.features(made, [step + 1 for step in steps])
        said = np.sort(self.reader(seen.reshape(-1, seen.shape[2])), axis=1).reshape(len(rows), len(steps), 3)
        return lag_features.demand(made, said).transpose(2, 0, 1)

    def predict(self, state: Lags, steps: int) -> Band | TooShort:
        """See DemandModel. As many rows for the trees as minutes: where few are wanted, ``read`` costs less."""
        made = self.row(state)
        if isinstance(made, TooShort):
            return made
        lower, expected, upper = self.read(made[None, :], range(steps))[:, 0, :]
        return Band(expected=expected, lower=lower, upper=upper)
