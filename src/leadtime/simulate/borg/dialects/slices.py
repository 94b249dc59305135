"""Usage windows joined with events that have nothing to do with them → one CSV of the Kaggle kind.

The public slice "google-2019-cluster-sample" joins a usage window with any event of the same instance, writes structs
as Python dicts and vectors as numpy prints that wrap inside quotes, and names its events in alphabetical order, which
is wrong (``mislabelled``). Nobody can label from it; it is here so that it is refused for the right reason.
"""

from pathlib import Path

import polars as pl

from leadtime.domain.borg import EventType

# the slice's names for the codes 0, 1, 2, …: those it has, in alphabetical order
WRONG_NAMES = ("ENABLE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "SCHEDULE", "SUBMIT", "UPDATE_PENDING",
               "UPDATE_RUNNING", "QUEUE")  # fmt: skip
INSTANCE = ("collection_id", "instance_index")
A_LINE = 6  # values of a vector before numpy wraps


def write_slice(
    folder: Path,
    number: int,
    usage: pl.DataFrame,
    instance_events: pl.DataFrame,
    collection_events: pl.DataFrame,
    *,
    cluster: int = 1,
    mislabelled: bool = False,
) -> Path:
    """Write ``slice-<number, 12 digits>.csv`` and return its path; 34 columns with a header, index first.

    Canonical frames of the three tables. One row a usage window whose instance has an event, in usage order; the
    instance's events are gone through in turn. ``cluster``: number of the cell. Same frames, same bytes.
    """
    placed = _beside(usage.with_row_index("row"), instance_events, INSTANCE, "i_")
    joined = _beside(placed, collection_events, ("collection_id",), "c_", how="left").sort("row")
    names = WRONG_NAMES if mislabelled else tuple(kind.name for kind in EventType)
    path = folder / f"slice-{number:012d}.csv"
    joined.select(_columns(names, cluster)).write_csv(path)
    return path


def _beside(
    rows: pl.DataFrame, events: pl.DataFrame, on: tuple[str, ...], prefix: str, how: str = "inner"
) -> pl.DataFrame:
    """``rows`` with one event each, its columns with ``prefix``: the row's number modulo how many the key has."""
    order = [name for name in (*on, "time_us", "type") if name in events.columns]
    ranked = events.sort(order, maintain_order=True).with_columns(
        pl.int_range(pl.len()).over(on).cast(pl.Int64).alias("turn"), pl.len().over(on).cast(pl.Int64).alias("turns")
    )
    counts = ranked.group_by(on).agg(pl.col("turns").first())
    named = ranked.drop("turns").rename({name: prefix + name for name in events.columns if name not in on})
    turn = rows.join(counts, on=on, how="left").with_columns(turn=pl.col("row").cast(pl.Int64) % pl.col("turns"))
    beside = turn.join(named, on=[*on, "turn"], how="left")
    beside = beside.filter(pl.col("turns").is_not_null()) if how == "inner" else beside
    return beside.drop("turn", "turns")


def _struct(name: str, cpus: pl.Expr, memory: pl.Expr) -> pl.Expr:
    """``{'cpus': 0.5, 'memory': None}``; nothing where neither is known."""
    shown = [value.cast(pl.String).fill_null("None") for value in (cpus, memory)]
    text = pl.concat_str(pl.lit("{'cpus': "), shown[0], pl.lit(", 'memory': "), shown[1], pl.lit("}"))
    return pl.when(cpus.is_not_null() | memory.is_not_null()).then(text).alias(name)


def _vector(name: str) -> pl.Expr:
    """A numpy print: values between blanks, wrapped after six."""
    values = pl.col(name).list.eval(pl.element().cast(pl.String))
    lines = [values.list.slice(at, A_LINE).list.join(" ") for at in range(0, 12, A_LINE)]
    text = pl.concat_str(pl.lit("["), pl.concat_str(lines, separator="\n "), pl.lit("]"))
    return text.fill_null("[]").alias(name)


def _columns(names: tuple[str, ...], cluster: int) -> list[pl.Expr]:
    nothing = pl.lit(None, dtype=pl.Float32)
    kind = pl.col("i_type").cast(pl.String).replace({str(code): name for code, name in enumerate(names)})
    from_events = ("scheduling_class", "collection_type", "priority", "alloc_collection_id")
    from_collection = ("user", "collection_name", "collection_logical_name")
    return [
        pl.int_range(pl.len()).alias(""),
        pl.col("i_time_us").alias("time"),
        pl.col("i_type").alias("instance_events_type"),
        pl.col("collection_id"),
        *(pl.col(f"i_{name}").alias(name) for name in from_events),
        pl.col("instance_index"),
        pl.col("machine_id").fill_null(0),
        _struct("resource_request", pl.col("i_request_cpu"), pl.col("i_request_memory")),
        pl.lit("[]").alias("constraint"),
        pl.col("c_type").alias("collections_events_type"),
        *(pl.col(f"c_{name}").alias(name) for name in from_collection),
        pl.lit("[]").alias("start_after_collection_ids"),
        *(pl.col(f"c_{name}").alias(name) for name in ("vertical_scaling", "scheduler")),
        pl.col("start_time_us").alias("start_time"),
        pl.col("end_time_us").alias("end_time"),
        _struct("average_usage", pl.col("avg_cpu"), pl.col("avg_memory")),
        _struct("maximum_usage", pl.col("max_cpu"), pl.col("max_memory")),
        _struct("random_sample_usage", pl.col("sample_cpu"), nothing),
        *(pl.col(name) for name in ("assigned_memory", "page_cache_memory", "cycles_per_instruction",
                                    "memory_accesses_per_instruction", "sample_rate")),
        _vector("cpu_usage_distribution"),
        _vector("tail_cpu_usage_distribution"),
        pl.lit(cluster).alias("cluster"),
        kind.alias("event"),
        (kind == "FAIL").cast(pl.Int8).alias("failed"),
    ]  # fmt: skip
