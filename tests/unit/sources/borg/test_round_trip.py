"""Whatever dialect a canonical table is written in, it is read back bit for bit."""

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.borg import AFTER_TRACE_US, TABLES, Column, Dialect, Omitted
from leadtime.simulate.borg.dialects.layout import EventTypeForm
from leadtime.simulate.borg.dialects.shards import write_shard
from leadtime.simulate.borg.dialects.v2 import to_v2
from leadtime.sources.borg.canonical import schema_of
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import find_shards

V3 = [one for one in Dialect if one not in (Dialect.V2, Dialect.SLICE)]
BITS_52 = 2**52
reals = st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
above_zero = st.floats(width=32, min_value=0.0, exclude_min=True, allow_infinity=False)
ids = st.sampled_from([1, BITS_52]) | st.integers(1, BITS_52)
times = st.sampled_from([0, 600_000_000, AFTER_TRACE_US]) | st.integers(0, AFTER_TRACE_US)
LIMITS = {"priority": 450, "missing_type": 5}
WIDTHS = {"Int8": 2**7 - 1, "Int32": 2**31 - 1, "Int64": BITS_52}


def values(table: str, column: Column, text: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """What may stand in a canonical column."""
    if column.name == "type":
        return st.integers(0, 3 if table == "machine_events" else 10)
    if column.name == "collection_id" or (table, column.name) == ("machine_events", "machine_id"):
        return ids
    if column.name.endswith("time_us"):
        return times if column.name != "end_time_us" else times.filter(bool)  # nothing ends before it begins
    if column.dtype == "String":
        return st.none() | text
    if column.dtype.startswith("List"):
        length = 11 if column.name.startswith("cpu") else 9
        return st.none() | st.lists(reals, min_size=length, max_size=length)
    if column.dtype == "Float32":
        return st.none() | above_zero if column.omitted is Omitted.NULL else reals
    if column.omitted is Omitted.NULL:
        return st.none() | st.just(-1) | ids
    if column.name in LIMITS:
        return st.integers(0, LIMITS[column.name])
    lowest = 0 if column.name == "instance_index" else -1
    return st.sampled_from([0, lowest]) | st.integers(lowest, WIDTHS[column.dtype])


def frames(table: str, text: st.SearchStrategy[str]) -> st.SearchStrategy[pl.DataFrame]:
    """Canonical frames of a few rows; the two values of a request or capacity are both there or both absent."""
    row = st.fixed_dictionaries({column.name: values(table, column, text) for column in TABLES[table]})
    pair = [column.name for column in TABLES[table] if column.omitted is Omitted.KEPT and column.dtype == "Float32"]

    def build(rows: list[tuple[dict[str, object], bool]]) -> pl.DataFrame:
        made = [one | dict.fromkeys(pair) if is_absent else one for one, is_absent in rows]
        return (
            pl.DataFrame(made, schema=schema_of(table), orient="row") if made else pl.DataFrame(schema=schema_of(table))
        )

    return st.lists(st.tuples(row, st.booleans()), max_size=6).map(build)


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
line_text = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12
)


def read_back(frame: pl.DataFrame, table: str, dialect: Dialect, form: EventTypeForm, declared: str) -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "trace.json").write_text(f'{{"schema":"leadtime.borg-trace/1","clusterdata":"{declared}"}}')
        write_shard(folder, table, 0, frame, dialect, event_type_form=form)
        (shard,) = find_shards(folder)
        assert (shard.table, shard.clusterdata) == (table, declared)
        batches = list(read_shard(shard, batch_rows=4))
    assert [batch.rejects for batch in batches if batch.rejects] == []
    assert all(batch.frame.height <= 4 for batch in batches)
    return pl.concat([batch.frame for batch in batches])


def same_bits(left: pl.DataFrame, right: pl.DataFrame) -> bool:
    return left.schema == right.schema and repr(left.rows()) == repr(right.rows())


@pytest.mark.parametrize("dialect", V3)
@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), form=st.sampled_from(EventTypeForm))
def test_every_v3_dialect_gives_the_table_back(
    table: str, dialect: Dialect, data: st.DataObject, form: EventTypeForm
) -> None:
    frame = data.draw(frames(table, any_text))
    assert same_bits(read_back(frame, table, dialect, form, "v3"), frame)


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_v2_gives_back_what_it_can_hold(table: str, data: st.DataObject) -> None:
    frame = data.draw(frames(table, line_text))
    assert same_bits(read_back(frame, table, Dialect.V2, EventTypeForm.CODE, "v2"), to_v2(frame, table))
