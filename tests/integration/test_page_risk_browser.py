"""The page's part about risk in Chromium: alerts, what was done about them, and what came of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from page_in_chromium import EVERYWHERE, looking, needs_vendor, serving, wide

from leadtime.dashboard.app import create_app
from leadtime.ledger.records import LedgerMeta
from leadtime.ledger.sqlite import SqliteLedger
from leadtime.policy import Policy
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.scenario import load
from leadtime.simulate.worlds import Replay, begun, play_loop, prepare
from leadtime.testing.usage_scorer import UsageScorer

pytestmark = pytest.mark.browser
playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def risky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve hours of a small service whose pods fail, under a model that reads their usage."""
    scenario = load("gpu-failures")
    failures = scenario.failures.model_copy(update={"base_rate": 0.05})  # type: ignore[union-attr]
    policy = Policy.model_validate({"actuation": {"stage": "hpa_floor"}, "risk": {"spare_replicas_per_day": 2}})
    begins_s, hour_s = 1_772_409_600, 3600
    demand = DemandTrace(start_s=begins_s, rps=np.full(13 * hour_s // 15, 6.4))
    prepared = prepare(
        Replay(
            scenario=scenario.model_copy(update={"failures": failures}), demand={"serving/api": demand}, seed=4,
            policy=policy, scored_from_s=begins_s + hour_s, end_s=begins_s + 13 * hour_s,
        ),
        lambda _what, _share: None,
    )  # fmt: skip
    meta = LedgerMeta(
        kind="replay", scenario="gpu-failures", seed=4, policy_hash=policy.hash, workloads=("serving/api",)
    )
    path = tmp_path_factory.mktemp("page") / "risky.sqlite"
    with SqliteLedger.create(path, meta) as ledger:
        play_loop(
            prepared, begun(prepared, 1), UsageScorer(base_rate=0.05, intercept=-8.0),
            lambda result: ledger.append(result.tick), lambda _what, _share: None, until_s=begins_s + 13 * hour_s,
        )  # fmt: skip
    return path


@pytest.mark.parametrize("options", EVERYWHERE)
def test_the_risk_part_tells_each_alert_what_was_done_and_what_came_of_it(browser, risky, options):
    with serving(create_app({"risky": risky}, live=False)) as url, looking(browser, url, **options) as page:
        page.goto(f"{url}/ledgers/risky")
        part = page.locator("#risk")
        text = part.inner_text()
        for words in (
            "hits: failed in time",
            "false alarms",
            "failures missed",
            "base rate 5 %",
            "drivers: cpu_ratio_mean",
        ):
            assert words in text
        for words in ("no scale-down", "no new placement", "a spare replica", "RiskBudget"):
            assert words in text
        assert re.search(r"✓ failed at \d\d:\d\d", text)
        assert part.locator("table.alerts tbody tr").count() == int(part.locator(".counts dd").first.inner_text())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@needs_vendor
def test_an_alerts_decision_opens_in_the_drawer(browser, risky):
    with serving(create_app({"risky": risky}, live=False)) as url, looking(browser, url, **wide()) as page:
        page.goto(f"{url}/ledgers/risky")
        page.locator("#risk a[data-decision]").first.click()
        playwright_api.expect(page.locator("#drawer")).to_be_visible()
        playwright_api.expect(page.locator("#drawer")).to_contain_text("probability")


def test_the_clock_hides_alerts_that_come_later(browser, risky):
    with serving(create_app({"risky": risky}, live=False)) as url, looking(browser, url, **wide()) as page:
        page.goto(f"{url}/ledgers/risky?now=2026-03-02T01:30:00Z")
        playwright_api.expect(page.locator("#risk")).to_contain_text(
            "No pod was at risk in this record up to the clock"
        )
