"""``leadtime replay`` from a file to its three files: gaps are counted, the kill switch works, zones and units fit."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from leadtime.cli import entry

pytestmark = pytest.mark.slow

KEY = "serving/api"
Command = Callable[..., "CompletedProcess[str]"]
Ticks = Callable[[Path], list[dict[str, Any]]]


def replay(csv: Path, out: Path, *more: str) -> dict[str, Any]:
    """Replay a file with the columns at and rps; a day of warm-up, the rest scored."""
    line = ["replay", "--demand", str(csv), "--time-column", "at", "--value-column", "rps", "--out", str(out)]
    line += ["--capacity-per-pod", "7.2", "--scenario", "gpu-40min", *more]
    assert entry.run(line) == 0
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


@pytest.fixture(scope="module")
def report(replay_folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((replay_folder / "report.json").read_text())
    return found


def test_a_replay_says_what_it_read(report: dict[str, Any], recurring_csv: Path) -> None:
    assert report["demand"] == {
        "file": recurring_csv.name, "first_at": "2026-03-02T00:00:00Z", "last_at": "2026-03-09T23:55:00Z",
        "step_s": 300, "rows_read": 2304, "rows_filtered": 0, "missing_values": 0, "gaps": 0, "duplicates_merged": 0,
    }  # fmt: skip


def test_every_field_is_explained(report: dict[str, Any], demo_reports: dict[str, dict[str, Any]]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    found: set[str] = set()
    for one in (report, *demo_reports.values()):
        found |= {*one, *one["story"]}
        for part in ("worlds", "timeline"):
            found |= {name for world in one[part].values() for fields in world.values() for name in fields}
        found |= {name for fields in one["comparison"].values() for name in fields}
    settings = ("hpa_equal_cost_", "cron_")  # told together in one row
    asked = {name for name in found if not name.endswith("_reason") and not name.startswith(settings)}
    assert [name for name in sorted(asked) if f"`{name}`" not in page] == []


def test_the_warm_up_is_not_scored(report: dict[str, Any]) -> None:
    for by_workload in report["worlds"].values():
        card = by_workload[KEY]
        assert (card["scored_from"], card["scored_until"]) == ("2026-03-09T00:00:00Z", "2026-03-10T00:00:00Z")
        assert card["scored_hours"] == 24.0
        assert card["minutes"][0]["at"] == "2026-03-09T00:00:00Z"


def test_demand_held_constant_over_a_bucket_is_what_arrives(report: dict[str, Any], recurring_csv: Path) -> None:
    rows = [line.split(",") for line in recurring_csv.read_text().splitlines()[1:]]
    arrived = 300 * sum(float(rps) for at, rps in rows if at >= "2026-03-09")
    for by_workload in report["worlds"].values():
        assert by_workload[KEY]["arrived_requests"] == pytest.approx(arrived)


def test_on_a_daily_peak_leadtime_acts_and_wins_within_its_budget(report: dict[str, Any]) -> None:
    hpa, ours = (report["worlds"][world][KEY] for world in ("hpa", "leadtime"))
    assert hpa["shortfall_minutes"] > 0
    assert report["verdict"]["act"] is True
    assert ours["shortfall_minutes"] < hpa["shortfall_minutes"]
    assert ours["pod_hours"] <= 1.15 * hpa["pod_hours"]
    assert ours["max_pods_added_per_minute"] <= 20
    assert ours["reversals"] <= hpa["reversals"] + 1


def test_the_ledger_holds_every_tick_and_every_worlds_minutes(
    replay_folder: Path, report: dict[str, Any], ticks_of: Ticks
) -> None:
    ticks = ticks_of(replay_folder / "ticks.sqlite")
    assert len(ticks) == 1440
    assert all(tick["recorded_at"] == tick["as_of"] for tick in ticks)
    assert all(tick["policy_hash"] == report["policy_hash"] for tick in ticks)


def test_killed_at_the_start_leadtimes_world_is_the_hpas(
    recurring_csv: Path, replay_again: Callable[..., Path]
) -> None:
    report = json.loads((replay_again("--kill-at", "2026-03-09T00:00:00Z") / "report.json").read_text())
    hpa, ours = (report["worlds"][world][KEY] for world in ("hpa", "leadtime"))
    told = ("minutes", "pod_hours", "gpu_node_hours", "unserved_requests", "reversals", "pending_pod_minutes")
    assert {name: ours[name] for name in told} == {name: hpa[name] for name in told}
    assert report["comparison"][KEY]["early_warning_s"] is None
    assert report["verdict"]["act"] is False


def small_csv(path: Path, values: list[str], *, minutes: int = 5) -> Path:
    """Rows ``minutes`` apart from 2026-03-02 on."""
    rows = [f"2026-03-{2 + i * minutes // 1440:02}T{i * minutes // 60 % 24:02}:{i * minutes % 60:02}:00Z,{v}"
            for i, v in enumerate(values)]  # fmt: skip
    path.write_text("at,rps\n" + "\n".join(rows) + "\n")
    return path


def test_empty_nan_and_infinite_values_and_gaps_are_missing_counted_and_shown(tmp_path: Path) -> None:
    values = ["100"] * (6 * 12)
    values[40:45] = ["", "NaN", "inf", "-inf", "nan"]
    path = small_csv(tmp_path / "demand.csv", values)
    lines = path.read_text().splitlines()
    del lines[52:55]  # three buckets that have no row at all
    path.write_text("\n".join(lines) + "\n")
    report = replay(path, tmp_path / "out", "--warm-up", "1h")
    assert (report["demand"]["missing_values"], report["demand"]["gaps"]) == (5, 3)
    for world in ("hpa", "hpa_equal_cost", "leadtime", "oracle"):
        card = report["worlds"][world][KEY]
        assert card["unscored_minutes"] == 40, world
        assert card["scored_hours"] == pytest.approx(5 - 40 / 60, abs=1e-4), world
        dark = [row for row in card["minutes"] if row["demand_rps"] is None]
        assert len(dark) == 40
        assert all(row["demand_rps_reason"] for row in dark)


def test_without_a_whole_day_before_there_is_no_clock_to_write_and_the_report_says_so(tmp_path: Path) -> None:
    path = small_csv(tmp_path / "demand.csv", ["100"] * 36)
    report = replay(path, tmp_path / "out", "--warm-up", "1h")
    (cron,) = report["worlds"]["cron"].values()
    assert cron["unserved_ratio"] is None
    assert "no whole day before" in cron["unserved_ratio_reason"]
    assert cron["minutes"] == []


def test_where_prediction_does_not_pay_leadtime_stands_back_and_says_so_in_one_sentence(tmp_path: Path) -> None:
    path = small_csv(tmp_path / "demand.csv", ["300"] * (36 * 12))
    report = replay(path, tmp_path / "out", "--warm-up", "30h")
    hpa, ours = (report["worlds"][world][KEY] for world in ("hpa", "leadtime"))
    assert report["verdict"]["act"] is False
    assert report["verdict"]["sentence"].startswith("leadtime stood back")
    assert ours["minutes"] == hpa["minutes"]
    assert ours["pod_hours"] == hpa["pod_hours"]


def test_a_shadow_policy_writes_nothing(tmp_path: Path, recurring_csv: Path, replay_again: Callable[..., Path]) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\nactuation:\n  stage: shadow\n")
    folder = replay_again("--policy", str(tmp_path / "policy.yaml"))
    report = json.loads((folder / "report.json").read_text())
    assert report["worlds"]["leadtime"][KEY]["minutes"] == report["worlds"]["hpa"][KEY]["minutes"]
