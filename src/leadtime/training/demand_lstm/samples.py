"""Minutes of history → windows as the model will see them, each with the demand that came at every head.

The history is walked with the memory that serves (``demand.samples``), so that training and serving cannot differ.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.forecast import lag_features
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.sequence_model import HEADS_MIN, Windows, windows
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.demand import samples as rows_of

IntColumn = npt.NDArray[np.int64]
WATCHED_SHARE = 0.15  # the newest part of the time, on which the fit is stopped


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowSamples:
    """``x`` windows; ``y`` (n, len(HEADS_MIN)) logarithms of demand ÷ level, NaN where it is not known; ``origin`` (n,)
    the newest minute's number in the history, rising."""

    x: Windows
    y: FloatColumn
    origin: IntColumn

    def split(self) -> "tuple[WindowSamples, WindowSamples]":
        """The older part, and the newest WATCHED_SHARE of the time; windows whose targets reach over are in neither."""
        first, last = int(self.origin[0]), int(self.origin[-1])
        cut = last - round((last - first) * WATCHED_SHARE)
        return self._at(self.origin + HEADS_MIN[-1] < cut), self._at(self.origin >= cut)

    def _at(self, where: npt.NDArray[np.bool_]) -> "WindowSamples":
        return WindowSamples(x=self.x[where], y=self.y[where], origin=self.origin[where])


def samples(
    history: MinuteHistory, *, zone: str, most_origins: int, note: Callable[[float], None] = lambda _share: None
) -> WindowSamples:
    """Windows of ``history`` from at most ``most_origins`` origins. ``note`` may raise to stop. Equal input, equal
    windows."""
    ends = rows_of.origins(history.values, most_origins)
    origin, found = rows_of.walked(history.start_s, history.values, ends, zone=zone, note=note)
    y = np.full((len(origin), len(HEADS_MIN)), np.nan)
    for j, ahead in enumerate(HEADS_MIN):
        inside = np.flatnonzero(origin + ahead < len(history.values))
        y[inside, j] = lag_features.target(found.take(inside), history.values[origin[inside] + ahead])
    some = ~np.isnan(y).all(axis=1)
    return WindowSamples(x=windows(found)[some], y=y[some], origin=origin[some])
