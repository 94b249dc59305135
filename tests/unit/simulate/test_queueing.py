"""The FIFO fluid, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.simulate.queueing import FluidQueue
from leadtime.simulate.recorder import WorkloadColumns


def played(steps: list[tuple[float, float]], *, patience_s: float = 30, slo_s: float = 5, limit: float | None = None):
    """Play (arrived, capacity) steps of 15 s from second 0; service takes 1 s."""
    queue = FluidQueue(patience_s=patience_s, service_s=1.0, slo_s=slo_s, limit=limit)
    book = WorkloadColumns(0)
    for i, (arrived, capacity) in enumerate(steps):
        book.begin_step(arrived)
        queue.step(i, 15.0 * i, 15.0, arrived=arrived, capacity=capacity, book=book)
    return queue, book


def test_enough_capacity_serves_all_at_once() -> None:
    _, book = played([(100, 100), (40, 90)])
    assert book.served == [100, 40]
    assert book.latency_sum == [100, 40]  # one second of service each, nobody waits
    assert book.unserved == [0, 0]
    assert book.late == [0, 0]


def test_half_the_capacity_makes_the_served_half_wait_a_quarter_of_a_step() -> None:
    queue, book = played([(100, 50)])
    # The 50 served arrive evenly over the first 7.5 s and are served evenly over 15 s: waits run from 0 to 7.5 s.
    assert book.served == [50]
    assert book.latency_sum[0] == pytest.approx(50 * (3.75 + 1.0))
    # Late means more than 4 s of waiting: the last 3.5 s of the ramp of 7.5 s.
    assert book.late[0] == pytest.approx(50 * 3.5 / 7.5)
    assert queue.waiting == pytest.approx(50)


def test_the_backlog_is_served_first_and_then_nobody_waits() -> None:
    queue, book = played([(100, 50), (30, 150)])
    # Step 2: backlog 50 served within 5 s (150 a step = 10/s); those arrivals (7.5..15 s) waited from 7.5 s
    # down to 20 - 15 = 5 s.
    assert book.served == [100, 30]
    assert book.latency_sum[0] == pytest.approx(50 * 4.75 + 50 * ((7.5 + 5) / 2 + 1))
    # Its own arrivals, 2/s, find 50 waiting: the queue is dry at 50/(10 - 2) = 6.25 s; 12.5 of them waited 5 s … 0 s.
    assert book.latency_sum[1] == pytest.approx(30 * 1.0 + 12.5 * 2.5)
    assert queue.waiting == 0


def test_without_capacity_everything_expires_after_the_patience_at_its_arrival_step() -> None:
    queue, book = played([(10, 0), (20, 0), (0, 0), (0, 0)])
    assert book.unserved == [10, 20, 0, 0]
    assert queue.waiting == 0


def test_nothing_expires_before_the_patience_is_over() -> None:
    queue, book = played([(10, 0), (20, 0)])
    # At 30 s the oldest has waited exactly 30 s: not longer than its patience.
    assert book.unserved == [0, 0]
    assert queue.waiting == 30


def test_a_patience_within_the_step_expires_a_part() -> None:
    queue, book = played([(15, 0), (0, 0)], patience_s=20)
    # At 30 s those who arrived before second 10 are gone.
    assert book.unserved == [pytest.approx(10), 0]
    assert queue.waiting == pytest.approx(5)


def test_steady_overload_serves_the_capacity_and_loses_the_rest_at_the_arrival_step() -> None:
    _, book = played([(130, 100)] * 40)
    middle = slice(12, 37)  # by then the queue holds as much as patience allows
    assert book.served[middle] == pytest.approx([100] * 25)
    assert book.unserved[middle] == pytest.approx([30] * 25)
    # Head of line has waited the whole patience: everybody served is late.
    assert book.late[middle] == pytest.approx([100] * 25)
    assert [s / 100 for s in book.latency_sum[middle]] == pytest.approx([31.0] * 25)


def test_the_queue_limit_turns_away_the_newest() -> None:
    queue, book = played([(100, 50), (100, 50)], limit=20)
    assert book.unserved == pytest.approx([30, 50])
    assert queue.waiting == pytest.approx(20)
    assert book.served == pytest.approx([70, 30])


def test_requests_from_before_the_recording_are_not_booked() -> None:
    queue = FluidQueue(patience_s=30, service_s=1, slo_s=5)
    queue.step(0, 0, 15, arrived=10, capacity=0, book=None)
    book = WorkloadColumns(1)
    book.begin_step(0)
    queue.step(1, 15, 15, arrived=0, capacity=100, book=book)
    assert book.served == [0]
    assert queue.waiting == 0


amounts = st.floats(min_value=0, max_value=1000)


@given(
    steps=st.lists(st.tuples(amounts, amounts), min_size=1, max_size=30),
    patience_s=st.sampled_from([0, 7, 15, 30, 100]),
    limit=st.sampled_from([None, 0.0, 50.0]),
)
def test_every_request_is_served_expired_rejected_or_waiting(
    steps: list[tuple[float, float]], patience_s: float, limit: float | None
) -> None:
    queue, book = played(steps, patience_s=patience_s, limit=limit)
    arrived = sum(a for a, _ in steps)
    accounted = sum(book.served) + sum(book.unserved) + queue.waiting
    assert accounted == pytest.approx(arrived, abs=1e-6)
    for i, (a, _) in enumerate(steps):
        assert book.served[i] + book.unserved[i] <= a + 1e-6
        assert -1e-9 <= book.late[i] <= book.served[i] + 1e-9
        assert book.latency_sum[i] <= book.served[i] * (patience_s + 1.0) + 1e-6
    assert sum(book.served) <= sum(c for _, c in steps) + 1e-6
