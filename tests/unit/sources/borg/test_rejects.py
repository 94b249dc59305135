"""A row that cannot be read is counted under a named rule, with place and value; nothing becomes null in silence."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import Dialect
from leadtime.simulate.borg.dialects import layout
from leadtime.simulate.borg.dialects.layout import EventTypeForm
from leadtime.simulate.borg.dialects.shards import write_shard
from leadtime.sources.borg.batch import Batch, Note, Sample
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import find_shards

WriteLines = Callable[..., Path]


def read_all(path: Path, batch_rows: int = 1_000_000) -> list[Batch]:
    return [batch for shard in find_shards(path) for batch in read_shard(shard, batch_rows=batch_rows)]


def counts(batches: list[Batch]) -> dict[str, int]:
    return {reject.rule: reject.rows for batch in batches for reject in batch.rejects}


def a_window(**changed: str) -> str:
    """A good row of instance_usage as JSON, with values replaced; None leaves one out."""
    row = {"start_time": '"600000000"', "end_time": '"900000000"', "collection_id": '"99"', **changed}
    return "{" + ",".join(f'"{name}":{value}' for name, value in row.items()) + "}"


BAD_ROWS = {
    "an id with a point": (a_window(collection_id='"7.0"'), "not-an-integer", "collection_id", "7.0"),
    "a bare float as an id": (a_window(collection_id="7.5"), "not-an-integer", "collection_id", "7.5"),
    "an id of 2**63": (a_window(collection_id=f'"{2**63}"'), "out-of-range", "collection_id", f"{2**63}"),
    "an index beyond 32 bits": (a_window(instance_index="4294967296"), "out-of-range", "instance_index", "4294967296"),
    "a time before all time": (a_window(start_time='"-5"'), "out-of-range", "start_time_us", "-5"),
    "a word for a number": (a_window(average_usage='{"cpus":"much"}'), "not-a-number", "avg_cpu", "much"),
    "a number too large": (a_window(sample_rate="1e300"), "not-finite", "sample_rate", "inf"),
    "not a number": (a_window(sample_rate='"NaN"'), "not-finite", "sample_rate", "NaN"),
    "a number for a struct": (a_window(maximum_usage="true"), "not-a-number", "max_cpu", "true"),
    "a short vector": (a_window(cpu_usage_distribution="[1]"), "vector-length", "cpu_usage_distribution", "[1.0]"),
    "a gap in a vector": (
        a_window(tail_cpu_usage_distribution="[0,0,0,0,null,0,0,0,0]"), "vector-value", "tail_cpu_usage_distribution",
        "[0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0, 0.0]",
    ),
    "no key": ('{"start_time":"1","end_time":"2"}', "missing-key", "collection_id", "None"),
    "no JSON": ("start_time,end_time", "not-split", "", "start_time,end_time"),
    "no object": ("[1, 2]", "not-split", "", "[1, 2]"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_counted_and_shown_and_the_others_are_read(
    case: str, usage_lines: list[str], write_lines: WriteLines
) -> None:
    line, rule, column, value = BAD_ROWS[case]
    (batch,) = read_all(write_lines([*usage_lines, line, *usage_lines]))
    assert [(reject.rule, reject.rows) for reject in batch.rejects] == [(rule, 1)]
    assert batch.rejects[0].samples == (Sample(row=len(usage_lines) + 1, column=column, value=value),)
    assert batch.frame["collection_id"].to_list() == [*range(1, 13), *range(1, 13)]
    assert batch.rows_in == batch.frame.height + batch.rejected_rows


def test_a_row_with_two_faults_counts_once(usage_lines: list[str], write_lines: WriteLines) -> None:
    twice = a_window(start_time='"x"', collection_id='"y"')
    (batch,) = read_all(write_lines([*usage_lines, twice]))
    assert counts([batch]) == {"not-an-integer": 1}
    assert batch.rows_in == len(usage_lines) + 1


def test_at_most_five_rows_of_a_rule_are_shown(usage_lines: list[str], write_lines: WriteLines) -> None:
    (batch,) = read_all(write_lines([*usage_lines, *[a_window(collection_id='"?"')] * 9]), batch_rows=100)
    assert batch.rejects[0].rows == 9
    assert [sample.row for sample in batch.rejects[0].samples] == [13, 14, 15, 16, 17]


def test_quoted_and_bare_integers_are_the_same(usage_lines: list[str], write_lines: WriteLines) -> None:
    quoted = read_all(write_lines(usage_lines))[0].frame
    bare = read_all(write_lines([line.replace('"600000000"', "600000000") for line in usage_lines]))[0].frame
    assert bare.equals(quoted)
    assert quoted["start_time_us"].null_count() == 0


@pytest.mark.parametrize(
    ("spelt", "code"), [('"FAIL"', 5), ('"5"', 5), ("5", 5), ("null", 0), ('"10"', 10), ('"UPDATE_RUNNING"', 10)]
)
def test_event_types_are_read_as_number_text_or_name(spelt: str, code: int, write_lines: WriteLines) -> None:
    line = f'{{"time":"5","type":{spelt},"collection_id":"1","resource_request":{{}}}}'
    assert read_all(write_lines([line], "instance_events-0.json.gz"))[0].frame["type"].to_list() == [code]


@pytest.mark.parametrize("spelt", ['"FAILED"', '"11"', "-1", "11"])
def test_an_unknown_event_type_is_a_reject(spelt: str, write_lines: WriteLines) -> None:
    lines = [f'{{"time":"5","type":{kind},"collection_id":"1","resource_request":{{}}}}' for kind in ("5", spelt)]
    assert counts(read_all(write_lines(lines, "instance_events-0.json.gz"))) == {"unknown-event-type": 1}


def test_codes_of_2011_are_mapped_only_where_v2_is_declared(
    events_frame: pl.DataFrame, tmp_path: Path, declare: Callable[..., None]
) -> None:
    write_shard(tmp_path, "instance_events", 0, events_frame, Dialect.V2)
    (undeclared,) = read_all(tmp_path)
    assert undeclared.frame["type"].unique().sort().to_list() == [0, 1, 3]  # as the file has them
    assert [note.code for note in undeclared.notes] == ["version-unproved"]
    declare(tmp_path, clusterdata="v2")
    (declared,) = read_all(tmp_path)
    assert declared.frame["type"].unique().sort().to_list() == [0, 3, 5]
    assert declared.notes == ()


def test_float_ids_must_be_whole_and_exact(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    floats = layout.flat(usage_frame, "instance_usage", EventTypeForm.CODE, separator="_", ids_as_floats=True)
    spoilt = pl.Series("collection_id", [0.5, 2.0**53, float("nan"), *[7.0] * (usage_frame.height - 3)])
    floats.with_columns(spoilt).write_parquet(tmp_path / "instance_usage-0.parquet")
    batches = read_all(tmp_path)
    assert counts(batches) == {"not-an-integer": 2, "not-exact": 1}
    assert batches[0].frame["collection_id"].unique().to_list() == [7]


def test_a_line_of_2011_with_too_few_or_many_values_is_not_split(
    events_frame: pl.DataFrame, tmp_path: Path, write_lines: WriteLines, declare: Callable[..., None]
) -> None:
    declare(tmp_path, clusterdata="v2")
    good = "600000000,,5,0,7,1,u,0,9,0.5,0.25,,0"
    batches = read_all(
        write_lines([good, "1,2,3", good + ",0", good.replace("u", '"u,v"')], "instance_events-0.csv.gz")
    )
    assert counts(batches) == {"not-split": 2}
    assert batches[0].frame.height == 2
    assert batches[0].frame["priority"].to_list() == [120, 120]


def test_columns_that_are_not_in_the_schema_are_ignored_by_name(usage_frame: pl.DataFrame, tmp_path: Path) -> None:
    leaking = usage_frame.with_columns(event_count=pl.lit(9, pl.Int64), final_type=pl.lit("FAIL"))
    for dialect in (Dialect.PARQUET, Dialect.NDJSON, Dialect.DOTTED):
        folder = tmp_path / dialect
        folder.mkdir()
        write_shard(folder, "instance_usage", 0, leaking, dialect)
        (batch,) = read_all(folder)
        assert batch.frame.equals(usage_frame), dialect
        assert [(note.code, note.column) for note in batch.notes] == [
            ("column-ignored", "event_count"),
            ("column-ignored", "final_type"),
        ]


def test_an_optional_column_that_is_absent_is_noted_once_and_read_as_missing(
    usage_frame: pl.DataFrame, tmp_path: Path
) -> None:
    written = layout.nested(usage_frame, "instance_usage", EventTypeForm.CODE).drop("machine_id")
    written.write_parquet(tmp_path / "instance_usage-0.parquet")
    batches = read_all(tmp_path, batch_rows=5)
    text = "the file has no column for machine_id: read as missing"
    assert [note for batch in batches for note in batch.notes] == [
        Note(code="column-absent", column="machine_id", text=text)
    ]
    assert pl.concat([batch.frame for batch in batches])["machine_id"].null_count() == usage_frame.height
