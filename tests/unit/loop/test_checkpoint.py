"""The checkpoint: what was saved comes back the same; anything else is refused in one clear line."""

import json

import pytest

from leadtime.domain.tick import LoopState
from leadtime.loop.checkpoint import BadCheckpoint, load, save
from leadtime.loop.memory import LoopMemory, QueueRecord, Raise, RaiseLog, pool_key
from leadtime.loop.tick import Ports, tick
from leadtime.policy import Policy
from leadtime.testing.builders import DEFAULT_AT, cluster, ref
from leadtime.testing.fakes import FakeSource, RecordingActuator
from leadtime.testing.scenario_runner import Load

CHAT = ref("serving/chat")


def source() -> FakeSource:
    snapshot = cluster().pool("gpu", nodes=65).workload("serving/chat", ready=480, minimum=480).snapshot()
    return FakeSource(snapshot, {CHAT: Load(base=1440.0, days=3).series("chat")})


def state() -> LoopState:
    ports = Ports(source=source(), actuator=RecordingActuator())
    return tick(DEFAULT_AT, ports, Policy(), LoopState(), DEFAULT_AT).state


def test_a_state_comes_back_and_the_next_tick_is_the_same() -> None:
    before = state()
    after = load(save(before))
    assert save(after) == save(before)
    ports = Ports(source=source(), actuator=RecordingActuator())
    later = DEFAULT_AT.replace(minute=11)
    one = tick(later, ports, Policy(), before, later)
    two = tick(later, ports, Policy(), after, later)
    assert one.tick == two.tick
    assert save(one.state) == save(two.state)


def test_small_records_come_back_equal() -> None:
    before = LoopState(
        ticks=3,
        scaling={"loop": LoopMemory(last_as_of=DEFAULT_AT)},
        queue_health={"online": QueueRecord(paused_by_us=True)},
        rate={"serving/chat": RaiseLog(raises=(Raise(at=DEFAULT_AT, pods=7),))},
        missing_since={"demand:serving/chat": DEFAULT_AT},
    )
    assert load(save(before)) == before


def test_another_format_version_is_refused_by_number() -> None:
    body = json.loads(save(LoopState()))
    body["leadtime_loop_state"] = 99
    with pytest.raises(BadCheckpoint, match="it has format 99, this version reads format 1"):
        load(json.dumps(body).encode())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00\xff", id="not text"),
        pytest.param(b"[]", id="another JSON"),
        pytest.param(b'{"leadtime_loop_state": 1}', id="nothing in it"),
        pytest.param(b'{"leadtime_loop_state": 1, "state": 3}', id="no state"),
        pytest.param(b'{"leadtime_loop_state":1,"state":{"!":"record","of":"os:system","fields":{}}}', id="a stranger"),
        pytest.param(
            b'{"leadtime_loop_state":1,"state":{"!":"record","of":"leadtime.loop.checkpoint:json","fields":{}}}',
            id="no record of ours",
        ),
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="loading the loop's checkpoint"):
        load(data)


def test_a_value_without_a_written_form_is_a_mistake_told_at_once() -> None:
    with pytest.raises(TypeError, match="object has no written form"):
        save(LoopState(scaling={"x": object()}))


def test_pool_keys_never_meet_workload_keys() -> None:
    assert pool_key("gpu") != CHAT.key
    assert ":" not in CHAT.key
