"""A spoilt folder → a mended copy that passes, a quarantine with reasons, and a second repair that changes nothing."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import V2_TO_V3
from leadtime.domain.errors import BadTrace
from leadtime.testing.toy_trace import ToyTrace, toy_trace
from leadtime.training.check import check_raw
from leadtime.training.repair import repair
from leadtime.training.repair_shards import write_declaration, write_shard

V3_TO_V2 = {int(v3): v2 for v2, v3 in V2_TO_V3.items()}


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Every file but the account itself, which tells of its own run."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "repair.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def spoilt(folder: Path, trace: ToyTrace) -> Path:
    """v2 codes everywhere, one usage file in ms, events told twice, machine -1, a broken file, another cell's file."""
    folder.mkdir(parents=True)
    old = pl.col("type").replace_strict(V3_TO_V2, return_dtype=pl.Int8)
    events, collections = (
        frame.filter(pl.col("type").is_in(list(V3_TO_V2))).with_columns(old)
        for frame in (trace.events, trace.collections)
    )
    half = trace.usage.height // 2
    late = trace.usage.slice(half).with_columns(pl.col("start_time_us", "end_time_us") // 1_000)
    stranger = toy_trace(collections=20, tasks=6, seed=9, first_id=700).usage
    none = trace.machines.head(1).with_columns(machine_id=pl.lit(-1, pl.Int64))
    for name, table, frame in (
        ("instance_usage-000000000000", "instance_usage", trace.usage.head(half)),
        ("instance_usage-000000000001", "instance_usage", late),
        ("instance_usage-000000000002", "instance_usage", stranger),
        ("instance_events-000000000000", "instance_events", pl.concat([events, events.head(40)])),
        ("instance_events-000000000001", "instance_events", events.slice(40, 30)),
        ("collection_events-000000000000", "collection_events", collections),
        ("machine_events-000000000000", "machine_events", pl.concat([trace.machines, none])),
    ):
        write_shard(folder / f"{name}.parquet", frame, table)
    (folder / "instance_usage-000000000003.json.gz").write_bytes(
        gzip.compress(b'{"start_time":"1","collection_id":"5"}' * 99, mtime=0)[:40]
    )
    write_declaration(folder, cell="b", clusterdata="v3", observed_until_us=trace.observed_until_us)
    return folder


@pytest.fixture(scope="module")
def trace() -> ToyTrace:
    return toy_trace(collections=20, tasks=6)


@pytest.fixture(scope="module")
def bad(trace: ToyTrace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spoilt(tmp_path_factory.mktemp("bad") / "b", trace)


@pytest.fixture(scope="module")
def mended(bad: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mended") / "out"
    repair(bad, out)
    return out


def test_a_spoilt_folder_passes_every_gate_afterwards(bad: Path, mended: Path) -> None:
    assert {"enum-proof", "time-unit", "join-match", "readable", "machine-sentinels"} <= {
        gate.name for gate in check_raw(bad).failed
    }
    assert check_raw(mended).failed == ()


def test_the_account_names_rules_rows_and_rates(mended: Path) -> None:
    told = json.loads((mended / "repair.json").read_text(encoding="utf-8"))
    rules: dict[str, int] = {}
    for one in told["rules"]:
        rules[one["rule"]] = rules.get(one["rule"], 0) + one["rows"]
    assert rules["drop-duplicate-events"] == 70
    assert rules["zero-means-no-machine"] == 1
    assert {"unit-ms-to-us", "enum-v2-to-v3", "sort-rows"} <= set(rules)
    assert told["usable"] is True
    moved = {(one["gate"], one["where"]): (one["before"], one["after"]) for one in told["rates"]}
    before, after = moved["time-unit", "instance_usage-000000000001.parquet"]
    assert (before["measured"], after["measured"]) == (300_000.0, 300_000_000.0)
    assert "clip-window-past-end" in told["refused_rules"]


def test_what_was_mended_is_what_was_spoilt(trace: ToyTrace, mended: Path) -> None:
    key = ["collection_id", "instance_index", "end_time"]
    usage = pl.read_parquet(sorted(mended.glob("cell_b/instance_usage-*.parquet"))).sort(key)
    want = trace.usage.sort("collection_id", "instance_index", "end_time_us")
    assert usage.select(key[:2]).rows() == want.select(key[:2]).rows()
    lost = want["end_time_us"] - usage["end_time"]  # what milliseconds cannot hold
    assert int(lost.abs().max() or 0) < 1_000  # type: ignore[arg-type]
    events = pl.read_parquet(sorted(mended.glob("cell_b/instance_events-*.parquet")))
    known = trace.events.filter(pl.col("type").is_in(list(V3_TO_V2)))
    assert events["type"].value_counts().sort("type").rows() == known["type"].value_counts().sort("type").rows()


def test_what_cannot_be_mended_is_in_quarantine_with_its_reason(mended: Path) -> None:
    reasons = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(mended.glob("quarantine/_0*.json"))]
    assert {one["file"] for one in reasons} == {
        "instance_usage-000000000002.parquet", "instance_usage-000000000003.json.gz",
    }  # fmt: skip
    assert any(one["reason"].startswith("join-match: 0 %") for one in reasons)
    (rows,) = mended.glob("quarantine/_rows-*.parquet")
    assert pl.read_parquet(rows)["reason"].to_list() == ["zero-means-no-machine"]


def test_a_second_repair_touches_nothing_and_gives_the_same_bytes(mended: Path, tmp_path: Path) -> None:
    report = repair(mended, tmp_path / "again")
    assert report.account.rows_touched == 0
    assert report.account.quarantined == []
    shards = {name: data for name, data in bytes_below(mended).items() if not name.startswith("quarantine")}
    assert bytes_below(tmp_path / "again") == shards
    assert len(shards) == 7


def test_the_input_stays_as_it_was(trace: ToyTrace, bad: Path, mended: Path, tmp_path: Path) -> None:
    assert bytes_below(bad) == bytes_below(spoilt(tmp_path / "b", trace))


def test_a_dry_run_says_the_same_and_writes_nothing(bad: Path, mended: Path, tmp_path: Path) -> None:
    report = repair(bad, tmp_path / "out", dry_run=True)
    assert list(tmp_path.iterdir()) == []
    told = json.loads((mended / "repair.json").read_text(encoding="utf-8"))
    assert {**report.to_json(), "dry_run": False} == told


def test_a_slice_goes_to_quarantine_and_leaves_nothing_to_train_on(data_dir: Path, tmp_path: Path) -> None:
    report = repair(data_dir / "borg-2019" / "kaggle_slice_99_exact_ids.csv", tmp_path / "out")
    assert not report.is_usable
    assert report.account.files == []
    (aside,) = report.account.quarantined
    assert "contradict the codes" in aside.reason
    assert "separate-events" in aside.reason


def test_a_folder_of_somebody_else_is_not_overwritten(bad: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadTrace) as refused:
        repair(bad, tmp_path)
    assert refused.value.slug == "borg-out-not-ours"
    with pytest.raises(BadTrace) as refused:
        repair(bad, bad / "mended")
    assert refused.value.slug == "borg-out-inside"
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_an_earlier_repair_is_replaced(bad: Path, mended: Path, tmp_path: Path) -> None:
    repair(bad, tmp_path / "out")
    repair(mended, tmp_path / "out")
    assert not (tmp_path / "out" / "quarantine").exists()
