"""Runs of tasks as they come to be: a book of growing columns, one row a run."""

import numpy as np
import numpy.typing as npt

from leadtime.domain.borg import AFTER_TRACE_US
from leadtime.simulate.borg.plan import Floats, Ints

CAPACITY = 1024


class Runs:
    """Columns of equal length; ``begin`` appends. ``end_us`` is AFTER_TRACE_US while a run is alive.

    ``start_us`` 0 is before the trace. ``window_end_us`` is where the last usage window ends, ``last_from_us`` where
    the grid would begin it. ``update_us`` is the instant of UPDATE_RUNNING, AFTER_TRACE_US without one.
    """

    INTS = (
        "slot", "number", "submit_us", "start_us", "machine", "removed_us", "end_us", "end_type", "window_end_us",
        "last_from_us", "update_us",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self._ints: dict[str, Ints] = {name: np.zeros(CAPACITY, np.int64) for name in self.INTS}
        self._factor: Floats = np.ones(CAPACITY)

    def __getitem__(self, name: str) -> Ints:
        """One column, a view of the rows so far."""
        return self._ints[name][: self.count]

    @property
    def update_factor(self) -> Floats:
        """What UPDATE_RUNNING multiplies the request by."""
        return self._factor[: self.count]

    def begin(self, **columns: npt.NDArray[np.int64] | int) -> Ints:
        """Append runs; columns not given are 0, ends and updates AFTER_TRACE_US. Returns their rows."""
        added = len(np.atleast_1d(np.asarray(columns["slot"])))
        while self.count + added > len(self._factor):
            self._ints = {name: np.concatenate([column, np.zeros_like(column)]) for name, column in self._ints.items()}
            self._factor = np.concatenate([self._factor, np.ones_like(self._factor)])
        rows = np.arange(self.count, self.count + added)
        self.count += added
        for name in ("end_us", "update_us"):
            self._ints[name][rows] = AFTER_TRACE_US
        for name, values in columns.items():
            self._ints[name][rows] = values
        return rows

    def update(self, rows: Ints, at_us: Ints, factor: Floats) -> None:
        """UPDATE_RUNNING at ``at_us``."""
        self._ints["update_us"][rows] = at_us
        self._factor[rows] = factor

    def end(self, rows: Ints, **columns: npt.NDArray[np.int64]) -> None:
        """Set columns of ended runs."""
        for name, values in columns.items():
            self._ints[name][rows] = values
