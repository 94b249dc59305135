"""What a Prometheus answers → values, gaps or one clear error; never a silence that looks like pods that ended."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from leadtime.domain.errors import BadTrace, DependencyFailed, LeadtimeError
from leadtime.sources.prometheus import MOST_POINTS, Prometheus

Handler = Callable[[httpx2.Request], httpx2.Response]


def answer(values: list[tuple[float, str]], **more: Any) -> httpx2.Response:
    """A matrix of one series."""
    result = [{"metric": {"pod": "a", "job": "x"}, "values": values}]
    return httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def asked(handler: Handler, *, end_s: int = 3_600, step_s: int = 300) -> tuple[Prometheus, Any]:
    """The table of one query to a server that answers so."""
    with Prometheus(url="http://there/prefix/", transport=httpx2.MockTransport(handler)) as server:
        return server, server.range("up", ("pod", "uid"), start_s=0, end_s=end_s, step_s=step_s)


def test_labels_become_columns_and_what_is_not_finite_is_a_gap() -> None:
    server, table = asked(lambda _: answer([(0, "1.5"), (300, "NaN"), (600, "+Inf"), (900, "2")]))
    assert table.rows() == [("a", "", 0, 1.5), ("a", "", 900, 2.0)]
    assert server.gaps == 2


def test_a_long_span_is_asked_for_in_pieces_that_meet_and_do_not_overlap() -> None:
    spans = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        form = parse_qs(request.content.decode())
        assert request.url.path == "/prefix/api/v1/query_range"
        spans.append((int(form["start"][0]), int(form["end"][0])))
        return answer([])

    asked(handler, end_s=25_000 * 300)
    assert spans[0] == (0, (MOST_POINTS - 1) * 300)
    assert all(after[0] == before[1] + 300 for before, after in pairwise(spans))
    assert spans[-1][1] == 25_000 * 300
    assert max((end - start) // 300 + 1 for start, end in spans) == MOST_POINTS


@pytest.mark.parametrize("status", [422, 503])
def test_a_piece_that_is_too_much_is_halved(status: int) -> None:
    sizes = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        form = parse_qs(request.content.decode())
        size = int(form["end"][0]) - int(form["start"][0])
        sizes.append(size)
        if size > 20_000:
            return httpx2.Response(
                status, json={"status": "error", "error": "query processing would load too many samples"}
            )
        return answer([(float(form["start"][0]), "1")])

    _, table = asked(handler, end_s=86_400)
    assert sizes[0] == 86_400
    assert len(table) == len([size for size in sizes if size <= 20_000])


def slow(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadTimeout("slow")


def absent(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("refused")


@pytest.mark.parametrize(
    ("handler", "kind", "slug"),
    [
        (slow, DependencyFailed, "prometheus-failed"),
        (absent, DependencyFailed, "prometheus-unreachable"),
        (lambda _: httpx2.Response(500, text="<html>oops"), DependencyFailed, "prometheus-failed"),
        (lambda _: httpx2.Response(200, text="<html>log in"), DependencyFailed, "prometheus-failed"),
        (lambda _: httpx2.Response(401), DependencyFailed, "prometheus-denied"),
        (lambda _: answer([(0, "1")], warnings=["store b is down"]), DependencyFailed, "prometheus-partial"),
        (
            lambda _: httpx2.Response(400, json={"status": "error", "error": "parse error"}),
            BadTrace,
            "prometheus-refused",
        ),
    ],
)
def test_what_is_no_whole_answer_is_an_error(handler: Handler, kind: type[LeadtimeError], slug: str) -> None:
    with pytest.raises(kind) as raised:
        asked(handler)
    assert raised.value.slug == slug
    assert raised.value.exit_code == (3 if kind is DependencyFailed else 2)


def test_hints_are_no_warnings() -> None:
    _, table = asked(lambda _: answer([(0, "1")], infos=["metric might not be a counter"]))
    assert len(table) == 1
    assert json.dumps(table.rows()) == '[["a", "", 0, 1.0]]'
