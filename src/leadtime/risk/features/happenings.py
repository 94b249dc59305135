"""Instance events of a block → arrays by task and collection: what ended, what failed, how many ran."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, TERMINAL, WINDOW_US, EventType
from leadtime.risk.features.block import Block
from leadtime.risk.features.lookups import Tally, tally
from leadtime.risk.features.steps import Values, running_sum

STATES = (EventType.SCHEDULE, *sorted(TERMINAL))
LATE_US = WINDOW_US  # a run that lived for a whole window was up and working; a crash loop ends before that


@dataclass(frozen=True, slots=True, kw_only=True)
class Happenings:
    """SCHEDULE and terminal events of the block's collections, each with the change of the number of running tasks.

    ``task`` is −1 where the block has no window of it (a sibling that ran too short to leave one). ``lived_us``: how
    long the run that ended had run; −1 where nothing ended or its start is not known.
    """

    collection: Values
    task: Values
    at_us: Values
    type: Values
    change: Values
    lived_us: Values


def happenings(block: Block) -> Happenings:
    """A block's events, made once."""
    return block.once("happenings", lambda: _happenings(block))


def _happenings(block: Block) -> Happenings:
    codes = pl.DataFrame({
        "collection_id": block.windows["collection_id"], "instance_index": block.windows["instance_index"],
        "collection": block.collection, "task": block.task,
    }).unique(["collection_id", "instance_index"])  # fmt: skip
    terminal = pl.col("type").is_in([int(kind) for kind in TERMINAL])
    key = ("collection_id", "instance_index")
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in key)
    frame = (
        block.events.lazy()
        .filter((pl.col("collection_type") == 0) & (pl.col("time_us") < AFTER_TRACE_US))
        .filter(pl.col("type").is_in([int(kind) for kind in STATES]))
        .select(*key, "time_us", "type", runs=(~terminal).cast(pl.Int64))
        .join(codes.lazy().select("collection_id", "collection").unique(), on="collection_id", how="inner")
        .join(codes.lazy().select(*key, "task"), on=key, how="left")
        .sort(*key, "time_us", "runs", "type", maintain_order=True)
        .with_columns(
            change=pl.col("runs") - pl.when(same).then(pl.col("runs").shift()).otherwise(0),
            lived_us=pl.when(same & (pl.col("runs") == 0) & (pl.col("runs").shift() == 1))
            .then(pl.col("time_us") - pl.col("time_us").shift())
            .otherwise(-1),
        )
        .collect()
    )
    return Happenings(
        collection=frame["collection"].to_numpy(), task=frame["task"].fill_null(-1).to_numpy(),
        at_us=frame["time_us"].to_numpy(), type=frame["type"].to_numpy(), change=frame["change"].to_numpy(),
        lived_us=frame["lived_us"].to_numpy(),
    )  # fmt: skip


def failures_by_task(block: Block) -> Tally:
    """FAIL events by task code."""

    def make() -> Tally:
        seen = happenings(block)
        kept = (seen.type == EventType.FAIL) & (seen.task >= 0)
        return tally(seen.task[kept], seen.at_us[kept], groups=block.tasks, asked=block.task, now_us=block.end)

    return block.once("failures_by_task", make)


def ends_by_task(block: Block) -> Tally:
    """Terminal events by task code."""

    def make() -> Tally:
        seen = happenings(block)
        kept = (seen.type != EventType.SCHEDULE) & (seen.task >= 0)
        return tally(seen.task[kept], seen.at_us[kept], groups=block.tasks, asked=block.task, now_us=block.end)

    return block.once("ends_by_task", make)


def by_collection(block: Block, kind: EventType) -> Tally:
    """Events of one type by collection code."""

    def make() -> Tally:
        seen = happenings(block)
        kept = seen.type == kind
        return tally(
            seen.collection[kept], seen.at_us[kept], groups=block.collections, asked=block.collection, now_us=block.end
        )

    return block.once(("by_collection", kind), make)


def late_failures(block: Block) -> Tally:
    """FAIL events of runs that had lived for LATE_US or longer, by collection code: a crash loop adds nothing."""

    def make() -> Tally:
        seen = happenings(block)
        kept = (seen.type == EventType.FAIL) & (seen.lived_us >= LATE_US)
        return tally(
            seen.collection[kept], seen.at_us[kept], groups=block.collections, asked=block.collection, now_us=block.end
        )

    return block.once("late_failures", make)


def running_by_collection(block: Block) -> Tally:
    """Changes of the number of running tasks, by collection code."""

    def make() -> Tally:
        seen = happenings(block)
        return tally(
            seen.collection, seen.at_us, groups=block.collections, asked=block.collection, now_us=block.end,
            weight=seen.change,
        )  # fmt: skip

    return block.once("running_by_collection", make)


def task_hours(block: Block) -> Values:
    """Hours that tasks of the row's collection have run so far, all together, up to p; from events, exact in µs."""

    def make() -> Values:
        runs = running_by_collection(block)
        same = np.zeros(len(runs.at_us), dtype=bool)
        same[1:] = runs.group[1:] == runs.group[:-1]
        first = runs.line.first(runs.group)
        now = runs.total[1:] - runs.total[first]  # running after each event
        grown = np.zeros(len(now), dtype=np.int64)
        grown[1:] = np.where(same[1:], now[:-1] * (runs.at_us[1:] - runs.at_us[:-1]), 0)
        area = running_sum(grown)
        newest, begin = runs.upto - 1, runs.first
        there = newest >= begin
        at, start = newest[there], begin[there]
        out = np.full(len(block.end), np.nan)
        out[there] = (area[at + 1] - area[start + 1] + now[at] * (block.end[there] - runs.at_us[at])) / 3.6e9
        return out

    return block.once("task_hours", make)
