"""``leadtime forecast backtest --prometheus`` and a real Prometheus: judged as the same minutes in a file are."""

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
MINUTES = 4 * 1440
END = START + timedelta(minutes=MINUTES)
QUERY = "sum(shop_demand_rps)"


def rps(minute: int) -> float:
    """A wave of a day, and a step of the hour."""
    return round(130.0 - 70.0 * math.cos(2 * math.pi * minute / 1440) + 9.0 * (minute % 60 > 40), 6)


@pytest.fixture(scope="module")
def server(prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricServer]:
    """A running Prometheus that holds the demand of two pods, sampled each minute."""
    first = int(START.timestamp())
    history = [
        Measured(
            metric="shop_demand_rps", labels={"pod": pod, "job": "shop"},
            samples=[(first + 60 * minute + 7, share * rps(minute)) for minute in range(MINUTES)],
        )
        for pod, share in (("a", 0.25), ("b", 0.75))
    ]  # fmt: skip
    filled = prometheus_server(prometheus, tmp_path_factory.mktemp("backtest"), openmetrics(history))
    try:
        filled.start()
        yield filled
    finally:
        filled.stop()


def ask(server: MetricServer, *more: str, query: str = QUERY) -> list[str]:
    return ["forecast", "backtest", "--prometheus", server.url, "--query", query, "--models", "ets", *more]


def without_seconds(fields: dict[str, Any]) -> dict[str, Any]:
    """Everything but the name of the series and how long fits took."""
    for line in [*fields["models"].values(), fields["served"]]:
        del line["fit_s"]
    del fields["series"]
    return fields


def test_a_query_is_judged_as_the_same_minutes_in_a_file(
    server: MetricServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.csv"
    rows = (f"{(START + timedelta(minutes=m)).isoformat()},{rps(m)}\n" for m in range(MINUTES))
    file.write_text("t,v\n" + "".join(rows), encoding="utf-8")
    assert entry.run(ask(server, "--end", END.isoformat(), "--json")) == 0
    asked = json.loads(capsys.readouterr().out)
    assert asked["series"] == QUERY
    line = ["forecast", "backtest", str(file), "--time-column", "t", "--value-column", "v", "--models", "ets", "--json"]
    assert entry.run(line) == 0
    read = without_seconds(json.loads(capsys.readouterr().out))
    for key, value in without_seconds(asked).items():
        if key not in {"models", "served", "surges"}:
            assert value == (pytest.approx(read[key]) if isinstance(value, float) else read[key]), key
    for name, scored in asked["models"].items():
        assert scored == pytest.approx(read["models"][name]), name


def test_a_span_is_kept_to(server: MetricServer, capsys: pytest.CaptureFixture[str]) -> None:
    half = START + timedelta(minutes=MINUTES // 2)
    assert entry.run(ask(server, "--start", START.isoformat(), "--end", half.isoformat(), "--json")) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["origins"] == pytest.approx(0.4 * MINUTES / 2, abs=20)


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("shop_demand_rps", "backtest-no-series"),
        ("sum(nothing_rps)", "backtest-no-series"),
        ("sum(rate(shop_demand_rps[2m])", "promql-refused"),
        ("requests_total", "promql-raw-counter"),
    ],
)
def test_a_query_that_is_no_single_series_is_one_line(
    server: MetricServer, capsys: pytest.CaptureFixture[str], query: str, slug: str
) -> None:
    assert entry.run(ask(server, "--end", END.isoformat(), "--json", query=query)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert f"[{slug}]" in told.err


def test_a_server_that_is_not_there_is_exit_code_three(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["forecast", "backtest", "--prometheus", f"http://127.0.0.1:{free_port()}", "--query", QUERY]
    assert entry.run(line) == 3
    assert "[prometheus-unreachable]" in capsys.readouterr().err
