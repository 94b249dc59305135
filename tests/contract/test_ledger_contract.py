"""One battery for every place ticks go to: what a TickSink keeps comes back, in order, equal for equal ticks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leadtime.domain.decision import Agent, Decision, Proposal, SetFloor
from leadtime.domain.evidence import Explanation
from leadtime.domain.ports import TickSink
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef, workload_scope
from leadtime.domain.snapshot import ClusterSnapshot
from leadtime.domain.tick import Tick
from leadtime.ledger import wire
from leadtime.ledger.reader import LedgerReader
from leadtime.ledger.records import LedgerMeta
from leadtime.ledger.sqlite import SqliteLedger

T0 = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
REF = WorkloadRef(namespace="serving", name="chat")


def tick_at(minute: int) -> Tick:
    as_of = T0 + timedelta(minutes=minute)
    why = Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence=f"tick {minute}: „500“ needed, 480 ready")
    floor = SetFloor(workload=REF, replicas=500 + minute, expires_at=as_of + timedelta(minutes=15))
    scope = workload_scope(REF)
    return Tick(
        as_of=as_of, recorded_at=as_of, policy_hash="x", assessments=(), queue_health=(), evidence=(), verdicts=(),
        snapshot=ClusterSnapshot(as_of=as_of, workloads=(), pools=(), queues=()),
        proposals=(Proposal(id="p", agent=Agent.SCALING, scope=scope, action=floor, why=why),),
        decisions=(Decision(scope=scope, proposal_id="p", action=floor, why=why),), outcomes=(),
    )  # fmt: skip


class ListSink:
    """The sink a test uses: a list."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []

    def append(self, tick: Tick) -> None:
        self.ticks.append(tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A sink and the way to read back what it kept, as plain dicts."""

    sink: TickSink
    read: Callable[[], Sequence[dict[str, Any]]]


@pytest.fixture(params=["list", "sqlite"])
def seam(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "list":
        kept = ListSink()
        yield Seam(sink=kept, read=lambda: [wire.decode_tick(wire.encode_tick(tick)) for tick in kept.ticks])
        return
    path = tmp_path / "ticks.sqlite"
    meta = LedgerMeta(kind="run", scenario="", seed=0, policy_hash="x", workloads=(REF.key,))
    with SqliteLedger.create(path, meta) as ledger, LedgerReader(path) as reader:
        yield Seam(sink=ledger, read=reader.ticks)


def test_what_is_appended_can_be_read_at_once(seam):
    seam.sink.append(tick_at(0))
    assert len(seam.read()) == 1


def test_ticks_come_back_in_the_order_of_time(seam):
    for minute in range(5):
        seam.sink.append(tick_at(minute))
    assert [tick["as_of"] for tick in seam.read()] == [f"2026-03-02T06:0{minute}:00Z" for minute in range(5)]


def test_nothing_of_a_tick_is_lost(seam):
    tick = tick_at(3)
    seam.sink.append(tick)
    kept = seam.read()[0]
    assert set(kept) == set(Tick.__dataclass_fields__) - {"risks", "pod_ends"}  # empty ones are left out
    assert kept == wire.decode_tick(wire.encode_tick(tick))
    assert kept["decisions"][0]["action"]["replicas"] == 503
    assert kept["decisions"][0]["why"]["sentence"] == "tick 3: „500“ needed, 480 ready"


def test_equal_ticks_are_kept_equal(seam):
    seam.sink.append(tick_at(0))
    seam.sink.append(replace(tick_at(0), as_of=T0 + timedelta(minutes=1)))
    first, second = seam.read()
    assert {name for name in first if first[name] != second[name]} == {"as_of"}
