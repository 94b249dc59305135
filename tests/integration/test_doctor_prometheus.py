"""``leadtime doctor`` and a real Prometheus: what is there, what lacks, capacity learned, a verdict with its number."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from measured_history import Measured, openmetrics
from metric_servers import MetricServer, free_port, prometheus_server

from leadtime.cli import entry

pytestmark = pytest.mark.slow
START = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 8
FULL, IDLE = 10.0, 0.05  # requests/s a pod of chat takes at full use, and what it uses without any
END = START + timedelta(days=DAYS)


def rps(minute: int) -> float:
    """By day 200 requests/s, by night 60; every noon twice as many, from one minute to the next, for an hour."""
    of_day = minute % 1440
    wave = 130.0 - 70.0 * math.cos(2 * math.pi * of_day / 1440)
    return wave * (2.2 if 720 <= of_day < 780 else 1.0)


def history() -> list[Measured]:
    """Eight days of one deployment, sampled each minute."""
    labels = {"namespace": "serving", "pod": "chat-7d9f8b6c5d-x2v4z", "job": "chat"}
    total, counted, ready, busy = 0.0, [], [], []
    first = int(START.timestamp())
    for minute in range(DAYS * 1440):
        at = first + 60 * minute + 7
        total += 60.0 * rps(minute)
        pods = 30.0 if 420 <= minute % 1440 < 1140 else 24.0
        counted.append((at, total))
        ready.append((at, pods))
        busy.append((at, min(1.0, IDLE + (1 - IDLE) * rps(minute) / pods / FULL)))
    deployment = {"namespace": "serving", "deployment": "chat", "job": "kube-state-metrics"}
    gpu = {**labels, "gpu": "0", "job": "dcgm"}
    return [
        Measured(metric="http_requests_total", labels=labels, samples=counted),
        Measured(metric="kube_deployment_status_replicas_ready", labels=deployment, samples=ready),
        Measured(metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels=gpu, samples=busy),
    ]


@pytest.fixture(scope="module")
def server(prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricServer]:
    """A running Prometheus that holds it."""
    filled = prometheus_server(prometheus, tmp_path_factory.mktemp("doctor"), openmetrics(history()))
    try:
        filled.start()
        yield filled
    finally:
        filled.stop()


def ask(server: MetricServer, *more: str) -> list[str]:
    """The command line."""
    return ["doctor", "--prometheus", server.url, "--until", END.isoformat(), "--json", *more]


@pytest.fixture(scope="module")
def answer(server: MetricServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What it says of the deployment with a lead of 40 min."""
    import contextlib
    import io

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = entry.run(ask(server, "--namespace", "serving", "--lead", "40m"))
    found: dict[str, Any] = json.loads(said.getvalue())
    assert code == int(found["found"])
    return found


def test_the_workload_is_found_by_itself(answer: dict[str, Any]) -> None:
    (one,) = answer["workloads"]
    assert one["name"] == "serving/chat"
    assert one["history_s"] == pytest.approx(DAYS * 86_400, abs=600)
    assert one["fit"] in {"fits", "partly"}, one["sentence"]
    gain = next(check for check in one["checks"] if check["check"] == "gain")
    assert gain["number"] >= 60  # the HPA alone is short for 40 minutes of every noon


def test_the_capacity_of_a_pod_is_learned_from_its_gpu(answer: dict[str, Any]) -> None:
    (one,) = answer["workloads"]
    truth = (0.70 - IDLE) * FULL / (1 - IDLE)
    assert one["capacity_told_by"] == "learned"
    assert one["capacity"]["lower"] <= truth <= one["capacity"]["upper"]
    assert one["capacity_per_pod"] == pytest.approx(truth / 0.70, rel=0.03)


def test_what_is_there_and_what_lacks_is_said_with_what_it_is_for(answer: dict[str, Any]) -> None:
    signals = {each["signal"]: each for each in answer["signals"]}
    assert signals["request-rate"]["ok"]
    assert "back at least 7 days" in signals["request-rate"]["sentence"]
    assert not signals["memory"]["ok"]
    assert signals["memory"]["needed_for"] == "failure forecasts"


def test_a_query_of_ones_own_and_a_lead_of_thirty_seconds(
    server: MetricServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code = entry.run(ask(server, "--query", "sum(rate(http_requests_total[2m]))", "--lead", "30s"))
    (one,) = json.loads(capsys.readouterr().out)["workloads"]
    assert (code, one["fit"]) == (1, "does not fit")
    assert "ready in 30 s" in one["sentence"]


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("sum(rate(http_requests_total[2m])", "promql-refused"),
        ("http_requests_total", "promql-raw-counter"),
        ("sum(rate(nothing_total[2m]))", "doctor-no-demand"),
    ],
)
def test_a_query_that_cannot_be_used_is_one_line(
    server: MetricServer, capsys: pytest.CaptureFixture[str], query: str, slug: str
) -> None:
    assert entry.run(ask(server, "--query", query)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"[{slug}]" in told.err


def test_a_server_that_is_not_there_is_exit_code_three(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert entry.run(["doctor", "--prometheus", f"http://127.0.0.1:{free_port()}"]) == 3
    assert "[prometheus-unreachable]" in capsys.readouterr().err
