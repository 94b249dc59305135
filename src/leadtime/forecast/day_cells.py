"""Minutes one by one → five-minute means of many days, and today's hours beside the same local hours of earlier days.

Five minutes, because that makes four weeks a small array (64 KiB) that can be copied when a cell closes, and because
single minutes of earlier days say little. A cell without any known minute is NaN.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from leadtime.domain.time_window import from_epoch
from leadtime.forecast.model import FloatColumn

CELL_S = 300
CELLS_A_DAY = 288
CELL_MINUTES = 5
LATEST_MINUTES = 3
SPARE_CELLS = 48  # the level of the oldest day still needs its hours before
MEAN_MEMORY_CELLS = 2016  # a week


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayCells:
    """``cells[i]`` is the mean over [(first + i)·300 s, +300 s); the open cell is kept as sum and count."""

    cells: FloatColumn
    first: int | None = None  # epoch_s // 300 of cells[0]; None before the first bucket
    open_sum: float = 0.0
    open_count: int = 0
    next_s: int = 0  # end of the newest bucket
    mean: float = 0.0  # fading mean of the cells: what "a usual demand" is
    known: int = 0  # cells that were not gaps, ever
    latest: tuple[float, ...] = ()  # the newest known minutes, at most LATEST_MINUTES; empty after a gap


def empty() -> DayCells:
    """Before the first bucket."""
    return DayCells(cells=np.empty(0))


def add(state: DayCells, at_s: int, value: float | None, max_days: int) -> DayCells:
    """The state after the bucket [at_s, at_s + 60). A hole since the bucket before becomes NaN cells."""
    if state.first is None:
        if value is None:
            return state
        state = DayCells(cells=np.empty(0), first=at_s // CELL_S, next_s=at_s)
    elif at_s // CELL_S > state.first + len(state.cells):
        state = _close(state, at_s // CELL_S, max_days)
    total = state.open_sum if value is None else state.open_sum + value
    count = state.open_count if value is None else state.open_count + 1
    state = DayCells(
        cells=state.cells, first=state.first, open_sum=total, open_count=count, next_s=at_s + 60,
        mean=state.mean, known=state.known,
        latest=() if value is None else (*state.latest[-(LATEST_MINUTES - 1) :], value),
    )  # fmt: skip
    return _close(state, (at_s + 60) // CELL_S, max_days) if (at_s + 60) % CELL_S == 0 else state


def _close(state: DayCells, until: int, max_days: int) -> DayCells:
    """Close the open cell and every empty one before cell ``until``; forget what is older than ``max_days``."""
    assert state.first is not None
    kept = max_days * CELLS_A_DAY + SPARE_CELLS
    cell = state.open_sum / state.open_count if state.open_count else np.nan
    holes = until - (state.first + len(state.cells)) - 1
    closed = np.concatenate((state.cells, (cell,), np.full(min(holes, kept), np.nan)))[-kept:]
    mean, known = state.mean, state.known
    if state.open_count:
        known += 1
        mean += (cell - mean) / min(known, MEAN_MEMORY_CELLS)
    return DayCells(
        cells=closed, first=until - len(closed), next_s=state.next_s, mean=mean, known=known,
        latest=state.latest,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayRows:
    """Today's ``back`` cells before now, and per earlier day the same local cells plus those that followed.

    ``rows[d]`` has ``back`` cells before the same local time and then the cells from it on.
    """

    today: FloatColumn  # (back,)
    rows: FloatColumn  # (days, back + ahead)
    mean: float


def day_rows(state: DayCells, *, back: int, ahead: int, max_days: int, zone: str) -> DayRows:
    """Lay earlier days beside today by local time; cells outside the history are NaN. Newest day first."""
    assert state.first is not None
    now = state.first + len(state.cells)
    days = min(max_days, (len(state.cells) + CELLS_A_DAY - 1) // CELLS_A_DAY)
    starts = np.arange(1, days + 1) * -CELLS_A_DAY + len(state.cells)
    if zone != "UTC":
        starts = starts + _clock_shift_cells(zone, now, days)
    index = starts[:, None] + np.arange(-back, ahead)
    inside = (index >= 0) & (index < len(state.cells))
    rows = np.where(inside, state.cells[np.where(inside, index, 0)], np.nan)
    today = state.cells[-back:]
    if len(today) < back:
        today = np.concatenate((np.full(back - len(today), np.nan), today))
    return DayRows(today=today, rows=rows, mean=state.mean)


@lru_cache(maxsize=512)
def _utc_offset_s(zone: str, hour: int) -> int:
    offset = from_epoch(hour * 3600).astimezone(ZoneInfo(zone)).utcoffset()
    return int((offset or timedelta()).total_seconds())


def _clock_shift_cells(zone: str, now: int, days: int) -> npt.NDArray[np.int64]:
    """Cells by which a day's same local time lies later in UTC, because the clocks were changed in between."""
    today = _utc_offset_s(zone, now * CELL_S // 3600)
    past = [_utc_offset_s(zone, (now - d * CELLS_A_DAY) * CELL_S // 3600) for d in range(1, days + 1)]
    return (today - np.array(past, dtype=np.int64)) // CELL_S
