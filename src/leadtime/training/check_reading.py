"""Shards or partitions → what the gates of a cell need: a tally a file, and whole histories of (some) instances.

One pass, bounded memory: when more than HISTORY_ROWS rows of histories have gathered, half of the instances are let
go, by their hash, and so on. Everything counted in tallies is exact; ``share`` says what part of the instances the
histories are of.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.borg import TABLES, Dialect
from leadtime.domain.borg_v2 import V2_COLUMNS
from leadtime.domain.errors import BadTrace
from leadtime.risk.gates import Gate, failed, not_examined
from leadtime.risk.gates_tally import NARROW, Tally, drawn, narrow, tally
from leadtime.risk.gates_text import separate_events, slice_evidence, text_contradiction
from leadtime.sources.borg.batch import Note
from leadtime.sources.borg.canonical import schema_of
from leadtime.sources.borg.reading import read_shard
from leadtime.sources.borg.shards import Shard, find_shards
from leadtime.training.progress import Progress

HISTORY_ROWS = 4_000_000  # windows + events kept of a cell: about 300 MB
BATCH_ROWS = 500_000
TEXT_COLUMNS = ("event", "event_text", "event_name", "event_type_name")
CODE_COLUMNS = ("type", "instance_events_type")


@dataclass(slots=True, kw_only=True)
class Cell:
    """What was read of one cell so far."""

    name: str
    declared: str | None = None  # clusterdata version
    observed_until_us: int | None = None
    files: list[str] = field(default_factory=list)  # by their number
    tallies: dict[str, Tally] = field(default_factory=dict)
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    absent: dict[str, frozenset[str]] = field(default_factory=dict)  # file → columns it does not have
    gates: list[Gate] = field(default_factory=list)  # verdicts that fell while reading
    sources: dict[str, Tally] = field(default_factory=dict)  # of windows: the shards they were made from
    dropped: tuple[int, int] | None = None  # of windows: events read, duplicates left out of them
    share: float = 1.0
    has_machines: bool = False
    _kept: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {table: [] for table in NARROW})
    _machines: list[pl.Series] = field(default_factory=list)

    def take(self, file: str, table: str, frame: pl.DataFrame, *, rows_in: int, rejects: Mapping[str, int]) -> None:
        """One batch of ``table`` from ``file``."""
        if file not in self.files:
            self.files.append(file)
        one = tally(frame, table, rows_in=rows_in, rejects=rejects)
        self.tallies[file] = self.tallies[file] + one if file in self.tallies else one
        if table == "machine_events":
            self.has_machines = True
            self._machines.append(frame["machine_id"].unique())
            return
        self._kept[table].append(drawn(narrow(frame, table, self.files.index(file)), self.share))
        while sum(part.height for kept in self._kept.values() for part in kept) > HISTORY_ROWS:
            self._thin()

    def note(self, file: str, notes: Sequence[Note], lacking: frozenset[str]) -> None:
        """What the reader said of a file's columns; ``lacking``: those its dialect does not have."""
        ignored = tuple(note.column for note in notes if note.code == "column-ignored")
        self.unknown[file] = (*self.unknown.get(file, ()), *ignored)
        absent = {note.column for note in notes if note.code == "column-absent"}
        self.absent[file] = self.absent.get(file, frozenset()) | absent | lacking

    @property
    def absent_everywhere(self) -> frozenset[str]:
        """``table.column`` of columns that no file of the table has."""
        by_table: dict[str, list[frozenset[str]]] = {}
        for file, one in self.tallies.items():
            by_table.setdefault(one.table, []).append(self.absent.get(file, frozenset()))
        return frozenset(
            f"{table}.{column}" for table, files in by_table.items() for column in frozenset.intersection(*files)
        )

    def _thin(self) -> None:
        self.share /= 2
        for kept in self._kept.values():
            kept[:] = [drawn(part, self.share) for part in kept]

    @property
    def windows(self) -> pl.DataFrame:
        """Usage rows of the sampled instances (WINDOW_COLUMNS, shard, draw)."""
        return self._history("instance_usage")

    @property
    def events(self) -> pl.DataFrame:
        """Instance events of the sampled instances (EVENT_COLUMNS, shard, draw)."""
        return self._history("instance_events")

    @property
    def collections(self) -> pl.DataFrame:
        """Collection events of as large a share of the collections (COLLECTION_COLUMNS, shard, draw)."""
        return self._history("collection_events")

    def _history(self, table: str) -> pl.DataFrame:
        kept = self._kept[table]
        return pl.concat(kept) if kept else _empty(table)

    @property
    def machines(self) -> pl.Series | None:
        """Ids in the machine table; None where there is none."""
        return pl.concat(self._machines).unique() if self.has_machines else None


def _empty(table: str) -> pl.DataFrame:
    """No history, in the types of one."""
    types = schema_of(table)
    schema: dict[str, Any] = {name: types[name] for name in NARROW[table]}
    return pl.DataFrame(schema={**schema, "shard": pl.Int32, "draw": pl.UInt64})


def shards_below(path: Path, cell: str | None = None) -> tuple[tuple[Shard, ...], tuple[BadTrace, ...]]:
    """Every shard of ``path``, and what is wrong with files that cannot even be recognised.

    Raises BadTrace where there is nothing to read, and where ``path`` is a single broken file.
    """
    try:
        return find_shards(path, cell=cell), ()
    except BadTrace as error:
        if not path.is_dir() or error.slug == "borg-no-shards":
            raise
    shards: list[Shard] = []
    faults: list[BadTrace] = []
    for file in sorted(one for one in path.rglob("*") if one.is_file()):
        parts = file.relative_to(path).parts
        if any(part.startswith((".", "_")) for part in parts) or "truth" in parts or file.suffix == ".json":
            continue
        try:
            shards += find_shards(file, cell=cell)
        except BadTrace as error:
            if error.slug != "borg-no-shards":
                faults.append(error)
    shards.sort(key=lambda one: (one.cell or "", one.table, str(one.path)))
    return tuple(shards), tuple(faults)


def lacking_in(shard: Shard) -> frozenset[str]:
    """Canonical columns that a file of this dialect cannot have: the trace of 2011 has no histograms, no user."""
    if shard.dialect is not Dialect.V2:
        return frozenset()
    return frozenset(column.name for column in TABLES[shard.table]) - frozenset(V2_COLUMNS[shard.table])


def unreadable(fault: BadTrace, *, where: str) -> Gate:
    """A file that cannot be read, as a failed gate."""
    return failed("readable", where=where, sentence=f"{fault.wrong} [{fault.slug}]", cure=fault.cure)


def read_cells(
    shards: Iterable[Shard], root: Path, progress: Progress, total: int | None = None
) -> Iterator[Cell]:  # fmt: skip
    """Shards (sorted by cell) → one Cell after the other, so that only one cell's histories are held."""
    cell: Cell | None = None
    done = 0
    for shard in shards:
        name = shard.cell or ""
        if cell is None or cell.name != name:
            if cell is not None:
                yield cell
            cell = Cell(name=name, declared=shard.clusterdata, observed_until_us=shard.observed_until_us)
        file = file_name(shard.path, root)
        done = _read(cell, shard, file, progress, done, total)
    if cell is not None:
        yield cell


def file_name(path: Path, root: Path) -> str:
    """A file as reports name it: relative to what was asked for."""
    return str(path.relative_to(root)) if path != root and path.is_relative_to(root) else path.name


def _read(cell: Cell, shard: Shard, file: str, progress: Progress, done: int, total: int | None) -> int:  # noqa: PLR0917
    if shard.dialect is Dialect.SLICE:
        if shard.table == "instance_usage":  # a slice comes twice, once a part; it is judged whole
            cell.gates += slice_gates(shard.path, file)
        return done
    try:
        for batch in read_shard(shard, batch_rows=BATCH_ROWS):
            rejects: dict[str, int] = {}
            for one in batch.rejects:
                rejects[one.rule] = rejects.get(one.rule, 0) + one.rows
            cell.take(file, shard.table, batch.frame, rows_in=batch.rows_in, rejects=rejects)
            cell.note(file, batch.notes, lacking_in(shard))
            done += batch.rows_in
            progress("reading shards", done, total)
    except BadTrace as fault:
        cell.gates.append(unreadable(fault, where=file))
        return done
    text = next((name for name in cell.unknown.get(file, ()) if name in TEXT_COLUMNS), None)
    if text is not None and shard.table == "instance_events":
        cell.gates.append(_text_gate(shard, text, file))
    return done


def _text_gate(shard: Shard, text: str, file: str) -> Gate:
    """The event names of a shard that has them beside the codes."""
    try:
        if shard.dialect is Dialect.NDJSON:
            rows = pl.scan_ndjson(shard.path, schema={"type": pl.String, text: pl.String}, ignore_errors=True)
        else:
            rows = pl.scan_parquet(shard.path)
        codes = rows.select(pl.col("type").cast(pl.String), pl.col(text).cast(pl.String).alias("text")).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        return not_examined("enum-proof", f"its column {text} cannot be read ({type(error).__name__})", where=file)
    return text_contradiction(codes.with_columns(pl.col("type").cast(pl.Int64, strict=False)), where=file)


def slice_gates(path: Path, file: str) -> list[Gate]:
    """A joined CSV of the Kaggle kind: its names against its codes, and why it cannot be labelled."""
    try:
        raw = pl.scan_csv(path, infer_schema=False)
        names = raw.collect_schema().names()
        text = next((name for name in TEXT_COLUMNS if name in names), None)
        code = next(name for name in CODE_COLUMNS[::-1] if name in names)
        number = [pl.col(name).cast(pl.Float64, strict=False).cast(pl.Int64, strict=False) for name in
                  (code, "time", "start_time", "end_time")]  # fmt: skip
        rows = raw.select(*number, (pl.lit(None, pl.String) if text is None else pl.col(text)).alias("text")).collect()
    except (pl.exceptions.PolarsError, StopIteration, OSError) as error:
        return [
            failed("readable", where=file, sentence=f"it cannot be read as a slice ({error})", cure="fetch it again")
        ]
    rows = rows.rename({code: "type", "time": "time_us", "start_time": "start_time_us", "end_time": "end_time_us"})
    proof = text_contradiction(rows.select("type", "text"), where=file)
    if proof.figures.get("contradicting_ratio"):
        said, figures = slice_evidence(rows)
        proof = failed(
            proof.name, where=file, cure=proof.cure, figures={**proof.figures, **figures},
            sentence=f"{proof.sentence}; what the rows do speaks for the codes: {said}",
        )  # fmt: skip
    return [proof, separate_events(rows, where=file)]
