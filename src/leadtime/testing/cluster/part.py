"""A command → a program of the cluster that can be started, stopped, killed, paused and resumed.

Programs end with the Python process that started them, even when that is killed (``setpriv`` asks the kernel for it
where it is installed).
"""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import httpx2

from leadtime.domain.errors import DependencyFailed

_LOWEST_PORT, _PORTS = 20_000, 12_000  # below the range from which kernels take ports of outgoing connections
_PROBE_EVERY_S = 0.05
_LINES_OF_LOG = 15

# One thread starts everything and lives as long as the process: the kernel's "end with my parent" means the thread.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="leadtime-cluster")


class PartFailed(DependencyFailed):
    """A part did not become ready, or ended by itself. The message carries the end of its log."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 on which nobody listens now."""
    draw = SystemRandom()
    for _ in range(200):
        port = _LOWEST_PORT + draw.randrange(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port found on 127.0.0.1 after 200 tries")


def http_ready(url: str, *, token: str = "") -> Callable[[], bool]:
    """A probe: 200 from ``url``. Certificates are not looked at: the programs sign their own."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ready() -> bool:
        try:
            answer = httpx2.get(url, verify=unchecked, headers=headers, timeout=2.0, trust_env=False)
        except httpx2.TransportError:
            return False
        return answer.status_code == 200

    return ready


@dataclass(slots=True, kw_only=True)
class Part:
    """One program. ``ready`` is asked until it says True; ``log`` receives both outputs, over all starts."""

    name: str
    command: tuple[str, ...]
    log: Path
    ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def running(self) -> bool:
        """True while the process lives (paused counts)."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id. Raises PartFailed when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise self._failed("it does not run")
        return self._process.pid

    @property
    def memory_mb(self) -> float:
        """Resident memory now, in MB (10⁶ bytes). Raises PartFailed when it does not run."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        resident_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(resident_kib) * 1024 / 1e6

    def start(self, *, within_s: float = 120.0) -> None:
        """Start and wait until it is ready. Raises PartFailed when it ends or is not ready within ``within_s``."""
        self.launch()
        self.await_ready(within_s=within_s)

    def launch(self) -> None:
        """Start without waiting. A part that runs already is left alone."""
        if not self.running:
            self._process = _SPAWNER.submit(self._spawn).result()

    def await_ready(self, *, within_s: float = 120.0) -> None:
        """Wait until it is ready. Raises PartFailed as ``start`` does."""
        ends_s = time.monotonic() + within_s
        while not self.ready():
            if not self.running:
                raise self._failed("it ended")
            if time.monotonic() > ends_s:
                raise self._failed(f"it was not ready within {within_s:.0f} s")
            time.sleep(_PROBE_EVERY_S)

    def stop(self, *, within_s: float = 10.0) -> None:
        """SIGTERM, and SIGKILL to what has not ended ``within_s`` later."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGCONT)  # or a paused one would not hear
        self._process.terminate()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, as when a machine dies; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: alive, holds its connections, does nothing; returns when it stands still.

        Raises PartFailed when it does not run.
        """
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # the kernel takes its time

    def resume(self) -> None:
        """SIGCONT, after ``pause``. Raises PartFailed when it does not run."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            raise self._failed("it does not run")
        self._process.send_signal(number)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        setpriv = shutil.which("setpriv")
        prefix = (setpriv, "--pdeathsig", "KILL") if setpriv else ()
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*prefix, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.log.parent), **self.environment},
            )

    def _failed(self, wrong: str) -> PartFailed:
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        tail = "\n".join(said[-_LINES_OF_LOG:])
        return PartFailed(
            "control-plane-part", f"running {self.name}", f"{wrong}; its last words:\n{tail}\n", f"read {self.log.name}"
        )
