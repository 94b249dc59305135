"""Knobs → a whole trace in a folder: cohorts of collections are drawn, scored and written one after the other.

Memory holds one cohort (about a shard), whatever the number of rows. Equal knobs and equal shapes: equal bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from leadtime.domain.borg import HORIZONS_MIN, Dialect
from leadtime.simulate.borg.cohort import Cohort, cut, live
from leadtime.simulate.borg.events import collection_events, instance_events, soiled
from leadtime.simulate.borg.knobs import Knobs, as_json, checked
from leadtime.simulate.borg.machines import machine_events
from leadtime.simulate.borg.plan import generator
from leadtime.simulate.borg.tally import GROUPS, Tally, tallies
from leadtime.simulate.borg.traps import score_is_exact, trapped_events, trapped_usage
from leadtime.simulate.borg.truth import LABELLED, REASONS, failing, reasons, truth_frame
from leadtime.simulate.borg.usage import usage_frame
from leadtime.simulate.borg.world import World, drawn
from leadtime.simulate.borg.write import TRUTH, TRUTH_FOLDER, TRUTH_ROWS, TRUTH_SCHEMA, TraceFolder, trace_folder

__all__ = ["Generated", "Knobs", "generate"]

Note = Callable[[str, int, int | None], None]
EVENT_TABLES = {"instance_events": 20, "collection_events": 21}  # table → its stream of random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What lies in the folder. ``rows`` counts the tasks' usage windows, which are the rows of the truth."""

    folder: Path
    rows: int
    rows_by_table: dict[str, int]
    files: tuple[Path, ...]
    truth: Path
    truth_rows: Path


def silent(_what: str, _done: int, _total: int | None) -> None:
    """Nobody watches."""


def generate(out: Path, knobs: Knobs, *, progress: Note = silent, shapes_folder: Path | None = None) -> Generated:
    """Write a trace of ``knobs.rows`` windows or a few more (the last collection is whole) with its truth into ``out``.

    ``shapes_folder`` holds machine_shapes.csv and requests_cell_*.parquet; a built-in summary stands in without it.
    Raises BadTrace (knobs, shapes, a folder of somebody else's), WrongUse (unusable folder), DependencyFailed (disk
    full). An earlier trace in ``out`` is replaced when the new one is complete.
    """
    world = drawn(checked(knobs), shapes_folder)
    with trace_folder(world.knobs, out) as folder:
        scribe = _Scribe(world, folder)
        done = 0
        for cohort in cohorts(world):
            scribe.write(cohort)
            done += len(cohort.windows.slot)
            progress("windows drawn", min(done, world.knobs.rows), world.knobs.rows)
        scribe.leftover()
        folder.finish(scribe.truth())
        rows_by_table = dict(folder.rows)
    files = tuple(sorted(path for path in out.iterdir() if path.is_file()))
    return Generated(
        folder=out, rows=done, rows_by_table=rows_by_table, files=files, truth=out / TRUTH_FOLDER / TRUTH,
        truth_rows=out / TRUTH_FOLDER / TRUTH_ROWS,
    )  # fmt: skip


def cohorts(world: World) -> Iterator[Cohort]:
    """Cohorts of about ``shard_rows`` expected windows, until there are ``rows`` windows; the last one is cut there."""
    plan, knobs = world.plan, world.knobs
    tasks = np.cumsum(np.where(plan.alloc_set, 0, plan.tasks))
    of = (tasks * world.windows_a_task / knobs.shard_rows).astype(np.int64)
    edges = [*np.flatnonzero(np.diff(of, prepend=-1)).tolist(), len(of)]
    missing = knobs.rows
    for number, (first, last) in enumerate(pairwise(edges)):
        cohort = cut(live(world, number, first=first, last=last), missing)
        yield cohort
        missing -= len(cohort.windows.slot)
        if missing <= 0:
            return


class _Scribe:
    """Writes cohorts and remembers what the truth file says of them."""

    def __init__(self, world: World, folder: TraceFolder) -> None:
        self.world, self.folder = world, folder
        self.tallies: dict[int, Tally] = tallies()
        self.excluded = {horizon: np.zeros(LABELLED + 1, np.int64) for horizon in HORIZONS_MIN}
        self.late: dict[str, list[pl.DataFrame]] = {table: [] for table in EVENT_TABLES}
        self.copies = dict.fromkeys(EVENT_TABLES, 0)
        self.cohorts = self.windows = self.on_grid = 0

    def write(self, cohort: Cohort) -> None:
        """Shards and truth rows of one cohort."""
        knobs, plan, cell = self.world.knobs, self.world.plan, self.world.machines
        self.cohorts += 1
        if cohort.number == 0 and knobs.dialects != (Dialect.SLICE,):
            self.folder.shard("machine_events", machine_events(knobs, cell))
        events = instance_events(knobs, plan, cell, cohort)
        usage = trapped_usage(knobs, cohort.number, usage_frame(knobs, plan, cell, cohort), events)
        collections = collection_events(knobs, plan, cohort)
        if self.folder.dialect(cohort.number) is Dialect.SLICE:
            self.folder.slice(usage, trapped_events(knobs, events), trapped_events(knobs, collections))
        else:
            self.folder.shard("instance_usage", usage)
            self._events("instance_events", events, cohort.number)
            self._events("collection_events", collections, cohort.number)
        self._tally(cohort)
        self.folder.truth_part(truth_frame(knobs, plan, cohort))

    def _events(self, table: str, events: pl.DataFrame, number: int) -> None:
        """One event shard with the latecomers of the shard before."""
        here, later = soiled(self.world.knobs, events, EVENT_TABLES[table], number)
        self.copies[table] += here.height + later.height - events.height
        self.folder.shard(table, trapped_events(self.world.knobs, pl.concat([*self.late[table], here])))
        self.late[table] = [later]

    def leftover(self) -> None:
        """Latecomers of the last shard get one of their own."""
        for table, frames in self.late.items():
            if frames and frames[0].height:
                self.folder.shard(table, trapped_events(self.world.knobs, frames[0]))

    def _tally(self, cohort: Cohort) -> None:
        w = cohort.windows
        group = cohort.collection(w.slot) % GROUPS
        self.windows += len(w.slot)
        self.on_grid += int(((w.start_us % 300_000_000 == 0) & (w.end_us - w.start_us == 300_000_000)).sum())
        for place, horizon in enumerate(HORIZONS_MIN):
            why = reasons(self.world.knobs, cohort, horizon)
            kept = np.flatnonzero(why == LABELLED)
            self.excluded[horizon] += np.bincount(why, minlength=LABELLED + 1)
            self.tallies[horizon].add(w.score[kept, place], failing(cohort, horizon)[kept], group[kept], w.x[kept])

    def truth(self) -> dict[str, object]:
        """truth.json."""
        world = self.world
        rng = generator(world.knobs, 30)
        horizons = {
            str(horizon): {
                **asdict(self.tallies[horizon].measured(rng)),
                "excluded": {str(why): int(self.excluded[horizon][code]) for code, why in enumerate(REASONS)},
            }
            for horizon in HORIZONS_MIN
        }
        rows = self.folder.rows
        return {
            "schema": TRUTH_SCHEMA,
            "cell": world.knobs.cell,
            "seed": world.knobs.seed,
            "knobs": as_json(world.knobs),
            "shapes": world.shapes.source,
            "observed_until_us": world.knobs.observed_until_us,
            "chain": asdict(world.chains[0]),
            "score_is_exact": score_is_exact(world.knobs),
            "windows": self.windows,
            "windows_on_grid_ratio": self.on_grid / max(1, self.windows),
            "rows": dict(rows),
            "expected_join_ratio": 1.0,
            "null_ratios": {
                name: count / rows[name.split(".")[0]] for name, count in sorted(self.folder.nulls.items()) if count
            },
            "copied_events": self.copies,
            "horizons": horizons,
        }  # fmt: skip
