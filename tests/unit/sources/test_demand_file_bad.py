"""Bad demand files: each gives one line that names file, row, what is wrong and the cure."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.errors import BadDemandFile, LeadtimeError
from leadtime.sources import demand_file, demand_file_csv, demand_file_grid
from leadtime.sources.demand_file import DemandFileOptions, OnDuplicate, TimeUnit, read_demand

PLAIN = DemandFileOptions(time_column="t", value_column="v")
HEAD = "t,v\n2026-03-02T00:00:00Z,1\n"


def error_of(path: Path, options: DemandFileOptions = PLAIN) -> BadDemandFile:
    """The error that reading ``path`` raises."""
    with pytest.raises(BadDemandFile) as caught:
        read_demand(path, options)
    return caught.value


@pytest.mark.parametrize(
    ("text", "slug", "row", "says", "cure"),
    [
        pytest.param("", "demand-empty", None, "empty", "header row", id="an empty file"),
        pytest.param("\n\n \n", "demand-empty", None, "empty", "header row", id="only blank lines"),
        pytest.param("t,v\n", "demand-header-only", None, "header and no row", "one row a bucket", id="header only"),
        pytest.param("t,w\n1,2\n", "demand-column-missing", 1, "'v'; it has 't', 'w'", "--value-column",
                     id="no column"),
        pytest.param("t;v\n1;2\n", "demand-column-missing", 1, "'t;v'", "commas", id="semicolons instead of commas"),
        pytest.param("t,v,v\n", "demand-column-twice", 1, "two columns 'v'", "rename", id="a column twice"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,many\n", "demand-not-a-number", 3, "column v holds 'many'",
                     "leave the cell empty", id="text in numbers"),
        pytest.param(HEAD + '2026-03-02T00:01:00Z,"1,5"\n', "demand-not-a-number", 3, "'1,5'", "decimal point",
                     id="a decimal comma"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,1_000\n", "demand-not-a-number", 3, "'1_000'", "write a number",
                     id="a Python number is no number"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,-3\n", "demand-negative", 3, "holds -3", "empty", id="negative"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,1e99\n", "demand-too-high", 3, "holds 1e+99", "empty", id="absurd"),
        pytest.param(HEAD + "yesterday,1\n", "demand-time-unreadable", 3, "'yesterday'", "2026-03-02T06:05:00Z",
                     id="a time nobody can read"),
        pytest.param(HEAD + ",1\n", "demand-time-unreadable", 3, "time ''", "2026-03-02", id="no time"),
        pytest.param(HEAD + "1750000000,1\n", "demand-time-unit", 3, "is a number", "--time-unit s",
                     id="number as time"),
        pytest.param(HEAD + "1969-12-31T23:59:59Z,1\n", "demand-time-unreadable", 3, "years 1970 to 9999", "check",
                     id="before 1970"),
        pytest.param(HEAD + "2026-03-01T23:59:00Z,1\n", "demand-time-order", 3, "before that of row 2", "sort",
                     id="out of order"),
        pytest.param(HEAD + "2026-03-02T01:00:00+01:00,1\n", "demand-time-twice", 3, "that of row 2", "--on-duplicate",
                     id="the same instant twice, written in two ways"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z\n", "demand-ragged-row", 3, "1 cells and the header 2", "quote",
                     id="a row too short"),
        pytest.param(HEAD + "2026-03-02T00:01:00Z,1,2\n", "demand-ragged-row", 3, "3 cells", "quote", id="too long"),
        pytest.param(HEAD + '2026-03-02T00:01:00Z,"1\n', "demand-csv-broken", 3, "well-formed", "quotes",
                     id="a quote that is never closed"),
        pytest.param("t,v\n2026-03-02T00:00:00Z,\n", "demand-no-values", None, "no value at all", "--value-column",
                     id="nothing but missing values"),
        pytest.param(HEAD + "9026-03-02T00:00:00Z,1\n", "demand-too-large", None, "spans", "stray time",
                     id="a stray time far away"),
    ],
)  # fmt: skip
def test_a_bad_file_gives_one_clear_line(
    tmp_path: Path, *, text: str, slug: str, row: int | None, says: str, cure: str
) -> None:
    path = tmp_path / "demand.csv"
    path.write_text(text)
    error = error_of(path)
    assert error.slug == slug
    assert str(path) in error.doing
    assert error.doing.endswith(f"row {row}") or (row is None and "row" not in error.doing.removeprefix(str(tmp_path)))
    assert says in error.wrong
    assert cure in error.cure
    assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"t,v\n\xff\xfe,1\n", b"t,v\0\n", b"\xff\xfet\0,\0v\0"])
def test_a_file_that_is_not_text_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "demand.csv"
    path.write_bytes(content)
    assert error_of(path).slug == "demand-not-text"


def test_a_parquet_file_that_is_cut_off_is_said_to_be_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "demand.parquet"
    path.write_bytes(b"PAR1" + b"\x15\x04" * 20)
    assert error_of(path).slug == "demand-parquet-broken"


def test_an_absent_file_a_folder_and_a_device_are_no_files(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path, Path(os.devnull)):
        assert error_of(path).slug == "demand-file-absent"
    assert error_of(Path("a\0b")).slug == "demand-file-unreadable"


def test_an_unknown_zone_is_named_before_the_file_is_read(tmp_path: Path) -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", "Europe", ""):
        error = error_of(tmp_path / "none.csv", DemandFileOptions(time_column="t", value_column="v", time_zone=zone))
        assert error.slug == "demand-time-zone"
        assert repr(zone) in error.wrong


def test_a_file_over_the_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "demand.csv"
    path.write_text(HEAD + "2026-03-02T00:01:00Z,1\n2026-03-02T00:02:00Z,1\n")
    with monkeypatch.context() as patch:
        patch.setattr(demand_file, "MAX_BYTES", 10)
        assert "more than 0 MB" in error_of(path).wrong
    with monkeypatch.context() as patch:
        patch.setattr(demand_file_csv, "MAX_ROWS", 2)
        assert "more than 2 rows" in error_of(path).wrong
    monkeypatch.setattr(demand_file_grid, "MAX_BUCKETS", 1)
    assert error_of(path).slug == "demand-too-large"


def test_a_filter_that_leaves_nothing_lists_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "demand.csv"
    path.write_text("t,v,kind\n2026-03-02T00:00:00Z,1,chat\n2026-03-02T00:01:00Z,1,embed\n")
    error = error_of(path, DemandFileOptions(time_column="t", value_column="v", where=(("kind", "images"),)))
    assert error.slug == "demand-where-none"
    assert error.wrong == "none of 2 rows has kind = 'images'; column kind holds 'chat', 'embed'"


def test_a_number_of_the_wrong_unit_is_outside_the_years(tmp_path: Path) -> None:
    path = tmp_path / "demand.csv"
    path.write_text("t,v\n1750000000000,1\n1750000060000,1\n")
    error = error_of(path, DemandFileOptions(time_column="t", value_column="v", time_unit=TimeUnit.S))
    assert (error.slug, error.cure) == ("demand-time-unreadable", "check --time-unit (s or ms) and --start")


CELL = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "nan", "inf", "-inf", "1e999", "-0", "2026-03-02T00:00:00Z", "2026-03-02 00:01", '"', "0", "9" * 30]
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.lists(CELL, max_size=4), max_size=8),
    header=st.sampled_from(["t,v", "t,v,g", "\ufefft,v", '"t","v"', "v", "", "t ,\tv"]),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
    unit=st.sampled_from([None, TimeUnit.S, TimeUnit.MS]),
    zone=st.sampled_from([None, "Europe/Berlin", "Nowhere"]),
    group=st.sampled_from([None, "g"]),
)
def test_no_text_file_ever_gives_a_traceback(tmp_path_factory, *, rows, header, end, unit, zone, group) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(end.join([header, *(",".join(row) for row in rows)]).encode("utf-8", "surrogatepass"))
    options = DemandFileOptions(
        time_column="t", value_column="v", time_unit=unit, time_zone=zone, group_by=group, on_duplicate=OnDuplicate.MEAN
    )
    with contextlib.suppress(LeadtimeError):  # any other exception fails the test
        file = read_demand(path, options)
        assert len(file.values) >= 1
        assert len(file.minutes().values) >= 1


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200), magic=st.booleans())
def test_no_bytes_ever_give_a_traceback(tmp_path_factory, content: bytes, magic: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(b"PAR1" * magic + content + b"PAR1" * magic)
    with pytest.raises(BadDemandFile):
        read_demand(path, PLAIN)
