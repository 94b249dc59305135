"""make_forecaster_dataset: labels, exclusions and features as docs/designs/0015 lays them out; stopped runs go on."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import EventType
from leadtime.domain.errors import BadTrace
from leadtime.risk.features import BESIDE, KEY, OUTCOME, Profile, features_of
from leadtime.risk.labels import labels
from leadtime.testing.borg_trace import small_trace
from leadtime.testing.stops_after import StopsAfter
from leadtime.training import forecaster_part
from leadtime.training.dataset import make_dataset
from leadtime.training.executor import Local
from leadtime.training.forecaster_dataset import make_forecaster_dataset, read_forecaster

ALLOW = ("enum-proof", "null-rate")  # a trace this small proves nothing
HORIZONS = (5, 15, 60)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells, several partitions each."""
    root = tmp_path_factory.mktemp("trace")
    for seed, cell in enumerate("bc"):
        small_trace(seed, collections=12).write(root / "raw", cell)
    make_dataset(root / "raw", root / "windows", rows_per_partition=120, allow=ALLOW)
    return root / "windows"


@pytest.fixture(scope="module")
def whole(windows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The advanced features of both cells, in one go."""
    out = tmp_path_factory.mktemp("whole")
    make_forecaster_dataset(windows, out, profile=Profile.ADVANCED)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def all_windows(windows: Path) -> pl.DataFrame:
    parts = sorted(windows.glob("cell=*/windows/part-*.parquet"))
    cells = [part.parent.parent.name.removeprefix("cell=") for part in parts]
    return pl.concat(
        pl.read_parquet(part).with_columns(cell=pl.lit(cell)) for part, cell in zip(parts, cells, strict=True)
    )


@pytest.mark.parametrize("profile", Profile)
def test_rows_columns_labels_and_counts_are_as_the_contract_says(
    windows: Path, tmp_path: Path, profile: Profile
) -> None:
    made = make_forecaster_dataset(windows, tmp_path, profile=profile, horizons_min=HORIZONS)
    told = read_forecaster(tmp_path)
    declared = [feature.name for feature in features_of(profile)]
    rows = pl.concat(pl.read_parquet(tmp_path / part["path"]) for part in told["partitions"])
    labelled = [name for m in HORIZONS for name in (f"y_{m}", f"excluded_{m}")]
    assert rows.columns == [*KEY, *BESIDE, *labelled, *OUTCOME, *declared]
    assert told["features"] == declared
    assert set(rows.select(declared).dtypes) == {pl.Float32}
    everything = all_windows(windows)
    until = told["observed_until_us"]
    truth = pl.concat(
        labels(everything.lazy().filter(cell=cell), horizons_min=HORIZONS, observed_until_us=until[cell]).collect()
        for cell in ("b", "c")
    )
    wanted = truth.filter(pl.any_horizontal(pl.col(f"y_{m}").is_not_null() for m in HORIZONS))
    assert rows.select(*KEY, *labelled).sort(*KEY).equals(wanted.select(*KEY, *labelled).sort(*KEY))
    assert made.rows == wanted.height
    assert told["rows_in"] == everything.height == told["rows"] + sum(told["left_out"].values())
    for m in HORIZONS:
        assert told["positives"][str(m)] == int(rows[f"y_{m}"].sum())
        assert told["excluded"][str(m)] == Counter(truth[f"excluded_{m}"].drop_nulls().to_list())
    assert sum(part["rows"] for part in told["partitions"]) == rows.height
    assert sum(cell["rows"] for cell in told["by_cell"].values()) == rows.height


@pytest.mark.parametrize("profile", Profile)
def test_the_dictionary_names_the_columns_of_the_data(windows: Path, tmp_path: Path, profile: Profile) -> None:
    make_forecaster_dataset(windows, tmp_path, profile=profile)
    told = json.loads((tmp_path / "features.json").read_text())
    part = next(iter(sorted(tmp_path.glob("cell=*/part-*.parquet"))))
    columns = pl.read_parquet_schema(part).names()
    assert [entry["name"] for entry in told["features"]] == columns[-len(told["features"]) :]
    assert all(entry[field] for entry in told["features"] for field in ("unit", "formula", "known_at_p"))
    page = (tmp_path / "features.md").read_text()
    assert all(f"| `{entry['name']}` | {entry['unit']} |" in page for entry in told["features"])


@pytest.mark.parametrize("stopped_after", [3, 9])
def test_a_stopped_run_goes_on_and_leaves_the_same_bytes(
    windows: Path, whole: Path, tmp_path: Path, stopped_after: int
) -> None:
    other = tmp_path / "other"
    with pytest.raises(KeyboardInterrupt):
        make_forecaster_dataset(windows, other, profile=Profile.ADVANCED, executor=StopsAfter(stopped_after))
    assert not (other / "forecaster.json").exists()
    finished = len(list(other.glob("cell=*/part-*.json")))
    resumed = make_forecaster_dataset(windows, other, profile=Profile.ADVANCED)
    assert resumed.kept == finished
    assert contents(other) == contents(whole)


def test_a_second_run_makes_nothing_again(windows: Path, tmp_path: Path) -> None:
    made = make_forecaster_dataset(windows, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cell=*/part-*")}
    again = make_forecaster_dataset(windows, tmp_path)
    assert again.kept == len(made.manifest["partitions"])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("cell=*/part-*")} == before


def test_another_setting_or_fewer_cells_leave_nothing_of_the_earlier_build(windows: Path, tmp_path: Path) -> None:
    make_forecaster_dataset(windows, tmp_path)
    made = make_forecaster_dataset(windows, tmp_path, cells=["c"], horizons_min=[30], delay_us=60_000_000)
    assert made.kept == 0
    assert sorted(path.parent.name for path in tmp_path.glob("cell=*/part-*.parquet")) == ["cell=c"] * len(
        made.manifest["partitions"]
    )
    assert made.manifest["delay_s"] == 60


def test_collections_taken_in_small_chunks_give_the_same_rows(
    windows: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecaster_part, "CHUNK_ROWS", 50)
    small = make_forecaster_dataset(windows, tmp_path, profile=Profile.ADVANCED)
    assert small.manifest["data_hash"] == read_forecaster(whole)["data_hash"]


def test_partitions_cut_otherwise_give_the_same_rows(windows: Path, tmp_path: Path) -> None:
    small_trace(0, collections=12).write(tmp_path / "raw", "b")
    make_dataset(tmp_path / "raw", tmp_path / "windows", allow=ALLOW)
    one = make_forecaster_dataset(tmp_path / "windows", tmp_path / "one", profile=Profile.ADVANCED)
    many = make_forecaster_dataset(windows, tmp_path / "many", profile=Profile.ADVANCED, cells=["b"])
    assert len(one.manifest["partitions"]) == 1 < len(many.manifest["partitions"])
    assert one.manifest["data_hash"] == many.manifest["data_hash"]


def test_other_failure_types_give_other_positives(windows: Path, tmp_path: Path) -> None:
    fails = make_forecaster_dataset(windows, tmp_path / "fail", horizons_min=[60]).manifest["positives"]["60"]
    kinds = (EventType.FAIL, EventType.EVICT, EventType.KILL, EventType.FINISH)
    ends = make_forecaster_dataset(windows, tmp_path / "ends", horizons_min=[60], failure_types=kinds)
    assert ends.manifest["positives"]["60"] > fails > 0
    assert ends.manifest["failure_types"] == ["EVICT", "FAIL", "FINISH", "KILL"]


def test_a_failed_gate_stops_and_an_allowed_one_is_carried_on(windows: Path, tmp_path: Path) -> None:
    copy = tmp_path / "windows"
    make = lambda **more: make_forecaster_dataset(copy, tmp_path / "out", **more)  # noqa: E731
    for path in windows.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(windows)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(windows)).write_bytes(path.read_bytes())
    told = json.loads((copy / "dataset.json").read_text())
    told["gates"][0] |= {"name": "join-match", "standing": "failed"}
    (copy / "dataset.json").write_text(json.dumps(told))
    with pytest.raises(BadTrace, match="join-match"):
        make()
    made = make(allow=("join-match",))
    assert "join-match" in made.manifest["allowed_gates"]


def test_a_cell_that_is_not_there_and_an_unfinished_folder_are_named(windows: Path, tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="no cell x") as absent:
        make_forecaster_dataset(windows, tmp_path, cells=["x"])
    assert absent.value.slug == "borg-no-such-cell"
    with pytest.raises(BadTrace) as unfinished:
        make_forecaster_dataset(tmp_path / "nothing", tmp_path)
    assert unfinished.value.slug == "borg-no-dataset"
    with pytest.raises(BadTrace) as none:
        read_forecaster(tmp_path / "nothing")
    assert none.value.slug == "features-absent"


def test_a_cell_without_collections_or_machines_has_missing_features_instead_of_an_error(tmp_path: Path) -> None:
    trace = small_trace(1)
    bare = replace(trace, collections=trace.collections.clear(), machines=trace.machines.clear())
    bare.write(tmp_path / "raw", "b")
    for name in ("collection_events", "machine_events"):
        (tmp_path / "raw" / "b" / f"{name}-000000000000.parquet").unlink()
    gaps = ("collections-missing", "machines-missing", *ALLOW)
    make_dataset(tmp_path / "raw", tmp_path / "windows", allow=gaps, executor=Local())
    made = make_forecaster_dataset(tmp_path / "windows", tmp_path / "out", profile=Profile.ADVANCED, allow=gaps)
    missing = made.manifest["missing_ratio"]
    assert missing["user_failures"] == missing["parent_age_h"] == missing["machine_cpu_pressure"] == 1
    assert missing["cell_pending"] == 0


def test_features_are_not_written_among_the_windows(windows: Path) -> None:
    before = sorted(windows.rglob("*"))
    with pytest.raises(BadTrace) as refused:
        make_forecaster_dataset(windows, windows)
    assert refused.value.slug == "borg-out-inside"
    assert sorted(windows.rglob("*")) == before
