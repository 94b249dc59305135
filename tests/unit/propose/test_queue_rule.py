"""The queue rule, exactly as the policy states it."""

from datetime import UTC, datetime, timedelta

import pytest

from leadtime.domain.snapshot import QueueState
from leadtime.policy import Policy
from leadtime.propose.queue_rule import PendingSample, QueueJudgement, QueueLoad, QueueMemory, judge

AT = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
POLICY = Policy().queue
FITS = QueueLoad(forecast_pods=100, covered_pods=100)


def queue(pending: int = 0, covered: int = 0, oldest_s: float = 0.0) -> QueueState:
    return QueueState(
        name="online", pool="gpu", pending_pods=pending, covered_pending_pods=covered,
        oldest_uncovered_pending_s=oldest_s, low_priority_paused=False,
    )  # fmt: skip


def waited(uncovered: int, seconds_ago: int) -> QueueMemory:
    return QueueMemory(samples=(PendingSample(at=AT - timedelta(seconds=seconds_ago), uncovered=uncovered),))


def after(memory: QueueMemory, state: QueueState, load: QueueLoad = FITS, minutes: int = 0) -> QueueJudgement:
    return judge(state, load, memory, POLICY, AT + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("memory", "state", "load", "healthy"),
    [
        pytest.param(QueueMemory(), queue(), FITS, True, id="an empty queue is healthy"),
        pytest.param(waited(3, 300), queue(4), FITS, False, id="one more than five minutes ago is growth"),
        pytest.param(waited(4, 300), queue(4), FITS, True, id="as many as five minutes ago is no growth"),
        pytest.param(waited(3, 299), queue(4), FITS, True, id="growth is not claimed before five minutes are known"),
        pytest.param(waited(3, 300), queue(40, covered=37), FITS, True, id="covered pods are left out"),
        pytest.param(QueueMemory(), queue(1, oldest_s=300.0), FITS, False, id="exactly 300 s is too old"),
        pytest.param(QueueMemory(), queue(1, oldest_s=299.9), FITS, True, id="299.9 s is not"),
        pytest.param(
            QueueMemory(), queue(), QueueLoad(forecast_pods=101, covered_pods=100), False,
            id="a forecast above ready and arriving capacity is ill health",
        ),
        pytest.param(QueueMemory(), queue(), FITS, True, id="a forecast that just fits is not"),
    ],
)  # fmt: skip
def test_rule(memory: QueueMemory, state: QueueState, load: QueueLoad, healthy: bool) -> None:
    judged = after(memory, state, load)
    assert judged.health.healthy is healthy
    assert bool(judged.health.because) is not healthy


def test_two_clean_ticks_clear_the_alarm_and_one_does_not() -> None:
    ill = after(QueueMemory(), queue(1, oldest_s=400.0))
    once = after(ill.memory, queue(), minutes=1)
    twice = after(once.memory, queue(), minutes=2)
    assert [ill.health.healthy, once.health.healthy, twice.health.healthy] == [False, False, True]


def test_a_relapse_starts_the_count_again() -> None:
    ill = after(QueueMemory(), queue(1, oldest_s=400.0))
    once = after(ill.memory, queue(), minutes=1)
    again = after(once.memory, queue(1, oldest_s=400.0), minutes=2)
    clean = after(again.memory, queue(), minutes=3)
    assert not clean.health.healthy
    assert clean.health.clean_ticks == 1


@pytest.mark.parametrize("healthy", [True, False])
def test_stale_inputs_hold_health_and_clean_ticks_as_they_were(healthy: bool) -> None:
    memory = QueueMemory(healthy=healthy, clean_ticks=1)
    stale = QueueLoad(forecast_pods=0, covered_pods=0, stale="demand of serving/chat is missing")
    judged = after(memory, queue(9, oldest_s=999.0), stale)
    assert judged.health.healthy is healthy
    assert judged.memory == memory


def test_only_the_samples_the_rule_still_needs_are_kept() -> None:
    memory = QueueMemory()
    for minute in range(60):
        memory = after(memory, queue(), minutes=minute).memory
    assert len(memory.samples) == 6  # the newest one at least five minutes old, and the five after it
