"""The originals as programs: built from tests/oracles/NAME, spoken to in JSON lines."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from real_cluster import absent, progress, say

from leadtime.testing.control_plane.go_module import GoModule, NotInstallable, build

ORACLES = Path(__file__).parents[1] / "oracles"


def oracle(name: str, *, test_binary: bool) -> GoModule:
    """The module in tests/oracles/NAME."""
    return GoModule(
        name=f"oracle-{name}",
        folder=ORACLES / name,
        packages={name: "."},
        original="k8s.io/kubernetes",
        cold_minutes="3 to 7",
        test_binary=test_binary,
    )


def program(request: pytest.FixtureRequest, name: str, *, test_binary: bool) -> Path:
    """The path of tests/oracles/NAME's program, as ``built``."""
    return built(request, oracle(name, test_binary=test_binary), name)


def built(request: pytest.FixtureRequest, module: GoModule, name: str) -> Path:
    """A program's path, built if need be; skipped or failed with the reason where it cannot be."""
    try:
        with progress(request):
            return build(module, [name], report=say)[name]
    except NotInstallable as reason:
        absent(reason)


class Lines:
    """A running program: one JSON line in, one out."""

    def __init__(self, path: Path) -> None:
        env = {**os.environ, "GOMAXPROCS": "2"}
        self.process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, question: Any) -> Any:
        """Raises RuntimeError when the program ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(question) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.startswith((b"{", b"[")):
            raise RuntimeError(f"the oracle ended: {(line + self.process.stdout.read())[:4000]!r}")
        return msgspec.json.decode(line)

    def close(self) -> None:
        """It leaves by itself when its input ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)


@contextmanager
def running(request: pytest.FixtureRequest, name: str, *, test_binary: bool) -> Iterator[Lines]:
    """The program, closed at the end."""
    lines = Lines(program(request, name, test_binary=test_binary))
    yield lines
    lines.close()
