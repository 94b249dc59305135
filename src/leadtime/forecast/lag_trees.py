"""Rows of relative lags → the demand ahead, by a fitted model of what follows such rows: the learned demand model.

The model answers with logarithms of demand ÷ level, the level being the better naive forecast (``lag_features``): an
answer of 0 is that forecast, bit for bit, which is why trees that learned nothing cost nothing. Who answers is handed
in: XGBoost while training, the published ONNX files in the controller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leadtime.forecast import lag_features
from leadtime.forecast.lag_features import Matrix
from leadtime.forecast.lag_memory import Lags
from leadtime.forecast.model import FloatColumn, TooShort
from leadtime.forecast.on_lags import OnLags, lag_row


class Reader(Protocol):
    """A fitted model: ``lag_features.FEATURES`` (n, …) float32, NaN unknown → (n, 3) logarithms of demand ÷ level."""

    def __call__(self, features: Matrix) -> FloatColumn:
        """Lower, expected, upper; need not be ordered."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LagTrees(OnLags):
    """See the module; a RowsModel. ``zone``: of the local hour and weekday."""

    reader: Reader
    zone: str = "UTC"
    name: str = "lag_trees"

    def row(self, state: Lags) -> FloatColumn | TooShort:
        """See RowsModel; the columns are those of ``lag_rows.row``."""
        return lag_row(state, self.zone, self.name, "an hour of minutes")

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel."""
        made = lag_features.relative(rows)
        seen = lag_features.features(made, [step + 1 for step in steps])
        said = np.sort(self.reader(seen.reshape(-1, seen.shape[2])), axis=1).reshape(len(rows), len(steps), 3)
        return lag_features.demand(made, said).transpose(2, 0, 1)
