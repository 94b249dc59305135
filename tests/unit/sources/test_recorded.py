"""What the loop may see of a recorded series: whole minutes that have ended, and nothing later."""

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.demand_file import MinuteDemand
from leadtime.sources.recorded import RecordedDemand

T0 = datetime(2026, 3, 2, tzinfo=UTC)
CHAT = WorkloadRef(namespace="serving", name="chat")
DAY = TimeWindow(start=T0 - timedelta(days=1), end=T0 + timedelta(days=1))


def recorded(values: list[float], lag_s: float = 0.0) -> RecordedDemand:
    """Minutes from T0 on."""
    return RecordedDemand(CHAT, MinuteDemand(start=T0, values=np.array(values)), lag_s=lag_s)


def minutes(count: float) -> datetime:
    """T0 + count minutes."""
    return T0 + timedelta(minutes=count)


def test_a_minute_is_visible_when_it_is_over_not_before() -> None:
    source = recorded([1, 2, 3])
    assert isinstance(source.demand(CHAT, DAY, minutes(0.99)), Missing)
    seen = source.demand(CHAT, DAY, minutes(1))
    assert isinstance(seen, Series)
    assert (seen.start, seen.step_s, seen.values) == (T0, 60, (1.0,))


def test_a_lag_delays_it_further() -> None:
    source = recorded([1, 2, 3], lag_s=30)
    assert isinstance(source.demand(CHAT, DAY, minutes(1.49)), Missing)
    seen = source.demand(CHAT, DAY, minutes(2.5))
    assert isinstance(seen, Series)
    assert (seen.values, seen.lag_s) == ((1.0, 2.0), 30)


def test_missing_minutes_are_gaps_not_zeros() -> None:
    seen = recorded([1, float("nan"), 0]).demand(CHAT, DAY, minutes(3))
    assert isinstance(seen, Series)
    assert seen.values == (1.0, None, 0.0)


def test_only_whole_minutes_within_the_window_are_given() -> None:
    window = TimeWindow(start=minutes(0.5), end=minutes(2.5))
    seen = recorded([1, 2, 3, 4]).demand(CHAT, window, minutes(10))
    assert isinstance(seen, Series)
    assert (seen.start, seen.values) == (minutes(1), (2.0,))


def test_after_the_record_it_says_since_when_nothing_is_known() -> None:
    source = recorded([1, 2])
    late = source.demand(CHAT, TimeWindow(start=minutes(5), end=minutes(9)), minutes(9))
    early = source.demand(CHAT, TimeWindow(start=minutes(-5), end=minutes(-1)), minutes(9))
    assert isinstance(late, Missing)
    assert isinstance(early, Missing)
    assert (late.since, early.since) == (minutes(2), None)


def test_another_workload_is_missing_not_empty() -> None:
    answer = recorded([1]).demand(WorkloadRef(namespace="serving", name="embed"), DAY, minutes(9))
    assert isinstance(answer, Missing)
    assert "serving/embed" in answer.reason


@given(
    values=st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=30),
    other=st.lists(st.floats(min_value=0, max_value=1e6), max_size=30),
    as_of_s=st.integers(0, 3600),
    lag_s=st.sampled_from([0, 15, 90]),
)
def test_the_future_can_be_swapped_and_nobody_sees_it(values, other, as_of_s, lag_s) -> None:
    as_of = T0 + timedelta(seconds=as_of_s)
    ended = max(0, int((as_of_s - lag_s) // 60))
    swapped = [*values[:ended], *other] if ended < len(values) else values
    before = recorded(values, lag_s).demand(CHAT, DAY, as_of)
    after = recorded(swapped or [0.0], lag_s).demand(CHAT, DAY, as_of)
    assert before == after
