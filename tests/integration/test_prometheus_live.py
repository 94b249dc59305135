"""A running Prometheus that samples come into: staleness, restarts, TLS and a password, as a controller meets them."""

import shutil
import ssl
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import measured_history as shop
import pytest
from metric_servers import (
    MetricServer,
    build_victoriametrics,
    fill_victoriametrics,
    prometheus_server,
    victoriametrics_server,
)
from prometheus_remote_writer import RemoteWriter

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.metric_templates_data import template
from leadtime.sources.prometheus import Ask, Read
from leadtime.sources.prometheus_demand import PrometheusDemand, demand_queries
from leadtime.sources.prometheus_options import PrometheusOptions
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

STALE = struct.unpack(">d", bytes.fromhex("7ff0000000000002"))[0]  # prometheus/prometheus model/value: StaleNaN
LIVE = shop.START + timedelta(hours=6)  # after all that was back-filled
WEB = WorkloadRef(namespace="shop", name="web")
USER, PASSWORD = "leadtime", "open sesame"
BCRYPT = "$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy"  # of PASSWORD, at the lowest cost


@pytest.fixture
def server(prometheus: str, tmp_path: Path) -> Iterator[MetricServer]:
    """A Prometheus with an hour of web, that takes remote writes."""
    history = [shop.counter("http_requests_total", shop.pod("web", 0), shop.constant(3.0))]
    made = prometheus_server(prometheus, tmp_path, shop.openmetrics(history))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def write(server: MetricServer, labels: Mapping[str, str], samples: Sequence[tuple[datetime, float]]) -> None:
    """Remote write of one series."""
    writer = RemoteWriter(f"{server.url}/api/v1/write")
    stamps = [int(at.timestamp() * 1000) for at, _ in samples]
    writer.send([{"metric": dict(labels), "values": [value for _, value in samples], "timestamps": stamps}])
    writer.close()


def scrapes(first: datetime, count: int, start: float, per_s: float) -> list[tuple[datetime, float]]:
    """A counter, every 15 s."""
    return [(first + timedelta(seconds=15 * i), start + 15 * i * per_s) for i in range(count)]


def read(options: PrometheusOptions, promql: str, window: TimeWindow) -> Read:
    """One read at the window's end."""
    with PrometheusDoor(options) as door:
        ask = Ask(query=check_query(promql), window=window, unit=Unit.COUNT)
        return door.run(door.server.read(ask, window.end, TickBudget(60)))


def test_tick_by_tick_the_loop_hears_new_minutes_then_of_an_outage_then_the_rest(server: MetricServer) -> None:
    labels = {"__name__": "http_requests_total", **shop.pod("web", 1)}
    first = LIVE + timedelta(seconds=7)
    write(server, labels, scrapes(first, 8, 100.0, 4.0))  # two minutes
    queries = demand_queries({WEB: template("http_requests_total")})

    def tick(minutes: int, start: datetime) -> Series | Missing:
        as_of = LIVE + timedelta(minutes=minutes, seconds=15)
        with PrometheusDoor(server.options(attempts=2)) as door:
            source = PrometheusDemand(server=door.server, queries=queries, door=door)
            return source.demand(WEB, TimeWindow(start=start, end=as_of), as_of)

    told = tick(2, LIVE)
    assert isinstance(told, Series)
    assert told.values == pytest.approx([4.0, 4.0])
    server.kill()
    outage = tick(3, told.end)
    assert isinstance(outage, Missing)
    assert outage.reason.startswith("unreachable: ")
    assert outage.since == told.end
    server.start()
    write(server, labels, scrapes(first + timedelta(minutes=4), 8, 100.0 + 4 * 240, 4.0))  # it was away for two minutes
    told = tick(6, told.end)
    assert isinstance(told, Series)
    assert (told.start, told.values) == (
        LIVE + timedelta(minutes=2),
        (None, None, pytest.approx(4.0), pytest.approx(4.0)),
    )


def test_a_bare_selector_repeats_its_value_for_five_minutes_unless_a_marker_ends_it(server: MetricServer) -> None:
    """Why templates look at ranges: only with a marker (a scrape that saw the target go) does it end at once."""
    at = LIVE + timedelta(seconds=50)
    write(server, {"__name__": "marked", "pod": "a"}, [(at, 7.0), (at + timedelta(seconds=15), STALE)])
    write(server, {"__name__": "unmarked", "pod": "a"}, [(at, 7.0)])
    window = TimeWindow(start=LIVE, end=LIVE + timedelta(minutes=10))
    marked, unmarked = (read(server.options(), name, window).one() for name in ("marked", "unmarked"))
    within = read(server.options(), "avg_over_time(unmarked[1m])", window).one()
    assert isinstance(marked, Series)
    assert isinstance(unmarked, Series)
    assert isinstance(within, Series)
    assert marked.values == (7.0, *[None] * 9)
    assert unmarked.values == (*[7.0] * 5, *[None] * 5)
    assert within.values == (7.0, *[None] * 9)
    assert check_query("unmarked").repeats
    assert not check_query("avg_over_time(unmarked[1m])").repeats


@pytest.mark.go
@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_victoriametrics_newest_half_minute_is_what_was_measured(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """By itself it would repeat there the value before: a rise would be seen half a minute late."""
    server = victoriametrics_server(build_victoriametrics(request), tmp_path)
    now = datetime.now(UTC).replace(microsecond=0)
    end = now - timedelta(seconds=now.timestamp() % 15)
    rising = [(end + timedelta(seconds=15 * i), float(i)) for i in range(-20, 1)]
    lines = [f'rising{{pod="a"}} {value} {int(at.timestamp() * 1000)}\n' for at, value in rising]
    try:
        server.start()
        fill_victoriametrics(server, lines)
        ask = Ask(query=check_query("max_over_time(rising[15s])"), window=TimeWindow(start=rising[0][0], end=end),
                  unit=Unit.COUNT, step_s=15, non_negative=False)  # fmt: skip
        with PrometheusDoor(server.options()) as door:
            series = door.run(door.server.read(ask, end, TickBudget(60))).one()
        assert isinstance(series, Series)
        assert series.values == tuple(value for _, value in rising[1:])
    finally:
        server.stop()


def test_tls_with_a_private_authority_and_a_password(prometheus: str, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH: no certificate can be made for the server")
    certificate = tmp_path / "ca.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key.pem"), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    web = {"tls_server_config": {"cert_file": "ca.pem", "key_file": "key.pem"}, "basic_auth_users": {USER: BCRYPT}}
    (tmp_path / "web.yml").write_text(str(web), encoding="utf-8")  # YAML reads it too
    history = shop.openmetrics([shop.counter("http_requests_total", shop.pod("web", 0), shop.constant(3.0))])
    server = prometheus_server(prometheus, tmp_path, history, f"--web.config.file={tmp_path / 'web.yml'}")
    server.scheme, server.verify = "https", ssl.create_default_context(cafile=certificate)
    window = TimeWindow(start=shop.START, end=shop.START + timedelta(minutes=5))
    promql = "sum(rate(http_requests_total[1m]))"
    try:
        server.start(accept=401)
        known = {"ca_file": certificate, "username": USER, "password": PASSWORD}
        series = read(server.options(**known), promql, window).one()
        assert isinstance(series, Series)
        assert series.values == pytest.approx([3.0] * 5)
        for wrong, words in ((known | {"password": "guess"}, "denied: it answered 401"),
                             (known | {"ca_file": None}, "unreachable: [SSL: CERTIFICATE_VERIFY_FAILED]")):  # fmt: skip
            missing = read(server.options(attempts=1, **wrong), promql, window).one()
            assert isinstance(missing, Missing)
            assert missing.reason.startswith(words)
    finally:
        server.stop()
