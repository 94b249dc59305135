"""report.html: one file, no script, nothing fetched, and the answers a reader asks for."""

import re
from html.parser import HTMLParser

import pytest

from leadtime.simulate.report import build_report
from leadtime.simulate.report_charts import find_focus
from leadtime.simulate.report_html import build_html

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Collects tags, attributes and ids, and checks that every tag is closed by its own."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open = set(), [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(incident):
    return build_html(build_report(incident()))


def test_the_page_needs_nothing_from_outside_and_runs_no_script(page):
    parsed = Page(page)
    assert not parsed.tags & {"script", "link", "img", "iframe", "object"}
    assert [
        found for found in parsed.attributes if found[1] in ("src", "srcset", "data") or found[1].startswith("on")
    ] == []
    assert [value for _, name, value in parsed.attributes if name == "href" and not value.startswith("#")] == []
    assert not re.search(r"url\(|@import|https?://", page)


def test_every_world_stands_beside_the_others_in_the_score_card(page):
    for name in ("HPA alone", "HPA at leadtime&#39;s cost", "cron floors", "leadtime", "oracle"):
        assert name in page


def test_a_reader_finds_when_the_hpa_reacted_and_why_leadtime_did(page):
    assert "2 Mar 06:05:30" in page
    assert "489 pods are needed in 14 min, 480 are ready" in page
    assert "efficiency (Outranked)" in page


def test_text_from_a_decision_cannot_become_markup(page):
    assert "&lt;queue serving&gt;" in page
    assert "<queue" not in page


def test_a_null_is_shown_as_a_dash_with_its_reason(page):
    assert "the ceiling lies less than 3 points above the naive forecast" in page


def test_each_chart_says_in_words_what_it_shows(page):
    spoken = [value for tag, name, value in Page(page).attributes if tag == "svg" and name == "aria-label"]
    assert len(spoken) == 3 + 5 + 5
    assert all(" up to " in words for words in spoken)


def test_a_run_without_leadtime_still_makes_a_page(incident):
    text = build_html(build_report(incident(runs={"hpa": incident().runs["hpa"]}, digests=[])))
    assert "leadtime changed nothing in this run" in text
    assert "no answer: there is no leadtime world in this run" in text


def test_equal_reports_give_equal_pages(incident):
    assert build_html(build_report(incident())) == build_html(build_report(incident()))


def test_the_close_up_reaches_back_to_leadtimes_first_raise(incident):
    report = build_report(incident())
    focus = find_focus(report, "serving/chat")
    labels = {mark.label: mark.at_s for mark in focus.marks}
    assert set(labels) == {"HPA's threshold", "leadtime's first raise"}
    assert all(focus.from_s <= at_s < focus.until_s for at_s in labels.values())
    assert focus.until_s - focus.from_s <= 5 * 3600


def test_a_run_without_any_surge_is_drawn_whole(incident):
    runs = {"oracle": incident().runs["oracle"]}
    report = build_report(incident(runs=runs, digests=[]))
    focus = find_focus(report, "serving/chat")
    assert (focus.until_s - focus.from_s, focus.marks) == (86_400.0, ())
