"""Shards on disk → gates; real mislabelled slices refused; the door in front of training."""

import json
from html import unescape
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.risk.gates import GATES, Standing
from leadtime.testing.toy_trace import ToyTrace, toy_trace
from leadtime.training import check_reading
from leadtime.training.check import CheckReport, check_dataset, check_raw, require_passed
from leadtime.training.check_files import earlier, is_dataset, write_page
from leadtime.training.check_html import check_html, verdict
from leadtime.training.dataset import make_dataset
from leadtime.training.repair_shards import to_v3, write_declaration, write_shard


def write_cell(folder: Path, trace: ToyTrace, *, cell: str = "b", shards: int = 2) -> Path:
    """A cell's shards as v3 Parquet with their declaration."""
    folder.mkdir(parents=True, exist_ok=True)
    for table, frame in trace.tables().items():
        for number in range(shards):
            rows = frame.filter(pl.int_range(pl.len()) % shards == number)
            write_shard(folder / f"{table}-{number:012d}.parquet", rows, table)
    write_declaration(folder, cell=cell, clusterdata="v3", observed_until_us=trace.observed_until_us)
    return folder


@pytest.fixture(scope="module")
def trace() -> ToyTrace:
    return toy_trace(collections=20, tasks=6)


@pytest.fixture(scope="module")
def clean(trace: ToyTrace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cell(tmp_path_factory.mktemp("clean") / "b", trace)


@pytest.fixture(scope="module")
def clean_report(clean: Path) -> CheckReport:
    return check_raw(clean)


def test_a_clean_cell_passes_and_tells_of_every_gate(clean_report: CheckReport) -> None:
    assert clean_report.failed == ()
    assert {gate.name for gate in clean_report.gates} == set(GATES)
    reasons = [gate for gate in clean_report.gates if gate.standing is Standing.NOT_EXAMINED]
    assert all(gate.sentence.startswith("not examined: ") and len(gate.sentence) > 20 for gate in reasons)


def test_the_report_is_json_and_the_same_twice(clean: Path, clean_report: CheckReport) -> None:
    text = json.dumps(clean_report.to_json(), allow_nan=False)
    assert json.loads(text)["passed"] is True
    assert json.dumps(check_raw(clean).to_json(), allow_nan=False) == text


def test_a_file_in_milliseconds_and_a_leaked_column_are_named(trace: ToyTrace, tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "b", trace)
    usage = trace.usage.with_columns(pl.col("start_time_us", "end_time_us") // 1_000)
    leaked = to_v3(usage, "instance_usage").with_columns(event_count=pl.lit(3))
    leaked.write_parquet(folder / "instance_usage-000000000002.parquet")
    report = check_raw(folder)
    assert ("time-unit", "instance_usage-000000000002.parquet") in {(gate.name, gate.where) for gate in report.failed}
    (columns,) = [gate for gate in report.gates if gate.name == "leaked-columns"]
    assert columns.figures["whole_trace"] == ["event_count"]


def test_a_broken_file_is_a_failed_gate_and_the_rest_is_judged(trace: ToyTrace, tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "b", trace)
    whole = (folder / "instance_usage-000000000001.parquet").read_bytes()
    (folder / "instance_usage-000000000001.parquet").write_bytes(whole[: len(whole) // 2])
    report = check_raw(folder)
    assert {gate.name for gate in report.failed} == {"readable"}
    assert [gate.where for gate in report.failed] == ["instance_usage-000000000001.parquet"]
    assert any(gate.name == "join-match" and gate.standing is Standing.PASSED for gate in report.gates)


def test_event_names_that_contradict_the_codes_are_refused_by_name(trace: ToyTrace, tmp_path: Path) -> None:
    folder = write_cell(tmp_path / "b", trace, shards=1)
    events = to_v3(trace.events, "instance_events")
    names = pl.Series(["SUBMIT", "FAIL"]).gather([0, 1] * (events.height // 2) + [0] * (events.height % 2))
    events.with_columns(event=names).write_parquet(folder / "instance_events-000000000000.parquet")
    (gate,) = [gate for gate in check_raw(folder).failed if gate.figures.get("contradicting_ratio")]
    assert gate.name == "enum-proof"
    assert gate.where == "instance_events-000000000000.parquet"


def test_histories_beyond_the_budget_are_sampled_and_counts_stay_exact(
    clean: Path, clean_report: CheckReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_reading, "HISTORY_ROWS", 1_500)
    report = check_raw(clean)
    assert report.sampled["b"] < 1
    assert report.failed == ()
    rows = [[gate.sentence for gate in one.gates if gate.name == "rows-accounted"] for one in (report, clean_report)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ["kaggle_slice_99_exact_ids.csv", "kaggle_slice_1000_rounded_ids.csv"])
def test_the_mislabelled_slices_are_refused_with_reason_and_figures(data_dir: Path, name: str) -> None:
    report = check_raw(data_dir / "borg-2019" / name)
    proof, joined = report.failed
    assert (proof.name, joined.name) == ("enum-proof", "separate-events")
    assert proof.figures["contradicting_ratio"] == 1.0
    assert "code 2 (ENABLE) is called FAIL" in proof.sentence
    assert 0.40 <= proof.figures["fail_at_time_0_ratio"] <= 0.46
    assert 0.70 <= proof.figures["usage_after_fail_ratio"] <= 0.78
    assert joined.measured is not None
    assert joined.measured < 0.04
    unlabelled = {gate.name for gate in report.gates if gate.standing is Standing.NOT_EXAMINED}
    assert {"positive-rate", "join-match", "time-unit"} <= unlabelled


def test_nothing_to_read_is_an_error_not_a_report(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="no file in it"):
        check_raw(tmp_path)


def test_windows_are_checked_with_the_account_of_their_sources(clean: Path, tmp_path: Path) -> None:
    make_dataset(clean, tmp_path / "w")
    assert is_dataset(tmp_path / "w")
    report = check_dataset(tmp_path / "w")
    assert report.failed == ()
    assert {gate.name for gate in report.gates} == set(GATES)
    sources = [gate.where for gate in report.gates if gate.name == "rows-accounted"]
    assert any("instance_usage-000000000001.parquet" in where for where in sources)
    (part, *_) = sorted((tmp_path / "w").glob("cell=b/windows/*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    assert ("readable", f"cell=b/windows/{part.name}") in {
        (gate.name, gate.where) for gate in check_dataset(tmp_path / "w").failed
    }


def test_a_folder_without_windows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadTrace) as refused:
        check_dataset(tmp_path)
    assert refused.value.slug == "borg-no-windows"


# --- allowing, and the door in front of training ------------------------------------------------------------------


def test_a_failed_gate_stops_training_unless_it_is_allowed_by_name(data_dir: Path) -> None:
    path = data_dir / "borg-2019" / "kaggle_slice_99_exact_ids.csv"
    manifest = {"gates": check_raw(path).to_json()["gates"]}
    with pytest.raises(BadTrace) as refused:
        require_passed(manifest, doing="training")
    assert refused.value.slug == "borg-gate-failed"
    assert "enum-proof" in str(refused.value)
    assert "--allow separate-events" in str(refused.value)
    require_passed(manifest, doing="training", allow=["enum-proof", "separate-events"])
    allowed = check_raw(path, allow=["enum-proof", "separate-events"])
    assert allowed.failed == ()
    assert allowed.count(Standing.ALLOWED) == 2
    require_passed({"gates": allowed.to_json()}, doing="training")


def test_data_that_was_never_checked_is_refused() -> None:
    with pytest.raises(BadTrace) as refused:
        require_passed({"rows": 3}, doing="training")
    assert refused.value.slug == "borg-not-checked"
    require_passed({"gates": []}, doing="training")


# --- the page and the files beside --------------------------------------------------------------------------------


def test_the_page_holds_every_failed_gate_and_fetches_nothing(data_dir: Path, tmp_path: Path) -> None:
    report = check_raw(data_dir / "borg-2019" / "kaggle_slice_99_exact_ids.csv")
    page = check_html(report)
    text = unescape(page)
    assert verdict(report) in page
    assert all(gate.cure in text for gate in report.failed)
    assert all(f'id="gate-{name}"' in page for name in GATES)
    assert not any(word in page for word in ("http:", "https:", "<script", "src=", "@import"))
    write_page(tmp_path / "deep" / "check.html", report)
    assert (tmp_path / "deep" / "check.html").read_text(encoding="utf-8") == page
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_an_earlier_report_is_compared_with(clean: Path, clean_report: CheckReport, tmp_path: Path) -> None:
    kept = clean_report.to_json()
    for gate in kept["gates"]:
        if gate["name"] == "positive-rate":
            gate["figures"]["15"] = {"rows": 1_000_000, "positives": 1, "ratio": gate["figures"]["15"]["ratio"] / 4}
    (tmp_path / "before.json").write_text(json.dumps(kept), encoding="utf-8")
    before = earlier(tmp_path / "before.json", clean)
    assert before is not None
    report = check_raw(clean, previous=before.content, previous_name=before.name)
    assert {gate.name for gate in report.failed} == {"positive-rate-change"}
    assert "before.json" in report.failed[0].sentence
    assert earlier(None, clean) is None
    assert not is_dataset(clean)


def test_a_file_without_gates_is_nothing_to_compare_with(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    for name in ("x.json", "absent.json"):
        with pytest.raises(BadTrace) as refused:
            earlier(tmp_path / name, tmp_path)
        assert refused.value.slug == "borg-previous-unreadable"
