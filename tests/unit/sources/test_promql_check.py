"""Queries are refused at load, in the parser's own words, with the place."""

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.sources.promql_check import BadQuery, check_query, guarded


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("sum(rate(x[5m])", "unclosed left parenthesis", 4),
        ("sum by (job) (rate(x[1m])) bby", "invalid promql query", 28),
        ('x{a=="b"}', "unexpected '=' in label matching, expected string", 3),
        ('up{job="x}', "unterminated quoted string", 8),
        ("rate(x[5q])", "bad number or duration syntax: 5q", 9),
        ("x[5m", "unexpected end of input inside brackets", 2),
        ("sum(x))", "unexpected right parenthesis ')'", 7),
        ("sum(x y)", "invalid promql query", 7),
        ("no_such_function(x)", "unknown function with name 'no_such_function'", 17),
        ("", "no expression found in input", 1),
    ],
)
def test_a_wrong_query_is_refused_in_the_parsers_words_with_the_place(text: str, words: str, place: int) -> None:
    with pytest.raises(BadQuery) as refused:
        check_query(text, of="forecast.query of serving/chat")
    assert (refused.value.slug, refused.value.exit_code) == ("promql-refused", 2)
    assert words in refused.value.wrong
    assert f"at character {place}:" in refused.value.wrong
    assert "forecast.query of serving/chat" in refused.value.doing


@pytest.mark.parametrize("text", ["x[5m]", "max_over_time(x[5m])[1h:1m]", '"text"'])
def test_what_has_no_value_at_an_instant_is_refused(text: str) -> None:
    with pytest.raises(BadQuery, match="gives no values at instants"):
        check_query(text)


def test_a_query_without_a_series_is_refused() -> None:
    with pytest.raises(BadQuery) as refused:
        check_query("vector(1) + time()")
    assert refused.value.slug == "promql-no-series"


def test_selectors_are_named_without_range_and_offset_each_once() -> None:
    query = check_query(
        'sum(rate(a_total{job="x",pod!=""}[5m] offset 1h)) / sum(rate(a_total{job="x",pod!=""}[5m])) + b'
    )
    assert query.selectors == ('a_total{job="x",pod!=""}', "b{}")


def test_a_bare_selector_repeats_its_last_value_and_a_bare_counter_is_named() -> None:
    assert check_query("sum(rate(a_total[1m]))").repeats is False
    bare = check_query("sum(a_total) / sum(rate(b_total[1m]))")
    assert (bare.repeats, bare.raw_counters) == (True, ("a_total",))


@given(st.text(alphabet='ab_(){}[]"=~5m ,+', max_size=24))
def test_any_text_is_either_a_query_or_refused_with_a_place_inside_it(text: str) -> None:
    try:
        query = check_query(text)
    except BadQuery as refused:
        if " at character " in refused.wrong:
            place = int(refused.wrong.rsplit(" at character ", 1)[1].split(":")[0])
            assert 1 <= place <= max(1, len(text))
    else:
        for selector in query.selectors:
            promql_parser.parse(selector)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(rate(a_total[1m]))", "sum((rate(a_total[1m]) and count_over_time(a_total[1m]) > 1))"),
        ("avg_over_time(a[1m])", "avg_over_time(a[1m])"),
        ("max_over_time(rate(a_total[1m])[1h:5m])",
         "max_over_time((rate(a_total[1m]) and count_over_time(a_total[1m]) > 1)[1h:5m])"),
    ],
)  # fmt: skip
def test_a_guarded_rate_asks_for_two_samples(text: str, expected: str) -> None:
    assert " ".join(guarded(text).split()) == expected
    assert check_query(guarded(text)).selectors == check_query(text).selectors
