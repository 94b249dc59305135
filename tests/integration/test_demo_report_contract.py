"""report.json as others read it: every field in every world, a reason beside each null, RFC 3339, no NaN."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

WORLDS = {"hpa", "hpa_equal_cost", "cron", "leadtime", "oracle"}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
LOOKS_LIKE_AN_INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")

TOP = {
    "schema": str, "class": str, "scenario": str, "seed": int, "policy_hash": str, "verdict": dict, "worlds": dict,
    "comparison": dict, "timeline": dict,
}  # fmt: skip
NUMBER = (int, float)
# DESIGN §6; a field that may be null has None among its types.
SCORES = {
    "unserved_ratio": (*NUMBER, None), "unserved_ratio_peak": (*NUMBER, None), "late_ratio": (*NUMBER, None),
    "latency_p95_s": (*NUMBER, None), "shortfall_minutes": (int,), "pod_hours": NUMBER,
    "gpu_node_hours": (*NUMBER, None), "pending_pod_minutes": NUMBER, "churn_pods_per_hour": (*NUMBER, None),
    "busy_pods_killed": (int,), "warm_pods_killed": (int,), "early_warning_s": (*NUMBER, None),
    "learned_lead_p90_s": (*NUMBER, None), "ready_ahead_s": (*NUMBER, None), "first_request_ahead_s": (*NUMBER, None),
    "max_pods_added_per_minute": NUMBER, "reversals": (*NUMBER, None), "within_10pct_ratio": (*NUMBER, None),
    "naive_within_10pct_ratio": (*NUMBER, None), "ceiling_within_10pct_ratio": (*NUMBER, None),
    "skill": (*NUMBER, None), "coverage_ratio": (*NUMBER, None), "mean_interval_width_ratio": (*NUMBER, None),
    "surges_caught": (int, None), "surges_total": (int, None), "false_alarms_per_day": (*NUMBER, None),
    "oracle_gap_closed": (*NUMBER, None), "decisions": (dict, None), "rejections": (dict, None), "minutes": (list,),
}  # fmt: skip
COMPARISON = (
    "oracle_gap_closed", "early_warning_s", "ready_ahead_s", "learned_lead_p90_s", "first_request_ahead_s",
    "pod_hours_ratio_to_oracle", "gpu_node_hours_ratio_to_oracle", "pod_hours_ratio_to_hpa",
    "max_pods_added_per_minute",
)  # fmt: skip
TIMELINE = ("threshold_crossed_at", "first_pod_placed_at", "pending_at_15min", "first_new_node_ready_at")
ROW = {"at": str, "wanted": int, "ready": int, "pending": int, "nodes_by_stage": dict}


def no_constant(text: str) -> float:
    pytest.fail(f"report.json holds {text}, which is no JSON")


def read(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=no_constant)
    return report


@pytest.fixture(scope="module", params=["recurring", "ramp", "sudden", "replay"])
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "replay":
        return read(request.getfixturevalue("replay_folder") / "report.json")
    return read(request.getfixturevalue("demo_folder") / request.param / "report.json")


def objects(value: Any, path: str = "report") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON object and where it stands."""
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            yield from objects(item, f"{path}.{name}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from objects(item, f"{path}[{i}]")


def cards(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for world, by_workload in report["worlds"].items():
        assert by_workload, world
        for workload, card in by_workload.items():
            yield f"{world} {workload}", card


def test_the_top_level_is_there_in_its_types(report: dict[str, Any]) -> None:
    for name, kind in TOP.items():
        assert isinstance(report[name], kind), name
    assert report["schema"] == "leadtime.report/1"
    assert report["class"] == "simulated"
    assert re.fullmatch(r"[0-9a-f]{16}", report["policy_hash"])
    assert isinstance(report["verdict"]["act"], bool)
    assert report["verdict"]["sentence"].strip().endswith(".")


def test_all_worlds_are_there(report: dict[str, Any]) -> None:
    assert set(report["worlds"]) >= WORLDS
    assert set(report["timeline"]) == set(report["worlds"])
    for by_workload in (*report["worlds"].values(), *report["timeline"].values()):
        assert by_workload.keys() == report["comparison"].keys()


def test_every_field_of_the_score_card_stands_in_every_world(report: dict[str, Any]) -> None:
    for where, card in cards(report):
        for name, kinds in SCORES.items():
            assert name in card, f"{where}: {name}"
            value = card[name]
            fits = None in kinds if value is None else isinstance(value, tuple(k for k in kinds if k is not None))
            assert fits, f"{where}: {name} is {value!r}"
            assert not isinstance(value, bool), f"{where}: {name}"


def test_every_field_of_the_comparison_and_the_timeline_stands(report: dict[str, Any]) -> None:
    for compared in report["comparison"].values():
        assert set(COMPARISON) <= compared.keys()
    for by_workload in report["timeline"].values():
        for told in by_workload.values():
            assert set(TIMELINE) <= told.keys()


def test_minutes_are_rows_in_step_over_the_scored_span(report: dict[str, Any]) -> None:
    starts = set()
    for where, card in cards(report):
        rows = card["minutes"]
        starts.add((rows[0]["at"], len(rows)))
        for row in rows:
            for name, kind in ROW.items():
                assert isinstance(row[name], kind), f"{where}: {name}"
            assert all(isinstance(count, int) for count in row["nodes_by_stage"].values())
            assert row["nodes_by_stage"], where
        instants = [row["at"] for row in rows]
        assert instants == sorted(set(instants))
    assert len(starts) == 1  # all worlds in step


def test_a_null_has_its_reason_beside_it_and_a_value_has_none(report: dict[str, Any]) -> None:
    for path, found in objects(report):
        for name, value in found.items():
            if value is None:
                reason = found.get(f"{name}_reason")
                assert isinstance(reason, str), f"{path}.{name} is null without a reason"
                assert reason.strip(), f"{path}.{name} is null without a reason"
            if name.endswith("_reason"):
                assert found.get(name.removesuffix("_reason"), 0) is None, f"{path}.{name} explains no null"


def test_every_instant_is_rfc_3339_in_utc(report: dict[str, Any]) -> None:
    found = 0
    for path, holder in objects(report):
        for name, value in holder.items():
            if value is not None and (name == "at" or name.endswith("_at")):
                assert RFC3339.fullmatch(value), f"{path}.{name} is {value!r}"
                found += 1
            elif isinstance(value, str) and LOOKS_LIKE_AN_INSTANT.fullmatch(value):
                assert RFC3339.fullmatch(value), f"{path}.{name} is {value!r}"
    assert found > 1000


def test_only_the_sudden_form_asks_for_warm_pods(report: dict[str, Any]) -> None:
    asked = {"warm_pods_needed", "warm_gpu_hours_per_day"} & report.keys()
    assert len(asked) == (2 if report.get("form") == "sudden" else 0)


def test_ratios_are_shares(report: dict[str, Any]) -> None:
    for where, card in cards(report):
        for name in ("unserved_ratio", "unserved_ratio_peak", "late_ratio", "within_10pct_ratio", "coverage_ratio"):
            assert card[name] is None or 0 <= card[name] <= 1, f"{where}: {name}"
        assert (card["unserved_ratio"] or 0) + (card["late_ratio"] or 0) <= 1 + 1e-9, where


def test_the_pages_beside_it_need_nothing_from_elsewhere(demo_folder: Path, replay_folder: Path) -> None:
    for folder in (*(demo_folder / form for form in ("recurring", "ramp", "sudden")), replay_folder):
        assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "ticks.sqlite"]
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", page)
        assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
