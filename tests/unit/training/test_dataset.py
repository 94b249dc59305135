"""make_dataset: shards in, windows and manifests out; the same bytes however often it was stopped."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leadtime.domain.borg import DECLARATION, DECLARATION_SCHEMA, MINUTE_US, TABLES, EventType
from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.risk.asof import join_partition
from leadtime.risk.windows import WINDOW_SCHEMA
from leadtime.sources.borg.canonical import schema_of
from leadtime.testing.stops_after import StopsAfter
from leadtime.training.dataset import Dataset, make_dataset, read_dataset
from leadtime.training.executor import Local, Processes

STEP_US = 5 * MINUTE_US
UNTIL_US = 40 * STEP_US


def tables(seed: int, collections: int = 12, tasks: int = 3) -> dict[str, pl.DataFrame]:
    """A small cell: every task scheduled once, fails or finishes once, windows all along."""
    rng = np.random.default_rng(seed)
    usage, events, collection_events = [], [], []
    for collection in range(1, collections + 1):
        parent = collection - 1 if collection % 3 == 0 else 0
        collection_events.append({"time_us": 0, "type": 0, "collection_id": collection, "priority": 103,
                                  "parent_collection_id": parent})  # fmt: skip
        for task in range(tasks):
            start, end = sorted(int(value) for value in rng.integers(1, 38, 2) * STEP_US + 7)
            kind = EventType.FAIL if rng.random() < 0.5 else EventType.FINISH
            key = {"collection_id": collection, "instance_index": task, "machine_id": 1 + task, "priority": 200}
            events += [
                key | {"time_us": start, "type": 3, "request_cpu": 0.5, "request_memory": 0.25},
                key | {"time_us": end, "type": kind},
            ]
            usage += [
                {"collection_id": collection, "instance_index": task, "machine_id": 1 + task,
                 "start_time_us": p - STEP_US, "end_time_us": p, "avg_cpu": float(rng.random())}
                for p in range(start + STEP_US, end, STEP_US)
            ]  # fmt: skip
        usage.append({"collection_id": collection, "instance_index": 0, "collection_type": 1,
                      "start_time_us": 0, "end_time_us": STEP_US})  # fmt: skip
    machines = [{"time_us": 0, "machine_id": 1 + task, "type": 1, "capacity_cpu": 0.5,
                 "capacity_memory": 1.0} for task in range(tasks)]  # fmt: skip
    rows = {"instance_usage": usage, "instance_events": events, "collection_events": collection_events,
            "machine_events": machines}  # fmt: skip
    return {table: canonical(table, given) for table, given in rows.items()}


def canonical(table: str, rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    """Rows → the table's canonical frame; a number left out is 0 where missing means that."""
    zero = {column.name: 0 for column in TABLES[table] if column.omitted == "zero"}
    names = [column.name for column in TABLES[table]]
    return pl.DataFrame([{name: (zero | row).get(name) for name in names} for row in rows], schema=schema_of(table))


def write_shards(folder: Path, frames: dict[str, pl.DataFrame], cell: str = "b", shards: int = 3) -> Path:
    """Dotted Parquet shards, as BigQuery exports flatten them, with a declaration."""
    folder.mkdir(parents=True)
    for table, frame in frames.items():
        paths = {column.name: column.path for column in TABLES[table] if column.name in frame.columns}
        count = shards if table.startswith("instance") else 1
        for number in range(count):
            part = frame.rename(paths)[number::count]
            part.write_parquet(folder / f"{table}-{number:012d}.parquet")
    declaration = {"schema": DECLARATION_SCHEMA, "cell": cell, "clusterdata": "v3", "observed_until_us": UNTIL_US}
    (folder / DECLARATION).write_text(json.dumps(declaration))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def windows(folder: Path, cell: str = "b") -> pl.DataFrame:
    return pl.read_parquet(folder / f"cell={cell}" / "windows" / "*.parquet", hive_partitioning=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dataset]:
    """Shards in raw/ and, in whole/, the data set of an uninterrupted run in several partitions."""
    folder = tmp_path_factory.mktemp("built")
    source = write_shards(folder / "raw", tables(1))
    return folder, make_dataset(source, folder / "whole", rows_per_partition=60)


@pytest.fixture
def source(built: tuple[Path, Dataset], tmp_path: Path) -> Path:
    """A copy of the shards that a test may spoil."""
    return Path(shutil.copytree(built[0] / "raw", tmp_path / "raw"))


@pytest.fixture
def whole(built: tuple[Path, Dataset], tmp_path: Path) -> tuple[Path, Dataset]:
    """A copy of the data set that a test may spoil."""
    return Path(shutil.copytree(built[0] / "whole", tmp_path / "whole")), built[1]


def test_windows_are_those_of_the_join_of_the_whole_cell(whole: tuple[Path, Dataset]) -> None:
    out, dataset = whole
    names = ("instance_usage", "instance_events", "collection_events", "machine_events")
    expected = join_partition(*(tables(1)[name].lazy() for name in names)).collect()
    assert len(dataset.cells[0].partitions) > 3
    keys = ["collection_id", "instance_index", "end_time_us"]
    assert windows(out).sort(keys).equals(expected.sort(keys))
    assert windows(out).schema == WINDOW_SCHEMA


def test_manifests_account_for_every_row(whole: tuple[Path, Dataset]) -> None:
    out, dataset = whole
    told = read_dataset(out)
    usage = [source for source in told["sources"]["b"] if source["table"] == "instance_usage"]
    assert sum(source["rows_in"] for source in usage) == tables(1)["instance_usage"].height
    assert all(s["rows_in"] == s["rows_out"] + s["alloc_rows"] + sum(s["rejects"].values()) for s in usage)
    assert sum(source["alloc_rows"] for source in usage) == 12
    assert sum(source["rows_out"] for source in usage) == dataset.rows == told["rows"] == windows(out).height
    assert told["observed_until_us"] == {"b": UNTIL_US}
    assert not (out / ".unfinished").exists()


@pytest.mark.parametrize("jobs", [1, 4, 7, 9])
def test_interrupted_and_resumed_is_uninterrupted(
    jobs: int, source: Path, whole: tuple[Path, Dataset], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        make_dataset(source, out, rows_per_partition=60, executor=StopsAfter(jobs))
    assert not (out / "dataset.json").exists()
    resumed = make_dataset(source, out, rows_per_partition=60)
    assert contents(out) == contents(whole[0])
    assert resumed.kept_partitions == max(0, jobs - 8)


def test_a_second_run_keeps_everything(source: Path, whole: tuple[Path, Dataset]) -> None:
    out, first = whole
    before = contents(out)
    again = make_dataset(source, out, rows_per_partition=60, executor=StopsAfter(0))
    assert (again.kept_partitions, again.rebuilt) == (len(first.cells[0].partitions), {})
    assert contents(out) == before


def test_a_changed_shard_is_named_and_rebuilt(source: Path, whole: tuple[Path, Dataset], tmp_path: Path) -> None:
    out, first = whole
    shard = source / "instance_usage-000000000001.parquet"
    pl.read_parquet(shard)[:-1].write_parquet(shard)
    second = make_dataset(source, out, rows_per_partition=60)
    assert second.rebuilt["b"].startswith("instance_usage-000000000001.parquet changed")
    assert second.data_hash != first.data_hash
    fresh = contents(make_dataset(source, tmp_path / "fresh", rows_per_partition=60).folder)
    told = {"dataset.json", "previous.json"}  # which now compares positive rates with the earlier build
    assert {name: data for name, data in contents(out).items() if name not in told} == {
        name: data for name, data in fresh.items() if name not in told
    }


def test_the_data_hash_does_not_depend_on_partitions_executor_or_folder(
    source: Path, whole: tuple[Path, Dataset], tmp_path: Path
) -> None:
    one = make_dataset(source, tmp_path / "one")
    assert len(one.cells[0].partitions) == 1
    assert one.data_hash == whole[1].data_hash


@pytest.mark.slow
def test_processes_write_the_same_bytes(source: Path, whole: tuple[Path, Dataset], tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_dataset(source, out, rows_per_partition=60, executor=Processes(2))
    assert contents(out) == contents(whole[0])


def test_a_lost_part_is_built_again(source: Path, whole: tuple[Path, Dataset]) -> None:
    out, _ = whole
    before = contents(out)
    (out / "cell=b" / "windows" / "part-0001.parquet").unlink()
    make_dataset(source, out, rows_per_partition=60)
    assert contents(out) == before


def test_a_full_disk_is_one_error_and_the_finished_parts_stay(
    source: Path, whole: tuple[Path, Dataset], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    staged = out / "cell=b" / "windows" / ".part-0002.parquet.unfinished"
    staged.parent.mkdir(parents=True)
    staged.symlink_to("/dev/full")
    with pytest.raises(DependencyFailed, match="is full") as caught:
        make_dataset(source, out, rows_per_partition=60)
    assert caught.value.slug == "disk-full"
    assert (out / "cell=b" / "part-0001.json").exists()
    staged.unlink()
    assert make_dataset(source, out, rows_per_partition=60).kept_partitions == 2
    assert contents(out) == contents(whole[0])


def test_a_truncated_shard_is_named_and_other_shards_are_not_read_again(
    source: Path, whole: tuple[Path, Dataset], tmp_path: Path
) -> None:
    shard, out = source / "instance_usage-000000000002.parquet", tmp_path / "out"
    good = shard.read_bytes()
    shard.write_bytes(good[: len(good) // 2])
    with pytest.raises(BadTrace, match=r"instance_usage-000000000002\.parquet"):
        make_dataset(source, out, rows_per_partition=60)
    shard.write_bytes(good)
    make_dataset(source, out, rows_per_partition=60)
    assert contents(out) == contents(whole[0])


def test_a_missing_machine_table_stops_the_run_unless_allowed(source: Path, tmp_path: Path) -> None:
    (source / "machine_events-000000000000.parquet").unlink()
    with pytest.raises(BadTrace, match="--allow machines-missing"):
        make_dataset(source, tmp_path / "out")
    allowed = make_dataset(source, tmp_path / "out", allow={"machines-missing"})
    assert read_dataset(tmp_path / "out")["missing"] == {"b": ["machines-missing"]}
    assert allowed.allowed == ("machines-missing",)
    assert windows(tmp_path / "out")["capacity_cpu"].null_count() == allowed.rows


def test_cells_are_built_one_by_one_into_one_data_set(source: Path, tmp_path: Path) -> None:
    raw = tmp_path / "cells"
    raw.mkdir()
    source.rename(raw / "b")
    write_shards(raw / "c", tables(2), cell="c")
    both = make_dataset(raw, tmp_path / "both")
    make_dataset(raw, tmp_path / "single", cells=["c"])
    single = make_dataset(raw, tmp_path / "single", cells=["b"])
    assert [cell.cell for cell in single.cells] == ["b", "c"]
    assert single.data_hash == both.data_hash
    with pytest.raises(BadTrace, match="none of cell x"):
        make_dataset(raw, tmp_path / "none", cells=["b", "x"])


def test_a_failed_gate_leaves_the_windows_and_says_so(whole: tuple[Path, Dataset], source: Path) -> None:
    out, first = whole
    assert "null-rate" in first.failed_gates  # the shards hold neither CPI nor vectors
    assert (first.is_usable, read_dataset(out)["usable"]) == (False, False)
    allowed = make_dataset(source, out, rows_per_partition=60, allow=first.failed_gates)
    told = read_dataset(out)
    assert (allowed.is_usable, told["usable"], told["allowed"]) == (True, True, sorted(first.failed_gates))
    assert {gate["standing"] for gate in told["gates"] if gate["name"] == "null-rate"} >= {"allowed"}
    with pytest.raises(BadTrace, match="no gate called 'nonsense'"):
        make_dataset(source, out, allow={"nonsense"})


def test_a_shard_in_milliseconds_is_named(source: Path, tmp_path: Path) -> None:
    shard = source / "instance_usage-000000000001.parquet"
    pl.read_parquet(shard).with_columns(pl.col("start_time", "end_time") // 1000).write_parquet(shard)
    dataset = make_dataset(source, tmp_path / "out")
    named = [gate["where"] for gate in dataset.gates if (gate["name"], gate["standing"]) == ("time-unit", "failed")]
    assert named == ["instance_usage-000000000001.parquet"]


def test_local_runs_in_order() -> None:
    assert list(Local().results(str, [3, 1, 2])) == ["3", "1", "2"]


def test_windows_are_not_written_among_the_shards(source: Path) -> None:
    before = sorted(source.rglob("*"))
    for out in (source, source / "windows"):
        with pytest.raises(BadTrace) as refused:
            make_dataset(source, out)
        assert refused.value.slug == "borg-out-inside"
    assert sorted(source.rglob("*")) == before
