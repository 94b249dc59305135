"""Generated shards of every dialect → windows whose labels are the truth, row by row; on Ray, with a node lost."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import HORIZONS_MIN, Dialect
from leadtime.domain.errors import BadTrace
from leadtime.risk.labels import labels
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs
from leadtime.training.dataset import Dataset, make_dataset

ROWS = 20_000
KEY = ("collection_id", "instance_index", "end_time_us", "start_time_us")
V3 = (Dialect.PARQUET, Dialect.NDJSON, Dialect.DOTTED, Dialect.UNDERSCORED, Dialect.PARQUET_GZ)


def shards(folder: Path, *dialects: Dialect) -> Path:
    generate(folder, Knobs(rows=ROWS, cell="c", seed=11, dialects=dialects))
    return folder


def labelled(dataset: Dataset) -> pl.DataFrame:
    (cell,) = dataset.cells
    windows = pl.scan_parquet(dataset.folder / "cell=c" / "windows" / "*.parquet", hive_partitioning=False)
    found = labels(windows, horizons_min=HORIZONS_MIN, observed_until_us=cell.observed_until_us)
    return found.with_columns(cell=pl.lit("c")).collect().sort(KEY)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dataset]:
    """Shards in raw/, their data set in windows/, four partitions."""
    folder = tmp_path_factory.mktemp("parquet")
    source = shards(folder / "raw", Dialect.PARQUET)
    return folder, make_dataset(source, folder / "windows", rows_per_partition=5_000)


@pytest.mark.slow
@pytest.mark.parametrize("dialects", [(Dialect.V2,), *((dialect,) for dialect in V3), V3], ids=str)
def test_labels_and_exclusions_equal_the_truth_row_by_row(dialects: tuple[Dialect, ...], tmp_path: Path) -> None:
    source = shards(tmp_path / "raw", *dialects)
    found = labelled(make_dataset(source, tmp_path / "windows"))
    truth = pl.read_parquet(source / "truth" / "truth_rows.parquet").sort(KEY)
    columns = [*KEY, *(f"{what}_{minutes}" for minutes in HORIZONS_MIN for what in ("y", "excluded"))]
    assert found.select(columns).equals(truth.select(columns))
    assert truth["y_60"].sum() > 100  # a truth without failures would prove nothing


@pytest.mark.slow
def test_every_dialect_of_2019_gives_one_data_hash(parquet: tuple[Path, Dataset], tmp_path: Path) -> None:
    mixed = make_dataset(shards(tmp_path / "raw", *V3[1:]), tmp_path / "windows", rows_per_partition=10_000)
    assert mixed.data_hash == parquet[1].data_hash


def test_a_slice_is_refused_for_labels_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="a joined slice has no event table of its own"):
        make_dataset(shards(tmp_path / "raw", Dialect.SLICE), tmp_path / "windows")


@pytest.mark.slow
def test_a_truncated_json_shard_keeps_what_is_finished(tmp_path: Path) -> None:
    source = shards(tmp_path / "raw", Dialect.NDJSON)
    shard = max(source.glob("instance_usage-*.json.gz"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadTrace, match=shard.name):
        make_dataset(source, tmp_path / "windows")
    shard.write_bytes(whole)
    resumed = make_dataset(source, tmp_path / "windows")
    assert contents(resumed.folder) == contents(make_dataset(source, tmp_path / "fresh").folder)


class NodeKiller:
    """A progress that takes away the second node, its workers with it, once the first partition is there."""

    def __init__(self, cluster: object, node: object) -> None:
        self._cluster, self._node = cluster, node
        self.killed = False

    def __call__(self, what: str, done: int, total: int | None, unit: str = "rows") -> None:
        if what.startswith("join") and not self.killed:
            assert total is not None
            assert done < total
            self._cluster.remove_node(self._node, allow_graceful=False)  # type: ignore[attr-defined]
            self.killed = True


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[object, object]]:
    """A Ray cluster of two nodes (processes of their own, one core each) that this process is connected to."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 100 * 1024**2, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    second = cluster.add_node(num_cpus=1, object_store_memory=100 * 1024**2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_node_lost_in_the_middle_leaves_the_same_bytes(
    two_nodes: tuple[object, object], parquet: tuple[Path, Dataset], tmp_path: Path
) -> None:
    from leadtime.training.ray_executor import Ray

    killer = NodeKiller(*two_nodes)
    folder, _ = parquet
    make_dataset(folder / "raw", tmp_path / "out", rows_per_partition=1_000, executor=Ray(), progress=killer)
    assert killer.killed
    make_dataset(folder / "raw", tmp_path / "local", rows_per_partition=1_000)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
