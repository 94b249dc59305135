"""A shard → canonical batches with counted rejects, in bounded memory; and how many rows a shard has.

Whatever the dialect, the seam is the same: an adapter yields raw frames under canonical names, ``canonical`` casts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from leadtime.domain.borg import Dialect
from leadtime.sources.borg import gz_lines, ndjson, parquet, slices, v2
from leadtime.sources.borg.batch import Batch, Note, RawFrame, joined
from leadtime.sources.borg.canonical import canonicalise, key_of
from leadtime.sources.borg.codes import codes_for
from leadtime.sources.borg.shards import Shard
from leadtime.sources.borg.trace_errors import bad_shard

BATCH_ROWS = 1_000_000
PARQUETS = frozenset({Dialect.PARQUET, Dialect.PARQUET_GZ, Dialect.DOTTED, Dialect.UNDERSCORED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """Rows of a shard; ``is_exact`` False: estimated from its first part and the size of the file."""

    rows: int
    is_exact: bool


def read_shard(shard: Shard, *, batch_rows: int = BATCH_ROWS) -> Iterator[Batch]:
    """Every row of ``shard``, in file order, as canonical batches of at most ``batch_rows``; at least one batch.

    A row that cannot be read is counted under a named rule and left out; its position and value come with it.
    Raises BadTrace, when the fault is met, for a file that breaks off, lacks a column, mixes tables, or in which no
    row has a key (quoted integers read as nothing, say). What was yielded before the fault is good.
    """
    held: list[Batch] = []
    for batch in _pieces(shard, batch_rows):
        if held and sum(one.frame.height for one in held) + batch.frame.height > batch_rows:
            yield joined(held)
            held = []
        held.append(batch)
    yield joined(held)


def _pieces(shard: Shard, batch_rows: int) -> Iterator[Batch]:
    """The shard in the pieces its adapter reads, cast; raises BadTrace as soon as rows were read and none has a key."""
    codes = codes_for(shard.table, shard.clusterdata)
    notes = _version_notes(shard)
    rows, keyed, seen = 0, 0, set[tuple[str, str]]()
    for raw in _raw_frames(shard, batch_rows):
        read = canonicalise(raw.frame, shard.table, codes, raw.first_row)
        rows += raw.frame.height
        keyed += read.keyed_rows
        if rows and not keyed:
            raise _keyless(shard, rows)
        fresh = tuple(note for note in (*notes, *raw.notes) if (note.code, note.column) not in seen)
        seen |= {(note.code, note.column) for note in fresh}
        notes = ()
        yield Batch(frame=read.frame, rows_in=raw.frame.height, rejects=read.rejects, notes=fresh)


def _raw_frames(shard: Shard, batch_rows: int) -> Iterator[RawFrame]:
    if shard.dialect in PARQUETS:
        return parquet.raw_frames(shard.path, shard.table, batch_rows)
    if shard.dialect is Dialect.NDJSON:
        return ndjson.raw_frames(shard.path, shard.table, batch_rows)
    if shard.dialect is Dialect.V2:
        return v2.raw_frames(shard.path, shard.table, batch_rows)
    return slices.raw_frames(shard.path, shard.table, batch_rows)


def _version_notes(shard: Shard) -> tuple[Note, ...]:
    """Said once of a shard whose codes nobody declared."""
    if shard.clusterdata is not None or shard.table == "instance_usage":
        return ()
    text = "no trace.json declares the clusterdata version (v2 or v3): event codes are kept as written, unproved"
    return (Note(code="version-unproved", column="type", text=text),)


def _keyless(shard: Shard, rows: int) -> Exception:
    key = key_of(shard.table)
    return bad_shard(
        "borg-keys-missing", shard.path, f"column {key} holds nothing readable in any of the {rows:,} rows read",
        f"export {shard.table} again with {key} as a whole number or as its decimal text",
    )  # fmt: skip


def count_rows(shard: Shard) -> RowCount | None:
    """How many rows the shard has, without reading it through; None where that cannot be said cheaply."""
    if shard.dialect in PARQUETS:
        return RowCount(rows=parquet.rows_at(shard.path), is_exact=True)
    if shard.dialect is Dialect.SLICE:
        return None
    lines, is_exact = gz_lines.estimated_lines(shard.path)
    return RowCount(rows=lines, is_exact=is_exact)
