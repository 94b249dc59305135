"""The application without a browser: pages, parts, JSON, headers, errors."""

import json
import re

import pytest
from starlette.testclient import TestClient

from leadtime.dashboard.app import create_app, vendor_files
from leadtime.dashboard.serve import listen
from leadtime.domain.errors import BadLedger, WrongUse


@pytest.fixture(scope="module")
def client(incident_ledger):
    app = create_app({"recurring": incident_ledger, "again": incident_ledger}, live=False)
    with TestClient(app, base_url="http://127.0.0.1") as made:
        yield made


DECISION = "/ledgers/recurring/decisions/2026-03-02T05:06:00Z/workload:serving/chat"


def test_the_root_leads_to_the_first_ledger(client):
    assert client.get("/").url.path == "/ledgers/recurring"


def test_the_page_is_whole_without_scripts(client):
    page = client.get("/ledgers/recurring").text
    for fact in ("Prediction pays here", "06:05", "05:06", "NodesNeededAhead", "QueueBeforeCost", "1.12 × HPA alone"):
        assert fact in page
    assert page.count('<svg class="plot"') == 7
    assert "<noscript>" in page


def test_the_page_asks_nobody_else_and_has_no_inline_code(client):
    for path in ("/ledgers/recurring", DECISION):
        page = client.get(path).text
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
        assert not re.search(r"<script(?![^>]*\bsrc=)", page)
        assert not re.search(r"\son[a-z]+=|\sstyle=|<style", page)


def test_every_answer_forbids_code_from_elsewhere(client):
    for path in ("/ledgers/recurring", "/api/ledgers", "/static/page.css"):
        assert "default-src 'none'; script-src 'self'" in client.get(path).headers["content-security-policy"]


def test_a_foreign_host_name_is_refused(client):
    assert client.get("/ledgers/recurring", headers={"host": "evil.example"}).status_code == 400


def test_the_clock_in_the_address_hides_what_comes_after(client):
    page = client.get("/ledgers/recurring", params={"now": "2026-03-02T05:00:00Z"}).text
    assert "So far, up to 05:00" in page
    assert "NodesNeededAhead" not in page


def test_a_decision_has_a_page_and_a_drawer(client):
    whole = client.get(DECISION).text
    drawer = client.get(DECISION, headers={"HX-Request": "true"}).text
    assert whole.lstrip().startswith("<!doctype html>")
    assert drawer.lstrip().startswith("<article")
    for text in (whole, drawer):
        assert "What came of it" in text
        assert "sum(rate(requests_total[1m]))" in text


@pytest.mark.parametrize(
    ("path", "status", "cure"),
    [
        ("/ledgers/nowhere", 404, "open one of recurring, again"),
        ("/ledgers/recurring?now=yesterday", 400, "write it as 2026-03-02T06:05:00Z"),
        ("/ledgers/recurring/decisions/2026-03-02T05:06:30Z/workload:serving/chat", 400, "tick_times()"),
        ("/ledgers/recurring/decisions/2026-03-02T05:06:00Z/workload:a/b", 404, "follow a link of the table"),
        ("/ledgers/recurring/decisions/noon/workload:serving/chat", 404, "write it as 2026-03-02T06:05:00Z"),
        ("/ledgers/recurring/part/nothing", 404, "reload the page"),
    ],
)
def test_a_wrong_address_gets_one_sentence_with_the_cure(client, path, status, cure):
    answer = client.get(path)
    assert answer.status_code == status
    assert cure in answer.text
    assert "Traceback" not in answer.text


def test_json_errors_are_json(client):
    answer = client.get("/api/ledgers/nowhere/told")
    assert answer.status_code == 404
    assert answer.json()["slug"] == "page-no-such-ledger"


def test_the_json_says_what_the_page_says(client):
    told = client.get("/api/ledgers/recurring/told").json()
    assert told["verdict"] in client.get("/ledgers/recurring").text
    assert told["scores"]["hpa"]["unserved_ratio"] == 0.0312
    runs = client.get("/api/ledgers/recurring/decisions").json()
    assert [r["reason"] for r in runs if r["what"].startswith("room for")] == ["NodesNeededAhead"]
    assert client.get(runs[0]["href"]).status_code == 200


def test_the_tracks_share_one_grid_of_minutes(client):
    board = client.get("/api/ledgers/recurring/tracks").json()
    assert len(board["grid"]) == 225
    for track in board["tracks"]:
        for line in track.get("lines", ()):
            assert len(line["values"]) == 225


def test_the_report_is_given_as_written(client, synthetic):
    assert client.get("/api/ledgers/recurring/report").json() == json.loads(json.dumps(synthetic.report()))


def test_the_description_names_every_route(client):
    paths = client.get("/openapi").json()["paths"]
    assert set(paths) == {
        "/api/ledgers",
        "/api/ledgers/{ledger}/told",
        "/api/ledgers/{ledger}/tracks",
        "/api/ledgers/{ledger}/risk",
        "/api/ledgers/{ledger}/decisions",
        "/api/ledgers/{ledger}/decisions/{at}/{scope}",
        "/api/ledgers/{ledger}/report",
    }


def test_worlds_can_be_chosen(client):
    page = client.get("/ledgers/recurring", params={"worlds": ["hpa"]}).text
    assert "track-replicas-hpa" in page
    assert "track-replicas-oracle" not in page


def test_without_the_vendor_files_the_page_says_so(incident_ledger, monkeypatch):
    monkeypatch.setattr("leadtime.dashboard.app.vendor_files", lambda: False)
    with TestClient(create_app({"r": incident_ledger}, live=False), base_url="http://127.0.0.1") as client:
        page = client.get("/ledgers/r").text
    assert "npm was absent at build" in page
    assert "/vendor/" not in page
    assert page.count('<svg class="plot"') == 7
    assert isinstance(vendor_files(), bool)


def test_an_empty_ledger_says_that_nothing_is_there_yet(synthetic, tmp_path):
    path = synthetic.write_ledger(tmp_path / "empty.sqlite", end=synthetic.BEGIN, with_report=False)
    with TestClient(create_app({"e": path}, live=True), base_url="http://127.0.0.1") as client:
        answer = client.get("/ledgers/e")
    assert answer.status_code == 200
    assert "no tick is on record yet" in answer.text


def test_no_ledger_is_an_error_before_anything_is_served(tmp_path):
    with pytest.raises(BadLedger, match="no such file"):
        create_app({"x": tmp_path / "x.sqlite"}, live=False)


def test_a_taken_port_is_one_clear_line():
    with listen(0) as held, pytest.raises(WrongUse, match=r"the port is taken; .*--port 0"):
        listen(held.getsockname()[1])


def test_the_page_listens_on_this_machine_only():
    with listen(0) as held:
        assert held.getsockname()[0] == "127.0.0.1"
