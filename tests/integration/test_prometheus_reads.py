"""Real servers that hold a known history: each oddity becomes the right one of value, gap and Missing, never zero."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import measured_history as shop
import pytest
from metric_servers import KINDS, MetricServer, filled

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.metric_templates import Signal
from leadtime.sources.metric_templates_data import template
from leadtime.sources.prometheus import Ask, Prometheus, Read
from leadtime.sources.prometheus_demand import DemandAnswer, PrometheusDemand, demand_queries, own_query
from leadtime.sources.prometheus_findings import Finding, FindingKind
from leadtime.sources.prometheus_grid import Grid
from leadtime.sources.prometheus_options import Flavour, PrometheusOptions
from leadtime.sources.prometheus_survey import survey
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

WINDOW = TimeWindow(start=shop.START, end=shop.END)
LAG = timedelta(seconds=15)
WEB, PAY, OLD, GONE, IDLE, NOBODY = (
    WorkloadRef(namespace="shop", name=name) for name in ("web", "pay", "old", "gone", "idle", "nobody")
)


@pytest.fixture(scope="module", params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricServer]:
    """A server with the shop's history."""
    with filled(request, tmp_path_factory.mktemp("served"), shop.shop()) as server:
        yield server


def read(options: PrometheusOptions, promql: str, window: TimeWindow = WINDOW, step_s: int = 60) -> Read:
    """One read, at the window's end."""
    with PrometheusDoor(options) as door:
        ask = Ask(query=check_query(promql), window=window, unit=Unit.COUNT, step_s=step_s)
        return door.run(door.server.read(ask, window.end, TickBudget(60)))


def demand_of(options: PrometheusOptions, *refs: WorkloadRef, as_of: datetime = shop.END + LAG) -> DemandAnswer:
    """Demand of some workloads by the template, in the window."""

    async def asked() -> DemandAnswer:
        async with Prometheus(options) as server:
            queries = demand_queries(dict.fromkeys(refs, template("http_requests_total")))
            source = PrometheusDemand(server=server, queries=queries, with_resets=True)
            return await source.read_many(dict.fromkeys(refs, WINDOW), as_of, TickBudget(60))

    return asyncio.run(asked())


def values(answer: DemandAnswer, ref: WorkloadRef) -> list[float | None]:
    """The buckets of one workload."""
    series = answer.found[ref]
    assert isinstance(series, Series), series
    assert (series.start, series.step_s, series.unit) == (shop.START, 60, Unit.REQUESTS_PER_S)
    return list(series.values)


def kinds(findings: tuple[Finding, ...]) -> set[FindingKind]:
    """Their names."""
    return {each.kind for each in findings}


def close(served: MetricServer) -> float:
    """How near a rate must come: VictoriaMetrics' rate takes the sample before the range too, an eighth of a minute."""
    return 0.12 if served.flavour is Flavour.VICTORIAMETRICS else 1e-9


@pytest.fixture(scope="module")
def answer(served: MetricServer) -> DemandAnswer:
    """The demand of all workloads, by one query."""
    return demand_of(served.options(), WEB, PAY, OLD, GONE, IDLE, NOBODY)


def test_each_bucket_has_the_rate_of_its_own_minute(served: MetricServer, answer: DemandAnswer) -> None:
    """Two pods are added up, two scrapes of one pod are not; a value stands at its bucket's start."""
    got = values(answer, WEB)
    for minute in [*range(70), *range(71, 90), *range(101, 180)]:
        assert got[minute] == pytest.approx(shop.web_a(minute) + 3.0, rel=close(served)), minute


def test_a_scrape_gap_is_a_gap_and_no_minute_of_it_is_zero(served: MetricServer, answer: DemandAnswer) -> None:
    got = values(answer, WEB)
    assert got[90:100] == [None] * 10
    assert all(value is not None and value > 0 for value in [*got[:90], *got[100:]])
    assert FindingKind.GAPS in kinds(answer.findings)


def test_a_counter_that_begins_anew_gives_neither_a_dip_nor_a_peak(served: MetricServer, answer: DemandAnswer) -> None:
    got = values(answer, WEB)
    assert got[70] == pytest.approx(shop.web_a(70) + 3.0, rel=0.15)
    assert answer.resets[WEB] == (shop.RESET,)
    assert FindingKind.COUNTER_RESET in kinds(answer.findings)
    assert PAY not in answer.resets


def test_of_two_replicas_one_is_taken_and_where_they_differ_it_is_named(
    served: MetricServer, answer: DemandAnswer
) -> None:
    assert None not in values(answer, PAY)
    assert max(value or 0 for value in values(answer, PAY)) <= 6.0 + 1e-6
    (differ,) = [each for each in answer.findings if each.kind is FindingKind.REPLICAS_DISAGREE]
    assert 4 <= differ.count <= 6
    assert differ.at is not None
    assert abs(differ.at - shop.B_HIGH[0]) <= timedelta(minutes=1)
    assert "17% (6 and 5)" in differ.what


def test_a_series_that_ended_is_missing_from_its_end_on(answer: DemandAnswer) -> None:
    ended = shop.minute_of(shop.ENDED)
    got = values(answer, OLD)
    assert got[:ended] == pytest.approx([4.0] * ended)
    assert got[ended:] == [None] * (180 - ended)
    assert answer.missing[OLD].since == shop.ENDED


def test_zero_is_a_measurement(answer: DemandAnswer) -> None:
    assert values(answer, IDLE) == [0.0] * 180


def test_no_samples_in_the_window_is_not_the_same_as_no_such_series(answer: DemandAnswer) -> None:
    gone, nobody = answer.found[GONE], answer.found[NOBODY]
    assert isinstance(gone, Missing)
    assert isinstance(nobody, Missing)
    assert gone.reason == "the series exists but has no samples in the window"
    assert gone.since is not None
    assert abs(gone.since - shop.GONE) <= timedelta(minutes=10)
    assert (nobody.reason, nobody.since) == ("no such series in the last day", None)


def test_one_workload_is_asked_for_as_the_loop_asks(served: MetricServer) -> None:
    """Nothing after as_of − lag is shown, though the server has it; bit by bit gives what at once gives."""
    whole = demand_of(served.options(), WEB)
    queries = demand_queries({WEB: template("http_requests_total")})
    with PrometheusDoor(served.options()) as door:
        source = PrometheusDemand(server=door.server, queries=queries, door=door)
        pieces: list[float | None] = []
        start = shop.START
        for after in (timedelta(minutes=20, seconds=14), timedelta(minutes=20, seconds=15), timedelta(minutes=45)):
            series = source.demand(WEB, TimeWindow(start=start, end=shop.END), shop.START + after)
            assert isinstance(series, Series)
            assert series.start == start
            assert series.end + LAG <= shop.START + after
            pieces += list(series.values)
            start = series.end
        assert len(pieces) == 44
        assert pieces == values(whole, WEB)[:44]
        nothing = source.demand(WEB, TimeWindow(start=start, end=shop.END), start + LAG)
        assert isinstance(nothing, Series)
        assert len(nothing.values) == 0
        absent = source.demand(IDLE, WINDOW, shop.END)
        assert isinstance(absent, Missing)
        assert absent.reason == "no query is set for it"


def own(options: PrometheusOptions, name: str, promql: str) -> tuple[Series | Missing, tuple[Finding, ...]]:
    """A user's query for one workload."""
    ref = WorkloadRef(namespace="shop", name=name)
    with PrometheusDoor(options) as door:
        query = own_query(ref, promql, Unit.REQUESTS_PER_S)
        source = PrometheusDemand(server=door.server, queries=[query], door=door, budget_s=60)
        return source.demand(ref, WINDOW, shop.END + LAG), tuple(source.findings)


def test_a_pod_and_its_successor_are_one_series(served: MetricServer) -> None:
    series, findings = own(served.options(), "moved", "sum by (pod) (rate(moved_total[1m]))")
    assert isinstance(series, Series)
    assert series.values[:60] == pytest.approx([7.0] * 60)
    assert series.values[66:] == pytest.approx([8.0] * 114)
    assert series.values[61:65] == (None,) * 4
    assert FindingKind.LABELS_CHANGED in kinds(findings)


def test_two_series_at_once_are_neither_added_nor_chosen_from(served: MetricServer) -> None:
    series, findings = own(served.options(), "twins", "sum by (pod) (rate(twins_total[1m]))")
    assert isinstance(series, Missing)
    assert "add them up in the query" in series.reason
    assert FindingKind.AMBIGUOUS in kinds(findings)
    added, _ = own(served.options(), "twins", "sum(rate(twins_total[1m]))")
    assert isinstance(added, Series)
    assert added.values == pytest.approx([3.0] * 180)


def test_a_users_rate_says_no_zero_where_a_gap_begins(served: MetricServer) -> None:
    """VictoriaMetrics' own rate() would: the client asks for two samples in the range."""
    series, _ = own(served.options(), "old", 'sum(rate(http_requests_total{pod=~"old-.*"}[1m]))')
    assert isinstance(series, Series)
    assert 0.0 not in series.values
    assert series.values[shop.minute_of(shop.ENDED) :] == (None,) * (180 - shop.minute_of(shop.ENDED))


def test_what_is_not_finite_or_below_zero_is_a_gap(served: MetricServer) -> None:
    told = read(served.options(), "avg_over_time(odd[1m])")
    series = told.one()
    assert isinstance(series, Series)
    for minute, value in enumerate(series.values):
        expected = None if minute // 5 in {2, 4, 6, 8} else float(minute % 7)
        assert value == (expected if expected is None else pytest.approx(expected)), minute
    assert {FindingKind.NOT_FINITE, FindingKind.NEGATIVE} <= kinds(told.findings)


def test_a_series_that_exists_with_too_few_samples_says_so(served: MetricServer) -> None:
    missing = read(served.options(), 'rate(http_requests_total{pod=~"web.*"}[5s])').one()
    assert isinstance(missing, Missing)
    assert "too few samples for its range?" in missing.reason
    gone = read(served.options(), 'sum(rate(http_requests_total{pod=~"gone.*"}[1m]))').one()
    assert isinstance(gone, Missing)
    assert "its last sample is of 2026-03-02T03:59:52Z" in gone.reason
    never = read(served.options(), "sum(rate(no_such_metric_total[1m]))").one()
    assert isinstance(never, Missing)
    assert never.reason.startswith("no such series in the 30 days before")


def test_pieces_give_what_the_whole_gives(served: MetricServer) -> None:
    """More points than any server answers at once: the answer's refusal is halved, down to what it answers."""
    promql = 'avg_over_time(odd{pod!=""}[30s])'
    whole = read(served.options(most_points=20_000, smallest_piece_s=60), promql, step_s=1).series[0].values
    pieces = read(served.options(most_points=997), promql, step_s=1).series[0].values
    assert len(whole.values) == 10_800
    assert whole == pieces
    with PrometheusDoor(served.options(most_points=50_000, smallest_piece_s=600)) as door:
        grid = Grid(start_s=int(shop.START.timestamp()), step_s=1, count=12_000)
        found = door.run(door.server.range(check_query(promql), grid, TickBudget(60), non_negative=True))
    assert found.failed == ()
    if served.flavour is Flavour.PROMETHEUS:  # at most 11,000 points; VictoriaMetrics allows 30,000
        assert FindingKind.HALVED in kinds(found.findings)
    assert found.lines[0].values[1:10_801] == whole.values


def test_too_many_series_are_refused(served: MetricServer) -> None:
    missing = read(served.options(most_series=50), 'last_over_time(wide{n!=""}[1m])').one()
    assert isinstance(missing, Missing)
    assert missing.reason == "too-many-series: its answer has 60 series, more than 50"


def test_a_query_the_parser_takes_and_the_server_does_not_is_refused_in_the_servers_words(served: MetricServer) -> None:
    """Two series on each side of a division without saying which belong together."""
    missing = read(served.options(), "rate(twins_total[1m]) / ignoring(pod, instance) rate(twins_total[1m])").one()
    assert isinstance(missing, Missing)
    assert missing.reason.startswith("refused: it answered 422")


def test_a_survey_tells_what_is_there_and_what_lacks(served: MetricServer) -> None:
    async def asked() -> None:
        async with Prometheus(served.options()) as server:
            at = shop.END - timedelta(minutes=30)
            found = await survey(server, at)
        assert found.failure is None
        assert found.requests <= 17
        assert found.flavour is served.flavour
        requests = found.signal(Signal.REQUEST_RATE)
        (way,) = requests.ways
        assert (way.template.name, way.series) == ("http_requests_total", 7 - 1)  # old has ended
        assert way.sample_interval_s == pytest.approx(15)
        assert way.newest_lag_s == pytest.approx(8)
        assert (way.history_at_least_s, way.history_less_than_s) == (3_600, 6 * 3_600)
        assert found.too_short() == (requests,)
        gpu = found.signal(Signal.GPU_UTILISATION).missing
        assert gpu is not None
        assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in gpu.reason

    asyncio.run(asked())


def test_a_survey_names_lacking_labels_and_series_that_stopped(served: MetricServer) -> None:
    async def asked() -> None:
        async with Prometheus(served.options()) as server:
            late = await survey(server, shop.END + timedelta(hours=3))
        stopped = late.signal(Signal.REQUEST_RATE).missing
        assert stopped is not None
        assert stopped.reason.startswith("http_requests_total: no samples now; there were some at 2026-03-02T")
        assert stopped.since is not None

    asyncio.run(asked())


def test_equal_questions_get_equal_answers(served: MetricServer, answer: DemandAnswer) -> None:
    again = demand_of(served.options(), WEB, PAY, OLD, GONE, IDLE, NOBODY)
    assert again.found == answer.found
    assert [before == after for before, after in pairwise([answer.resets, again.resets])] == [True]
