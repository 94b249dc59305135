"""Canonical frames → counts that add up: what a file holds, column by column, in one pass and constant memory.

A tally of two batches is the sum of their tallies. Histories (all events and windows of some instances) are drawn by a
hash of the instance, so that an instance is in the sample whole or not at all, whatever file its rows stand in.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, TABLES, TRACE_START_US

KEPT_LENGTHS = 64  # window lengths remembered per file; the mode of a batch is among its most frequent ones
INSTANCE = ("collection_id", "instance_index")
WINDOW_COLUMNS = ("start_time_us", "end_time_us", *INSTANCE, "machine_id", "sample_rate", "collection_type")
EVENT_COLUMNS = (
    "time_us", "type", *INSTANCE, "machine_id", "missing_type", "collection_type", "request_cpu", "priority",
)  # fmt: skip
COLLECTION_COLUMNS = ("time_us", "type", "collection_id")
NARROW: Mapping[str, tuple[str, ...]] = {
    "instance_usage": WINDOW_COLUMNS, "instance_events": EVENT_COLUMNS, "collection_events": COLLECTION_COLUMNS,
}  # fmt: skip  # columns of a history, by table
_SPREAD = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What was seen of one file of one table. ``zeros`` counts exact 0, ``nulls`` missing values, by column."""

    table: str
    rows_in: int = 0
    rows_out: int = 0
    rejects: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    zeros: Mapping[str, int] = field(default_factory=dict)
    lengths_us: Mapping[int, int] = field(default_factory=dict)  # window length → rows, the most frequent ones
    timed_rows: int = 0  # rows with a time that is neither 0 nor 2^63 - 1
    early_rows: int = 0  # of these: before the trace's first instant
    latest_us: int | None = None
    bad_machine_rows: int = 0  # machine_id ≤ 0

    def __add__(self, other: "Tally") -> "Tally":
        lengths = Counter(dict(self.lengths_us)) + Counter(dict(other.lengths_us))
        latest = [value for value in (self.latest_us, other.latest_us) if value is not None]
        return Tally(
            table=self.table, rows_in=self.rows_in + other.rows_in, rows_out=self.rows_out + other.rows_out,
            rejects=_sum(self.rejects, other.rejects), nulls=_sum(self.nulls, other.nulls),
            zeros=_sum(self.zeros, other.zeros), lengths_us=dict(lengths.most_common(KEPT_LENGTHS)),
            timed_rows=self.timed_rows + other.timed_rows, early_rows=self.early_rows + other.early_rows,
            latest_us=max(latest, default=None), bad_machine_rows=self.bad_machine_rows + other.bad_machine_rows,
        )  # fmt: skip


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(key for key in other if key not in one))}


def tally(frame: pl.DataFrame, table: str, *, rows_in: int, rejects: Mapping[str, int]) -> Tally:
    """Count one batch of ``table`` (canonical columns; absent ones are left out of the counts)."""
    columns = [column.name for column in TABLES[table] if column.name in frame.columns]
    numbers = [name for name in columns if frame.schema[name].is_numeric()]
    counted = frame.select(
        *(pl.col(name).null_count().alias(f"null:{name}") for name in columns),
        *((pl.col(name) == 0).sum().alias(f"zero:{name}") for name in numbers),
    ).row(0, named=True)
    time = "end_time_us" if table == "instance_usage" else "time_us"
    inside = pl.col(time).is_between(1, AFTER_TRACE_US - 1)
    timed, early, latest = frame.select(
        inside.sum().alias("timed"),
        (inside & (pl.col(time) < TRACE_START_US)).sum().alias("early"),
        pl.col(time).filter(inside).max().alias("latest"),
    ).row(0)
    bad = (frame["machine_id"] <= 0).sum() if "machine_id" in frame.columns else 0
    return Tally(
        table=table, rows_in=rows_in, rows_out=frame.height, rejects=dict(rejects),
        nulls={name: int(counted[f"null:{name}"]) for name in columns},
        zeros={name: int(counted[f"zero:{name}"]) for name in numbers},
        lengths_us=_lengths(frame) if table == "instance_usage" else {},
        timed_rows=int(timed), early_rows=int(early), latest_us=latest, bad_machine_rows=int(bad or 0),
    )  # fmt: skip


def _lengths(frame: pl.DataFrame) -> dict[int, int]:
    """Window length (µs, or whatever unit the file is in) → rows; the KEPT_LENGTHS most frequent ones."""
    lengths = frame.select((pl.col("end_time_us") - pl.col("start_time_us")).alias("length"))
    counts = lengths.group_by("length").len().sort("len", "length", descending=[True, False]).head(KEPT_LENGTHS)
    return {int(length): int(rows) for length, rows in counts.iter_rows() if length is not None}


def narrow(frame: pl.DataFrame, table: str, shard: int) -> pl.DataFrame:
    """The columns of a history, with the file's number and the instance's (or collection's) ``draw`` (u64, uniform)."""
    drawn_by = pl.col("collection_id") if table == "collection_events" else pl.struct(INSTANCE)
    return frame.select(
        *NARROW[table], pl.lit(shard, dtype=pl.Int32).alias("shard"), drawn_by.hash(seed=4).alias("draw")
    )


def drawn(frame: pl.DataFrame, share: float) -> pl.DataFrame:
    """The rows of the ``share`` (0–1) of instances whose draw is lowest."""
    return frame if share >= 1 else frame.filter(pl.col("draw") < int(share * _SPREAD))
