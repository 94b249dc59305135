"""Features of the collection's other tasks, which share its code, its input and its luck.

A task counts from the end of a window until its next window of the same run ends, its run ends, or 15 min pass. Sums
are kept in fixed-point integers, so they come out the same in any order and with any history before.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadtime.domain.borg import EventType
from leadtime.risk.features.block import HOUR_US, Block
from leadtime.risk.features.declare import Builder, Feature
from leadtime.risk.features.happenings import by_collection, ends_by_task, running_by_collection, task_hours
from leadtime.risk.features.run import span
from leadtime.risk.features.steps import SCALE, Timeline, Values, fixed, ratio, running_sum, share, timeline

STALE_US = 900_000_000  # without a newer window a task's last one counts for 15 min
DAY_US = 24 * HOUR_US
EVENTS = "instance events of the collection with time ≤ p"
NEWEST = "each running sibling's newest window with end ≤ p, and its run's windows before that"
PAST = "windows of the collection's running tasks with end ≤ p"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Running tasks' rows as they come (``added``) and go (``gone``), and what each row of the block sees of them."""

    added: Timeline
    came: Values  # rows of running tasks in the order they come, block positions
    moves: Values  # coming and going in one order: block position, plus the block's rows where it goes
    came_upto: Values  # for each row: rows that came up to p
    spans: tuple[Values, Values]  # for each row: moves up to p, and before its collection's first
    own: Values  # the row's own task's newest row at p (block position)
    own_there: Values  # it counts

    def others(self, points: Values) -> Values:
        """Σ of ``points`` (Int64, block rows) over the running siblings, itself left out."""
        total = running_sum(np.concatenate((points, -points)).take(self.moves))
        upto, before = self.spans
        others: Values = total.take(upto) - total.take(before)
        others -= np.where(self.own_there, points.take(self.own), 0)
        return others

    def since(self, block: Block, points: Values, span_us: int) -> Values:
        """Σ of ``points`` over the collection's rows that ended in (p − span, p], its own included."""
        came = running_sum(points[self.came])
        old = block.once(("since", span_us), lambda: self.added.upto(block.collection, block.end - span_us))
        return came.take(self.came_upto) - came.take(old)


def crowd(block: Block) -> Crowd:
    """A block's crowd, made once."""
    return block.once("crowd", lambda: _crowd(block))


def _leaves(block: Block) -> Values:
    """When each row stops counting: next row of the run, end of the run, or 15 min, whichever is first."""
    leaves = block.end + STALE_US
    if len(leaves) > 1:
        next_row = block.run_first[1:] == block.run_first[:-1]
        leaves[:-1] = np.where(next_row, np.minimum(leaves[:-1], block.end[1:]), leaves[:-1])
    ends = ends_by_task(block)
    after, last = ends.upto, ends.line.starts[block.task + 1]
    there = after < last
    leaves[there] = np.minimum(leaves[there], ends.at_us[after[there]])
    return leaves


def _crowd(block: Block) -> Crowd:
    rows = np.flatnonzero(block.running)
    leaves = _leaves(block)
    group = block.collection[rows]
    added = timeline(group, block.end[rows], groups=max(block.collections, 1))
    moves = timeline(
        np.concatenate((group, group)), np.concatenate((block.end[rows], leaves[rows])),
        groups=max(block.collections, 1),
    )  # fmt: skip
    own = block.rows_by_task.upto(block.task, block.end) - 1
    return Crowd(
        added=added, came=rows[added.order],
        moves=np.concatenate((rows, rows + len(block.end)))[moves.order],
        came_upto=added.upto(block.collection, block.end),
        spans=(moves.upto(block.collection, block.end), moves.first(block.collection)),
        own=own, own_there=block.running[own] & (leaves[own] > block.end),
    )  # fmt: skip


def others_mean(series: Builder, key: str) -> Callable[[Block], tuple[Values, Values]]:
    """Mean and standard deviation of a row's value over the running siblings; NaN where there is none."""

    def build(block: Block) -> tuple[Values, Values]:
        def make() -> tuple[Values, Values]:
            values = series(block)
            points, there = fixed(values), (~np.isnan(values)).astype(np.int64)
            seen = crowd(block)
            count = _count(block, seen, there)
            mean = ratio(seen.others(points) / SCALE, count)
            square = ratio(seen.others(points * points) / SCALE**2, count)
            spread = np.where(count >= 2, np.sqrt(np.maximum(square - mean * mean, 0.0)), np.nan)
            return mean, spread

        return block.once(("others", key), make)

    return build


def _count(block: Block, seen: Crowd, there: Values) -> Values:
    """Running siblings that have a value, as Float64; series that miss the same rows share one count."""
    known: list[tuple[Values, Values]] = block.once("others_counts", list)
    for mask, count in known:
        if np.array_equal(mask, there):
            return count
    known.append((there, seen.others(there).astype(np.float64)))
    return known[-1][1]


def past(block: Block, name: str) -> tuple[Values, Values, Values]:
    """Mean, standard deviation and number of the series' values in the collection's windows of the last 24 h."""

    def make() -> tuple[Values, Values, Values]:
        values = block.series(name)
        points, there = fixed(values), (~np.isnan(values)).astype(np.int64)
        seen = crowd(block)
        count = seen.since(block, there, DAY_US).astype(np.float64)
        mean = ratio(seen.since(block, points, DAY_US) / SCALE, count)
        square = ratio(seen.since(block, points * points, DAY_US) / SCALE**2, count)
        return mean, np.where(count >= 2, np.sqrt(np.maximum(square - mean * mean, 0.0)), np.nan), count

    return block.once(("past", name), make)


def _newest(series: str) -> Builder:
    return lambda block: block.series(series)


def _average(series: str, half_life: int) -> Builder:
    return lambda block: block.average(series, half_life)


def _of_siblings(series: str, half_life: int | None) -> tuple[Feature, ...]:
    if half_life is None:
        name, word, made = f"siblings_{series}_ratio", f"newest {series} ratio", _newest(series)
    else:
        name = f"siblings_{series}_average_{span(half_life)}"
        word = f"{series} ratio's exponential average (half-life {span(half_life)})"
        made = _average(series, half_life)
    both = others_mean(made, name)
    return (
        Feature(
            name=f"{name}_mean", unit="ratio", formula=f"mean of the {word} over running siblings", known=NEWEST,
            build=lambda block: both(block)[0],
        ),
        Feature(
            name=f"{name}_std", unit="ratio", formula=f"standard deviation of the {word} over running siblings",
            known=NEWEST, build=lambda block: both(block)[1],
        ),
        Feature(
            name=f"{name}_ahead", unit="ratio", formula=f"the task's own {word} − the siblings' mean", known=NEWEST,
            build=lambda block: made(block) - both(block)[0],
        ),
    )  # fmt: skip


def _of_past(series: str) -> tuple[Feature, ...]:
    words = f"{series} ratio over all windows of the collection that ended in the last 24 h"
    return (
        Feature(
            name=f"collection_{series}_ratio_mean_24h", unit="ratio", formula=f"mean of the {words}", known=PAST,
            build=lambda block: past(block, series)[0],
        ),
        Feature(
            name=f"collection_{series}_ratio_std_24h", unit="ratio", formula=f"standard deviation of the {words}",
            known=PAST, build=lambda block: past(block, series)[1],
        ),
    )  # fmt: skip


def _running(block: Block) -> Values:
    return running_by_collection(block).count()


def _others_running(block: Block) -> Values:
    others: Values = np.maximum(_running(block) - block.running, 0)
    return others


def _failing_now(block: Block) -> Values:
    failed = by_collection(block, EventType.FAIL).within(STALE_US)
    return share(failed, failed + _running(block))


def _failed_share(block: Block) -> Values:
    failed = by_collection(block, EventType.FAIL).count()
    return share(failed, by_collection(block, EventType.SCHEDULE).count())


def _evicted_share(block: Block) -> Values:
    evicted = by_collection(block, EventType.EVICT).count()
    return share(evicted, by_collection(block, EventType.SCHEDULE).count())


def _event(name: str, unit: str, formula: str, build: Builder) -> Feature:
    return Feature(name=name, unit=unit, formula=formula, known=EVENTS, build=build)


FEATURES = (
    _event("siblings_running", "tasks", "other tasks of the collection that run at p", _others_running),
    _event(
        "siblings_failing_share", "ratio", "FAIL events of the last 15 min / (those + tasks running at p)", _failing_now
    ),
    _event("collection_failed_share", "ratio", "FAIL events / SCHEDULE events of the collection so far", _failed_share),
    _event(
        "collection_evicted_share", "ratio", "EVICT events / SCHEDULE events of the collection so far", _evicted_share
    ),
    _event("collection_task_hours", "h", "hours the collection's tasks have run so far, all together", task_hours),
    *_of_siblings("cpu", None),
    *_of_siblings("cpu", 6),
    *_of_siblings("cpu", 24),
    *_of_siblings("memory", 6),
    *_of_past("cpu"),
    *_of_past("memory"),
)
