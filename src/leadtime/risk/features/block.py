"""Windows and events of whole collections → arrays that feature builders share, each made once.

Rows are sorted by (collection, instance, end, start). A run is (collection, instance, run_number): lags and averages
never cross its start. Time decides, not position alone: lag k is the row k before, if it ends within (k + 1) · 300 s
of p; the last k windows are the last k rows, as far as they end within (p − k · 300 s, p]; averages fade by age in
seconds. So a gap makes a lag missing instead of older, and a short window counts as one observation. A window with
average 0 is an observation of 0, not a missing one.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import polars as pl

from leadtime.domain.borg import WINDOW_US
from leadtime.risk.features.context import Context
from leadtime.risk.features.steps import (
    SCALE,
    Timeline,
    Values,
    decayed_sums,
    first_of_group,
    fixed,
    lagged,
    ratio,
    rows_within,
    running_sum,
    timeline,
)  # fmt: skip

Made = TypeVar("Made")
HOUR_US = 3_600_000_000
AVERAGED = ("cpu", "memory")  # together, because the weights are the same
AVERAGE_DOUBLINGS = 7  # exponential averages look at most 128 windows back
PASSING = {"number", "lag", "near", "oldest", "points", "running", "sum", "mean", "std", "others"}
SERIES = {
    "cpu": ("avg_cpu", "request_cpu"),
    "memory": ("avg_memory", "request_memory"),
    "cpu_peak": ("max_cpu", "request_cpu"),
}  # name → usage over request


class Block:
    """Some collections' windows, events, and what the cell knows beside them. Cheap until asked."""

    def __init__(self, windows: pl.DataFrame, events: pl.DataFrame, context: Context) -> None:
        self.windows, self.events, self.context = windows, events, context
        self._made: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], Made]) -> Made:
        """``make()``, kept under ``key``."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Let go of what only neighbouring features share, to hold less at a time."""
        for key in [key for key in self._made if isinstance(key, tuple) and key[0] in PASSING]:
            del self._made[key]

    def number(self, name: str) -> Values:
        """A column as Float64 [n], null → NaN."""
        return self.once(("number", name), lambda: self.windows[name].to_numpy().astype(np.float64))

    def whole(self, name: str, missing: int = 0) -> Values:
        """An integer column as Int64 [n], null → ``missing``."""

        def make() -> Values:
            column = self.windows[name]
            return (column.fill_null(missing) if column.null_count() else column).to_numpy().astype(np.int64)

        return self.once(("whole", name, missing), make)

    def flag(self, name: str) -> Values:
        """A boolean column, null → False."""

        def make() -> Values:
            column = self.windows[name]
            return (column.fill_null(value=False) if column.null_count() else column).to_numpy().astype(bool)

        return self.once(("flag", name), make)

    @property
    def end(self) -> Values:
        """p of every row, Int64 µs."""
        return self.whole("end_time_us")

    @property
    def running(self) -> Values:
        """The task runs at p."""
        return self.flag("is_running")

    def _starts(self, *names: str) -> Values:
        changes = np.ones(self.windows.height, dtype=bool)
        if changes.size:
            changes[1:] = False
            for name in names:
                column = self.whole(name)
                changes[1:] |= column[1:] != column[:-1]
        return changes

    @property
    def collection(self) -> Values:
        """Code 0, 1, … of the collection, in order of rows."""
        return self.once("collection", lambda: np.cumsum(self._starts("collection_id")) - 1)

    @property
    def task(self) -> Values:
        """Code 0, 1, … of the task (collection, instance), in order of rows."""
        return self.once("task", lambda: np.cumsum(self._starts("collection_id", "instance_index")) - 1)

    @property
    def run_first(self) -> Values:
        """Index of the first row of the row's run."""
        names = ("collection_id", "instance_index", "run_number")
        return self.once("run_first", lambda: first_of_group(self._starts(*names)))

    @property
    def rows_by_task(self) -> Timeline:
        """Rows in their own order, to be counted up to an instant."""
        return self.once("rows_by_task", lambda: timeline(self.task, self.end, groups=self.tasks, is_sorted=True))

    @property
    def tasks(self) -> int:
        """How many."""
        return int(self.task[-1]) + 1 if len(self.task) else 0

    @property
    def collections(self) -> int:
        """How many."""
        return int(self.collection[-1]) + 1 if len(self.collection) else 0

    def series(self, name: str) -> Values:
        """Usage over request of the window itself; NaN where either is missing or the request is 0.

        ``cpu_idle``: 1 where the window used no CPU at all.
        """

        def make() -> Values:
            if name == "cpu_idle":
                used = self.number("avg_cpu")
                return np.where(np.isnan(used), np.nan, used == 0)
            used_name, asked = SERIES[name]
            return ratio(self.number(used_name), self.number(asked))

        return self.once(("series", name), make)

    def lag(self, name: str, by: int) -> Values:
        """The series ``by`` rows before in the run, NaN where that row ends (by + 1) · 300 s before p or earlier."""
        return self.once(("lag", name, by), lambda: lagged(self.series(name), by, self._near(by)))

    def _near(self, by: int) -> Values:
        def make() -> Values:
            near = np.zeros(len(self.end), dtype=bool)
            if by < len(near):
                near[by:] = self.end[:-by] > self.end[by:] - (by + 1) * WINDOW_US
                near &= np.arange(len(near)) - by >= self.run_first
            return near

        return self.once(("near", by), make)

    def _oldest(self, rows: int) -> Values:
        return self.once(
            ("oldest", rows), lambda: rows_within(self.end, self.run_first, rows=rows, span_us=rows * WINDOW_US)
        )

    def _points(self, name: str) -> tuple[Values, Values]:
        """Fixed-point values (0 where missing) and 1 where there is one."""

        def make() -> tuple[Values, Values]:
            values = self.series(name)
            return fixed(values), (~np.isnan(values)).astype(np.int64)

        return self.once(("points", name), make)

    def _sum(self, name: str, of: str, rows: int) -> Values:
        """Σ over the last ``rows`` windows of ``of``: there, value, square, time, time2, value_time (seconds)."""

        def running() -> Values:
            points, there = self._points(name)
            seconds = self.end // 1_000_000 * there
            left, right = {
                "there": (there, there), "value": (points, there), "square": (points, points), "time": (seconds, there),
                "time2": (seconds, seconds), "value_time": (seconds, points),
            }[of]  # fmt: skip
            return running_sum(left * right)

        def make() -> Values:
            total = self.once(("running", name, of), running)
            return total[1:] - total[self._oldest(rows)]

        return self.once(("sum", name, of, rows), make)

    def mean(self, name: str, rows: int) -> Values:
        """Mean over the last ``rows`` windows of the run, this one included; NaN where none has a value."""

        def make() -> Values:
            count = self._sum(name, "there", rows).astype(np.float64)
            return ratio(self._sum(name, "value", rows) / SCALE, count)

        return self.once(("mean", name, rows), make)

    def std(self, name: str, rows: int) -> Values:
        """Standard deviation over the same windows; NaN below two values."""

        def make() -> Values:
            count = self._sum(name, "there", rows)
            square = self._sum(name, "square", rows) / SCALE**2 / np.maximum(count, 1)
            mean = self.mean(name, rows)
            return np.where(count >= 2, np.sqrt(np.maximum(square - mean * mean, 0.0)), np.nan)

        return self.once(("std", name, rows), make)

    def slope(self, name: str, rows: int) -> Values:
        """Least-squares slope over the same windows, 1/h; NaN where they have fewer than two instants.

        Ages instead of instants: exact in 64 bits, so the same whatever came before.
        """
        now, count = self.end // 1_000_000, self._sum(name, "there", rows)
        time, total = self._sum(name, "time", rows), self._sum(name, "value", rows)
        age = time - now * count
        age2 = self._sum(name, "time2", rows) - 2 * now * time + now * now * count
        cross = (self._sum(name, "value_time", rows) - now * total) / SCALE - age * self.mean(name, rows)
        below = age2 - age.astype(np.float64) * age / np.maximum(count, 1)
        return ratio(cross, below) * 3600

    def highest(self, name: str, rows: int) -> Values:
        """Highest value over the same windows; NaN where none has one."""
        values, oldest = self.series(name), self._oldest(rows)
        best = values.copy()
        index = np.arange(len(values))
        for back in range(1, min(rows, len(values))):
            earlier = np.where(index[back:] - back >= oldest[back:], values[:-back], np.nan)
            np.fmax(best[back:], earlier, out=best[back:])
        return best

    def average(self, name: str, half_life_windows: int) -> Values:
        """The series' average in the run, older windows fading by age, over at most the last 128 windows."""

        def make() -> dict[str, Values]:
            columns = [self.series(each) for each in AVERAGED]
            there = [(~np.isnan(column)).astype(np.float64) for column in columns]
            if all(np.array_equal(mask, there[0]) for mask in there[1:]):
                there = there[:1]  # the same windows have a value: one sum of weights serves all
            sums = decayed_sums(
                (*columns, *there), self.end, self.run_first,
                half_life_us=half_life_windows * WINDOW_US, doublings=AVERAGE_DOUBLINGS,
            )  # fmt: skip
            weights = sums[len(columns) :] * (len(columns) // len(there))
            return {each: ratio(sums[at], weights[at]) for at, each in enumerate(AVERAGED)}

        return self.once(("averages", half_life_windows), make)[name]

    def hours_since(self, name: str) -> Values:
        """Hours from the instant in column ``name`` to p; NaN where there is none or it lies before the trace (0)."""
        at = self.whole(name)
        return np.where(at > 0, (self.end - at) / HOUR_US, np.nan)
