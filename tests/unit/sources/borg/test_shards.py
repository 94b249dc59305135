"""Which files are shards, of which table, dialect, cell and version; what is passed over, and why."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import TABLES, Dialect
from leadtime.domain.errors import BadTrace
from leadtime.simulate.borg.dialects.shards import write_shard
from leadtime.sources.borg.canonical import schema_of
from leadtime.sources.borg.reading import RowCount, count_rows, read_shard
from leadtime.sources.borg.shards import find_shards, look_through

Declare = Callable[..., None]


@pytest.mark.parametrize("dialect", [one for one in Dialect if one is not Dialect.SLICE])
def test_the_dialect_is_told_by_content_whatever_the_file_is_called(
    dialect: Dialect, usage_frame: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_shard(tmp_path, "instance_usage", 0, usage_frame, dialect)
    (shard,) = find_shards(path.rename(tmp_path / "a_file.bin"))
    is_parquet = dialect is Dialect.PARQUET_GZ  # the same bytes as Parquet, under another name
    assert (shard.table, shard.dialect) == ("instance_usage", Dialect.PARQUET if is_parquet else dialect)


@pytest.mark.parametrize("name", ["b", "cell_b", "cell=b", "clusterdata_2019_b"])
def test_a_folder_of_cell_folders_gives_each_shard_its_cell(
    name: str, usage_frame: pl.DataFrame, tmp_path: Path
) -> None:
    for folder in (name, "cell_g"):
        (tmp_path / folder).mkdir()
        write_shard(tmp_path / folder, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    assert [shard.cell for shard in find_shards(tmp_path)] == ["b", "g"]
    found = look_through(tmp_path, cell="g")
    assert [shard.cell for shard in found.shards] == ["g"]
    assert [one.reason for one in found.ignored] == ["it is of cell b, asked for was g"]


def test_the_declaration_gives_cell_version_and_end(
    usage_frame: pl.DataFrame, tmp_path: Path, declare: Declare
) -> None:
    write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.NDJSON)
    (undeclared,) = find_shards(tmp_path)
    assert (undeclared.cell, undeclared.clusterdata, undeclared.observed_until_us) == (None, None, None)
    declare(tmp_path, cell="q", clusterdata="v3", observed_until_us=87_000_000_000)
    (shard,) = find_shards(tmp_path)
    assert (shard.cell, shard.clusterdata, shard.observed_until_us) == ("q", "v3", 87_000_000_000)


def test_a_declaration_above_the_cell_folders_holds_for_all_of_them(
    usage_frame: pl.DataFrame, tmp_path: Path, declare: Declare
) -> None:
    declare(tmp_path, clusterdata="v3")
    (tmp_path / "c").mkdir()
    write_shard(tmp_path / "c", "instance_usage", 0, usage_frame, Dialect.PARQUET)
    (shard,) = find_shards(tmp_path)
    assert (shard.cell, shard.clusterdata) == ("c", "v3")


def test_truth_and_unrelated_files_are_passed_over_with_the_reason(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "truth_rows.parquet").touch()
    (tmp_path / "README.md").write_text("about")
    pl.DataFrame({"cpus": [1.0]}).write_parquet(tmp_path / "requests.parquet")
    found = look_through(tmp_path)
    assert len(found.shards) == 1
    assert {one.path.name: one.reason for one in found.ignored} == {
        "README.md": "it is none of the dialects",
        "requests.parquet": "its columns belong to no table of the trace",
        "truth": "the generator's truth is not part of the trace",
    }


def other_cell(path: Path, cell: str | None = None) -> str:
    with pytest.raises(BadTrace) as caught:
        find_shards(path, cell=cell)
    assert caught.value.slug == "borg-shard-other-cell"
    return str(caught.value)


def test_a_shard_of_another_cell_is_named(usage_frame: pl.DataFrame, tmp_path: Path, declare: Declare) -> None:
    declare(tmp_path, cell="c")
    path = write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    assert "it is of cell c, asked for was cell b" in other_cell(tmp_path, cell="b")
    path.rename(tmp_path / "clusterdata_2019_d.instance_usage-0.parquet")
    assert "clusterdata_2019_d.instance_usage-0.parquet" in other_cell(tmp_path)
    assert "says cell d" in other_cell(tmp_path)


def test_a_file_name_that_begins_with_the_cell_gives_it(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    (shard,) = find_shards(path.rename(tmp_path / "e_instance_usage-0.parquet"))
    assert shard.cell == "e"
    (shard,) = find_shards(shard.path.rename(tmp_path / "a_file.bin"))
    assert shard.cell is None


def test_the_folders_of_2011_name_their_tables(events_frame: pl.DataFrame, tmp_path: Path, declare: Declare) -> None:
    declare(tmp_path, clusterdata="v2", cell="q")
    (tmp_path / "task_events").mkdir()
    path = write_shard(tmp_path, "instance_events", 0, events_frame, Dialect.V2)
    path.rename(tmp_path / "task_events" / "part-00000-of-00500.csv.gz")
    (shard,) = find_shards(tmp_path)
    assert (shard.table, shard.cell) == ("instance_events", "q")


def test_a_cell_folder_whose_declaration_says_another_cell_is_named(
    usage_frame: pl.DataFrame, tmp_path: Path, declare: Declare
) -> None:
    (tmp_path / "b").mkdir()
    write_shard(tmp_path / "b", "instance_usage", 0, usage_frame, Dialect.PARQUET)
    declare(tmp_path / "b", cell="c")
    assert "called after cell b" in other_cell(tmp_path)


@pytest.mark.parametrize(
    "text", ['{"schema": "other/1"}', "nonsense", '{"schema": "leadtime.borg-trace/1", "clusterdata": "v4"}']
)
def test_a_declaration_that_is_none_is_named(text: str, usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(BadTrace, match=r"trace\.json") as caught:
        find_shards(tmp_path)
    assert caught.value.slug == "borg-declaration"


def test_tables_of_2011_that_are_declared_v3_are_named(
    events_frame: pl.DataFrame, tmp_path: Path, declare: Declare
) -> None:
    write_shard(tmp_path, "instance_events", 0, events_frame, Dialect.V2)
    declare(tmp_path, clusterdata="v3")
    with pytest.raises(BadTrace) as caught:
        find_shards(tmp_path)
    assert caught.value.slug == "borg-declaration"


@pytest.mark.parametrize("name", ["empty", "absent"])
def test_a_place_without_shards_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadTrace) as caught:
        find_shards(tmp_path / name)
    assert caught.value.slug == "borg-no-shards"


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("dialect", [Dialect.NDJSON, Dialect.V2, Dialect.PARQUET])
def test_a_shard_without_rows_is_one_empty_batch(table: str, dialect: Dialect, tmp_path: Path) -> None:
    write_shard(tmp_path, table, 0, pl.DataFrame(schema=schema_of(table)), dialect)
    (shard,) = find_shards(tmp_path)
    (batch,) = read_shard(shard)
    assert (shard.table, batch.rows_in, batch.frame.schema) == (table, 0, schema_of(table))


@pytest.mark.parametrize("dialect", [Dialect.PARQUET, Dialect.NDJSON])
def test_rows_are_counted_without_reading_a_small_file_through(
    dialect: Dialect, usage_frame: pl.DataFrame, tmp_path: Path
) -> None:
    write_shard(tmp_path, "instance_usage", 0, usage_frame, dialect)
    (shard,) = find_shards(tmp_path)
    assert count_rows(shard) == RowCount(rows=usage_frame.height, is_exact=True)


def test_the_rows_of_a_large_gzip_are_estimated(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    rows = 40_000
    noise = pl.int_range(rows, eager=True).hash().reinterpret(signed=True).abs() % 2**52 + 1
    large = pl.concat([usage_frame] * (rows // usage_frame.height + 1)).head(rows).with_columns(collection_id=noise)
    bits = (pl.col("collection_id") % 1_000_003).cast(pl.Float32) + 0.5
    large = large.with_columns(avg_cpu=bits, avg_memory=bits * 3, max_cpu=bits * 7, assigned_memory=bits * 11)
    path = write_shard(tmp_path, "instance_usage", 0, large, Dialect.NDJSON)
    assert path.stat().st_size > 1 << 20
    (shard,) = find_shards(tmp_path)
    counted = count_rows(shard)
    assert counted is not None
    assert not counted.is_exact
    assert abs(counted.rows - rows) < 0.1 * rows
