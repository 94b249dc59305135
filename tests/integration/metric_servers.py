"""Real servers with a history: Prometheus back-filled by promtool, VictoriaMetrics by its import; killed at will."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from measured_history import Measured, openmetrics, prometheus_text
from oracle_program import ORACLES, built

from leadtime.sources.prometheus_options import Flavour, PrometheusOptions
from leadtime.testing.cluster.part import free_port
from leadtime.testing.control_plane.go_module import GoModule

VICTORIAMETRICS = GoModule(
    name="victoriametrics",
    folder=ORACLES / "victoriametrics",
    packages={"victoria-metrics": "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics"},
    original="github.com/VictoriaMetrics/VictoriaMetrics",
    cold_minutes="2 to 5",
)


@dataclass(kw_only=True)
class MetricServer:
    """A program on a port of its own, with its data in ``folder``; ``healthy``: the path that says it is ready."""

    command: Sequence[str]
    flavour: Flavour
    healthy: str
    port: int = field(default_factory=free_port)
    scheme: str = "http"
    verify: Any = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def options(self, **more: Any) -> PrometheusOptions:
        """How leadtime reaches it, asked again quickly."""
        return PrometheusOptions(**{"url": self.url, "backoff_first_s": 0.01, **more})

    def start(self, accept: int = 200) -> None:
        """Run it and wait until it is ready, which it says with ``accept``."""
        command = [part.format(port=self.port) for part in self.command]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The transport waits for the port, longer each time.
        with httpx2.Client(transport=httpx2.HTTPTransport(retries=9, verify=self.verify), timeout=60) as client:
            while client.get(f"{self.url}{self.healthy}").status_code != accept:
                assert self.process.poll() is None

    def kill(self) -> None:
        """``kill -9``: nothing is written any more."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> None:
        """Let it end."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)


def prometheus_server(program: str, folder: Path, lines: Iterable[str], *more: str) -> MetricServer:
    """A Prometheus, not yet started, that holds ``lines`` (OpenMetrics)."""
    with (folder / "history.om").open("w", encoding="utf-8") as file:
        file.writelines(lines)
    seed = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "-q",
        str(folder / "history.om"),
        str(folder / "tsdb"),
    ]
    subprocess.run(seed, check=True, capture_output=True, timeout=300)
    (folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
               "--storage.tsdb.retention.time=100y", "--web.listen-address=127.0.0.1:{port}", "--log.level=error",
               "--web.enable-remote-write-receiver", *more]  # fmt: skip
    return MetricServer(command=command, flavour=Flavour.PROMETHEUS, healthy="/-/ready")


def victoriametrics_server(program: Path, folder: Path) -> MetricServer:
    """A VictoriaMetrics, not yet started and empty."""
    command = [str(program), f"-storageDataPath={folder / 'vm'}", "-httpListenAddr=127.0.0.1:{port}",
               "-retentionPeriod=100y", "-loggerLevel=ERROR", "-memory.allowedBytes=256MB"]  # fmt: skip
    return MetricServer(command=command, flavour=Flavour.VICTORIAMETRICS, healthy="/health")


def fill_victoriametrics(server: MetricServer, lines: Iterable[str]) -> None:
    """Import ``lines`` (Prometheus text, ms) and start it anew: what is younger than 5 s would not outlive a kill."""
    with httpx2.Client(timeout=60) as client:
        told = client.post(f"{server.url}/api/v1/import/prometheus", content="".join(lines).encode())
        assert told.status_code == httpx2.codes.NO_CONTENT, told.text
    server.stop()
    server.start()


KINDS = [
    "prometheus",
    # The first build takes minutes and counts as the first test's time.
    pytest.param("victoriametrics", marks=[pytest.mark.go, pytest.mark.slow, pytest.mark.timeout(2400)]),
]


@contextmanager
def filled(request: pytest.FixtureRequest, folder: Path, measured: Sequence[Measured]) -> Iterator[MetricServer]:
    """The kind of server that ``request.param`` names, running, with ``measured`` in it; stopped at the end."""
    if request.param == "prometheus":
        server = prometheus_server(request.getfixturevalue("prometheus"), folder, openmetrics(measured))
    else:
        server = victoriametrics_server(build_victoriametrics(request), folder)
    try:
        server.start()
        if server.flavour is Flavour.VICTORIAMETRICS:
            fill_victoriametrics(server, prometheus_text(measured))
        yield server
    finally:
        server.stop()


def build_victoriametrics(request: pytest.FixtureRequest) -> Path:
    """The program of tests/oracles/victoriametrics; skipped or failed with the reason where it cannot be built."""
    return built(request, VICTORIAMETRICS, "victoria-metrics")
