"""A canonical frame → JSON lines as BigQuery exports protos: int64 as text, zeros and nulls left out, structs nested.

What is left out and what is an empty object differ: no ``resource_request`` is an unknown request, ``{}`` one of zero.
"""

from pathlib import Path

import polars as pl

from leadtime.domain.borg import TABLES, Column, Omitted
from leadtime.simulate.borg.dialects.gz import gzip_file
from leadtime.simulate.borg.dialects.layout import EventTypeForm, extra_columns, spelled_type

SLICE_ROWS = 100_000  # turned into text at a time


def write_ndjson(frame: pl.DataFrame, table: str, form: EventTypeForm, path: Path) -> None:
    """One object a line, in the table's column order, further columns last. Floats read back to the same Float32."""
    line = _line(table, form, extra_columns(frame, table))
    with gzip_file(path) as file:
        for part in frame.iter_slices(SLICE_ROWS):
            text = part.select(line.str.join("\n")).item()
            file.write(f"{text}\n".encode() if part.height else b"")


def _line(table: str, form: EventTypeForm, extra: list[str]) -> pl.Expr:
    """A row as one line; every piece begins with a comma, the first of which is taken off."""
    structs: dict[str, list[Column]] = {}
    for column in TABLES[table]:
        structs.setdefault(column.path.partition(".")[0], []).append(column)
    pieces = [
        _struct(outer, fields, table, form) if "." in fields[0].path else _piece(fields[0], fields[0].path, table, form)
        for outer, fields in structs.items()
    ]
    pieces += [_encoded(name) for name in extra]
    return pl.concat_str(pl.lit("{"), pl.concat_str(pieces).str.strip_prefix(","), pl.lit("}"))


def _struct(outer: str, fields: list[Column], table: str, form: EventTypeForm) -> pl.Expr:
    """A nested object; left out where it may be absent and nothing is known of it."""
    pieces = [_piece(column, column.path.partition(".")[2], table, form) for column in fields]
    text = pl.concat_str(pl.lit(f',"{outer}":{{'), pl.concat_str(pieces).str.strip_prefix(","), pl.lit("}"))
    if fields[0].omitted is Omitted.ZERO:
        return text
    known = pl.any_horizontal(pl.col(column.name).is_not_null() for column in fields)
    return pl.when(known).then(text).otherwise(pl.lit(""))


def _piece(column: Column, name: str, table: str, form: EventTypeForm) -> pl.Expr:
    """``,"name":value``, or nothing for null and zero."""
    value = pl.col(column.name)
    if column.dtype == "String":
        return _encoded(column.name)
    if column.dtype.startswith("List"):
        numbers = value.list.eval(pl.element().cast(pl.String)).list.join(",")
        return _unless_null(pl.concat_str(pl.lit(f',"{name}":['), numbers, pl.lit("]")))
    text = value.cast(pl.String)
    if column.name == "type":
        text = spelled_type(table, form).cast(pl.String)
    is_text = column.dtype == "Int64" or (column.name == "type" and form is not EventTypeForm.CODE)
    quote = '"' if is_text else ""
    shown = pl.when(value != 0).then(text)
    return _unless_null(pl.concat_str(pl.lit(f',"{name}":{quote}'), shown, pl.lit(quote)))


def _unless_null(text: pl.Expr) -> pl.Expr:
    return text.fill_null("")


def _encoded(name: str) -> pl.Expr:
    """Any column as JSON by the library, so that quotes and control characters are escaped; null is left out."""
    encoded = pl.struct(pl.col(name)).struct.json_encode().str.strip_prefix("{").str.strip_suffix("}")
    piece = pl.concat_str(pl.lit(","), encoded)
    return pl.when(pl.col(name).is_not_null()).then(piece).otherwise(pl.lit(""))
