"""The last hour, minute by minute → the demand ahead, by a recurrent network: the model of windows.

The network reads ``WINDOW_MIN`` minutes as logarithms above the level (``lag_features``: the better naive forecast),
each with a mark whether it is known and with its place in the local day and in the hour, and says three quantiles at
``HEADS_MIN``; between those minutes lie lines, beyond the last its value is held. Who answers is handed in: onnxruntime
in the controller. The memory is that of the lags and not the last hour alone: that one knows neither the time nor which
naive forecast is better, and whoever runs the learned trees has the lags already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leadtime.forecast import lag_features
from leadtime.forecast.lag_features import Relative
from leadtime.forecast.lag_memory import DAY_MIN, Lags
from leadtime.forecast.model import FloatColumn, TooShort
from leadtime.forecast.on_lags import OnLags, lag_row
from leadtime.forecast.recent import KEPT_MINUTES

Windows = npt.NDArray[np.float32]  # (n, WINDOW_MIN, len(CHANNELS))
WINDOW_MIN = KEPT_MINUTES
HOUR_MIN = 60
CHANNELS = ("level", "known", "day_sin", "day_cos", "hour_sin", "hour_cos")
HEADS_MIN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 90, 120, 180)


class WindowReader(Protocol):
    """A fitted network: windows (n, WINDOW_MIN, len(CHANNELS)), oldest minute first, without NaN → (n,
    len(HEADS_MIN), 3) logarithms of demand ÷ level."""

    def __call__(self, windows: Windows) -> FloatColumn:
        """Lower, expected, upper; need not be ordered."""
        ...


def windows(rows: Relative) -> Windows:
    """What the network sees of each row. A gap is level 0 with mark 0: the mark tells it from the level itself."""
    levels = rows.lags[:, ::-1]
    known = ~np.isnan(levels)
    minute = rows.at_min[:, None] + np.arange(-WINDOW_MIN, 0)
    day, hour = (2.0 * np.pi / period * np.mod(minute, period) for period in (DAY_MIN, HOUR_MIN))
    channels = (np.where(known, levels, 0.0), known, np.sin(day), np.cos(day), np.sin(hour), np.cos(hour))
    return np.stack(channels, axis=2).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceModel(OnLags):
    """See the module; a RowsModel. ``zone``: of the local day."""

    reader: WindowReader
    zone: str = "UTC"
    name: str = "bi_lstm"

    def row(self, state: Lags) -> FloatColumn | TooShort:
        """See RowsModel; the columns are those of ``lag_rows.row``."""
        return lag_row(state, self.zone, self.name, f"a window of {WINDOW_MIN} minutes")

    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel. One pass of the network a row, however many ``steps``."""
        made = lag_features.relative(rows)
        said = at_steps(self.reader(windows(made)), steps)
        return lag_features.demand(made, np.sort(said, axis=2)).transpose(2, 0, 1)


def at_steps(said: FloatColumn, steps: Sequence[int]) -> FloatColumn:
    """(n, len(HEADS_MIN), 3) → (n, len(steps), 3) at path elements ``steps`` (0: a minute ahead)."""
    at = np.interp(np.asarray(steps) + 1, HEADS_MIN, np.arange(len(HEADS_MIN)))
    low = np.minimum(at.astype(np.intp), len(HEADS_MIN) - 2)
    share = (at - low)[None, :, None]
    return np.asarray(said[:, low] * (1.0 - share) + said[:, low + 1] * share)
