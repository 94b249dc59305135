"""Durations, instants and filters as typed."""

from datetime import timedelta

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from leadtime.cli.options import parse_duration, parse_instant, parse_server_url, parse_where


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("1h", 3600), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("1D2H3M4S", 93_784), ("0s", 0)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", " ", "7", "d", "1.5h", "-1h", "1h 30m", "30m1h", "٣d", "1w", "9" * 400 + "d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_duration(text)


@given(st.text(max_size=20))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for parse in (parse_duration, parse_instant, lambda one: parse_where([one])):
        try:
            parse(text)
        except typer.BadParameter as refused:
            assert repr(text) in str(refused)  # noqa: PT017 - most texts are refused, some are read


def test_an_instant_without_offset_is_utc_and_one_at_the_end_of_time_is_refused() -> None:
    assert parse_instant("2026-03-02T06:05").isoformat() == "2026-03-02T06:05:00+00:00"
    with pytest.raises(typer.BadParameter):
        parse_instant("9999-12-31T23:59:59-05:00")


@pytest.mark.parametrize("text", ["prometheus:9090", "notaurl", "", "http://", "http:///path", "ftp://prometheus"])
def test_an_address_without_scheme_or_host_is_wrong_use_and_no_failed_server(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write http://prometheus:9090"):
        parse_server_url(text)
    assert parse_server_url("https://mimir.example/prometheus") == "https://mimir.example/prometheus"
