"""Shards → what is to be built of each cell: which files, how many partitions, observed until when; refused early.

A plan's fingerprint covers everything that decides the bytes of the result: files by content, the number of
partitions, the end of observation, and what was allowed. Executors, folders and times are not part of it.
"""

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadtime.domain.borg import Dialect
from leadtime.domain.errors import BadTrace
from leadtime.sources.borg.reading import count_rows
from leadtime.sources.borg.shards import Shard, find_shards
from leadtime.training.manifest import disk_errors, file_sha256, fingerprint
from leadtime.training.progress import Progress

BYTES_A_ROW = 100  # of a compressed shard whose rows cannot be told beforehand; more partitions than needed do no harm
PLAN_SCHEMA = "leadtime.borg-windows-plan/1"
NEEDED = ("instance_usage", "instance_events")
OPTIONAL = {"collection_events": "collections-missing", "machine_events": "machines-missing"}  # → name for --allow
LOST_WITHOUT = {
    "collection_events": "tier fallback, parents and vertical scaling would be unknown",
    "machine_events": "machine capacity would be unknown, and no eviction would be the machine's",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShard:
    """A file with its name below the source folder and its content's hash. ``rows``: counted or estimated."""

    shard: Shard
    name: str
    sha256: str
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """One cell's build. ``observed_until_us``: as declared, open; None: the newest time seen will do."""

    cell: str
    shards: tuple[PlannedShard, ...]
    partitions: int
    observed_until_us: int | None
    missing: tuple[str, ...]  # names of OPTIONAL that were allowed to be missing

    @property
    def inputs(self) -> str:
        """Fingerprint of everything that decides the bytes of the result."""
        return fingerprint(
            {
                "schema": PLAN_SCHEMA, "cell": self.cell, "partitions": self.partitions, "missing": self.missing,
                "observed_until_us": self.observed_until_us,
                "shards": [(one.name, one.shard.table, one.shard.clusterdata, one.sha256) for one in self.shards],
            }
        )  # fmt: skip

    @property
    def rows(self) -> int | None:
        """Rows of all shards, as far as they can be told (or estimated) beforehand."""
        return None if any(one.rows is None for one in self.shards) else sum(one.rows or 0 for one in self.shards)


def shards_of(source: Path, cells: Sequence[str] | None) -> tuple[Shard, ...]:
    """The shards below ``source``, of ``cells`` where some are named. Raises BadTrace for a cell that is not there."""
    if not cells:
        return find_shards(source)
    if len(cells) == 1:
        return find_shards(source, cell=cells[0])
    found = find_shards(source)
    there = {shard.cell for shard in found}
    if absent := [cell for cell in cells if cell not in there]:
        raise BadTrace(
            "borg-no-such-cell", f"looking for shards below {source}", f"there are none of cell {', '.join(absent)}",
            f"there are shards of: {', '.join(sorted(cell or 'no named cell' for cell in there))}",
        )  # fmt: skip
    return tuple(shard for shard in found if shard.cell in cells)


def plan(
    shards: Sequence[Shard], *, rows_per_partition: int, allow: Collection[str], progress: Progress
) -> tuple[CellPlan, ...]:
    """One plan a cell, by name. Reads every file once for its hash. Raises BadTrace for what cannot be joined."""
    root = Path(os.path.commonpath([shard.path.parent for shard in shards])) if shards else Path()
    by_cell: dict[str, list[Shard]] = {}
    for shard in shards:
        by_cell.setdefault(_cell_of(shard), []).append(shard)
    missing = {cell: _missing(cell, own, allow) for cell, own in by_cell.items()}
    hashed = []
    for number, shard in enumerate(shards, start=1):
        hashed.append(_planned(shard, root))
        progress("fingerprint shards", number, len(shards), "files")
    plans = []
    for cell in sorted(by_cell):
        own = tuple(one for one in hashed if one.shard.cell == cell)
        plans.append(
            CellPlan(
                cell=cell,
                shards=own,
                partitions=_partitions(own, rows_per_partition),
                missing=missing[cell],
                observed_until_us=_observed_until_us(cell, own),
            )
        )
    return tuple(plans)


def _planned(shard: Shard, root: Path) -> PlannedShard:
    name = shard.path.relative_to(root).as_posix()
    with disk_errors(f"reading {shard.path}", shard.path.parent):
        count = count_rows(shard)
        return PlannedShard(
            shard=shard, name=name, sha256=file_sha256(shard.path), rows=None if count is None else count.rows
        )


def _cell_of(shard: Shard) -> str:
    if shard.dialect is Dialect.SLICE:
        raise BadTrace(
            "borg-slice-no-labels", f"reading {shard.path}",
            "a joined slice has no event table of its own: an event stands beside a window it has nothing to do with",
            "give the shards of instance_usage and instance_events; 'leadtime borg check' says what the slice holds",
        )  # fmt: skip
    if shard.cell is None:
        raise BadTrace(
            "borg-cell-unknown", f"reading {shard.path}", "nothing says which cell it is of",
            "name the cell with --cells, or put trace.json beside the shards",
        )  # fmt: skip
    return shard.cell


def _missing(cell: str, shards: Sequence[Shard], allow: Collection[str]) -> tuple[str, ...]:
    """Allowed gaps of the cell. Raises BadTrace for a table that must be there."""
    there = {shard.table for shard in shards}
    for table in NEEDED:
        if table not in there:
            raise BadTrace(
                "borg-table-missing", f"joining cell {cell}", f"there is no shard of {table}",
                f"put {table}-*.json.gz (or .parquet) beside the other shards",
            )  # fmt: skip
    gaps = [(table, name) for table, name in OPTIONAL.items() if table not in there]
    for table, name in gaps:
        if name not in allow:
            raise BadTrace(
                "borg-table-missing", f"joining cell {cell}",
                f"there is no shard of {table}: {LOST_WITHOUT[table]}",
                f"put {table}-*.json.gz (or .parquet) beside the other shards, or accept it with --allow {name}",
            )  # fmt: skip
    return tuple(name for _, name in gaps)


def _partitions(shards: Sequence[PlannedShard], rows_per_partition: int) -> int:
    usage = [one for one in shards if one.shard.table == "instance_usage"]
    rows = sum(one.rows if one.rows is not None else one.shard.path.stat().st_size // BYTES_A_ROW for one in usage)
    return max(1, math.ceil(rows / rows_per_partition))


def _observed_until_us(cell: str, shards: Sequence[PlannedShard]) -> int | None:
    declared = {one.shard.observed_until_us for one in shards} - {None}
    if len(declared) > 1:
        raise BadTrace(
            "borg-declarations-differ", f"joining cell {cell}",
            f"its shards are declared as observed until {sorted(map(str, declared))} µs",
            "correct observed_until_us in trace.json",
        )  # fmt: skip
    return next(iter(declared), None)
