"""The page in Chromium: 1280 and 390 px, dark and light, with and without scripts, by keyboard, live, without npm."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from page_in_chromium import EVERYWHERE, looking, needs_vendor, phone, serving, wide

from leadtime.dashboard.app import create_app
from leadtime.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.browser
playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

SYNTHETIC = Path(__file__).parents[1] / "unit" / "dashboard" / "synthetic_ledger.py"
NUMERIC_TRACKS = 7
FACTS = (
    "Prediction pays here",  # the verdict
    "threshold was crossed at 06:05",  # when the HPA reacted
    "At 05:06: room for 0 → 420 more pods",  # when leadtime did
    "nodes take 54 min, so 420 more pods need room now",  # why
    "Outranked 5×, QueueBeforeCost 4×",  # what lost, and why
    "1.12 × HPA alone, 1.09 × the oracle",  # what it cost
    "worst 05:57–06:18",  # where the forecast was wrong
    "1 h 1 min earlier than the HPA alone",  # when the first capacity request came
)
DRAWER_PARTS = (
    "Evidence",
    "Rejected alternatives",
    "Guard",
    "What the HPA would have done",
    "Way back",
    "What came of it",
)


@pytest.fixture(scope="session")
def drawn() -> ModuleType:
    """The builder of the hand-drawn ledger."""
    if SYNTHETIC.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(SYNTHETIC.stem, SYNTHETIC)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[SYNTHETIC.stem] = module
        spec.loader.exec_module(module)
    return sys.modules[SYNTHETIC.stem]


@pytest.fixture(scope="module")
def ledger(drawn: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn.write_ledger(tmp_path_factory.mktemp("page") / "recurring.sqlite")


@pytest.fixture(scope="module")
def site(ledger: Path) -> Iterator[str]:
    with serving(create_app({"recurring": ledger, "again": ledger}, live=False)) as url:
        yield url


def wait_for_charts(page: Any) -> None:
    playwright_api.expect(page.locator(".uplot canvas")).to_have_count(NUMERIC_TRACKS)


@pytest.mark.parametrize("options", EVERYWHERE)
def test_a_reader_answers_every_question_from_the_page(browser, site, options):
    with looking(browser, site, **options) as page:
        page.goto(f"{site}/ledgers/recurring")
        text = page.locator("body").inner_text()
        for fact in FACTS:
            assert fact in text
        assert page.locator(".score tbody tr").count() == 3
        assert page.locator("svg.plot").count() == NUMERIC_TRACKS


@pytest.mark.parametrize("options", EVERYWHERE)
def test_nothing_is_wider_than_the_screen_and_all_tracks_share_one_axis(browser, site, options):
    with looking(browser, site, **options) as page:
        page.goto(f"{site}/ledgers/recurring")
        page.locator(".plotbox").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        edges = page.evaluate(
            "[...document.querySelectorAll('.plotbox')].map(e => { const r = e.getBoundingClientRect();"
            " return [Math.round(r.left), Math.round(r.right)] })"
        )
        assert len({tuple(edge) for edge in edges}) == 1
        assert edges[0][1] - edges[0][0] > 250


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, site, scheme):
    """WCAG contrast of the texts a reader needs, at least 4.5."""
    with looking(browser, site, **wide(color_scheme=scheme)) as page:
        page.goto(f"{site}/ledgers/recurring")
        worst = page.evaluate(
            """() => {
              const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
                .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
                return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
              const ground = (e) => { for (; e; e = e.parentElement) { const b = getComputedStyle(e).backgroundColor;
                if (!/, 0\\)$/.test(b)) return b; } return "rgb(255,255,255)"; };
              return Math.min(...[...document.querySelectorAll("h1,h2,h3,dt,dd,td,th,a,.said,.key li,.harm")]
                .filter((e) => e.offsetParent).map((e) => {
                const a = light(getComputedStyle(e).color), b = light(ground(e));
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }));
            }"""
        )
        assert worst >= 4.5


@needs_vendor
def test_space_plays_and_pauses(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        wait_for_charts(page)
        page.locator("#speed").select_option("3600")
        page.locator("#speed").evaluate("e => e.blur()")
        page.keyboard.press("Home")
        playwright_api.expect(page.locator("#clock")).to_have_text("2 Mar 04:00")
        page.keyboard.press("Space")
        playwright_api.expect(page.locator("#play")).to_have_attribute("aria-pressed", "true")
        playwright_api.expect(page.locator("#clock")).to_have_text(re.compile("2 Mar 0[5-7]:"))
        page.keyboard.press("Space")
        playwright_api.expect(page.locator("#play")).to_have_attribute("aria-pressed", "false")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("So far, up to")


@needs_vendor
def test_keys_move_the_clock_and_the_story_follows(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        wait_for_charts(page)
        clock = page.locator("#clock")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        playwright_api.expect(clock).to_have_text("2 Mar 04:01")
        page.keyboard.press("Shift+ArrowRight")
        playwright_api.expect(clock).to_have_text("2 Mar 04:16")
        page.keyboard.press("ArrowLeft")
        playwright_api.expect(clock).to_have_text("2 Mar 04:15")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("up to 04:15")
        playwright_api.expect(page.locator("#veil")).to_be_visible()
        page.keyboard.press("End")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("Prediction pays here")
        playwright_api.expect(page.locator("#veil")).to_be_hidden()


@needs_vendor
def test_jumping_hides_what_comes_after(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        wait_for_charts(page)
        page.locator("#jump-to").fill("05:30")
        page.locator("#jump-to").press("Enter")
        playwright_api.expect(page.locator("#clock")).to_have_text("2 Mar 05:30")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("up to 05:30")
        playwright_api.expect(page.locator("#decisions")).not_to_contain_text("QueueUnhealthy")
        share = page.evaluate(
            "(() => { const v = document.getElementById('veil').getBoundingClientRect(),"
            " p = document.querySelector('.plotbox').getBoundingClientRect(); return (v.left - p.left) / p.width })()"
        )
        assert share == pytest.approx(90 / 225, abs=0.005)


def test_the_clock_in_the_address_can_still_move_on(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring?now=2026-03-02T05:00:00Z")
        playwright_api.expect(page.locator("#clock")).to_have_text("2 Mar 05:00")
        playwright_api.expect(page.locator("#track-decisions")).to_contain_text("did harm")
        playwright_api.expect(page.locator("#track-decisions a[href*='05:06:00Z']").first).to_be_attached()
        page.keyboard.press("End")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("Prediction pays here")


@pytest.mark.parametrize("options", [pytest.param(wide(), id="1280 px"), pytest.param(phone(), id="390 px")])
def test_enter_on_a_decision_opens_its_drawer_and_escape_goes_back(browser, site, options):
    with looking(browser, site, **options) as page:
        page.goto(f"{site}/ledgers/recurring")
        link = page.locator(".decisions tr.acts .when a").first
        link.focus()
        page.keyboard.press("Enter")
        drawer = page.locator("#drawer")
        playwright_api.expect(drawer).to_be_visible()
        for part in (
            "Evidence",
            "Rejected alternatives",
            "Guard",
            "What the HPA would have done",
            "Way back",
            "What came of it",
        ):
            playwright_api.expect(drawer).to_contain_text(part)
        playwright_api.expect(page.locator("#drawer-title")).to_be_focused()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("Escape")
        playwright_api.expect(drawer).to_be_hidden()
        playwright_api.expect(link).to_be_focused()


def test_a_click_on_a_bar_opens_the_same_drawer(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        page.locator("#track-decisions a").nth(1).dispatch_event("click", {"button": 0})
        playwright_api.expect(page.locator("#drawer")).to_contain_text("What came of it")


def test_without_scripts_a_decision_is_a_page_of_its_own(browser, site):
    with looking(browser, site, **phone(java_script_enabled=False)) as page:
        page.goto(f"{site}/ledgers/recurring")
        page.locator(".decisions tr.acts .when a").first.click()
        assert "/decisions/2026-03-02T05:06:00Z/workload:serving/chat" in page.url
        assert "What came of it" in page.locator("main").inner_text()


def test_without_scripts_links_move_the_clock(browser, site):
    with looking(browser, site, **wide(java_script_enabled=False)) as page:
        page.goto(f"{site}/ledgers/recurring?now=2026-03-02T06:00:00Z")
        page.get_by_role("link", name="−15 min").click()
        assert "up to 05:45" in page.locator("h1").inner_text()
        assert page.locator("#play").is_hidden()


@needs_vendor
def test_dragging_over_a_track_zooms_to_an_address(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        wait_for_charts(page)
        over = page.locator("#track-demand .u-over")
        over.scroll_into_view_if_needed()
        box = over.bounding_box()
        y = box["y"] + box["height"] * 0.7
        page.mouse.move(box["x"] + box["width"] * 0.5, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, y, steps=5)
        page.mouse.up()
        page.wait_for_url("**from=2026-03-02T05*")
        playwright_api.expect(page.locator(".windowbar h2")).to_contain_text("2 Mar 05:5")


def test_the_first_tab_stop_skips_to_the_content(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        page.keyboard.press("Tab")
        skip = page.locator(".skip")
        playwright_api.expect(skip).to_be_focused()
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_growing_ledger_is_followed(browser, drawn, tmp_path):
    path = drawn.write_ledger(tmp_path / "live.sqlite", end=300, with_report=False)
    with serving(create_app({"live": path}, live=True)) as site, looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/live")
        playwright_api.expect(page.locator("#clock")).to_have_text("2 Mar 05:00")
        with SqliteLedger.resume(path) as ledger:
            for minute in range(300, 312):
                ledger.append(drawn.tick(minute))
        playwright_api.expect(page.locator("#clock")).to_have_text("2 Mar 05:12", timeout=15_000)
        playwright_api.expect(page.locator("#told")).to_contain_text("At 05:06: room for 0 → 420", timeout=15_000)


def test_without_the_vendor_files_the_page_still_plays(browser, ledger, monkeypatch):
    monkeypatch.setattr("leadtime.dashboard.app.vendor_files", lambda: False)
    app = create_app({"r": ledger}, live=False)
    with serving(app) as site, looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/r")
        playwright_api.expect(page.locator("footer")).to_contain_text("npm was absent at build")
        page.keyboard.press("Home")
        page.keyboard.press("Shift+ArrowRight")
        playwright_api.expect(page.locator("#told h1")).to_contain_text("up to 04:15")
        first = page.locator(".decisions .when a").first
        playwright_api.expect(first).to_have_text("03:00–04:15")
        first.click()
        playwright_api.expect(page.locator("#drawer")).to_contain_text("What came of it")


def test_without_a_model_the_risk_part_says_so(browser, site):
    with looking(browser, site, **wide()) as page:
        page.goto(f"{site}/ledgers/recurring")
        playwright_api.expect(page.locator("#risk")).to_contain_text("No failure model is connected")
        assert page.locator("#risk table").count() == 0
