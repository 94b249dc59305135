"""A Parquet file → Columns, by polars, which is an extra: imported here and only when such a file is read.

Rows are counted from 1. Only the wanted columns are read.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.sources import demand_file_columns as columns_of
from leadtime.sources.demand_file_columns import Columns, FloatColumn, IntColumn, TextTimes
from leadtime.sources.demand_file_csv import LISTED, MAX_ROWS, find_columns, no_rows, too_many_rows
from leadtime.sources.demand_file_errors import bad_file, shown
from leadtime.sources.demand_file_options import DemandFileOptions

if TYPE_CHECKING:
    import polars as pl

MICROS_PER_S = 1_000_000


def read_parquet(path: Path, options: DemandFileOptions) -> Columns:
    """Read the wanted columns of ``path``.

    Raises WrongUse when polars is not installed, BadDemandFile for whatever makes the file unusable.
    """
    try:
        import polars as pl
    except ImportError:
        raise WrongUse(
            "demand-parquet-extra", f"reading {path}", "Parquet needs polars, which is not installed",
            "run: pip install 'leadtime[replay]', or give a CSV",
        ) from None  # fmt: skip
    name = str(path)
    try:
        names = list(pl.read_parquet_schema(path))
        find_columns(names, options, name)
        if pl.scan_parquet(path).select(pl.len()).collect().item() > MAX_ROWS:
            raise too_many_rows(name)
        wanted = [options.time_column, options.value_column, *(column for column, _ in options.where)]
        wanted += [options.group_by] if options.group_by is not None else []
        frame = pl.read_parquet(path, columns=list(dict.fromkeys(wanted)), use_pyarrow=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise bad_file(
            "demand-parquet-broken", name, f"it is not a readable Parquet file ({str(error).splitlines()[0][:80]})",
            "write it again, or give a CSV",
        ) from None  # fmt: skip
    return _columns(frame.with_row_index("\0row", offset=1), options, name)


def _columns(frame: "pl.DataFrame", options: DemandFileOptions, path: str) -> Columns:
    """The filtered frame as arrays."""
    import polars as pl

    read = frame.height
    seen: tuple[str, ...] = ()
    for column, text in options.where:
        cells = pl.col(column).cast(pl.String).str.strip_chars()
        seen = seen or tuple(frame.select(cells.drop_nulls().unique(maintain_order=True).head(LISTED)).to_series())
        frame = frame.filter(cells == text)
    if not frame.height:
        raise no_rows(path, options, read, seen)
    rows = frame["\0row"].to_numpy().astype(np.int64)
    times = _times(frame[options.time_column], rows, path, options)
    group = np.zeros(frame.height, dtype=np.int64)
    groups = 1
    if options.group_by is not None:
        names = frame[options.group_by].cast(pl.String).fill_null("")
        codes = {value: code for code, value in enumerate(names.unique(maintain_order=True))}
        group, groups = np.array([codes[value] for value in names], dtype=np.int64), len(codes)
    return Columns(
        time_s=times.time_s, is_instant=times.is_instant, value=_values(frame[options.value_column], rows, path),
        group=group, row=rows, groups=groups, rows_read=read, rows_filtered=read - frame.height,
    )  # fmt: skip


def _values(column: "pl.Series", rows: IntColumn, path: str) -> FloatColumn:
    """Numbers as they are, text as in a CSV; null is missing."""
    import polars as pl

    if column.dtype.is_numeric():
        values = column.cast(pl.Float64).to_numpy().astype(np.float64)
        return columns_of.checked_values(np.array(values), rows, path, column.name)
    if column.dtype == pl.String:
        return columns_of.numbers(column.fill_null("").to_list(), rows.tolist(), path, column.name)
    raise bad_file(
        "demand-not-a-number", path, f"column {column.name} is of type {column.dtype}, not numbers",
        "name another column with --value-column",
        row=int(rows[0]),
    )  # fmt: skip


def _times(column: "pl.Series", rows: IntColumn, path: str, options: DemandFileOptions) -> TextTimes:
    """Instants, wall-clock times, text or numbers → seconds since 1970."""
    import polars as pl

    if column.null_count():
        at = int(column.is_null().arg_true()[0])
        raise bad_file(
            "demand-time-unreadable", path, f"column {column.name} has no time", "take the row out", row=int(rows[at])
        )
    if column.dtype == pl.String and options.time_unit is None:
        return columns_of.text_times(column.to_list(), rows.tolist(), path, column.name)
    always = np.ones(len(column), dtype=np.bool_)
    if isinstance(column.dtype, pl.Datetime | pl.Date):
        zone = column.dtype.time_zone if isinstance(column.dtype, pl.Datetime) else None
        micros = column.cast(pl.Datetime("us", zone)).cast(pl.Int64)
        return TextTimes(time_s=micros.to_numpy() / MICROS_PER_S, is_instant=always & (zone is not None))
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise bad_file(
            "demand-time-unreadable", path, f"column {column.name} is of type {column.dtype}, not times",
            "name another column with --time-column", row=int(rows[0]),
        )  # fmt: skip
    if options.time_unit is None:
        raise bad_file(
            "demand-time-unit", path, f"time {shown(str(column[0]))} in column {column.name} is a number",
            "say its unit with --time-unit s or --time-unit ms", row=int(rows[0]),
        )  # fmt: skip
    if column.dtype == pl.String:
        counted = columns_of.time_numbers(column.to_list(), rows.tolist(), path, options)
    else:
        counted = column.cast(pl.Float64).to_numpy()
    return TextTimes(time_s=columns_of.instants_of_numbers(counted, rows, path, options), is_instant=always)
