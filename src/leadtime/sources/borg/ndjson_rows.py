"""JSON lines from a given row on, patiently: as typed values, else all as text, else line by line.

Nothing is dropped here: what has the wrong type is handed on as text, so that the cast can name the rule it breaks.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from leadtime.sources.borg import gz_lines
from leadtime.sources.borg.batch import FAULT
from leadtime.sources.borg.trace_errors import SHOWN, bad_shard

MISFIT = (pl.exceptions.ComputeError, pl.exceptions.SchemaError)


def frames_from(path: Path, schema: Mapping[str, pl.DataType], done: int) -> Iterator[pl.DataFrame]:
    """Rows after the first ``done``: ``schema``'s columns or their text, and FAULT where lines are broken.

    Raises BadTrace where the gzip breaks off or is damaged, or a plain file ends in the middle of a row.
    """
    row = 0
    try:
        for piece in gz_lines.pieces(path):
            lines = [line for line in piece.split(b"\n") if line.strip()]
            fresh = lines[max(done - row, 0) :]
            row += len(lines)
            if fresh:
                is_cut = not piece.endswith(b"\n") and not _is_object(fresh[-1])
                if is_cut:
                    raise _cut(path, row)
                yield _frame(fresh, schema)
    except (EOFError, zlib.error) as error:
        raise gz_lines.broken(path, error, "gzip") from None


def _cut(path: Path, row: int) -> Exception:
    return bad_shard(
        "borg-shard-cut", path, f"it breaks off inside row {row:,}, after {row - 1:,} whole rows",
        "fetch it again: what comes after is lost, and a cut event table has no true last event",
    )  # fmt: skip


def _frame(lines: list[bytes], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    text = {name: _as_text(dtype) for name, dtype in schema.items()}
    piece = b"\n".join(lines)
    for wanted in (dict(schema), text):
        try:
            return pl.read_ndjson(piece, schema=wanted)
        except MISFIT:
            continue
    return pl.DataFrame([_row(line, text) for line in lines], schema={**text, FAULT: pl.String()})


def _as_text(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Struct):
        return pl.Struct([pl.Field(field.name, pl.String()) for field in dtype.fields])
    return pl.List(pl.String) if isinstance(dtype, pl.List) else pl.String()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _row(line: bytes, schema: Mapping[str, pl.DataType]) -> dict[str, object]:
    """One line by the text ``schema``; a scalar where a struct or list belongs goes on as its only element."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return {FAULT: line.decode("utf-8", "replace")[:SHOWN]}
    row: dict[str, object] = {}
    for name, dtype in schema.items():
        value = found.get(name)
        if value is None:
            continue
        if isinstance(dtype, pl.Struct):
            given = value if isinstance(value, dict) else dict.fromkeys([dtype.fields[0].name], value)
            row[name] = {field.name: _text(given.get(field.name)) for field in dtype.fields}
        elif isinstance(dtype, pl.List):
            row[name] = [_text(one) for one in (value if isinstance(value, list) else [value])]
        else:
            row[name] = _text(value)
    return row


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
