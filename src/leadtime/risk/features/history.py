"""Features of what failed before: the task, its collection, its owner, its logical name; and the parent's state."""

import numpy as np
import polars as pl

from leadtime.domain.borg import EventType
from leadtime.risk.features.block import HOUR_US, Block
from leadtime.risk.features.declare import Builder, Feature
from leadtime.risk.features.happenings import by_collection, ends_by_task, failures_by_task, late_failures, task_hours
from leadtime.risk.features.lookups import Tally, tally
from leadtime.risk.features.steps import Values, ratio

EVENTS = "instance events of the collection with time ≤ p"
OWNER = "failures in minutes that ended by p, of all collections of the same"
PARENT = "collection events of the parent with time ≤ p"
FADE_US = 2 * HOUR_US
OWNERS = {"user": "user", "name": "logical name"}


def _last_failed(block: Block) -> Values:
    return np.where(block.whole("last_terminal_us", -1) >= 0, block.whole("last_terminal_type") == EventType.FAIL, 0.0)


def _failures_per_task_hour(block: Block) -> Values:
    failed = by_collection(block, EventType.FAIL).count()
    return failed / (task_hours(block) + 1.0)


def _late_failures_per_task_hour(block: Block) -> Values:
    return late_failures(block).count() / (task_hours(block) + 1.0)


def of_collection(block: Block, name: str) -> pl.Series:
    """A column of the context's collection table for each row's collection; null where it was not known at p."""

    def make() -> pl.DataFrame:
        rows = block.windows.select("collection_id", "end_time_us")
        joined = rows.join(block.context.collections, on="collection_id", how="left", maintain_order="left")
        known = pl.col("first_us") <= pl.col("end_time_us")
        return joined.select(pl.when(known).then(pl.col(each)).alias(each) for each in ("user", "name"))

    return block.once("of_collection", make)[name]


def _owner_tally(block: Block, kind: str) -> tuple[Tally, Values]:
    """Failures by owner code, and each row's code (−1: not known)."""

    def make() -> tuple[Tally, Values]:
        mine = of_collection(block, kind)
        names = mine.drop_nulls().unique().sort()
        codes = pl.DataFrame({"owner": names, "code": np.arange(len(names))})
        happened = block.context.owner_minutes.filter(pl.col("kind") == kind).join(codes, on="owner", how="inner")
        found = pl.DataFrame({"owner": mine}).join(codes, on="owner", how="left", maintain_order="left")["code"]
        code = found.fill_null(-1).to_numpy()
        line = tally(
            happened["code"].to_numpy(), happened["minute_us"].to_numpy(), groups=len(names),
            asked=np.maximum(code, 0), now_us=block.end, weight=happened["failures"].to_numpy(),
        )  # fmt: skip
        return line, code

    return block.once(("owner_tally", kind), make)


def _of_owner(kind: str, ask: str) -> Builder:
    def build(block: Block) -> Values:
        line, code = _owner_tally(block, kind)
        if ask == "count":
            values = line.count().astype(np.float64)
        elif ask == "faded":
            values = line.faded(FADE_US)
        else:
            values = line.since_h()
        return np.where(code >= 0, values, np.nan)

    return build


def _owner(kind: str) -> tuple[Feature, ...]:
    word = OWNERS[kind]
    known = f"{OWNER} {word} (known from the collection's first event)"
    return (
        Feature(
            name=f"{kind}_failures", unit="failures", formula=f"FAIL events of the same {word} so far", known=known,
            build=_of_owner(kind, "count"),
        ),
        Feature(
            name=f"{kind}_failures_faded", unit="failures", known=known,
            formula=f"FAIL events of the same {word}, each halved every 2 h", build=_of_owner(kind, "faded"),
        ),
        Feature(
            name=f"since_{kind}_failure_h", unit="h", formula=f"p − newest FAIL of the same {word}", known=known,
            build=_of_owner(kind, "since"),
        ),
    )  # fmt: skip


def _parent(block: Block) -> pl.DataFrame:
    """first_us and ended_us of each row's parent, null where not yet known at p."""

    def make() -> pl.DataFrame:
        rows = block.windows.select("parent_collection_id", "end_time_us")
        table = block.context.collections.select("collection_id", "first_us", "ended_us")
        joined = rows.join(
            table, left_on="parent_collection_id", right_on="collection_id", how="left", maintain_order="left"
        )
        now = pl.col("end_time_us")
        return joined.select(
            pl.when(pl.col(name) <= now).then((now - pl.col(name)) / HOUR_US).alias(name)
            for name in ("first_us", "ended_us")
        )

    return block.once("parent", make)


def _has_parent(block: Block) -> Values:
    return (block.whole("parent_collection_id") > 0).astype(np.float64)


def _parent_hours(name: str) -> Builder:
    return lambda block: _parent(block)[name].fill_null(float("nan")).to_numpy()


def _task(name: str, unit: str, formula: str, build: Builder) -> Feature:
    return Feature(name=name, unit=unit, formula=formula, known=EVENTS, build=build)


def _ended_share(block: Block) -> Values:
    failed = failures_by_task(block).count()
    return ratio(failed.astype(np.float64), ends_by_task(block).count().astype(np.float64))


FEATURES = (
    _task(
        "task_failures",
        "failures",
        "FAIL events of the task so far",
        lambda block: failures_by_task(block).count(),
    ),
    _task(
        "task_failures_faded",
        "failures",
        "FAIL events of the task, each halved every 2 h",
        lambda block: failures_by_task(block).faded(FADE_US),
    ),
    _task(
        "since_task_failure_h",
        "h",
        "p − newest FAIL of the task",
        lambda block: failures_by_task(block).since_h(),
    ),
    _task("task_failed_share", "ratio", "FAIL events / terminal events of the task so far", _ended_share),
    _task(
        "last_run_failed",
        "0 or 1",
        "the newest terminal event of the task is FAIL; 0 where there was none",
        _last_failed,
    ),
    _task(
        "since_last_end_h",
        "h",
        "p − newest terminal event of the task",
        lambda block: block.hours_since("last_terminal_us"),
    ),
    _task(
        "collection_failures",
        "failures",
        "FAIL events of the collection so far",
        lambda block: by_collection(block, EventType.FAIL).count(),
    ),
    _task(
        "collection_failures_faded",
        "failures",
        "FAIL events of the collection, each halved every 2 h",
        lambda block: by_collection(block, EventType.FAIL).faded(FADE_US),
    ),
    _task(
        "since_collection_failure_h",
        "h",
        "p − newest FAIL of the collection",
        lambda block: by_collection(block, EventType.FAIL).since_h(),
    ),
    _task(
        "collection_failures_per_task_h",
        "1/h",
        "FAIL events of the collection / (hours its tasks have run together + 1)",
        _failures_per_task_hour,
    ),
    _task(
        "collection_late_failures",
        "failures",
        "FAIL events of the collection that ended runs of 5 min or more",
        lambda block: late_failures(block).count(),
    ),
    _task(
        "collection_late_failures_per_task_h",
        "1/h",
        "FAIL events of the collection that ended runs of 5 min or more / (hours its tasks have run together + 1)",
        _late_failures_per_task_hour,
    ),
    *_owner("user"),
    *_owner("name"),
    Feature(name="has_parent", unit="0 or 1", formula="the collection has a parent", known=PARENT, build=_has_parent),
    Feature(
        name="parent_age_h",
        unit="h",
        formula="p − first event of the parent",
        known=PARENT,
        build=_parent_hours("first_us"),
    ),
    Feature(
        name="since_parent_end_h",
        unit="h",
        formula="p − terminal event of the parent; missing while it lives",
        known=PARENT,
        build=_parent_hours("ended_us"),
    ),
)
