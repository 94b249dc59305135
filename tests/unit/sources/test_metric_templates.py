"""Templates: each is valid PromQL, names what it needs, and tells a workload from its pods' names."""

import re

import pytest

from leadtime.domain.series import Unit
from leadtime.sources.metric_templates import POD_OF, Kind, Signal, range_for
from leadtime.sources.metric_templates_data import TEMPLATES, template, templates_for
from leadtime.sources.promql_check import check_query


def test_every_signal_has_a_way_to_be_read_and_every_name_is_its_own() -> None:
    assert all(templates_for(signal) for signal in Signal)
    assert len({each.name for each in TEMPLATES}) == len(TEMPLATES)


@pytest.mark.parametrize("each", TEMPLATES, ids=lambda each: each.name)
def test_every_template_reads_what_it_says_and_repeats_nothing(each: object) -> None:
    made = template(each.name)  # type: ignore[attr-defined]
    query = made.query(range_s=75, namespaces=["shop", "a.b"], kind="StatefulSet")
    read = {selector.split("{")[0] for selector in query.selectors}
    assert read == set(made.metrics)
    assert query.repeats is False
    assert query.raw_counters == ()
    assert "[75s]" in query.text
    assert f'{made.workload}!=""' in query.text
    assert rf'{made.namespace}=~"a\\.b|shop"' in query.text


def test_demand_is_in_units_of_demand() -> None:
    units = {each.unit for signal in (Signal.REQUEST_RATE, Signal.TOKEN_RATE) for each in templates_for(signal)}
    assert units == {Unit.REQUESTS_PER_S, Unit.TOKENS_PER_S}


def test_copies_of_a_scrape_are_one_before_anything_is_summed() -> None:
    text = template("http_requests_total").query().text
    assert text.startswith("sum by (namespace,workload,prometheus_replica,replica) (label_replace(max without (job,")


def test_one_cluster_of_several_can_be_meant() -> None:
    assert 'pod!="",cluster="prod"}' in template("http_requests_total").query(only='cluster="prod"').text


def test_only_counters_have_resets() -> None:
    assert all((each.resets_query() is not None) == (each.kind is Kind.COUNTER) for each in TEMPLATES)


@pytest.mark.parametrize(
    ("kind", "pod", "workload"),
    [
        ("Deployment", "web-5d8f7c9b64-x7k2p", "web"),
        ("Deployment", "web-api-v2-6b474476c4-8qlmd", "web-api-v2"),
        ("Deployment", "db-0", None),
        ("StatefulSet", "db-0", "db"),
        ("StatefulSet", "db-main-12", "db-main"),
        ("DaemonSet", "agent-x7k2p", "agent"),
    ],
)
def test_a_workload_is_found_in_its_pods_names(kind: str, pod: str, workload: str | None) -> None:
    found = re.fullmatch(POD_OF[kind], pod)
    assert (found[1] if found else None) == workload


def test_more_namespaces_than_can_be_named_are_not_named() -> None:
    text = template("http_requests_total").query(namespaces=[f"n{i}" for i in range(60)]).text
    assert "=~" not in text
    assert check_query(text).text == text


def test_an_unknown_template_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="http_requests_total"):
        template("http_requests")


@pytest.mark.parametrize(("interval_s", "range_s"), [(5, 60), (15, 60), (30, 75), (60, 150), (120, 300)])
def test_a_range_holds_two_samples_even_when_one_is_late(interval_s: float, range_s: int) -> None:
    assert range_for(interval_s) == range_s
