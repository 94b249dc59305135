"""A real server behind a proxy that alters its real answers, killed and started again: nothing is zero or invented."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import measured_history as shop
import pytest
from lying_proxy import Answer, Exchange, LyingProxy, honest
from metric_servers import KINDS, MetricServer, filled

from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.prometheus import Ask, Prometheus, Read
from leadtime.sources.prometheus_findings import FindingKind
from leadtime.sources.prometheus_options import Flavour, OnPartial
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

QUERY = "sum(rate(http_requests_total[1m]))"  # of one pod: 3 requests/s
WINDOW = TimeWindow(start=shop.START, end=shop.START + timedelta(hours=1))
HOUR = [3.0] * 60

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module", params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricServer]:
    """A server with the history of one pod."""
    pods = [shop.counter("http_requests_total", shop.pod("web", 1), shop.constant(3.0))]
    with filled(request, tmp_path_factory.mktemp("served"), pods) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(served: MetricServer) -> Iterator[LyingProxy]:
    """In front of it."""
    with LyingProxy(served.url) as running:
        yield running


def read(served: MetricServer, proxy: LyingProxy, budget: TickBudget | None = None, **more: Any) -> Read:
    """One read of an hour, through the proxy."""
    options = served.options(url=proxy.url, flavour=served.flavour, **more)
    with PrometheusDoor(options) as door:
        ask = Ask(query=check_query(QUERY), window=WINDOW, unit=Unit.REQUESTS_PER_S)
        return door.run(door.server.read(ask, WINDOW.end, budget or TickBudget(60)))


def values(told: Read) -> list[float | None]:
    """The hour's minutes, rounded where a rate is not exact."""
    series = told.one()
    assert isinstance(series, Series), series
    assert (series.start, len(series.values)) == (WINDOW.start, 60)
    return [None if value is None else round(value, 6) for value in series.values]


def reason(told: Read) -> str:
    """Why there is nothing."""
    missing = told.one()
    assert isinstance(missing, Missing), missing
    assert missing.since == WINDOW.start
    return missing.reason


def kinds(told: Read) -> set[FindingKind]:
    """The names of its findings."""
    return {each.kind for each in told.findings}


def changed(change: Change) -> Callable[[Exchange], Answer]:
    """The real answer with its JSON changed."""
    return lambda exchange: exchange.honest().altered(change)


def samples(told: dict[str, Any]) -> list[list[Any]]:
    """Those of the only series."""
    return told["data"]["result"][0]["values"]  # type: ignore[no-any-return]


def test_the_truth_comes_through(served: MetricServer, proxy: LyingProxy) -> None:
    proxy.tell(honest)
    told = read(served, proxy)
    assert values(told) == HOUR
    assert told.findings == ()


# --- answers that are altered -------------------------------------------------------------------------------------


def test_samples_out_of_order_are_sorted_and_said(served: MetricServer, proxy: LyingProxy) -> None:
    proxy.tell(changed(lambda told: samples(told).reverse()))
    told = read(served, proxy)
    assert values(told) == HOUR
    assert kinds(told) == {FindingKind.OUT_OF_ORDER}


def test_samples_that_come_twice_count_once_and_contradictions_are_gaps(
    served: MetricServer, proxy: LyingProxy
) -> None:
    def twice(told: dict[str, Any]) -> None:
        samples(told).extend([list(samples(told)[7]), [samples(told)[9][0], "17"]])

    proxy.tell(changed(twice))
    told = read(served, proxy)
    assert values(told) == [*HOUR[:9], None, *HOUR[10:]]
    assert {FindingKind.REPEATED, FindingKind.REPEATED_DIFFERENTLY} <= kinds(told)


def test_timestamps_in_the_future_are_left_out(served: MetricServer, proxy: LyingProxy) -> None:
    def future(told: dict[str, Any]) -> None:
        samples(told).extend([[WINDOW.end.timestamp() + 60, "99"], [WINDOW.end.timestamp() + 86_400, "99"]])

    proxy.tell(changed(future))
    told = read(served, proxy)
    assert values(told) == HOUR
    assert [(each.kind, each.count) for each in told.findings] == [(FindingKind.FUTURE, 2)]


@pytest.mark.parametrize(("step", "known"), [("300", 12), ("30", 60), ("90", 20)])
def test_an_answer_on_another_step_keeps_what_was_asked_for(
    served: MetricServer, proxy: LyingProxy, step: str, known: int
) -> None:
    def other(exchange: Exchange) -> Answer:
        if "step" in exchange.form:
            exchange.form["step"] = [step]
        return exchange.honest()

    proxy.tell(other)
    told = read(served, proxy)
    got = values(told)
    assert len([value for value in got if value is not None]) == known
    assert set(got) <= {3.0, None}


def test_an_answer_on_another_grid_altogether_is_missing(served: MetricServer, proxy: LyingProxy) -> None:
    def moved(exchange: Exchange) -> Answer:
        for name in ("start", "end"):
            if name in exchange.form:
                exchange.form[name] = [str(int(exchange.one(name)) + 7)]
        return exchange.honest()

    proxy.tell(moved)
    told = read(served, proxy)
    assert FindingKind.OTHER_GRID in kinds(told)
    assert reason(told).startswith("no usable value: samples between the instants asked for were left out")


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-3", "three", None])
def test_a_value_that_is_none_is_a_gap(served: MetricServer, proxy: LyingProxy, text: str | None) -> None:
    def wrong(told: dict[str, Any]) -> None:
        samples(told)[20][1] = text

    proxy.tell(changed(wrong))
    assert values(read(served, proxy)) == [*HOUR[:20], None, *HOUR[21:]]


def test_a_warning_means_nothing_is_used_unless_the_policy_says_so(served: MetricServer, proxy: LyingProxy) -> None:
    proxy.tell(changed(lambda told: told.update(warnings=["store 10.0.0.7 is not reachable"])))
    told = read(served, proxy)
    assert reason(told) == "partial: its answer may be incomplete: store 10.0.0.7 is not reachable"
    told = read(served, proxy, on_partial=OnPartial.KEEP)
    assert values(told) == HOUR
    assert kinds(told) == {FindingKind.PARTIAL}


def test_half_the_samples_gone_are_gaps(served: MetricServer, proxy: LyingProxy) -> None:
    def fewer(told: dict[str, Any]) -> None:
        del samples(told)[10:40]

    proxy.tell(changed(fewer))
    told = read(served, proxy)
    assert values(told) == [*HOUR[:10], *[None] * 30, *HOUR[40:]]
    assert kinds(told) == {FindingKind.GAPS}


def test_the_newest_samples_gone_are_missing_since_then(served: MetricServer, proxy: LyingProxy) -> None:
    def fewer(told: dict[str, Any]) -> None:
        del samples(told)[50:]

    proxy.tell(changed(fewer))
    told = read(served, proxy)
    assert values(told) == [*HOUR[:50], *[None] * 10]
    missing = told.series[0].missing
    assert missing is not None
    assert missing.since == WINDOW.start + timedelta(minutes=50)
    assert kinds(told) == {FindingKind.ENDED}


def test_an_empty_answer_is_not_zero(served: MetricServer, proxy: LyingProxy) -> None:
    """The server's index says that the series is there."""

    def empty(exchange: Exchange) -> Answer:
        told = exchange.honest()
        return told if "step" not in exchange.form else told.altered(lambda json: json["data"].update(result=[]))

    proxy.tell(empty)
    assert "has samples in the window, but the query gives no value" in reason(read(served, proxy))


# --- answers that are none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "words", "requests"),
    [
        (500, b"panic", "server-error: it answered 500: panic", 4),
        (502, b"<html>bad gateway</html>", "server-error: it answered 502: <html>bad gateway</html>", 4),
        (503, b"", "server-error: it answered 503: an empty body", 4),
        (429, b"slow down", "rate-limited: it answered 429: slow down", 4),
        (401, b"", "denied: it answered 401", 1),
        (403, b"", "denied: it answered 403", 1),
        (404, b"404 page not found", "not-prometheus: it answered 404: 404 page not found", 1),
        (200, b"<!doctype html><title>Sign in</title>", "not-prometheus: it answered 200: <!doctype html>", 1),
        (200, b"", "not-prometheus: it answered 200: an empty body", 1),
        (200, b"[]", "not-prometheus: it answered 200: []", 1),
        (200, b'{"status":"error","errorType":"internal","error":"oops"}', "refused: it answered 200: internal", 1),
    ],
)
def test_what_is_no_answer_is_missing_in_its_own_words(  # noqa: PLR0917
    served: MetricServer, proxy: LyingProxy, status: int, body: bytes, words: str, requests: int
) -> None:
    proxy.tell(lambda _: Answer(status, body))
    assert reason(read(served, proxy)).startswith(words)
    assert len(proxy.seen) == requests


@pytest.mark.parametrize("cut", [0, 20, 1_000])
def test_a_body_cut_off_is_asked_for_again(served: MetricServer, proxy: LyingProxy, cut: int) -> None:
    def once(exchange: Exchange) -> Answer:
        told = exchange.honest()
        told.cut = cut if exchange.number == 1 else None
        return told

    proxy.tell(once)
    told = read(served, proxy)
    assert values(told) == HOUR
    assert kinds(told) == {FindingKind.RETRIED}


def test_a_body_cut_off_every_time_is_missing(served: MetricServer, proxy: LyingProxy) -> None:
    def always(exchange: Exchange) -> Answer:
        whole = exchange.honest()
        return Answer(200, whole.body[: len(whole.body) // 2])  # and the length says so: only the JSON is broken

    proxy.tell(always)
    assert reason(read(served, proxy)).startswith("cut: its answer is cut off after")


def test_no_answer_in_time_is_missing(served: MetricServer, proxy: LyingProxy) -> None:
    def silent(_: Exchange) -> Answer:
        waiting.wait(30)
        return Answer(200, b"", dropped=True)

    waiting = threading.Event()
    proxy.tell(silent)
    try:
        assert reason(read(served, proxy, timeout_s=0.2)) == "timeout: no answer within 0.2 s"
        told = read(served, proxy, TickBudget(0.3), timeout_s=30)
        assert reason(told).startswith("out-of-time: no answer in the 0.")
    finally:
        waiting.set()


def test_an_answer_larger_than_the_limit_is_not_read_to_its_end(served: MetricServer, proxy: LyingProxy) -> None:
    proxy.tell(lambda exchange: Answer(200, b" " * 3_000_000 + exchange.honest().body))
    assert reason(read(served, proxy, most_bytes=2**20)) == "too-much: its answer is larger than 1 MiB"


def test_a_piece_that_fails_is_a_gap_and_the_rest_is_there(served: MetricServer, proxy: LyingProxy) -> None:
    """Three pieces of 20 minutes; the middle one never comes."""
    middle = str(int((WINDOW.start + timedelta(minutes=21)).timestamp()))
    proxy.tell(lambda exchange: Answer(500, b"") if exchange.one("start") == middle else exchange.honest())
    told = read(served, proxy, most_points=20)
    assert values(told) == [*HOUR[:20], *[None] * 20, *HOUR[40:]]
    assert FindingKind.PIECE_FAILED in kinds(told)


def test_a_renewed_token_is_read_from_its_file(served: MetricServer, proxy: LyingProxy, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    def guarded(exchange: Exchange) -> Answer:
        if exchange.headers.get("authorization") == "Bearer new":
            return exchange.honest()
        file.write_text("new")
        return Answer(401, b"")

    proxy.tell(guarded)
    assert values(read(served, proxy, token_file=file)) == HOUR
    assert len(proxy.seen) == 2


@pytest.mark.parametrize(("ahead_s", "words"), [(90, "90 s ahead of ours"), (-40, "40 s behind ours"), (1, "")])
def test_a_wrong_clock_is_told_in_seconds_and_our_instant_counts(
    served: MetricServer, proxy: LyingProxy, ahead_s: int, words: str
) -> None:
    """The tick is about now; the window lies in the past, where the samples are."""
    now = datetime.now(UTC)

    def skewed(exchange: Exchange) -> Answer:
        told = exchange.honest()
        told.headers["date"] = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead_s), usegmt=True)
        return told

    proxy.tell(skewed)
    told = read(served, proxy, TickBudget(60, as_of=now))
    assert values(told) == HOUR
    skews = [each.what for each in told.findings if each.kind is FindingKind.CLOCK_SKEW]
    assert len(skews) == bool(words)
    assert all(
        words.split()[2] in what and abs(float(what.split(" is ")[1].split()[0]) - abs(ahead_s)) <= 2 for what in skews
    )


def test_no_more_requests_at_once_than_allowed(served: MetricServer, proxy: LyingProxy) -> None:
    busy, most, lock = 0, 0, threading.Lock()

    def counted(exchange: Exchange) -> Answer:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        told = exchange.honest()
        with lock:
            busy -= 1
        return told

    proxy.tell(counted)

    async def many() -> tuple[Read, ...]:
        async with Prometheus(served.options(url=proxy.url, flavour=served.flavour, concurrency=3)) as server:
            ask = Ask(query=check_query(QUERY), window=WINDOW, unit=Unit.REQUESTS_PER_S)
            return await server.read_many([ask] * 20, WINDOW.end, TickBudget(60))

    assert all(values(told) == HOUR for told in asyncio.run(many()))
    assert 1 <= most <= 3
    assert len(proxy.seen) == 20


# --- the server itself is killed (last: it comes back with what it had) ---------------------------------------------


def test_killed_in_the_middle_of_a_read_and_started_again_it_answers_the_same(
    served: MetricServer, proxy: LyingProxy
) -> None:
    def dying(exchange: Exchange) -> Answer:
        if exchange.number == 3:
            served.kill()
            starting.start()
        return exchange.honest()

    starting = threading.Thread(target=served.start)
    proxy.tell(dying)
    told = read(served, proxy, most_points=10, attempts=60, backoff_first_s=0.05, backoff_most_s=0.5)
    starting.join()
    assert values(told) == HOUR
    assert kinds(told) == {FindingKind.RETRIED}


def test_killed_and_not_started_again_the_part_that_was_read_stays(served: MetricServer, proxy: LyingProxy) -> None:
    """Newest first: the newest minutes are there, the older ones are gaps."""

    def dying(exchange: Exchange) -> Answer:
        if exchange.number == 3:
            served.kill()
        return exchange.honest()

    proxy.tell(dying)
    try:
        told = read(served, proxy, most_points=10)
        assert values(told) == [*[None] * 40, *HOUR[40:]]
        assert FindingKind.PIECE_FAILED in kinds(told)
        with PrometheusDoor(served.options()) as door:
            ask = Ask(query=check_query(QUERY), window=WINDOW, unit=Unit.REQUESTS_PER_S)
            dead = door.run(door.server.read(ask, WINDOW.end, TickBudget(60)))
        assert reason(dead).startswith("unreachable: ")
    finally:
        served.start()
    proxy.tell(honest)
    assert values(read(served, proxy)) == HOUR


def test_what_is_asked_is_what_the_flavour_knows(served: MetricServer, proxy: LyingProxy) -> None:
    proxy.tell(honest)
    read(served, proxy)
    expected = {"query", "start", "end", "step"}
    if served.flavour is Flavour.VICTORIAMETRICS:
        expected |= {"nocache", "latency_offset"}
    assert set(proxy.seen[0].form) == expected
    assert proxy.seen[0].path == "/api/v1/query_range"
