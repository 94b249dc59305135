"""How a failure is judged, asked again, halved or given up: by canned answers. Real servers: tests/integration."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from leadtime.domain.errors import DependencyFailed, LeadtimeError, WrongUse
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.prometheus import Ask, Prometheus, RangeAnswer, Read
from leadtime.sources.prometheus_findings import FailureKind, FindingKind, merged
from leadtime.sources.prometheus_grid import Grid
from leadtime.sources.prometheus_options import Flavour, OnPartial, PrometheusOptions
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

Handler = Callable[[httpx2.Request], httpx2.Response]
UP = check_query("avg_over_time(up[1m])")
NOW = datetime(2026, 3, 2, 6, tzinfo=UTC)


def options(**more: Any) -> PrometheusOptions:
    """A server that is asked again after a hundredth of a second."""
    return PrometheusOptions(**{"url": "http://there/prefix/", "backoff_first_s": 0.001, **more})


def answer(values: list[tuple[float, str]], **more: Any) -> httpx2.Response:
    """A matrix of one series."""
    result = [{"metric": {"pod": "a", "job": "x"}, "values": values}]
    return httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def form_of(request: httpx2.Request) -> dict[str, str]:
    """The posted form."""
    return {name: values[0] for name, values in parse_qs(request.content.decode()).items()}


def ones(request: httpx2.Request) -> httpx2.Response:
    """The value 1 at every instant asked for."""
    form = form_of(request)
    start, end, step = (int(form[name]) for name in ("start", "end", "step"))
    return answer([(at, "1") for at in range(start, end + 1, step)])


def asked(handler: Handler, *, count: int = 13, budget_s: float = 60.0, **more: Any) -> RangeAnswer:
    """One range query to a server that answers so."""

    async def ask() -> RangeAnswer:
        async with Prometheus(options(**more), transport=httpx2.MockTransport(handler)) as server:
            return await server.range(UP, Grid(start_s=0, step_s=300, count=count), TickBudget(budget_s))

    return asyncio.run(ask())


def kinds(found: RangeAnswer | Read) -> list[FindingKind]:
    """The names of its findings."""
    return [each.kind for each in found.findings]


def test_a_long_span_is_asked_for_in_pieces_of_11000_points_newest_first() -> None:
    spans = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/prefix/api/v1/query_range"
        spans.append((int(form_of(request)["start"]), int(form_of(request)["end"])))
        return ones(request)

    found = asked(handler, count=25_000)
    assert spans[-1] == (0, 10_999 * 300)
    assert sorted(spans, reverse=True) == spans
    assert found.lines[0].values == (1.0,) * 25_000


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (422, "query processing would load too many samples into memory in query execution"),
        (503, "query timed out in query evaluation"),
        (400, "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution"),
        (422, "the query time range exceeds the limit (query length: 744h0m0s, limit: 721h0m0s)"),
        (422, "cannot select more than -search.maxSamplesPerQuery=1000 samples; possible solutions: … limit"),
        (413, "too large"),
    ],
)
def test_a_piece_that_is_too_much_is_halved(status: int, said: str) -> None:
    sizes = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        form = form_of(request)
        sizes.append(int(form["end"]) - int(form["start"]))
        if sizes[-1] > 20_000:
            return httpx2.Response(status, json={"status": "error", "errorType": "execution", "error": said})
        return ones(request)

    found = asked(handler, count=289)
    assert sizes[0] == 86_400
    assert found.lines[0].values == (1.0,) * 289
    assert set(kinds(found)) == {FindingKind.HALVED}
    assert found.failed == ()


def test_halving_ends_at_an_hour() -> None:
    def never(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(422, json={"status": "error", "errorType": "execution", "error": "too many samples"})

    found = asked(never, count=48)
    assert [failure.kind for _, failure in found.failed] == [FailureKind.TOO_MUCH] * 4
    assert sum(piece.count for piece, _ in found.failed) == 48


def slow(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadTimeout("slow")


def absent(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("refused")


def broken(status: int, text: str) -> Handler:
    """A server that says this."""
    return lambda _: httpx2.Response(status, text=text)


REFUSED = '{"status":"error","errorType":"bad_data","error":"1:5: parse error: unexpected limit"}'
MANY = '{"status":"error","errorType":"execution","error":"found duplicate series for the match group"}'
ODD = '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[7]}]}}'
FAILURES: Mapping[str, tuple[Handler, FailureKind, str, int]] = {
    "slow": (slow, FailureKind.TIMEOUT, "prometheus-failed", 1),
    "absent": (absent, FailureKind.UNREACHABLE, "prometheus-unreachable", 4),
    "500": (broken(500, "<html>oops"), FailureKind.SERVER_ERROR, "prometheus-failed", 4),
    "502": (broken(502, "bad gateway"), FailureKind.SERVER_ERROR, "prometheus-failed", 4),
    "429": (broken(429, ""), FailureKind.RATE_LIMITED, "prometheus-failed", 4),
    "login": (broken(200, "<html>log in"), FailureKind.NOT_PROMETHEUS, "prometheus-absent", 1),
    "moved": (broken(302, ""), FailureKind.NOT_PROMETHEUS, "prometheus-absent", 1),
    "404": (broken(404, "page not found"), FailureKind.NOT_PROMETHEUS, "prometheus-absent", 1),
    "cut": (broken(200, '{"status":"success","data":{"resul'), FailureKind.CUT, "prometheus-failed", 4),
    "odd": (broken(200, ODD), FailureKind.NOT_PROMETHEUS, "prometheus-absent", 1),
    "401": (broken(401, ""), FailureKind.DENIED, "prometheus-denied", 1),
    "403": (broken(403, "RBAC: access denied"), FailureKind.DENIED, "prometheus-denied", 1),
    "400": (broken(400, REFUSED), FailureKind.REFUSED, "prometheus-refused", 1),
    "422": (broken(422, MANY), FailureKind.REFUSED, "prometheus-refused", 1),
    "partial": (lambda _: answer([(0, "1")], warnings=["store b"]), FailureKind.PARTIAL, "prometheus-partial", 1),
    "nodes": (lambda _: answer([(0, "1")], isPartial=True), FailureKind.PARTIAL, "prometheus-partial", 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_no_whole_answer_has_its_kind_and_is_asked_again_only_where_that_may_help(name: str) -> None:
    handler, kind, slug, requests = FAILURES[name]
    served = []

    def counting(request: httpx2.Request) -> httpx2.Response:
        served.append(request)
        return handler(request)

    found = asked(counting)
    assert [failure.kind for _, failure in found.failed] == [kind]
    assert found.lines == ()
    assert len(served) == requests
    transport = httpx2.MockTransport(handler)
    with PrometheusDoor(options(), transport=transport) as door, pytest.raises(LeadtimeError) as raised:
        door.whole_range(UP.text, found.grid, TickBudget(20))
    assert (raised.value.slug, raised.value.exit_code) == (slug, 2 if kind is FailureKind.REFUSED else 3)
    assert isinstance(raised.value, WrongUse if kind is FailureKind.REFUSED else DependencyFailed)


def test_what_was_over_in_a_moment_costs_a_finding_and_no_value() -> None:
    answers = iter([httpx2.Response(500, text="oops"), httpx2.Response(200, text='{"status":"succ')])
    found = asked(lambda request: next(answers, None) or ones(request))
    assert found.lines[0].values == (1.0,) * 13
    assert [each.kind for each in found.findings] == [FindingKind.RETRIED] * 2


def test_no_wait_goes_beyond_the_ticks_time() -> None:
    found = asked(lambda _: httpx2.Response(429, headers={"Retry-After": "3600"}), budget_s=5)
    assert found.failed[0][1].kind is FailureKind.RATE_LIMITED
    assert "no time left to ask again" in found.failed[0][1].wrong


def test_when_the_ticks_time_is_spent_nothing_more_is_asked() -> None:
    served = []
    found = asked(lambda request: served.append(request) or ones(request), budget_s=0)
    assert served == []
    assert found.failed[0][1].kind is FailureKind.OUT_OF_TIME


def test_one_failed_piece_is_a_gap_and_the_others_have_their_values() -> None:
    def oldest_fails(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(500) if form_of(request)["start"] == "0" else ones(request)

    found = asked(oldest_fails, count=30, most_points=10)
    assert found.lines[0].values == (None,) * 10 + (1.0,) * 20
    assert kinds(found) == [FindingKind.PIECE_FAILED]


def test_warnings_are_refused_unless_the_policy_keeps_them() -> None:
    found = asked(lambda _: answer([(0, "1")], warnings=["store b is down"]), on_partial=OnPartial.KEEP)
    assert found.lines[0].values[0] == 1.0
    assert [(each.kind, each.what) for each in found.findings] == [
        (FindingKind.PARTIAL, "may be incomplete: store b is down")
    ]


def test_hints_are_no_warnings() -> None:
    found = asked(lambda _: answer([(0, "1")], infos=["a"], warnings=["PromQL info: metric might not be a counter"]))
    assert kinds(found) == [FindingKind.INFO, FindingKind.INFO]
    assert found.failed == ()


def test_too_many_series_and_too_many_bytes_are_refused() -> None:
    assert asked(ones, most_series=0).failed[0][1].kind is FailureKind.TOO_MANY_SERIES
    found = asked(ones, most_bytes=100)
    assert found.failed[0][1].kind is FailureKind.TOO_MUCH
    assert "larger than" in found.failed[0][1].wrong


def test_a_token_file_is_read_again_when_the_server_says_401(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    sent = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers["Authorization"])
        if sent[-1] == "Bearer new":
            return ones(request)
        file.write_text("new\n")
        return httpx2.Response(401)

    assert asked(handler, token_file=file).failed == ()
    assert sent == ["Bearer old", "Bearer new"]


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DependencyFailed, match=r"token file .*/none cannot be read") as raised:
        PrometheusDoor(options(token_file=tmp_path / "none")).__enter__()
    assert raised.value.slug == "prometheus-denied"


def test_a_ca_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for file in (tmp_path / "none", tmp_path / "ca.pem"):
        with pytest.raises(DependencyFailed, match=r"the CA file .* cannot be read") as raised:
            PrometheusDoor(options(ca_file=file)).__enter__()
        assert raised.value.slug == "prometheus-unreachable"


def test_user_tenant_and_what_only_one_kind_of_server_knows_are_sent() -> None:
    seen: list[tuple[httpx2.Headers, dict[str, str]]] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.headers, form_of(request)))
        return ones(request)

    asked(handler, username="me", password="secret", tenant="team-a", flavour=Flavour.THANOS)
    asked(handler, flavour=Flavour.VICTORIAMETRICS)
    asked(handler)
    assert seen[0][0]["X-Scope-OrgID"] == "team-a"
    assert seen[0][0]["Authorization"].startswith("Basic ")
    assert (seen[0][1]["dedup"], seen[0][1]["partial_response"]) == ("true", "false")
    assert seen[1][1]["nocache"] == "1"
    assert set(seen[2][1]) == {"query", "start", "end", "step"}
    assert "secret" not in repr(options(password="secret"))


def test_a_victoriametrics_is_known_by_its_answers_and_asked_again_as_one() -> None:
    forms = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        forms.append(form_of(request))
        told = ones(request)
        told.headers["X-Server-Hostname"] = "vm-0"
        return told

    found = asked(handler, count=30, most_points=10)
    assert found.lines[0].values == (1.0,) * 30
    assert ["nocache" in form for form in forms] == [False, True, True, True]
    assert forms[0]["start"] == forms[1]["start"]
    asked(handler, flavour=Flavour.PROMETHEUS)
    assert "nocache" not in forms[-1]


def reading(handler: Handler, ask: Ask, as_of: datetime, **more: Any) -> Read:
    """One read."""

    async def read() -> Read:
        async with Prometheus(options(**more), transport=httpx2.MockTransport(handler)) as server:
            return await server.read(ask, as_of, TickBudget(20, as_of=as_of))

    return asyncio.run(read())


def minutes(count: int, *, after_s: int = 0) -> Ask:
    """Minutes from 05:00 on."""
    start = NOW - timedelta(hours=1) + timedelta(seconds=after_s)
    window = TimeWindow(start=start, end=start + timedelta(minutes=count))
    return Ask(query=UP, window=window, unit=Unit.REQUESTS_PER_S, lag_s=15)


def test_a_value_at_t_belongs_to_the_bucket_that_ends_at_t_and_nothing_later_is_asked_for() -> None:
    forms = []
    read = reading(lambda request: forms.append(form_of(request)) or ones(request), minutes(600, after_s=30), NOW)
    series = read.one()
    assert isinstance(series, Series)
    assert int(forms[0]["end"]) + 15 <= NOW.timestamp()
    assert (series.start, series.end) == (NOW - timedelta(minutes=59), NOW - timedelta(minutes=1))
    assert int(forms[0]["start"]) == (series.start + timedelta(minutes=1)).timestamp()


def test_when_no_bucket_is_due_nothing_is_asked_and_nothing_is_missing() -> None:
    read = reading(absent, minutes(1), NOW - timedelta(minutes=59, seconds=30))
    series = read.one()
    assert isinstance(series, Series)
    assert (len(series.values), series.start) == (0, NOW - timedelta(hours=1))


def test_a_server_that_fails_is_missing_with_its_words() -> None:
    missing = reading(broken(500, "out of disk"), minutes(10), NOW).one()
    assert isinstance(missing, Missing)
    assert missing.reason == "server-error: it answered 500: out of disk"
    assert missing.since == NOW - timedelta(hours=1)


@pytest.mark.parametrize(("ahead_s", "words"), [(90, "90 s ahead of"), (-40, "40 s behind"), (2, "")])
def test_a_clock_that_is_not_ours_is_told_in_seconds(ahead_s: int, words: str) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        told = ones(request)
        told.headers["Date"] = (NOW + timedelta(seconds=ahead_s)).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return told

    read = reading(handler, minutes(10), NOW)
    skews = [each.what for each in read.findings if each.kind is FindingKind.CLOCK_SKEW]
    assert len(skews) == bool(words)
    assert all(words in what for what in skews)


def test_a_bare_selector_is_told_of_and_a_series_that_stands_twice_counts_once() -> None:
    def twice(request: httpx2.Request) -> httpx2.Response:
        told = ones(request).json()
        told["data"]["result"] *= 2
        return httpx2.Response(200, json=told)

    read = reading(twice, replace(minutes(10), query=check_query("up")), NOW)
    series = read.one()
    assert isinstance(series, Series)
    assert series.values == (1.0,) * 10
    assert {each.kind for each in read.findings} == {FindingKind.REPEATS, FindingKind.REPEATED_DIFFERENTLY}


def test_a_password_in_the_address_is_never_shown() -> None:
    found = asked(absent, url="http://me:secret@there/prefix", attempts=1)
    error = found.failed[0][1].error("http://me:secret@there/prefix")
    assert "secret" not in str(error)
    assert "http://there/prefix" in str(error)
    missing = reading(absent, minutes(10), NOW, url="http://me:secret@there", attempts=1).one()
    assert isinstance(missing, Missing)
    assert missing.source == "avg_over_time(up[1m]) (http://there)"


def test_findings_in_the_same_words_are_counted_together() -> None:
    found = asked(lambda request: answer([(0, "NaN"), (300, "NaN"), (600, "1")]), count=3)
    assert [(each.kind, each.count) for each in found.findings] == [(FindingKind.NOT_FINITE, 2)]
    assert merged([*found.findings, *found.findings])[0].count == 4


def test_the_door_cannot_be_used_inside_a_running_loop() -> None:
    async def inside() -> None:
        door = PrometheusDoor(options(), transport=httpx2.MockTransport(ones))
        coroutine = door.server.wire.ask("query", {}, TickBudget(1))
        with pytest.raises(RuntimeError):
            door.run(coroutine)
        coroutine.close()

    asyncio.run(inside())
