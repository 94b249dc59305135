"""A real process started, paused, killed; and one that does not come up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadtime.testing.cluster.part import Part, PartFailed, free_port

WAITS = 'echo up; touch "$0"; exec sleep 600'


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Part]:
    """Ready once it has written its file."""
    mark = tmp_path / "up"
    one = Part(
        name="sleeper",
        command=("/bin/sh", "-c", WAITS, str(mark)),
        log=tmp_path / "sleeper.log",
        ready=mark.exists,
    )
    yield one
    one.kill()


def state(part: Part) -> str:
    """The process's state as Linux tells it: T is stopped."""
    return Path(f"/proc/{part.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_it_is_ready_when_start_returns_and_is_not_started_twice(part: Part) -> None:
    part.start()
    first = part.pid
    part.start()
    assert (part.running, part.pid) == (True, first)
    assert part.memory_mb > 0.1


def test_paused_is_alive_and_resumed_goes_on(part: Part) -> None:
    part.start()
    part.pause()
    assert (part.running, state(part)) == (True, "T")
    part.resume()
    assert state(part) != "T"


def test_a_paused_one_can_be_stopped_and_killed(part: Part) -> None:
    part.start()
    part.pause()
    part.stop()
    assert not part.running
    part.start()
    part.pause()
    part.kill()
    assert not part.running


def test_nothing_can_be_asked_of_one_that_does_not_run(part: Part) -> None:
    for ask in (part.pause, part.resume, lambda: part.pid, lambda: part.memory_mb):
        with pytest.raises(PartFailed, match="it does not run"):
            ask()
    part.stop()  # stopping what does not run is no mistake
    part.kill()


def test_one_that_ends_at_once_tells_its_last_words(tmp_path: Path) -> None:
    one = Part(
        name="broken",
        command=("/bin/sh", "-c", "echo no such flag; exit 1"),
        log=tmp_path / "broken.log",
        ready=lambda: False,
    )
    with pytest.raises(PartFailed, match=r"it ended; its last words:\nno such flag"):
        one.start()


def test_one_that_never_gets_ready_is_given_up(part: Part) -> None:
    part.ready = lambda: False
    with pytest.raises(PartFailed, match="it was not ready within 0 s"):
        part.start(within_s=0.1)


def test_a_free_port_can_be_listened_on() -> None:
    assert 20_000 <= free_port() < 32_000
