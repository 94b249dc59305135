"""Only what differs between two runs is told, one line each, however unlike they are."""

from typing import Any

from leadtime.training.compare_runs import differing_data
from leadtime.training.run_differences import MOST, differences

HORIZON = {"base_rate": 0.01}


def metrics(**changed: Any) -> dict[str, Any]:
    data = {
        "profile": "baseline", "cells": ["b"], "rows_in": 100, "rows": 90, "features": ["ratio", "age"],
        "excluded": {"5": {"censored": 3, "lost": 1}, "15": {"censored": 9}},
    }  # fmt: skip
    settings = {"seed": 0, "settings": {"max_depth": 4, "eta": 0.06}, "split": {"test_from_us": 7}}
    whole = {
        "kind": "train", "data_hash": "aa", "horizons": {"5": HORIZON, "15": HORIZON}, "allowed_gates": [],
        "data": data, "settings": settings,
    }  # fmt: skip
    whole |= {name: value for name, value in changed.items() if name not in ("data", "settings")}
    whole["data"] = data | changed.get("data", {})
    whole["settings"] = settings | changed.get("settings", {})
    return whole


def lines(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    return differences(now, before, differing_data(now, before))


def test_equal_runs_differ_in_nothing() -> None:
    assert lines(metrics(), metrics()) == []


def test_one_setting_is_one_line_and_what_stands_beside_it_is_left_out() -> None:
    changed = metrics(settings={"settings": {"max_depth": 6, "eta": 0.06}, "seed": 3})
    assert lines(changed, metrics()) == ["setting seed: 0 → 3", "setting settings max_depth: 4 → 6"]


def test_a_baseline_against_a_boosted_run_does_not_list_settings() -> None:
    baseline = metrics(kind="train-baseline", settings={"command": "borg train-baseline", "split": {"test_from_us": 9}})
    assert lines(metrics(), baseline) == ["kind of run: train-baseline → train; settings of these are not comparable"]


def test_other_horizons_are_one_line_with_those_in_common() -> None:
    other = metrics(horizons={"15": HORIZON, "60": HORIZON})
    assert lines(other, metrics()) == ["horizons (min): 5, 15 → 15, 60; compared: 15"]
    apart = metrics(horizons={"60": HORIZON})
    assert lines(apart, metrics()) == ["horizons (min): 5, 15 → 60; none in common"]


def test_another_profile_counts_its_features() -> None:
    many = [f"f{number}" for number in range(MOST + 4)]
    found = lines(metrics(data_hash="bb", data={"profile": "advanced", "features": ["ratio", *many]}), metrics())
    assert found[:2] == ["data hash: aa → bb", "profile: baseline → advanced"]
    assert found[2].startswith(f"features only now: {MOST + 4} (f0, f1, ")
    assert found[2].endswith("and 4 more)")
    assert found[3] == "features only before: 1 (age)"


def test_of_counts_only_those_that_moved_are_told() -> None:
    found = lines(metrics(data={"excluded": {"5": {"censored": 4, "lost": 1}, "15": {"censored": 9}}}), metrics())
    assert found == ["excluded: 5 censored 3 → 4"]


def test_a_base_rate_that_stayed_is_left_out() -> None:
    found = lines(metrics(horizons={"5": HORIZON, "15": {"base_rate": 0.02}}), metrics())
    assert found == ["positive rate: 15 0.01 → 0.02"]
