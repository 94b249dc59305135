"""report.json: the stable contract, field by field."""

import dataclasses
import json

import numpy as np
import pytest

from leadtime.simulate.report import WarmPods, build_report, encode_report

KEY = "serving/chat"
WORLDS = ["hpa", "hpa_equal_cost", "cron", "leadtime", "oracle"]
SCORE_FIELDS = [
    "unserved_ratio",
    "unserved_ratio_peak",
    "late_ratio",
    "latency_p95_s",
    "shortfall_minutes",
    "pod_hours",
    "gpu_node_hours",
    "pending_pod_minutes",
    "churn_pods_per_hour",
    "busy_pods_killed",
    "warm_pods_killed",
    "early_warning_s",
    "learned_lead_p90_s",
    "ready_ahead_s",
    "first_request_ahead_s",
    "max_pods_added_per_minute",
    "reversals",
    "within_10pct_ratio",
    "naive_within_10pct_ratio",
    "ceiling_within_10pct_ratio",
    "skill",
    "coverage_ratio",
    "mean_interval_width_ratio",
    "surges_caught",
    "surges_total",
    "false_alarms_per_day",
    "oracle_gap_closed",
    "decisions",
    "rejections",
    "unserved_requests",
    "arrived_requests",
    "minutes",
]
COMPARISON_FIELDS = [
    "oracle_gap_closed",
    "early_warning_s",
    "ready_ahead_s",
    "learned_lead_p90_s",
    "first_request_ahead_s",
    "pod_hours_ratio_to_oracle",
    "gpu_node_hours_ratio_to_oracle",
    "pod_hours_ratio_to_hpa",
    "max_pods_added_per_minute",
]
TIMELINE_FIELDS = ["threshold_crossed_at", "first_pod_placed_at", "pending_at_15min", "first_new_node_ready_at"]


@pytest.fixture(scope="module")
def report(incident):
    return build_report(incident())


def nulls_without_reason(node, path=""):
    if isinstance(node, dict):
        for name, value in node.items():
            if value is None and not node.get(f"{name}_reason"):
                yield f"{path}/{name}"
            yield from nulls_without_reason(value, f"{path}/{name}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from nulls_without_reason(value, f"{path}/{i}")


def test_the_head_names_the_run(report):
    assert {name: report[name] for name in ("schema", "class", "scenario", "seed", "policy_hash")} == {
        "schema": "leadtime.report/1", "class": "simulated", "scenario": "recurring", "seed": 7,
        "policy_hash": "0123456789abcdef",
    }  # fmt: skip
    assert report["verdict"] == {
        "act": True, "sentence": "Act: 96 % of the unserved requests can be had for 2 % more."
    }  # fmt: skip


def test_every_world_has_every_field_of_the_score_card(report):
    assert list(report["worlds"]) == WORLDS
    for world in WORLDS:
        assert not [name for name in SCORE_FIELDS if name not in report["worlds"][world][KEY]]


def test_the_comparison_and_the_timeline_are_complete(report):
    assert set(COMPARISON_FIELDS) <= set(report["comparison"][KEY])
    for world in WORLDS:
        assert set(TIMELINE_FIELDS) <= set(report["timeline"][world][KEY])


def test_no_field_is_null_without_a_reason_beside_it(report):
    assert list(nulls_without_reason(report)) == []


def test_a_report_of_one_world_says_why_the_comparison_is_empty(incident):
    alone = build_report(incident(runs={"hpa": incident().runs["hpa"]}, digests=[], surge_start_s=None))
    assert list(nulls_without_reason(alone)) == []
    assert alone["comparison"][KEY]["oracle_gap_closed_reason"] == "there is no leadtime world in this run"
    assert alone["timeline"]["hpa"][KEY]["pending_at_15min_reason"] == "this run has no single surge start"


def test_minute_rows_are_a_minute_apart_and_hold_the_state_at_their_instant(report, incident):
    rows = report["worlds"]["hpa"][KEY]["minutes"]
    assert len(rows) == 1440
    assert [row["at"] for row in rows[:2]] == ["2026-03-02T00:00:00Z", "2026-03-02T00:01:00Z"]
    at_0615 = next(row for row in rows if row["at"] == "2026-03-02T06:15:00Z")
    # 06:15 is 375 minutes in: 1500 steps of 15 s have ended, the last of them is step 1499
    run = incident().runs["hpa"].workloads[KEY]
    assert at_0615["pending"] == run.pending[1499] == report["timeline"]["hpa"][KEY]["pending_at_15min"]
    assert at_0615["wanted"] == run.wanted[1499]
    assert set(at_0615["nodes_by_stage"]) == {"request", "boot", "ready"}


def test_equal_inputs_give_equal_bytes(incident):
    assert encode_report(build_report(incident())) == encode_report(build_report(incident()))


def test_there_is_neither_nan_nor_infinity_in_the_bytes(report):
    text = encode_report(report)
    assert json.loads(text, parse_constant=pytest.fail) == report


def test_gaps_in_demand_come_out_as_null_with_a_reason(incident):
    run = incident().runs["hpa"]
    columns = run.workloads[KEY]
    demand = columns.demand_rps.copy()
    demand[400:800] = np.nan
    holed = dataclasses.replace(run, workloads={KEY: dataclasses.replace(columns, demand_rps=demand)})
    report = build_report(incident(runs={"hpa": holed}, digests=[]))
    row = report["worlds"]["hpa"][KEY]["minutes"][110]
    assert row["demand_rps"] is None
    assert row["demand_rps_reason"] == "the demand series has no value here"
    assert report["worlds"]["hpa"][KEY]["unscored_minutes"] == 100.0  # 400 steps of 15 s
    assert list(nulls_without_reason(report)) == []


def test_long_spans_are_thinned_to_at_most_3000_rows_and_say_so(incident):
    run = incident().runs["hpa"]
    columns = run.workloads[KEY]

    def repeat(record):
        return {
            f.name: np.tile(getattr(record, f.name), 5)
            for f in dataclasses.fields(record)
            if isinstance(getattr(record, f.name), np.ndarray)
        }

    pool = run.pools["h100"]
    stages = {name: np.tile(counts, 5) for name, counts in pool.nodes_by_stage.items()}
    longer = dataclasses.replace(
        run,
        workloads={KEY: dataclasses.replace(columns, **repeat(columns))},
        pools={"h100": dataclasses.replace(pool, **repeat(pool), nodes_by_stage=stages)},
    )
    scored = build_report(incident(runs={"hpa": longer}, digests=[]))["worlds"]["hpa"][KEY]
    # 5 days = 7,200 minutes; 3 minutes apart gives 2,400 rows, 2 would give 3,600
    assert scored["minutes_step_s"] == 180
    assert len(scored["minutes"]) == 2400
    assert sum(row["unserved_requests"] for row in scored["minutes"]) == pytest.approx(scored["unserved_requests"])


def test_sudden_names_the_warm_pods_that_would_have_been_needed(incident):
    report = build_report(incident(warm=WarmPods(pods_needed=160, gpu_hours_per_day=3840.0)))
    assert (report["warm_pods_needed"], report["warm_gpu_hours_per_day"]) == (160, 3840.0)
    unknown = build_report(incident(warm=WarmPods(pods_needed=None, gpu_hours_per_day=None, why_none="never enough")))
    assert unknown["warm_pods_needed_reason"] == "never enough"


def test_worlds_with_different_workloads_are_refused(incident):
    runs = incident().runs
    other = dataclasses.replace(runs["oracle"], workloads={"serving/other": runs["oracle"].workloads[KEY]})
    with pytest.raises(ValueError, match="world oracle has workloads"):
        build_report(incident(runs={"hpa": runs["hpa"], "oracle": other}))


def test_decisions_of_one_kind_are_told_as_one_span_with_what_lost(report):
    span = report["story"]["decision_spans"][0]
    assert span["reason"] == "ForecastAboveReady"
    assert span["decisions"] > 30
    assert [lost["reason"] for lost in span["lost"]] == ["Outranked"]


def test_extra_facts_stand_at_the_top_level_and_follow_the_same_rule_for_nulls(incident):
    report = build_report(incident(extra={"gaps": 3, "bound": None, "bound_reason": "no oracle", "other": None}))
    assert (report["gaps"], report["bound_reason"]) == (3, "no oracle")
    assert list(nulls_without_reason(report)) == []
