"""The clock's schedule: medians of quarter hours of the days before, never of the day itself, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.simulate import cron
from leadtime.simulate.cron import DAY_S, SLOT_S, CronSchedule
from leadtime.simulate.demand_trace import DemandTrace

MIDNIGHT_S = 1_772_409_600
SLOTS_A_DAY = DAY_S // SLOT_S


def trace_of(days: list[dict[int, float]], *, first_day: int = 0) -> DemandTrace:
    """Whole days in steps of a quarter of an hour: 10 requests/s but for the slots given."""
    rps = np.full(len(days) * SLOTS_A_DAY, 10.0)
    for i, slots in enumerate(days):
        for slot, value in slots.items():
            rps[i * SLOTS_A_DAY + slot] = value
    return DemandTrace(start_s=MIDNIGHT_S + first_day * DAY_S, step_s=SLOT_S, rps=rps)


def schedule_of(trace: DemandTrace, day: int, *, lead_s: float = 0.0, days: int = 1) -> CronSchedule | None:
    """The schedule of the trace's ``day``-th day and those after it; 1 requests/s a pod at 100 %, 1 to 1,000 pods."""
    start_s = trace.start_s + day * DAY_S
    return cron.schedule(
        trace, start_s=start_s, end_s=start_s + days * DAY_S, lead_s=lead_s, capacity_per_pod_rps=1.0,
        target_ratio=1.0, min_replicas=1, max_replicas=1000,
    )  # fmt: skip


def floors(schedule: CronSchedule | None, factor: float = 1.0) -> list[int]:
    assert schedule is not None
    return [schedule.floor_at(schedule.start_s + i * SLOT_S, factor) for i in range(len(schedule.need))]


def test_a_slot_takes_the_median_over_the_days_of_its_highest_need() -> None:
    found = floors(schedule_of(trace_of([{24: 90.0}, {24: 50.0}, {24: 70.0}, {}]), 3))
    assert found[24] == 70
    assert found[:24] == [10] * 24
    assert found[25:] == [10] * (SLOTS_A_DAY - 25)


def test_within_a_slot_the_highest_minute_counts() -> None:
    minutes = np.full(2 * 1440, 10.0)
    minutes[6 * 60 + 7] = 33.0
    trace = DemandTrace(start_s=MIDNIGHT_S, step_s=60, rps=minutes)
    assert floors(schedule_of(trace, 1))[24] == 33


def test_at_most_seven_days_are_looked_at() -> None:
    # Eight days before: the oldest, with 1,000, no longer counts; of the other seven four had 20.
    days = [{24: 1000.0}] + [{24: 20.0}] * 4 + [{24: 12.0}] * 3 + [{}]
    assert floors(schedule_of(trace_of(days), 8))[24] == 20


def test_one_lead_early_each_floor_covers_what_comes_within_the_lead() -> None:
    trace = trace_of([{24: 90.0}, {}])
    found = floors(schedule_of(trace, 1, lead_s=50 * 60))  # 50 min are four slots, rounded up
    assert found[19:26] == [10, 90, 90, 90, 90, 90, 10]


def test_a_lead_that_reaches_past_midnight_looks_at_the_same_hour_of_the_day_before() -> None:
    # 00:15 of tomorrow is not known this evening; 00:15 of today already lies after the midnight it was written at.
    trace = trace_of([{1: 90.0}, {1: 500.0}, {}])
    assert floors(schedule_of(trace, 1, lead_s=1800))[-1] == 90


def test_the_factor_scales_the_schedule_and_rounds_up() -> None:
    schedule = schedule_of(trace_of([{}, {}]), 1)
    assert set(floors(schedule, 1.01)) == {11}
    assert set(floors(schedule, 0.5)) == {5}


def test_without_a_day_before_there_is_no_schedule() -> None:
    assert schedule_of(trace_of([{}]), 0) is None


def test_slots_no_day_before_has_seen_have_no_floor_and_outside_the_span_there_is_none() -> None:
    later = DemandTrace(start_s=MIDNIGHT_S + DAY_S // 2, step_s=SLOT_S, rps=np.full(SLOTS_A_DAY * 3 // 2, 10.0))
    schedule = cron.schedule(
        later, start_s=MIDNIGHT_S + DAY_S, end_s=MIDNIGHT_S + 2 * DAY_S, lead_s=0.0, capacity_per_pod_rps=1.0,
        target_ratio=1.0, min_replicas=1, max_replicas=1000,
    )  # fmt: skip
    assert floors(schedule) == [0] * (SLOTS_A_DAY // 2) + [10] * (SLOTS_A_DAY // 2)
    assert schedule is not None
    assert schedule.floor_at(schedule.start_s - 1, 1.0) == 0
    assert schedule.floor_at(schedule.start_s + DAY_S, 1.0) == 0


@settings(max_examples=40)
@given(
    day=st.integers(1, 4),
    lead_s=st.sampled_from([0.0, 900.0, 3170.0]),
    seed=st.integers(0, 1000),
    changed=st.floats(0, 500),
)
def test_only_days_before_count(day: int, lead_s: float, seed: int, changed: float) -> None:
    """The day itself and all that follows may be anything: the schedule is the same."""
    rng = np.random.default_rng(seed)
    trace = DemandTrace(start_s=MIDNIGHT_S, step_s=SLOT_S, rps=rng.uniform(1, 500, 5 * SLOTS_A_DAY))
    other = trace.rps.copy()
    other[day * SLOTS_A_DAY :] = changed
    one, two = (schedule_of(of, day, lead_s=lead_s) for of in (trace, replace(trace, rps=other)))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.need, two.need)


@pytest.mark.parametrize("days", [1, 2])
def test_in_a_longer_span_each_day_learns_from_the_ones_before_it(days: int) -> None:
    schedule = schedule_of(trace_of([{24: 40.0}, {24: 80.0}, {}]), 1, days=days)
    assert schedule is not None
    assert [schedule.need[24 + i * SLOTS_A_DAY] for i in range(days)] == [40.0, 60.0][:days]
