"""Pods added in the worst minute, and reversals a day."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.scorecard import pace


def test_floor_raises_are_summed_over_the_worst_sliding_minute(workload):
    # 10 at step 3, 12 at step 6 (45 s later: the same 60 s), 9 at step 10 (60 s after 6: another window)
    added = np.zeros(40)
    added[[3, 6, 10]] = 10, 12, 9
    assert pace.floor_pods_added_per_minute(workload(floor_added=added)) == 22.0


def test_raises_exactly_a_minute_apart_do_not_add_up(workload):
    added = np.zeros(40)
    added[[3, 7, 11]] = 20
    assert pace.floor_pods_added_per_minute(workload(floor_added=added)) == 20.0


def test_raises_in_the_dark_count_too(workload):
    added = np.zeros(40)
    added[3] = 25
    assert pace.floor_pods_added_per_minute(workload(floor_added=added, demand_rps=np.full(40, np.nan))) == 25.0


def test_what_the_floor_lifted_is_not_the_hpas(workload):
    # the floor lifts wanted from 10 to 30 at step 5; the HPA itself goes on to 34 at step 6
    wanted = np.array([10] * 5 + [30] + [34] * 34)
    floor = np.array([10] * 5 + [30] * 35)
    assert pace.hpa_pods_added_per_minute(workload(wanted=wanted, floor=floor)) == 4.0


def test_the_hpas_own_rise_counts_above_what_stood(workload):
    assert pace.hpa_pods_added_per_minute(workload(wanted=[10] * 20 + [18] * 20, floor=[10] * 40)) == 8.0


# steps of 15 s: 40 steps are 600 s
@pytest.mark.parametrize(
    ("wanted", "turns"),
    [
        pytest.param([1, 2, 3, 4], 0, id="up and up"),
        pytest.param([1, 2, 1], 1, id="up then down at once"),
        pytest.param([2, 1, 2], 1, id="down then up"),
        pytest.param([1, 2, 1, 2], 2, id="a see-saw turns twice"),
        pytest.param([1] + [2] * 40 + [1], 1, id="600 s between the moves are within 10 min"),
        pytest.param([1] + [2] * 41 + [1], 0, id="615 s are not"),
        pytest.param([5], 0, id="a single step"),
    ],
)
def test_a_reversal_is_a_move_against_the_one_before_within_ten_minutes(wanted, turns):
    assert len(pace.reversal_steps(np.array(wanted), step_s=15)) == turns


def test_reversals_are_given_per_day_of_scored_time(workload):
    # one turn in 40 steps = 10 min: 144 a day
    columns = workload(wanted=[1] * 10 + [2] * 10 + [1] * 20)
    assert pace.reversals_per_day(columns, np.ones(40)) == pytest.approx(144.0)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=100))
def test_turning_the_picture_upside_down_changes_no_reversal(wanted):
    values = np.array(wanted)
    assert list(pace.reversal_steps(values, step_s=15)) == list(pace.reversal_steps(-values, step_s=15))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_the_worst_minute_lies_between_the_largest_raise_and_all_of_them(workload, added):
    worst = pace.floor_pods_added_per_minute(workload(steps=len(added), floor_added=added))
    assert max(added) <= worst <= sum(added)
