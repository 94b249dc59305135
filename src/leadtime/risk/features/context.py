"""What the cell knows beside a collection's own rows: machines, owners, parents, pressure. Sums that merge.

Partitions are cut by collection, but a machine, a user and the queue are shared by all of them. So each partition
gives partial sums (``partial``), partial sums add up (``merge``), and features look up the newest sum whose interval
has ended at p. Usage is counted into the 300 s slot in which a window ends, events into the minute in which they
happen: slot and minute are (start, end], known at their end. All sums are integers, so the order of partitions and
of rows changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, MINUTE_US, TERMINAL, WINDOW_US, EventType, MachineEventType

SLOTS_BACK = 3  # a row looks at the newest slot that ended by p, of the last three: 15 min
POINTS = 2**24  # a fixed-point step of machine sums: 1/16,777,216 of the largest machine
SLOT_SUMS = ("cpu", "memory", "request_cpu", "request_memory", "tasks")
WAITS = (EventType.SUBMIT, EventType.QUEUE, EventType.ENABLE, EventType.UPDATE_PENDING)
ENDS_OR_STARTS = (*sorted(TERMINAL), EventType.SCHEDULE)
SCHEMAS: dict[str, dict[str, pl.DataType | type[pl.DataType]]] = {
    "minutes": {"minute_us": pl.Int64, "pending": pl.Int64, "evictions": pl.Int64, "failures": pl.Int64},
    "machine_slots": {"machine_id": pl.Int64, "slot_us": pl.Int64, **dict.fromkeys(SLOT_SUMS, pl.Int64)},
    "machine_minutes": {"machine_id": pl.Int64, "minute_us": pl.Int64, "failures": pl.Int64, "evictions": pl.Int64},
    "machine_changes": {"machine_id": pl.Int64, "time_us": pl.Int64, "removed": pl.Int64},
    "owner_minutes": {"kind": pl.String, "owner": pl.String, "minute_us": pl.Int64, "failures": pl.Int64},
    "collections": {
        "collection_id": pl.Int64, "user": pl.String, "name": pl.String, "first_us": pl.Int64, "ended_us": pl.Int64,
    },
}  # fmt: skip
KEYS = {
    "minutes": ("minute_us",),
    "machine_slots": ("machine_id", "slot_us"),
    "machine_minutes": ("machine_id", "minute_us"),
    "owner_minutes": ("kind", "owner", "minute_us"),
}  # the tables whose rows add up


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One cell's tables, each sorted by its key; an empty table makes the features that need it missing.

    ``minutes``: change of the number of waiting tasks, evictions and failures in the minute that ends at ``minute_us``.
    ``machine_slots``: Σ usage, requests (POINTS a machine) and tasks in the 300 s slot that ends at ``slot_us``, each
    window weighted by its share of the slot. ``machine_minutes``: failures and evictions of tasks there.
    ``machine_changes``: ADD and REMOVE (``removed`` 1). ``owner_minutes``: failures by ``kind`` (user, name).
    ``collections``: who owns a collection, first event and end (null: none seen).
    """

    minutes: pl.DataFrame
    machine_slots: pl.DataFrame
    machine_minutes: pl.DataFrame
    machine_changes: pl.DataFrame
    owner_minutes: pl.DataFrame
    collections: pl.DataFrame


def empty_context() -> Context:
    """Nothing is known beside the rows; enough for the baseline profile."""
    return Context(**{name: pl.DataFrame(schema=schema) for name, schema in SCHEMAS.items()})


def partial(windows: pl.LazyFrame, events: pl.LazyFrame, collections: pl.DataFrame) -> Context:
    """One partition's windows and events → its share of the sums. ``collections``: ``collection_table``'s result."""
    happened = _tasks(events)
    whose = collections.lazy().select("collection_id", "user", "name")
    failures = happened.filter(pl.col("type") == EventType.FAIL)
    owned = failures.select("collection_id", "minute_us").join(whose, on="collection_id", how="inner")
    owners = pl.concat(
        [
            owned.select(pl.lit(kind).alias("kind"), pl.col(kind).alias("owner"), "minute_us")
            for kind in ("user", "name")
        ]
    )
    tables = {
        "minutes": _minutes(happened),
        "machine_slots": _slots(windows),
        "machine_minutes": _machine_minutes(happened),
        "owner_minutes": owners.drop_nulls("owner")
        .group_by("kind", "owner", "minute_us").agg(pl.len().cast(pl.Int64).alias("failures")),
    }  # fmt: skip
    made = dict(zip(tables, pl.collect_all(list(tables.values())), strict=True))
    return _whole({name: frame.sort(KEYS[name]) for name, frame in made.items()})


def merge(parts: Iterable[Context], *, machines: pl.DataFrame, collections: pl.DataFrame) -> Context:
    """Partial sums of all partitions, and the cell's own tables → what features look up."""
    kept = list(parts)
    added = {name: add_up(name, [getattr(part, name) for part in kept]) for name in KEYS}
    return _whole({**added, "machine_changes": machine_changes(machines), "collections": collections})


def context_from(
    windows: pl.LazyFrame, events: pl.LazyFrame, *, collections: pl.DataFrame, machines: pl.DataFrame
) -> Context:
    """All tables from one cell's windows, instance events, collection events and machine events at once."""
    owners = collection_table(collections)
    return merge([partial(windows, events, owners)], machines=machines, collections=owners)


def asked_slots(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows (machine_id, end_time_us) → each machine and slot end (``slot_us``) they ask for, once; no machine: none."""
    asked = rows.lazy().filter(pl.col("machine_id") > 0)
    return asked.select("machine_id", slot_us=pl.col("end_time_us") // WINDOW_US * WINDOW_US).unique().collect()


def newest_slots(slots: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """Of machine sums those that ``asked_slots``'s result can see, in their order: for each the newest by then.

    So what a chunk of rows holds depends on its rows alone, not on how many slots the cell's machines have.
    """
    keys = slots.select("machine_id", "slot_us", seen_us="slot_us").sort("slot_us")
    seen = asked.sort("slot_us").join_asof(
        keys, on="slot_us", by="machine_id", tolerance=(SLOTS_BACK - 1) * WINDOW_US, check_sortedness=False
    )  # fmt: skip
    found = seen.drop_nulls("seen_us").select("machine_id", slot_us="seen_us").unique()
    return slots.join(found, on=["machine_id", "slot_us"], how="semi", maintain_order="left")


def add_up(name: str, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """One table's partial sums → the sum by its key, sorted."""
    if not frames:
        return pl.DataFrame(schema=SCHEMAS[name])
    key = KEYS[name]
    sums = [column for column in SCHEMAS[name] if column not in key]
    return pl.concat(frames).group_by(key).agg(pl.col(sums).sum()).sort(key)


def collection_table(collections: pl.DataFrame) -> pl.DataFrame:
    """Canonical collection events → first event, owner and logical name in it, and end, of each collection."""
    named = {"user": "user", "name": "collection_logical_name"}
    ended = pl.col("type").is_in([int(kind) for kind in TERMINAL]) & (pl.col("time_us") < AFTER_TRACE_US)
    return (
        collections.sort("collection_id", "time_us", maintain_order=True)
        .group_by("collection_id")
        .agg(
            *(pl.col(column).first().alias(kind) for kind, column in named.items()),
            pl.col("time_us").min().alias("first_us"),
            pl.col("time_us").filter(ended).min().alias("ended_us"),
        )
        .sort("collection_id")
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS["collections"].items())
    )


def machine_changes(machines: pl.DataFrame) -> pl.DataFrame:
    """Canonical machine events → ADD and REMOVE of real machines, in time order by machine."""
    kinds = (MachineEventType.ADD, MachineEventType.REMOVE)
    return (
        machines.filter(pl.col("type").is_in(kinds) & (pl.col("machine_id") > 0))
        .select("machine_id", "time_us", removed=(pl.col("type") == MachineEventType.REMOVE).cast(pl.Int64))
        .sort("machine_id", "time_us", "removed")
    )


def _whole(tables: dict[str, pl.DataFrame]) -> Context:
    known = {name: tables.get(name, pl.DataFrame(schema=schema)) for name, schema in SCHEMAS.items()}
    return Context(
        **{
            each.name: known[each.name].select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[each.name].items())
            for each in fields(Context)
        }
    )


def _tasks(events: pl.LazyFrame) -> pl.LazyFrame:
    """Task events inside the trace, with the end of their minute; at equal times the terminal event comes first."""
    terminal = pl.col("type").is_in([int(kind) for kind in TERMINAL])
    return (
        events.filter((pl.col("collection_type") == 0) & (pl.col("time_us") < AFTER_TRACE_US))
        .select("collection_id", "instance_index", "time_us", "type", "machine_id")
        .with_columns(minute_us=_end_of(pl.col("time_us"), MINUTE_US), later=~terminal)
        .sort("collection_id", "instance_index", "time_us", "later", "type", maintain_order=True)
    )


def _end_of(time: pl.Expr, length_us: int) -> pl.Expr:
    """End of the interval (start, end] of ``length_us`` that holds ``time``."""
    return (time + (length_us - 1)) // length_us * length_us


def _minutes(happened: pl.LazyFrame) -> pl.LazyFrame:
    kind = pl.col("type")
    waits = (
        pl.when(kind.is_in([int(each) for each in WAITS])).then(1)
        .when(kind.is_in([int(each) for each in ENDS_OR_STARTS])).then(0)
    )  # fmt: skip
    same = (pl.col("collection_id") == pl.col("collection_id").shift()) & (
        pl.col("instance_index") == pl.col("instance_index").shift()
    )
    return (
        happened.with_columns(waits=waits.cast(pl.Int64))
        .filter(pl.col("waits").is_not_null())
        .with_columns(pending=pl.col("waits") - pl.when(same).then(pl.col("waits").shift()).otherwise(0))
        .group_by("minute_us")
        .agg(
            pl.col("pending").sum(),
            (kind == EventType.EVICT).sum().cast(pl.Int64).alias("evictions"),
            (kind == EventType.FAIL).sum().cast(pl.Int64).alias("failures"),
        )
    )


def _machine_minutes(happened: pl.LazyFrame) -> pl.LazyFrame:
    return (
        happened.filter(pl.col("machine_id") > 0)
        .filter(pl.col("type").is_in([int(EventType.FAIL), int(EventType.EVICT)]))
        .group_by("machine_id", "minute_us")
        .agg(
            (pl.col("type") == EventType.FAIL).sum().cast(pl.Int64).alias("failures"),
            (pl.col("type") == EventType.EVICT).sum().cast(pl.Int64).alias("evictions"),
        )
    )


def _slots(windows: pl.LazyFrame) -> pl.LazyFrame:
    """Windows → fixed-point sums by machine and slot. Machine 0, −1 and null are no machines."""
    weight = (pl.col("end_time_us") - pl.col("start_time_us")) / WINDOW_US
    columns = {
        "cpu": "avg_cpu",
        "memory": "avg_memory",
        "request_cpu": "request_cpu",
        "request_memory": "request_memory",
    }

    def points(value: pl.Expr) -> pl.Expr:
        return (value * weight * POINTS).round().fill_null(0).fill_nan(0).cast(pl.Int64)

    return (
        windows.filter((pl.col("machine_id") > 0) & pl.col("is_running"))
        .select(
            "machine_id",
            _end_of(pl.col("end_time_us"), WINDOW_US).alias("slot_us"),
            *(points(pl.col(column).cast(pl.Float64)).alias(name) for name, column in columns.items()),
            points(pl.lit(1.0)).alias("tasks"),
        )
        .group_by("machine_id", "slot_us")
        .agg(pl.col(SLOT_SUMS).sum())
    )
