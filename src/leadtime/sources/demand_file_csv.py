"""A CSV file → Columns. The stdlib reader, because it knows exact line numbers, quotes and line breaks in cells.

The row of an error is the line of the file on which the row ends, the header being row 1: what an editor shows.
"""

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from leadtime.domain.errors import BadDemandFile
from leadtime.sources import demand_file_columns as columns_of
from leadtime.sources.demand_file_columns import BoolColumn, Columns, FloatColumn
from leadtime.sources.demand_file_errors import bad_file, shown
from leadtime.sources.demand_file_options import DemandFileOptions

CHUNK: Final = 65_536
MAX_ROWS: Final = 5_000_000
LISTED: Final = 12  # column names or values shown when the wanted one is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Where the wanted columns stand. ``group`` None without --group-by."""

    width: int
    time: int
    value: int
    group: int | None
    where: tuple[tuple[int, str], ...]


@dataclass(slots=True, kw_only=True)
class _Rows:
    """What is gathered: the current chunk as text, finished chunks as arrays. ``seen``: values a filter turned away."""

    times: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    row: "array[int]" = field(default_factory=lambda: array("q"))
    group: "array[int]" = field(default_factory=lambda: array("q"))
    codes: dict[str, int] = field(default_factory=dict)
    read: int = 0
    filtered: int = 0
    seen: dict[str, None] = field(default_factory=dict)
    time_chunks: list[FloatColumn] = field(default_factory=list)
    instant_chunks: list[BoolColumn] = field(default_factory=list)
    value_chunks: list[FloatColumn] = field(default_factory=list)


def read_csv(path: Path, options: DemandFileOptions) -> Columns:
    """Read the wanted columns of ``path`` (UTF-8, with or without byte order mark, comma-separated, a header row).

    Raises BadDemandFile for whatever makes it unusable; OSError is left to the caller.
    """
    name = str(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(_text_only(file, name), strict=True)
        try:
            header = find_columns(_header(lines, name), options, name)
            rows = _gather(lines, header, options, name)
        except UnicodeDecodeError as error:
            raise bad_file(
                "demand-not-text", name, f"it is not UTF-8 text (byte 0x{error.object[error.start]:02x})",
                "give a CSV or a Parquet file",
            ) from None  # fmt: skip
        except csv.Error as error:
            raise bad_file(
                "demand-csv-broken", name, f"it is not a well-formed CSV ({error})",
                "close open quotes and double the quotes inside quoted cells", row=lines.line_num,
            ) from None  # fmt: skip
    return _columns(rows, options, name)


def _text_only(lines: Iterator[str], path: str) -> Iterator[str]:
    """Pass lines on; a zero byte is never part of a text file."""
    for line in lines:
        if "\0" in line:
            raise bad_file(
                "demand-not-text", path, "it is not text: it holds zero bytes", "give a CSV or a Parquet file"
            )
        yield line


def _header(lines: Iterator[list[str]], path: str) -> list[str]:
    """The first row that is not blank."""
    for cells in lines:
        if any(cell.strip() for cell in cells):
            return [cell.strip() for cell in cells]
    raise bad_file("demand-empty", path, "the file is empty", "give a CSV with a header row and one row a bucket")


def find_columns(names: Sequence[str], options: DemandFileOptions, path: str) -> Header:
    """Places of the wanted columns. Raises BadDemandFile, listing the columns, when one is missing or double."""

    def place(wanted: str, flag: str) -> int:
        if names.count(wanted) == 1:
            return names.index(wanted)
        if wanted in names:
            raise bad_file("demand-column-twice", path, f"there are two columns {shown(wanted)}", "rename one", row=1)
        have = ", ".join(shown(name) for name in names[:LISTED]) + (", …" if len(names) > LISTED else "")
        other = next((sign for sign in (";", "\t", "|") if len(names) == 1 and sign in names[0]), None)
        cure = f"name one of them with {flag}" if other is None else f"separate the columns with commas, not {other!r}"
        raise bad_file("demand-column-missing", path, f"there is no column {shown(wanted)}; it has {have}", cure, row=1)

    return Header(
        width=len(names),
        time=place(options.time_column, "--time-column"),
        value=place(options.value_column, "--value-column"),
        group=None if options.group_by is None else place(options.group_by, "--group-by"),
        where=tuple((place(column, "--where"), text) for column, text in options.where),
    )


def _gather(lines: Iterator[list[str]], header: Header, options: DemandFileOptions, path: str) -> _Rows:
    """All rows that pass the filter, converted a chunk at a time."""
    rows = _Rows()
    width, time_at, value_at, group_at, where = header.width, header.time, header.value, header.group, header.where
    reader = lines
    for cells in reader:
        if not cells:
            continue
        rows.read += 1
        line: int = reader.line_num  # type: ignore[attr-defined]  # csv's reader has it; its typed name is private
        if len(cells) != width:
            _refuse_width(cells, width, line, path)
        if rows.read > MAX_ROWS:
            raise too_many_rows(path)
        if where and not all(cells[at].strip() == text for at, text in where):
            rows.filtered += 1
            if len(rows.seen) < LISTED:
                rows.seen.setdefault(cells[where[0][0]].strip())
            continue
        rows.times.append(cells[time_at])
        rows.values.append(cells[value_at])
        rows.row.append(line)
        if group_at is not None:
            rows.group.append(rows.codes.setdefault(cells[group_at], len(rows.codes)))
        if len(rows.times) == CHUNK:
            _convert_chunk(rows, options, path)
    _convert_chunk(rows, options, path)
    return rows


def _refuse_width(cells: list[str], width: int, line: int, path: str) -> None:
    """A row of another width has lost or gained a comma: which cell is which is not known."""
    raise bad_file(
        "demand-ragged-row", path, f"it has {len(cells)} cells and the header {width}",
        "quote cells that hold a comma, or complete the row", row=line,
    )  # fmt: skip


def too_many_rows(path: str) -> BadDemandFile:
    """The documented limit on rows."""
    return bad_file(
        "demand-too-large", path, f"it has more than {MAX_ROWS:,} rows",
        "average it to one row a minute, or split it by time",
    )  # fmt: skip


def _convert_chunk(rows: _Rows, options: DemandFileOptions, path: str) -> None:
    """Text of the chunk → arrays; the text is let go."""
    if not rows.times:
        return
    lines = rows.row[-len(rows.times) :]
    if options.time_unit is None:
        times = columns_of.text_times(rows.times, lines, path, options.time_column)
        rows.time_chunks.append(times.time_s)
        rows.instant_chunks.append(times.is_instant)
    else:
        rows.time_chunks.append(columns_of.time_numbers(rows.times, lines, path, options))
        rows.instant_chunks.append(np.ones(len(rows.times), dtype=np.bool_))
    rows.value_chunks.append(columns_of.numbers(rows.values, lines, path, options.value_column))
    rows.times, rows.values = [], []


def _columns(rows: _Rows, options: DemandFileOptions, path: str) -> Columns:
    """Chunks put together. Raises BadDemandFile when no row is left."""
    if not rows.row:
        raise no_rows(path, options, rows.read, tuple(rows.seen))
    time_s = np.concatenate(rows.time_chunks)
    line = np.array(rows.row, dtype=np.int64)
    if options.time_unit is not None:
        time_s = columns_of.instants_of_numbers(time_s, line, path, options)
    return Columns(
        time_s=time_s,
        is_instant=np.concatenate(rows.instant_chunks),
        value=np.concatenate(rows.value_chunks),
        group=np.array(rows.group, dtype=np.int64) if rows.codes else np.zeros(len(line), dtype=np.int64),
        row=line,
        groups=max(1, len(rows.codes)),
        rows_read=rows.read,
        rows_filtered=rows.filtered,
    )


def no_rows(path: str, options: DemandFileOptions, read: int, seen: Sequence[str]) -> BadDemandFile:
    """Nothing below the header, or nothing that passes --where."""
    if not read:
        return bad_file("demand-header-only", path, "it has a header and no row", "give one row a bucket")
    wanted = " and ".join(f"{column} = {shown(text)}" for column, text in options.where)
    have = ", ".join(shown(value) for value in seen)
    return bad_file(
        "demand-where-none", path, f"none of {read:,} rows has {wanted}; column {options.where[0][0]} holds {have}",
        "name a value that is there with --where COL=VALUE",
    )  # fmt: skip
