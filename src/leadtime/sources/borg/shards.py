"""A file, a folder of shards or a folder of cell folders → the shards in it, and what was passed over and why."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leadtime.domain.borg import DECLARATION, Dialect
from leadtime.domain.errors import BadTrace
from leadtime.sources.borg.declaration import NOTHING_DECLARED, Declaration, read_declaration
from leadtime.sources.borg.recognise import Unrelated, recognise
from leadtime.sources.borg.trace_errors import bad_shard

DEPTH = 3  # folders below the given one that are looked into: cell, table
TRUTH = "truth"
CELL_FOLDER = re.compile(r"^(?:cell[_=-]|clusterdata[_-]2019[_-])([A-Za-z0-9]+)$")
CELL_LETTER = re.compile(r"^[a-h]$")  # the eight cells of 2019
CELL_FILE = re.compile(
    r"(?:^|[_.-])(?:cell[_=-]|clusterdata[_-]2019[_-])([A-Za-z0-9]+)(?=[_.-])|^([a-h])[_.-](?=[a-z]+_(?:usage|events))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One table's part of one file. ``None``: the trace does not say.

    ``clusterdata``: "v3" or "v2", only where ``trace.json`` declares it. ``observed_until_us``: end of observation,
    open. A slice CSV is two shards, its usage part and its event part.
    """

    path: Path
    table: str
    dialect: Dialect
    cell: str | None
    clusterdata: str | None
    observed_until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A file or folder that is not read, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything below a path; ``shards`` by cell, table and path."""

    shards: tuple[Shard, ...]
    ignored: tuple[Ignored, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Home:
    """Where a file lies: its declaration, and the cell its folders' names give; ``is_below``: under the given path."""

    declared: Declaration
    cell: str | None
    is_below: bool


def find_shards(path: Path, *, cell: str | None = None) -> tuple[Shard, ...]:
    """The shards of ``path``, of ``cell`` where one is given. As ``look_through``, without what was ignored."""
    return look_through(path, cell=cell).shards


def look_through(path: Path, *, cell: str | None = None) -> Found:
    """Every shard of ``path`` (a file, a folder of shards, a folder of cell folders b/, cell_b/, clusterdata_2019_b/).

    Dialect and table come from the content, the cell from ``trace.json``, else from folder or file names. Raises
    BadTrace where nothing is found, a shard is broken, or a name or declaration speaks of another cell.
    """
    if not path.exists():
        raise bad_shard("borg-no-shards", path, "there is no such file or folder", "give the folder of the shards")
    shards: list[Shard] = []
    ignored: list[Ignored] = []
    homes = {path: _home(path if path.is_dir() else path.parent, None, path)}
    for file in (path,) if path.is_file() else _files(path, ignored, homes):
        home = homes[path if path.is_file() else file.parent]
        own = _cell_of(file, home)
        if cell is not None and own not in (None, cell):
            if home.is_below:
                ignored.append(Ignored(path=file, reason=f"it is of cell {own}, asked for was {cell}"))
                continue
            raise _other_cell(file, f"it is of cell {own}, asked for was cell {cell}")
        what = recognise(file)
        if isinstance(what, Unrelated):
            ignored.append(Ignored(path=file, reason=what.reason))
            continue
        shards += [_shard(file, table, what.dialect, own or cell, home.declared) for table in what.tables]
    if not shards:
        why = f"no file in it is a shard of a Borg trace{'' if cell is None else f' of cell {cell}'}"
        raise bad_shard(
            "borg-no-shards", path, f"{why} ({len(ignored)} passed over)",
            "give a folder with files such as instance_usage-000000000000.json.gz",
        )  # fmt: skip
    shards.sort(key=lambda one: (one.cell or "", one.table, str(one.path)))
    return Found(shards=tuple(shards), ignored=tuple(ignored))


def _files(root: Path, ignored: list[Ignored], homes: dict[Path, _Home], depth: int = 0) -> Iterator[Path]:
    """Files below ``root`` that may be shards, by name; homes of their folders are filled in on the way."""
    for entry in sorted(root.iterdir()):
        if entry.name.startswith((".", "_")) or entry.name == DECLARATION:
            continue
        if entry.is_file():
            yield entry
        elif entry.name == TRUTH:
            ignored.append(Ignored(path=entry, reason="the generator's truth is not part of the trace"))
        elif depth < DEPTH:
            homes[entry] = _home(entry, homes[root], entry)
            yield from _files(entry, ignored, homes, depth + 1)
        else:
            ignored.append(Ignored(path=entry, reason=f"it lies more than {DEPTH} folders deep"))


def _home(folder: Path, above: _Home | None, named: Path) -> _Home:
    """What holds for the files of ``folder``: its own declaration and name, else those of the folder above."""
    own = read_declaration(folder)
    declared = own if own is not NOTHING_DECLARED or above is None else above.declared
    explicit = CELL_FOLDER.match(folder.name)
    by_letter = folder.name if CELL_LETTER.match(folder.name) else None
    by_name = explicit.group(1) if explicit else by_letter
    if above is None and not explicit and declared.cell is not None:
        by_name = None  # the folder somebody chose for --out may be called anything
    if by_name is not None and declared.cell not in (None, by_name):
        raise _other_cell(named, f"the folder is called after cell {by_name}, its {DECLARATION} says {declared.cell}")
    inherited = above.cell if above is not None else None
    return _Home(declared=declared, cell=declared.cell or by_name or inherited, is_below=above is not None)


def _cell_of(file: Path, home: _Home) -> str | None:
    """The cell of a file; raises BadTrace where its name contradicts its folder."""
    match = CELL_FILE.search(file.name)
    by_name = (match.group(1) or match.group(2)) if match else None
    if by_name is not None and home.cell not in (None, by_name):
        raise _other_cell(file, f"its name says cell {by_name}, its folder or {DECLARATION} says {home.cell}")
    return home.cell or by_name


def _shard(file: Path, table: str, dialect: Dialect, cell: str | None, declared: Declaration) -> Shard:
    if dialect is Dialect.V2 and declared.clusterdata == "v3":
        raise bad_shard(
            "borg-declaration", file, f"{DECLARATION} declares v3, the file has the columns of 2011",
            'declare "clusterdata": "v2", or fetch the right file',
        )  # fmt: skip
    return Shard(
        path=file, table=table, dialect=dialect, cell=cell, clusterdata=declared.clusterdata,
        observed_until_us=declared.observed_until_us,
    )  # fmt: skip


def _other_cell(file: Path, wrong: str) -> BadTrace:
    return bad_shard(
        "borg-shard-other-cell", file, wrong, "move it to its own cell's folder, or correct the declaration"
    )
