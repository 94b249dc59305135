"""What a shard looks like on disk, and that the same frame always makes the same bytes."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import TABLES, Dialect
from leadtime.simulate.borg.dialects.layout import EventTypeForm
from leadtime.simulate.borg.dialects.shards import write_shard

TYPES = {"Int64": pl.Int64, "Int32": pl.Int32, "Int8": pl.Int8, "Float32": pl.Float32, "String": pl.String,
         "List(Float32)": pl.List(pl.Float32)}  # fmt: skip


def frame(table: str, *rows: dict[str, object]) -> pl.DataFrame:
    """Rows of a table, null where nothing is given."""
    schema = {column.name: TYPES[column.dtype] for column in TABLES[table]}
    blank: dict[str, object] = dict.fromkeys(schema)
    return pl.DataFrame([blank | row for row in rows], schema=schema)


EVENTS = frame(
    "instance_events",
    {"time_us": 0, "type": 0, "collection_id": 2**52, "instance_index": 0, "request_cpu": 0.0, "request_memory": 0.1},
    {"time_us": 600_000_000, "type": 5, "collection_id": 9, "priority": 103, "machine_id": -1},
    {"time_us": 7, "type": 10, "collection_id": 9, "request_cpu": 0.0, "request_memory": 0.0},
)


def json_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_json_lines_quote_int64_and_leave_out_zeros_and_nulls(tmp_path: Path) -> None:
    path = write_shard(tmp_path, "instance_events", 3, EVENTS, Dialect.NDJSON)
    assert path.name == "instance_events-000000000003.json.gz"
    assert json_lines(path) == [
        {"collection_id": "4503599627370496", "resource_request": {"memory": 0.1}},
        {"time": "600000000", "type": 5, "collection_id": "9", "priority": 103, "machine_id": "-1"},
        {"time": "7", "type": 10, "collection_id": "9", "resource_request": {}},
    ]


@pytest.mark.parametrize(("form", "spelt"), [("code", 5), ("text", "5"), ("name", "FAIL")])
def test_event_types_are_spelt_as_asked(form: str, spelt: object, tmp_path: Path) -> None:
    for dialect in (Dialect.NDJSON, Dialect.PARQUET):
        path = write_shard(
            tmp_path, "instance_events", 0, EVENTS, dialect, event_type_form=EventTypeForm(form)
        )  # fmt: skip
        rows = json_lines(path) if dialect is Dialect.NDJSON else pl.read_parquet(path).to_dicts()
        assert rows[1]["type"] == spelt


def test_parquet_nests_structs_and_the_flat_dialects_spread_them(tmp_path: Path) -> None:
    names = {
        dialect: pl.read_parquet_schema(write_shard(tmp_path / dialect, "instance_events", 0, EVENTS, dialect))
        for dialect in (Dialect.PARQUET, Dialect.PARQUET_GZ, Dialect.DOTTED, Dialect.UNDERSCORED)
        if (tmp_path / dialect).mkdir() is None
    }
    assert names[Dialect.PARQUET]["resource_request"] == pl.Struct({"cpus": pl.Float32, "memory": pl.Float32})
    assert names[Dialect.PARQUET_GZ] == names[Dialect.PARQUET]
    assert names[Dialect.DOTTED]["resource_request.cpus"] == pl.Float32
    assert names[Dialect.DOTTED]["collection_id"] == pl.Int64
    assert names[Dialect.UNDERSCORED]["resource_request_cpus"] == pl.Float32
    assert names[Dialect.UNDERSCORED]["collection_id"] == pl.Float64
    assert names[Dialect.UNDERSCORED]["time"] == pl.Int64


def test_v2_drops_what_it_cannot_say_and_counts_in_its_own_codes(tmp_path: Path) -> None:
    events = frame(
        "instance_events",
        {"time_us": 5, "type": 0, "collection_id": 1, "instance_index": 0, "collection_type": 0, "priority": 200,
         "missing_type": 1, "scheduling_class": 2},
        {"time_us": 6, "type": 1, "collection_id": 1, "collection_type": 0, "priority": 0},
        {"time_us": 7, "type": 5, "collection_id": 1, "instance_index": 0, "collection_type": 0, "priority": 115,
         "missing_type": 0, "scheduling_class": 2, "machine_id": 8, "request_cpu": 0.5, "request_memory": 0.0},
        {"time_us": 8, "type": 5, "collection_id": 2, "collection_type": 1, "priority": 0},
    )  # fmt: skip
    path = write_shard(tmp_path, "instance_events", 0, events, Dialect.V2)
    assert gzip.decompress(path.read_bytes()).decode().splitlines() == [
        "5,0,1,0,,0,,2,10,,,,0",
        "7,,1,0,8,3,,2,7,0.5,0.0,,0",
    ]


@pytest.mark.parametrize("dialect", [one for one in Dialect if one is not Dialect.SLICE])
def test_the_same_frame_makes_the_same_bytes(dialect: Dialect, tmp_path: Path) -> None:
    first = write_shard(tmp_path, "instance_events", 0, EVENTS, dialect).read_bytes()
    (tmp_path / "again").mkdir()
    assert write_shard(tmp_path / "again", "instance_events", 0, EVENTS.clone(), dialect).read_bytes() == first
    if first.startswith(b"\x1f\x8b"):
        assert first[3:8] == bytes(5)  # no name, no time


def test_a_slice_is_not_written_table_by_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="slice"):
        write_shard(tmp_path, "instance_events", 0, EVENTS, Dialect.SLICE)
    with pytest.raises(ValueError, match="request_cpu"):
        write_shard(tmp_path, "instance_events", 0, EVENTS.drop("request_cpu"), Dialect.PARQUET)
