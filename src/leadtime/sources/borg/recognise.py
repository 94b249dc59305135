"""The first bytes of a file → its dialect and its table, whatever it is called.

Magic bytes say Parquet or gzip; column names, keys or the number of columns say which table. The file's name only
decides where the content fits two tables, and must not contradict it.
"""

import csv
import io
import json
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from leadtime.domain.borg import TABLES, Dialect
from leadtime.domain.borg_v2 import V2_COLUMNS, V2_TABLES
from leadtime.sources.borg import parquet
from leadtime.sources.borg.trace_errors import bad_shard, first_line
from leadtime.sources.borg.v3_columns import spellings

HEAD_BYTES = 262_144
PARQUET_MAGIC, GZIP_MAGIC = b"PAR1", b"\x1f\x8b"
SLICE_MARKS = {"collection_id", "average_usage", "instance_events_type"}
USAGE_MARKS = {"start_time", "end_time", "average_usage", "maximum_usage", "random_sample_usage", "assigned_memory",
               "page_cache_memory", "cycles_per_instruction", "sample_rate", "cpu_usage_distribution"}  # fmt: skip
INSTANCE_MARKS = {"resource_request", "constraint"}
COLLECTION_MARKS = {"collection_name", "collection_logical_name", "parent_collection_id", "max_per_machine",
                    "max_per_switch", "start_after_collection_ids"}  # fmt: skip
MACHINE_MARKS = {"capacity", "switch_id", "platform_id", "missing_data_reason"}
CURE = "fetch or write the shard again, or take it out of the folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What a file is. ``tables``: one, or both parts of a slice."""

    dialect: Dialect
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrelated:
    """A file that is no shard, and why."""

    reason: str


def table_by_name(path: Path) -> str | None:
    """The table a file or its folder is called after, in the names of 2019 or 2011."""
    known = (*TABLES, *V2_TABLES)
    named = next((table for table in known if table in path.name), None)
    if named is None and path.parent.name in known:
        named = path.parent.name
    return None if named is None else V2_TABLES.get(named, named)


def recognise(path: Path) -> Recognised | Unrelated:
    """What ``path`` is, by content.

    Raises BadTrace for an empty file, for one that is called like a shard or ``.parquet`` and isn't one, for
    gzip-compressed Parquet, and for a table that contradicts its name or mixes two.
    """
    head = _first_bytes(path)
    if head.startswith(PARQUET_MAGIC):
        return _by_columns(path, set(parquet.schema_at(path)), _parquet_dialect(path), "columns")
    text = _unpacked(path, head) if head.startswith(GZIP_MAGIC) else head
    if text.startswith(PARQUET_MAGIC):
        raise bad_shard("borg-shard-unreadable", path, "it is Parquet inside gzip", "unpack it with gunzip first")
    if text.lstrip().startswith(b"{"):
        return _by_columns(path, _json_keys(text), Dialect.NDJSON, "keys")
    if not text.strip() and head.startswith(GZIP_MAGIC):
        return _by_columns(path, set(), Dialect.V2 if ".csv" in path.name else Dialect.NDJSON, "rows")
    return _csv(path, text)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise bad_shard("borg-shard-unreadable", path, f"it cannot be opened ({first_line(error)})", CURE) from None
    if not head:
        raise bad_shard("borg-shard-empty", path, "the file is empty (0 bytes)", CURE)
    return head


def _unpacked(path: Path, head: bytes) -> bytes:
    """What the first bytes of a gzip file hold; a cut is met when the file is read."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error as error:
        raise bad_shard("borg-shard-unreadable", path, f"it is damaged gzip ({first_line(error)})", CURE) from None


def _json_keys(text: bytes) -> set[str]:
    """Keys of the objects in the first whole lines; a struct's fields with it as ``outer.field``."""
    keys: set[str] = set()
    for line in text.split(b"\n")[:1000]:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line is cut; a damaged one is counted when the file is read
        keys |= set(row) if isinstance(row, dict) else set()
    return keys


def _parquet_dialect(path: Path) -> Dialect:
    """Which spelling the columns have; flat tables without any struct differ by their ids alone."""
    schema = parquet.schema_at(path)
    if any("." in name for name in schema):
        return Dialect.DOTTED
    flat = {name for columns in TABLES.values() for one in columns for name in spellings(one.path)[1:]}
    floats = any(schema[name].is_float() for name in ("collection_id", "machine_id") if name in schema)
    if flat & set(schema) or floats:
        return Dialect.UNDERSCORED
    return Dialect.PARQUET_GZ if path.name.endswith(".gz") else Dialect.PARQUET


def _outer_names(names: Collection[str]) -> set[str]:
    """Names without their ``.cpus`` or ``_cpus``, so that one list of marks serves every spelling."""
    outer = {name for columns in TABLES.values() for column in columns for name in (column.path.partition(".")[0],)}
    found = set()
    for name in names:
        base = next((base for base in (name.partition(".")[0], name.rpartition("_")[0]) if base in outer), name)
        found.add(name if name in outer else base)
    return found


def _tables_of(names: Collection[str]) -> tuple[str, ...]:
    """Tables whose own columns are among ``names``; more than one: mixed; none: nothing that tells."""
    base = _outer_names(names)
    found = []
    if base & USAGE_MARKS:
        found.append("instance_usage")
    placed = "instance_index" in base and "instance_usage" not in found
    if base & INSTANCE_MARKS or (base & {"time", "type"} and (placed or "instance_usage" in found)):
        found.append("instance_events")
    if base & COLLECTION_MARKS:
        found.append("collection_events")
    if "collection_id" not in base and (base & MACHINE_MARKS or {"time", "machine_id"} <= base):
        found.append("machine_events")
    return tuple(found)


def _by_columns(path: Path, names: set[str], dialect: Dialect, what: str) -> Recognised | Unrelated:
    found, named = _tables_of(names), table_by_name(path)
    if len(found) > 1:
        raise bad_shard(
            "borg-shard-mixed", path, f"its {what} are those of {' and '.join(found)} together",
            "keep one table in a file, or give the joined CSV as it was published",
        )  # fmt: skip
    if found and named and found[0] != named:
        raise bad_shard(
            "borg-shard-mixed", path, f"it is called {named} and its {what} are those of {found[0]}",
            "rename it, or fetch the right one",
        )  # fmt: skip
    table = found[0] if found else named
    if table is None:
        return Unrelated(reason=f"its {what} belong to no table of the trace")
    return Recognised(dialect=dialect, tables=(table,))


def _csv(path: Path, text: bytes) -> Recognised | Unrelated:
    """A slice by its header, a table of 2011 by its number of columns."""
    first = next(csv.reader(io.StringIO(text.decode("utf-8", "replace").partition("\n")[0])), [])
    if set(first) >= SLICE_MARKS:
        return Recognised(dialect=Dialect.SLICE, tables=("instance_usage", "instance_events"))
    widths = {len(columns): table for table, columns in V2_COLUMNS.items()}
    if len(first) in widths and first[0].isdigit():
        return _as_named(path, Recognised(dialect=Dialect.V2, tables=(widths[len(first)],)))
    if path.suffix == ".parquet" or table_by_name(path) is not None:
        raise bad_shard(
            "borg-shard-unreadable",
            path,
            f"it is no Parquet, no JSON lines and no known CSV (begins {text[:12]!r})",
            CURE,
        )
    return Unrelated(reason="it is none of the dialects")


def _as_named(path: Path, what: Recognised) -> Recognised:
    named = table_by_name(path)
    if named is not None and named != what.tables[0]:
        raise bad_shard(
            "borg-shard-mixed", path, f"it is called {named} and has as many columns as {what.tables[0]}",
            "rename it, or fetch the right one",
        )  # fmt: skip
    return what
