"""One table's canonical frame → one shard file in the dialect asked for, named as the public trace names its files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES, Dialect
from leadtime.simulate.borg.dialects import layout, ndjson, v2
from leadtime.simulate.borg.dialects.layout import EventTypeForm

ROW_GROUP_ROWS = 262_144  # bounds what a reader must hold at once

SUFFIXES: Mapping[Dialect, str] = {
    Dialect.NDJSON: "json.gz",
    Dialect.PARQUET: "parquet",
    Dialect.PARQUET_GZ: "parquet.gz",
    Dialect.DOTTED: "parquet",
    Dialect.UNDERSCORED: "parquet",
    Dialect.V2: "csv.gz",
}


def shard_path(folder: Path, table: str, number: int, dialect: Dialect) -> Path:
    """``folder``/<table>-<number, 12 digits>.<suffix of the dialect>."""
    return folder / f"{table}-{number:012d}.{SUFFIXES[dialect]}"


def write_shard(
    folder: Path,
    table: str,
    number: int,
    frame: pl.DataFrame,
    dialect: Dialect,
    *,
    event_type_form: EventTypeForm = EventTypeForm.CODE,
) -> Path:
    """Write ``frame`` (columns of ``TABLES[table]`` in any order, further ones kept as they are) and return the path.

    Nulls and zeros are the canonical ones (``domain.borg.Omitted``): a canonical frame reads back bit for bit, but for
    what V2 cannot say (``v2.to_v2``). ``folder`` must exist. Same frame, same bytes. Raises ValueError for SLICE,
    which joins tables (``slices.write_slice``), and for a frame that lacks a column.
    """
    lacking = {column.name for column in TABLES[table]} - set(frame.columns)
    if lacking:
        raise ValueError(f"{table} lacks {sorted(lacking)}")
    if dialect not in _WRITERS:
        raise ValueError(f"{dialect} is not written table by table")
    path = shard_path(folder, table, number, dialect)
    _WRITERS[dialect](frame, table, event_type_form, path)
    return path


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)


def _nested(frame: pl.DataFrame, table: str, form: EventTypeForm, path: Path) -> None:
    _write_parquet(layout.nested(frame, table, form), path)


def _dotted(frame: pl.DataFrame, table: str, form: EventTypeForm, path: Path) -> None:
    _write_parquet(layout.flat(frame, table, form, separator=".", ids_as_floats=False), path)


def _underscored(frame: pl.DataFrame, table: str, form: EventTypeForm, path: Path) -> None:
    _write_parquet(layout.flat(frame, table, form, separator="_", ids_as_floats=True), path)


_WRITERS: Mapping[Dialect, Callable[[pl.DataFrame, str, EventTypeForm, Path], None]] = {
    Dialect.NDJSON: ndjson.write_ndjson,
    Dialect.V2: v2.write_v2,
    Dialect.PARQUET: _nested,
    Dialect.PARQUET_GZ: _nested,
    Dialect.DOTTED: _dotted,
    Dialect.UNDERSCORED: _underscored,
}
