"""``leadtime doctor`` on files: exit codes, JSON, one line for what cannot be used, lead times from a ledger."""

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leadtime.cli import entry
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.snapshot import ClusterSnapshot
from leadtime.domain.tick import Tick, WorkloadAssessment
from leadtime.domain.time_window import rfc3339
from leadtime.ledger.records import LedgerMeta
from leadtime.ledger.sqlite import SqliteLedger

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
META = LedgerMeta(
    kind="run", scenario="live", seed=0, policy_hash="0" * 16, workloads=("serving/chat", "serving/batch")
)
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


def test_the_lead_comes_from_the_ledger_s_newest_tick(
    half_day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``chat.csv`` is the workload chat; another's longer lead is not taken."""
    path = tmp_path / "ticks.sqlite"
    with SqliteLedger.create(path, META) as ledger:
        ledger.append(tick(lead("chat", total_s=1800.0), lead("batch", total_s=3600.0)))
    entry.run(["doctor", "--demand", str(half_day), *COLUMNS, "--ledger", str(path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    (one,) = answer["workloads"]
    assert (one["lead"]["total_s"], one["lead"]["pod_s"]) == (1800.0, 300.0)
    assert one["lead"]["told_by"] == "learned of serving/chat on h100: 7 episodes"
    found = next(each for each in answer["connections"] if each["what"] == "ledger ticks.sqlite")
    assert (found["ok"], found["sentence"]) == (True, "2 lead times learned")


def test_a_stated_lead_goes_before_a_learned_one_and_others_leads_before_none(
    half_day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ticks.sqlite"
    with SqliteLedger.create(path, META) as ledger:
        ledger.append(tick(lead("batch", total_s=3600.0), lead("web", total_s=60.0)))
    asked = ["doctor", "--demand", str(half_day), *COLUMNS, "--ledger", str(path), "--json"]
    entry.run(asked)
    assert json.loads(capsys.readouterr().out)["workloads"][0]["lead"]["total_s"] == 3600.0
    entry.run([*asked, "--lead", "10m"])
    assert json.loads(capsys.readouterr().out)["workloads"][0]["lead"]["told_by"] == "as stated"


def lead(name: str, total_s: float) -> LeadTime:
    """What was learned of one workload."""
    return LeadTime(
        workload=WorkloadRef(namespace="serving", name=name), pool="h100", node_p50_s=600.0, node_p90_s=900.0,
        pod_p50_s=200.0, pod_p90_s=300.0, total_p90_s=total_s, stages=(), learned_from="7 episodes",
    )  # fmt: skip


def tick(*leads: LeadTime) -> Tick:
    """A tick that believed in ``leads``."""
    standing = Explanation(reason=Reason.HISTORY_TOO_SHORT, sentence="too short")
    assessments = tuple(
        WorkloadAssessment(
            ref=one.workload, demand=1.0, forecasts=(), path_step_s=300, path_expected=(), path_lower=(), path_upper=(),
            model="last_value", may_act=False, standing=standing, surge=None, lead=one, needed_pods_at_pod_lead=1,
            needed_pods_at_node_lead=1, hpa_would_want=1,
        )
        for one in leads
    )  # fmt: skip
    snapshot = ClusterSnapshot(as_of=BEGIN, workloads=(), pools=(), queues=(), missing=())
    return Tick(
        as_of=BEGIN, recorded_at=BEGIN, policy_hash="0" * 16, snapshot=snapshot, assessments=assessments,
        queue_health=(), evidence=(), proposals=(), verdicts=(), decisions=(), outcomes=(),
    )  # fmt: skip
