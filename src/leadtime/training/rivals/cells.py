"""What most rivals share: the memory of five-minute means, asked for a whole series at each origin; and refusals."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from leadtime.forecast import day_cells
from leadtime.forecast.day_cells import CELL_S, CELLS_A_DAY, DayCells
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step, point
from leadtime.forecast.seasonal import cells_ahead, to_minutes
from leadtime.forecast.seasonal_naive import filled
from leadtime.training.backtest.trainee import NotFitted

MAX_DAYS = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCells(ABC):
    """A rival that is given the newest ``window_days`` of cells, gaps filled, and says the cells that follow."""

    name: str
    window_days: int
    needed_days: int
    stride: int = 1
    memory: str = "day_cells"

    def start(self, step_s: int = MINUTE_S) -> DayCells:
        """See DemandModel."""
        check_step(self.name, step_s)
        return day_cells.empty()

    def update(self, state: DayCells, at_s: int, value: float | None) -> DayCells:
        """See DemandModel."""
        return day_cells.add(state, at_s, value, MAX_DAYS)

    def predict(self, state: DayCells, steps: int) -> Band | TooShort:
        """See DemandModel. The open cell is not known yet: it is the first that is forecast."""
        window = filled(state.cells[-self.window_days * CELLS_A_DAY :])
        if len(state.cells) < self.needed_days * CELLS_A_DAY or window is None:
            return TooShort(
                reason=f"{self.name} needs {self.needed_days} days",
                needed_s=self.needed_days * 86_400 + CELL_S,
                have_s=min(len(state.cells) * CELL_S, self.needed_days * 86_400),
            )
        assert state.first is not None
        said = self.following(window, state.first + len(state.cells), cells_ahead(steps))
        return point(np.maximum(0.0, to_minutes(said, state, steps)))

    @abstractmethod
    def following(self, window: FloatColumn, cell: int, count: int) -> FloatColumn:
        """The ``count`` cells after ``window``; the first of them is number ``cell`` (epoch_s // 300)."""


def absent(name: str, *modules: str) -> NotFitted | None:
    """A refusal where a library of the extra ``bench`` is not installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if not missing:
        return None
    return NotFitted(reason=f"{name} needs {', '.join(missing)}: install leadtime[bench]")
