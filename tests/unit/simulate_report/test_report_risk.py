"""The report of a scenario with failures: what a model was worth, as fields and as a table; or why there is none."""

import json

import numpy as np
import pytest

from leadtime.policy import Policy
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.publish import Telling, publish
from leadtime.simulate.scenario import load
from leadtime.simulate.worlds import Replay
from leadtime.testing.usage_scorer import UsageScorer

T0 = 1_772_409_600


def replay(**more: object) -> Replay:
    scenario = load("gpu-failures")
    failures = scenario.failures.model_copy(update={"base_rate": 0.1})
    policy = Policy.model_validate(
        {
            "actuation": {"stage": "hpa_floor"},
            "loop": {"tick_s": 300, "stale_after_s": 300},
            "queue": {"growth_window_s": 600},
        }
    )
    return Replay(
        scenario=scenario.model_copy(update={"failures": failures}), seed=1, policy=policy, scored_from_s=T0 + 3600,
        demand={"serving/api": DemandTrace(start_s=T0, rps=np.full(480, 6.4))}, end_s=T0 + 7200, **more,
    )  # fmt: skip


def quiet(_what: str, _share: float) -> None:
    """Nobody watches."""


def test_without_a_model_risk_is_null_with_the_reason(tmp_path):
    report = publish(replay(), Telling(kind="replay", title="r"), tmp_path, quiet)
    assert report["risk"] is None
    assert report["risk_reason"] == "no failure model was given (--risk-model)"
    assert "What the failure model was worth" not in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_with_a_model_its_worth_stands_in_json_and_page(tmp_path):
    report = publish(replay(risk=UsageScorer(base_rate=0.1)), Telling(kind="replay", title="r"), tmp_path, quiet)
    assert json.loads((tmp_path / "report.json").read_text()) == report
    risk = report["risk"]
    assert (risk["model"], risk["draws"], list(risk["worlds"])) == (
        "usage scorer", 5, ["none", "placebo", "model", "oracle"],
    )  # fmt: skip
    assert len({one["seed"] for one in risk["worlds"]["model"]["by_draw"]}) == 5
    for found in risk["differences"].values():
        assert found["requests_lost"]["low"] <= found["requests_lost"]["mean"] <= found["requests_lost"]["high"]
    page = (tmp_path / "report.html").read_text()
    assert "What the failure model was worth" in page
    assert risk["sentence"].split(":")[0] in page
