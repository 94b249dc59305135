"""``leadtime doctor`` on files: exit codes, JSON, one line for what cannot be used, lead times from a ledger."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leadtime.cli import entry
from leadtime.domain.time_window import rfc3339

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
COLUMNS = ["--time-column", "at", "--value-column", "rps"]


@pytest.fixture
def half_day(tmp_path: Path) -> Path:
    """Twelve hours by the minute, with ready pods, their use and a column of nonsense."""
    lines = ["at,rps,pods,use,percent"]
    for minute in range(720):
        load = 5.0 + 4.0 * math.sin(minute / 60)
        use = 0.05 + 0.095 * load
        lines.append(f"{rfc3339(BEGIN + timedelta(minutes=minute))},{load * 20:.6f},20,{use:.6f},{100 * use:.4f}")
    path = tmp_path / "chat.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_half_a_day_is_not_yet_and_says_how_much_is_wanted(half_day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["doctor", "--demand", str(half_day), *COLUMNS, "--lead", "40m", "--json"]) == 1
    told = capsys.readouterr()
    answer = json.loads(told.out)
    (one,) = answer["workloads"]
    assert (answer["schema"], one["fit"]) == ("leadtime.doctor/1", "not yet")
    assert "12.0 h of history; at least a week (168 h)" in one["sentence"]
    assert (one["from"], one["until"]) == ("2026-03-02T00:00:00Z", "2026-03-02T12:00:00Z")
    assert "not yet: 12.0 h of history" in told.err


def test_fast_nodes_do_not_fit(half_day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["doctor", "--demand", str(half_day), *COLUMNS, "--lead", "25s", "--json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["workloads"]
    assert one["fit"] == "does not fit"
    assert "ready in 25 s" in one["sentence"]


def test_capacity_is_learned_from_columns_of_the_file(half_day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--pods-column", "pods", "--utilisation-column", "use", "--json"]
    assert entry.run(["doctor", "--demand", str(half_day), *COLUMNS, *more]) == 1
    (one,) = json.loads(capsys.readouterr().out)["workloads"]
    assert one["capacity_told_by"] == "learned"
    assert one["capacity"]["at_target"] == pytest.approx(0.65 / 0.095, rel=1e-3)
    assert one["capacity"]["idle_ratio"] == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize(
    ("more", "slug"),
    [
        (["--pods-column", "pods", "--utilisation-column", "percent"], "capacity-columns-refused"),
        (["--pods-column", "pods", "--utilisation-column", "none"], "demand-column-missing"),
        (["--pods-column", "pods"], "usage"),
        (["--utilisation-column", "use"], "usage"),
        (["--pod-lead", "10m"], "usage"),
        (["--lead", "5m", "--pod-lead", "10m"], "usage"),
        (["--lead", "0s"], "usage"),
        (["--capacity-per-pod", "0"], "usage"),
        (["--capacity-per-pod", "inf"], "usage"),
        (["--gpus-per-pod", "-1"], "usage"),
        (["--query", "up"], "usage"),
        (["--ledger", "absent.sqlite"], "ledger-absent"),
        (["--policy", "absent.yaml"], "policy-file-absent"),
        (["--value-unit", "per_day"], "usage"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    half_day: Path, capsys: pytest.CaptureFixture[str], more: list[str], slug: str
) -> None:
    assert entry.run(["doctor", "--demand", str(half_day), *COLUMNS, *more]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.strip().splitlines()
    assert line.endswith(f"[{slug}]")


def test_nothing_to_look_at_and_columns_not_named(half_day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["doctor"]) == 2
    assert "give --prometheus URL or --demand FILE" in capsys.readouterr().err
    assert entry.run(["doctor", "--demand", str(half_day)]) == 2
    assert "--time-column and --value-column" in capsys.readouterr().err
    assert entry.run(["doctor", "--demand", str(half_day.with_name("no.csv")), *COLUMNS]) == 2
    assert "[demand-file-absent]" in capsys.readouterr().err


def test_without_a_lead_it_says_how_to_give_one(half_day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry.run(["doctor", "--demand", str(half_day), *COLUMNS, "--json"])
    (one,) = json.loads(capsys.readouterr().out)["workloads"]
    lead = next(check for check in one["checks"] if check["check"] == "lead")
    assert (lead["fit"], lead["number"]) == ("not known", None)
    assert "--lead 40m" in lead["sentence"]
