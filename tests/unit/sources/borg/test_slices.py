"""A joined slice: both parts read, rounded ids and its own word for the event handed on; the real slices."""

from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import Dialect
from leadtime.domain.errors import BadTrace
from leadtime.simulate.borg.dialects.slices import write_slice
from leadtime.sources.borg.batch import Batch
from leadtime.sources.borg.canonical import schema_of
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import find_shards


def parts(path: Path, batch_rows: int = 300) -> dict[str, list[Batch]]:
    shards = find_shards(path)
    assert {shard.dialect for shard in shards} == {Dialect.SLICE}
    return {shard.table: list(read_shard(shard, batch_rows=batch_rows)) for shard in shards}


def whole(batches: list[Batch]) -> pl.DataFrame:
    assert [reject for batch in batches for reject in batch.rejects] == []
    return pl.concat([batch.frame for batch in batches])


REAL = {"kaggle_slice_99_exact_ids.csv": (99, 5), "kaggle_slice_1000_rounded_ids.csv": (1000, 44)}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_the_real_slices_are_read_row_by_row(name: str, data_dir: Path) -> None:
    rows, without_vectors = REAL[name]
    read = parts(data_dir / "borg-2019" / name)
    usage, events = whole(read["instance_usage"]), whole(read["instance_events"])
    assert (usage.height, events.height) == (rows, rows)
    for column, length in (("cpu_usage_distribution", 11), ("tail_cpu_usage_distribution", 9)):
        lengths = usage[column].list.len()
        assert (lengths == length).sum() == rows - without_vectors
        assert lengths.null_count() == without_vectors
    assert usage["cpu_usage_distribution"][0].to_list()[0] == pytest.approx(0.00314331)
    assert usage.row(0, named=True)["avg_cpu"] == pytest.approx(0.00466156005859375)
    assert set(zip(events["type"], events["event_text"], strict=True)) >= {(2, "FAIL"), (6, "SCHEDULE")}


@pytest.mark.data
def test_ids_that_went_through_a_spreadsheet_are_said_not_to_join(data_dir: Path) -> None:
    for name, is_rounded in (("kaggle_slice_99_exact_ids.csv", False), ("kaggle_slice_1000_rounded_ids.csv", True)):
        notes = [note for batches in parts(data_dir / "borg-2019" / name).values() for batch in batches
                 for note in batch.notes]  # fmt: skip
        flagged = {note.column for note in notes if note.code == "rounded-ids"}
        assert flagged == ({"collection_id", "machine_id"} if is_rounded else set())


@pytest.fixture
def collections(usage_frame: pl.DataFrame) -> pl.DataFrame:
    row: dict[str, object] = dict.fromkeys(schema_of("collection_events"))
    ids = usage_frame["collection_id"].to_list()
    made = [row | {"time_us": 5, "type": 3, "collection_id": one, "user": 'a"b', "scheduler": 1} for one in ids]
    return pl.DataFrame(made, schema=schema_of("collection_events")).fill_null(0)


def test_a_written_slice_gives_its_usage_back_bit_for_bit(
    usage_frame: pl.DataFrame, events_frame: pl.DataFrame, collections: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_slice(tmp_path, 0, usage_frame, events_frame, collections)
    read = parts(path)
    lost = usage_frame.with_columns(alloc_instance_index=pl.lit(0, pl.Int32))  # a slice has no such column
    assert whole(read["instance_usage"]).equals(lost)
    events = whole(read["instance_events"])
    assert events["event_text"].to_list() == ["SUBMIT", "SCHEDULE", "FAIL"] * 4
    assert events["request_cpu"].to_list() == events_frame["request_cpu"].to_list()


def test_a_mislabelled_slice_has_the_public_slices_names(
    usage_frame: pl.DataFrame, events_frame: pl.DataFrame, collections: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_slice(tmp_path, 0, usage_frame, events_frame, collections, mislabelled=True)
    events = whole(parts(path)["instance_events"])
    assert set(zip(events["type"], events["event_text"], strict=True)) == {(0, "ENABLE"), (3, "FINISH"), (5, "LOST")}


def test_the_same_frames_make_the_same_slice(
    usage_frame: pl.DataFrame, events_frame: pl.DataFrame, collections: pl.DataFrame, tmp_path: Path
) -> None:
    first, second = (
        write_slice(tmp_path, number, usage_frame, events_frame.sample(fraction=1.0, seed=number), collections)
        for number in (0, 1)
    )
    assert first.read_bytes() == second.read_bytes()


def test_a_value_that_is_no_dict_is_a_reject(
    usage_frame: pl.DataFrame, events_frame: pl.DataFrame, collections: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_slice(tmp_path, 0, usage_frame, events_frame, collections)
    path.write_text(path.read_text().replace("{'cpus': 0.0, 'memory': 0.25}", "0.0 0.25", 1))
    usage = parts(path)["instance_usage"]
    assert [(reject.rule, reject.rows) for batch in usage for reject in batch.rejects] == [("not-a-number", 1)]


def test_a_slice_that_breaks_off_inside_a_vector_is_named(
    usage_frame: pl.DataFrame, events_frame: pl.DataFrame, collections: pl.DataFrame, tmp_path: Path
) -> None:
    path = write_slice(tmp_path, 0, usage_frame, events_frame, collections)
    text = path.read_text()
    path.write_text(text[: text.rindex("\n ")])
    with pytest.raises(BadTrace, match=r"slice-000000000000\.csv"):
        parts(path)
