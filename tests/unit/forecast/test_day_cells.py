"""Five-minute cells of days: gaps, forgetting, and local time across a clock change."""

from datetime import UTC, datetime

import numpy as np
import pytest

from leadtime.forecast import day_cells
from leadtime.forecast.day_cells import CELLS_A_DAY, DayCells

MIDNIGHT_S = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())


def fed(values: list[float | None], start_s: int = MIDNIGHT_S, max_days: int = 28) -> DayCells:
    state = day_cells.empty()
    for i, value in enumerate(values):
        state = day_cells.add(state, start_s + 60 * i, value, max_days)
    return state


def test_a_cell_is_the_mean_of_its_known_minutes() -> None:
    state = fed([1.0, 2.0, None, 3.0, 6.0, 9.0])
    assert state.cells.tolist() == [3.0]
    assert (state.open_sum, state.open_count) == (9.0, 1)


def test_a_cell_without_any_value_is_a_gap_and_not_zero() -> None:
    state = fed([4.0] * 5 + [None] * 5 + [0.0] * 5)
    assert state.cells[[0, 2]].tolist() == [4.0, 0.0]
    assert np.isnan(state.cells[1])


def test_a_hole_between_two_buckets_becomes_gaps() -> None:
    state = fed([4.0] * 5)
    state = day_cells.add(state, MIDNIGHT_S + 20 * 60, 8.0, 28)
    assert len(state.cells) == 4
    assert np.isnan(state.cells[1:]).all()


def test_leading_gaps_start_nothing() -> None:
    state = fed([None, None, 5.0])
    assert state.first == MIDNIGHT_S // 300
    assert len(state.cells) == 0


def test_a_history_that_starts_within_a_cell_keeps_the_part_it_saw() -> None:
    state = fed([7.0, 9.0], start_s=MIDNIGHT_S + 3 * 60)
    assert state.cells.tolist() == [8.0]


def test_days_beyond_the_limit_are_forgotten() -> None:
    state = fed([float(i // 1440) for i in range(4 * 1440)], max_days=2)
    assert len(state.cells) == 2 * CELLS_A_DAY + day_cells.SPARE_CELLS
    assert state.cells[0] == 1.0
    assert state.first is not None
    assert state.first * 300 + len(state.cells) * 300 == MIDNIGHT_S + 4 * 86_400


@pytest.mark.parametrize(
    ("zone", "row_of_hour"),
    [("UTC", {7: 7, 8: 8}), ("Europe/Berlin", {7: 8, 8: 9})],
    ids=["utc", "clocks went forward in between"],
)
def test_earlier_days_are_laid_beside_today_by_local_time(zone: str, row_of_hour: dict[int, int]) -> None:
    # Berlin's clocks went forward on 29 March 2026 at 01:00 UTC: 09:00 local is 08:00 UTC before and 07:00 UTC after.
    start_s = int(datetime(2026, 3, 28, tzinfo=UTC).timestamp())
    hours = [float(m % 1440 // 60) for m in range(1440 + 1440 + 7 * 60)]  # the hour in UTC; ends 30 March 07:00 UTC
    rows = day_cells.day_rows(fed(hours, start_s), back=12, ahead=24, max_days=28, zone=zone)
    assert rows.today.tolist() == [6.0] * 12
    yesterday, day_before = rows.rows[0, 12:], rows.rows[1, 12:]
    assert yesterday.tolist() == [7.0] * 12 + [8.0] * 12  # after the change: no shift
    assert day_before.tolist() == [float(row_of_hour[7])] * 12 + [float(row_of_hour[8])] * 12


def test_cells_outside_the_history_are_gaps() -> None:
    state = fed([1.0] * (1440 + 60))
    rows = day_cells.day_rows(state, back=24, ahead=6, max_days=28, zone="UTC")
    assert rows.rows.shape == (2, 30)
    assert np.isnan(rows.rows[0, :12]).all()  # before the first bucket
    assert (rows.rows[0, 12:] == 1.0).all()
    assert np.isnan(rows.rows[1]).all()
    assert np.isnan(rows.today[:0]).all()
