"""One battery for every place the loop reads from: nothing of the future, gaps are None, reading changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pytest

from leadtime.domain.lead_time import StageSample
from leadtime.domain.ports import Source
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow, from_epoch
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.scenario import Scenario
from leadtime.simulate.source import SimulatedSource
from leadtime.testing.builders import cluster as builder
from leadtime.testing.fakes import FakeSource

T0 = from_epoch(1_772_409_600)
END = T0 + timedelta(minutes=30)
CHAT = WorkloadRef(namespace="serving", name="chat")
NOBODY = WorkloadRef(namespace="serving", name="nobody")
LAG_S = 15.0
GAP_MINUTES = (7, 8)  # minutes without a value
RISE_MINUTE = 12  # from here on more pods and nodes are wanted, so stages pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A source, and how it is brought to an instant (time only goes forward)."""

    source: Source
    go_to: Callable[[datetime], None]


def demand_of(minute: int) -> float | None:
    if minute in GAP_MINUTES:
        return None
    return 0.0 if minute == 3 else 20.0 if minute < RISE_MINUTE else 120.0 + minute


def simulated() -> Seam:
    scenario = Scenario.model_validate(
        {
            "name": "small", "slo_s": 5, "service_time_s": 1, "metric_lag_s": LAG_S,
            "workloads": [{
                "name": "chat", "queue": "serving", "pool": "gpu", "capacity_per_pod_rps": 10, "min_replicas": 4,
                "max_replicas": 40, "image": {"name": "image", "p50_s": 20}, "weights": {"name": "w", "p50_s": 10},
            }],
            "pools": [{
                "name": "gpu", "gpus_per_node": 4, "static_nodes": 2, "max_nodes": 12,
                "stages": [{"name": "boot", "p50_s": 60}, {"name": "device-plugin", "p50_s": 40}],
            }],
        }
    )  # fmt: skip
    minutes = [demand_of(minute) for minute in range(31)]
    rps = np.repeat([np.nan if value is None else value for value in minutes], 4).astype(np.float64)
    trace = DemandTrace(start_s=int(T0.timestamp()), rps=rps)
    made = SimulatedCluster(scenario, {CHAT.key: trace}, seed=1, start_s=trace.start_s)
    return Seam(source=SimulatedSource(made), go_to=lambda at: made.advance(int(at.timestamp())))


def fake() -> Seam:
    snapshot = builder().pool("gpu", nodes=2, gpus_per_node=4).workload("serving/chat", ready=4, queue="serving")
    series = Series(
        name="demand", start=T0, step_s=60, values=tuple(demand_of(minute) for minute in range(31)),
        unit=Unit.REQUESTS_PER_S, lag_s=LAG_S,
    )  # fmt: skip
    samples = [
        StageSample(
            pool="gpu", workload=None, stage="boot", duration_s=60.0, censored=False, episode="gpu/1",
            ended_at=T0 + timedelta(minutes=RISE_MINUTE + i),
        )
        for i in (1, 1, 4, 9)
    ]  # fmt: skip
    return Seam(source=FakeSource(snapshot.snapshot(), {CHAT: series}, samples), go_to=lambda _at: None)


@pytest.fixture(params=[fake, simulated], ids=["fake", "simulated"])
def seam(request: pytest.FixtureRequest) -> Seam:
    made: Seam = request.param()
    return made


def everything(seam: Seam, as_of: datetime, start: datetime = T0) -> Series:
    """All that is visible at ``as_of`` from ``start`` on, whatever the window's end claims."""
    found = seam.source.demand(CHAT, TimeWindow(start=start, end=END + timedelta(days=1)), as_of)
    assert isinstance(found, Series)
    return found


def test_a_snapshot_is_about_the_instant_it_was_asked_for(seam: Seam) -> None:
    for minute in (0, 1, 20):
        at = T0 + timedelta(minutes=minute)
        seam.go_to(at)
        snapshot = seam.source.snapshot(at)
        assert snapshot.as_of == at
        (state,) = snapshot.workloads
        assert snapshot.workload(CHAT) is state
        assert snapshot.pool(state.pool).name == state.pool
        assert state.queue in {queue.name for queue in snapshot.queues}


@pytest.mark.parametrize("after_s", [75, 120, 149, 600, 1200])
def test_no_bucket_is_shown_before_its_end_and_lag_have_passed(seam: Seam, after_s: int) -> None:
    at = T0 + timedelta(seconds=after_s)
    seam.go_to(T0 + timedelta(seconds=after_s // 15 * 15))
    series = everything(seam, at)
    assert series.end + timedelta(seconds=series.lag_s) <= at
    assert len(series.values) == (after_s - 15) // 60
    assert (series.start, series.step_s, series.unit) == (T0, 60, Unit.REQUESTS_PER_S)


def test_an_earlier_as_of_hides_what_came_after_it(seam: Seam) -> None:
    seam.go_to(T0 + timedelta(minutes=20))
    assert len(everything(seam, T0 + timedelta(minutes=10)).values) == 9


def test_buckets_lie_within_the_window(seam: Seam) -> None:
    at = T0 + timedelta(minutes=20)
    seam.go_to(at)
    window = TimeWindow(start=T0 + timedelta(seconds=90), end=T0 + timedelta(seconds=330))
    series = seam.source.demand(CHAT, window, at)
    assert isinstance(series, Series)
    assert series.start >= window.start
    assert series.end <= window.end
    assert list(series.values) == [demand_of(minute) for minute in (2, 3, 4)]


def test_a_gap_is_none_and_zero_is_a_measurement(seam: Seam) -> None:
    at = T0 + timedelta(minutes=12)
    seam.go_to(at)
    values = list(everything(seam, at).values)
    assert values == [demand_of(minute) for minute in range(11)]
    assert [minute for minute, value in enumerate(values) if value is None] == list(GAP_MINUTES)
    assert values[3] == 0.0


def test_reading_bit_by_bit_gives_what_reading_at_once_gives(seam: Seam) -> None:
    pieces: list[float | None] = []
    start = T0
    for minute in range(2, 25):
        at = T0 + timedelta(minutes=minute, seconds=15)
        seam.go_to(at)
        new = everything(seam, at, start)
        assert new.start == start
        pieces += list(new.values)
        start = new.end
    assert pieces == list(everything(seam, T0 + timedelta(minutes=24, seconds=15)).values)


def test_when_no_bucket_is_new_nothing_is_missing(seam: Seam) -> None:
    """Half a minute later: everything that is due has been read. That is an empty series, not absent data."""
    at = T0 + timedelta(minutes=5, seconds=15)
    seam.go_to(at + timedelta(seconds=30))
    read_until = everything(seam, at).end
    again = everything(seam, at + timedelta(seconds=30), read_until)
    assert len(again.values) == 0
    assert again.start == read_until


def test_an_unknown_workload_is_missing_with_a_reason(seam: Seam) -> None:
    seam.go_to(T0 + timedelta(minutes=5))
    found = seam.source.demand(NOBODY, TimeWindow(start=T0, end=END), T0 + timedelta(minutes=5))
    assert isinstance(found, Missing)
    assert NOBODY.key in found.source
    assert found.reason


def test_stage_samples_come_once_each_and_never_early(seam: Seam) -> None:
    seen: list[StageSample] = []
    since = None
    for minute in range(0, 30, 2):
        at = T0 + timedelta(minutes=minute)
        seam.go_to(at)
        new = seam.source.stage_samples(since, at)
        assert all(sample.ended_at <= at and (since is None or sample.ended_at > since) for sample in new)
        seen += new
        since = at
    assert seen
    assert since is not None
    assert seen == list(seam.source.stage_samples(None, since))
    assert all(sample.duration_s >= 0 and sample.stage and sample.episode for sample in seen)


def test_reading_twice_gives_the_same_and_changes_nothing(seam: Seam) -> None:
    at = T0 + timedelta(minutes=16)
    seam.go_to(at)
    first = (seam.source.snapshot(at), everything(seam, at), list(seam.source.stage_samples(None, at)))
    second = (seam.source.snapshot(at), everything(seam, at), list(seam.source.stage_samples(None, at)))
    assert first == second
