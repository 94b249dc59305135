"""A broken file ends in one error that names the file, what is wrong and what to do."""

import gzip
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import Dialect
from leadtime.domain.errors import BadTrace
from leadtime.simulate.borg.dialects import layout
from leadtime.simulate.borg.dialects.layout import EventTypeForm
from leadtime.simulate.borg.dialects.shards import write_shard
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import find_shards

WriteLines = Callable[..., Path]
LONG = 5_000


def failure(path: Path) -> BadTrace:
    def read() -> int:
        return sum(batch.rows_in for shard in find_shards(path) for batch in read_shard(shard, batch_rows=1_000))

    with pytest.raises(BadTrace) as caught:
        read()
    return caught.value


def assert_about(error: BadTrace, slug: str, path: Path) -> None:
    assert error.slug == slug
    assert path.name in str(error)
    assert error.cure


def test_a_cut_gzip_says_how_many_whole_rows_stand_before_the_cut(
    usage_lines: list[str], write_lines: WriteLines
) -> None:
    lines = [line.replace('"cpus":0.5', f'"cpus":0.{i}') for i in range(1, LONG) for line in usage_lines[:1]]
    path = write_lines(lines)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (shard,) = find_shards(path)
    said = int(failure(path).wrong.split("after ")[1].split(" whole rows")[0].replace(",", ""))
    assert_about(failure(path), "borg-shard-cut", path)
    assert [batch.rows_in for batch in islice(read_shard(shard, batch_rows=100), said // 200)] == [100] * (said // 200)
    assert 0 < said < LONG


def test_a_damaged_gzip_is_named(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines(usage_lines)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])  # its checksum
    assert_about(failure(path), "borg-shard-unreadable", path)


def test_a_plain_file_that_ends_inside_a_row_is_cut(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines(usage_lines, "instance_usage-0.json", packed=False)
    path.write_bytes(path.read_bytes()[:-20])
    error = failure(path)
    assert_about(error, "borg-shard-cut", path)
    assert "after 11 whole rows" in error.wrong


def test_a_cut_csv_of_2011_is_named(events_frame: pl.DataFrame, tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_events", 0, events_frame, Dialect.V2)
    path.write_bytes(path.read_bytes()[:-12])
    assert_about(failure(path), "borg-shard-cut", path)


@pytest.mark.parametrize("name", ["instance_usage-0.parquet", "instance_usage-0.json.gz", "part.parquet"])
def test_an_empty_file_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.touch()
    assert_about(failure(tmp_path), "borg-shard-empty", path)


def test_a_file_called_parquet_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "instance_usage-0.parquet"
    path.write_text("not found\n")
    assert_about(failure(tmp_path), "borg-shard-unreadable", path)


def test_parquet_that_breaks_off_is_named(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET)
    path.write_bytes(path.read_bytes()[:-100])
    assert_about(failure(tmp_path), "borg-shard-unreadable", path)


def test_parquet_inside_gzip_is_named(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_usage", 0, usage_frame, Dialect.PARQUET_GZ)
    path.write_bytes(gzip.compress(path.read_bytes()))
    error = failure(tmp_path)
    assert_about(error, "borg-shard-unreadable", path)
    assert "gunzip" in error.cure


@pytest.mark.parametrize("dialect", [Dialect.PARQUET, Dialect.DOTTED, Dialect.UNDERSCORED])
def test_a_required_column_that_is_absent_is_named(
    dialect: Dialect, events_frame: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_shard(tmp_path, "instance_events", 0, events_frame, dialect)
    pl.read_parquet(path).drop("instance_index").write_parquet(path)
    error = failure(tmp_path)
    assert_about(error, "borg-column-absent", path)
    assert "instance_index" in error.wrong


def test_keys_that_come_out_all_null_stop_the_reading(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines([line.replace("collection_id", "collectionId") for line in usage_lines])
    error = failure(path)
    assert_about(error, "borg-keys-missing", path)
    assert "collection_id" in error.wrong


def test_a_key_column_of_nulls_stops_the_reading(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    nested = layout.nested(usage_frame, "instance_usage", EventTypeForm.CODE)
    nested.with_columns(collection_id=pl.lit(None, pl.Int64)).write_parquet(tmp_path / "instance_usage-0.parquet")
    assert failure(tmp_path).slug == "borg-keys-missing"


def test_usage_without_end_times_is_named(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines([line.replace("end_time", "endTime") for line in usage_lines])
    assert_about(failure(path), "borg-column-absent", path)


EVENT = '{"time":"5","type":5,"collection_id":"1"}'


def test_two_tables_in_one_file_are_named(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines([*usage_lines, EVENT])
    assert_about(failure(path), "borg-shard-mixed", path)


def test_a_row_of_another_table_far_down_is_named(usage_lines: list[str], write_lines: WriteLines) -> None:
    path = write_lines([*usage_lines * 100, EVENT])
    error = failure(path)
    assert_about(error, "borg-shard-mixed", path)
    assert "row 1,201 " in error.wrong


def test_a_file_called_after_another_table_is_named(events_frame: pl.DataFrame, tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_events", 0, events_frame, Dialect.PARQUET)
    path = path.rename(tmp_path / "instance_usage-0.parquet")
    assert_about(failure(tmp_path), "borg-shard-mixed", path)
