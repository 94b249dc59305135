"""Canonical frames → mended frames, by named rules, with the rows each rule touched and the rows it set aside.

A rule mends how something is written, never what happened: a rule that would move a prediction instant, invent a
value or take a row away because its label is awkward is refused by name (``REFUSED``). Every rule applied to its own
result touches nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, TERMINAL, V2_TO_V3, WINDOW_US
from leadtime.risk.gates_tally import INSTANCE

RULES: Mapping[str, str] = {
    "canonical-parquet": "rows of another dialect, written as v3 Parquet with structs",
    "drop-unknown-columns": "rows of files with columns the trace does not have; the columns are left out",
    "normalise-event-types": "rows of Parquet files whose event types are text, written as codes",
    "unit-ms-to-us": "times in milliseconds, multiplied by 1,000",
    "unit-s-to-us": "times in seconds, multiplied by 1,000,000",
    "unit-ns-to-us": "times in nanoseconds, divided by 1,000",
    "enum-v2-to-v3": "event codes of 2011 in files declared or read as 2019, where the data prove it",
    "drop-duplicate-events": "events told twice, exactly or with another missing_type (the lower one stays)",
    "zero-means-no-machine": "machine events about machine 0 or -1, set aside",
    "drop-backward-windows": "usage windows that end before they start, set aside",
    "sort-rows": "rows that stood elsewhere in the order of tasks and times",
}
REFUSED: Mapping[str, str] = {
    "clip-window-past-end": "it would move the prediction instant of a row, and so its label",
    "drop-rows-after-end": "make-dataset excludes and counts them; taking them out hides how many there were",
    "fill-missing-usage": "a value that nobody measured is not a value",
    "guess-machine": "a task's machine is known from its events or not at all",
    "rename-events": "where names and codes disagree, what the file was made from is not known",
    "restore-negatives": "rows that were sampled away are not in the file",
}  # asked for often, and why there is no such rule
FACTORS: Mapping[str, int] = {"ms": 1_000, "s": 1_000_000, "ns": 1}  # µs in a tick; ns are divided
TIMES = ("time_us", "start_time_us", "end_time_us")
_ORDER: Mapping[str, tuple[str, ...]] = {
    "instance_usage": (*INSTANCE, "end_time_us", "start_time_us"),
    "instance_events": (*INSTANCE, "time_us", "_tie", "type", "missing_type"),
    "collection_events": ("collection_id", "time_us", "_tie", "type", "missing_type"),
    "machine_events": ("machine_id", "time_us", "type"),
}  # as docs/designs/0015; at equal times an end comes before what begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """A frame after one rule. ``rows`` touched; ``aside`` are rows taken out, null where none were."""

    frame: pl.DataFrame
    rows: int
    aside: pl.DataFrame | None = None


def times_to_us(frame: pl.DataFrame, unit: str) -> Mended:
    """Times of a file in ``unit`` (ms, s, ns) → µs. 0 stays 0; what means "after the trace" stays 2^63 - 1.

    Digits a coarser unit has lost stay lost, and must not tell the future: a window that was cut at its run's end
    would seem to end a moment before it. So the end of a window that isn't 300 s long is taken at the last
    microsecond of its tick; all other times are the first.
    """
    columns = [name for name in TIMES if name in frame.columns]
    factor = FACTORS[unit]
    after = AFTER_TRACE_US // factor  # whoever divided the times has divided the sentinel too

    def scaled(name: str) -> pl.Expr:
        value = pl.col(name) // 1_000 if unit == "ns" else pl.col(name) * factor
        if name == "end_time_us":
            full = (pl.col(name) - pl.col("start_time_us")) * factor == (
                WINDOW_US * 1_000 if unit == "ns" else WINDOW_US
            )
            last = -(-pl.col(name) // 1_000) if unit == "ns" else value + (factor - 1)
            value = pl.when(full).then(value).otherwise(last)
        marked = pl.when(pl.col(name) >= after).then(pl.lit(AFTER_TRACE_US)).otherwise(value)
        return pl.when(pl.col(name) == 0).then(pl.col(name)).otherwise(marked).alias(name)

    return Mended(frame=frame.with_columns(scaled(name) for name in columns), rows=frame.height)


def v2_to_v3(frame: pl.DataFrame) -> Mended:
    """Event codes of 2011 → those of 2019. Only for frames whose codes were proved to be v2's: 0 is SUBMIT in both."""
    codes = {old: int(new) for old, new in V2_TO_V3.items()}
    mended = frame.with_columns(pl.col("type").replace_strict(codes, default=pl.col("type"), return_dtype=pl.Int8))
    return Mended(frame=mended, rows=int((mended["type"] != frame["type"]).sum()))


def no_machine_aside(frame: pl.DataFrame) -> Mended:
    """Machine events about machine 0 or -1 → set aside."""
    return _aside(frame, pl.col("machine_id") <= 0)


def backward_aside(frame: pl.DataFrame) -> Mended:
    """Usage windows with end < start → set aside; end = start is a window of no length and stays."""
    return _aside(frame, pl.col("end_time_us") < pl.col("start_time_us"))


def _aside(frame: pl.DataFrame, bad: pl.Expr) -> Mended:
    out = frame.filter(bad)
    if out.height == 0:
        return Mended(frame=frame, rows=0)
    return Mended(frame=frame.filter(~bad), rows=out.height, aside=out)


def in_order(frame: pl.DataFrame, table: str) -> Mended:
    """Rows in the order of ``docs/designs/0015``; equal rows keep theirs. ``rows``: how many stand elsewhere now."""
    keyed = frame.with_row_index("_row")
    if "_tie" in _ORDER[table]:
        ends = [int(kind) for kind in TERMINAL]
        keyed = keyed.with_columns(pl.col("type").is_in(ends).not_().alias("_tie"))
    ordered = keyed.sort(_ORDER[table], maintain_order=True)
    moved = ordered.select((pl.col("_row") != pl.int_range(pl.len())).sum()).item()
    return Mended(frame=ordered.drop("_row", "_tie", strict=False), rows=int(moved or 0))


def identities(frame: pl.DataFrame) -> pl.DataFrame:
    """Event rows → ``identity`` (u64 hash of all but missing_type, order of columns fixed) and ``missing_type``."""
    columns = sorted(set(frame.columns) - {"missing_type"})
    made_up = pl.col("missing_type") if "missing_type" in frame.columns else pl.lit(0, pl.Int8)
    return frame.select(pl.struct(columns).hash(seed=15).alias("identity"), made_up.alias("missing_type"))


def doubles(parts: Sequence[pl.DataFrame]) -> tuple[pl.Series, ...]:
    """``identities`` of all files of a table → per file, which rows are doubles (boolean, in file order).

    Of rows with one identity the one with the lowest missing_type stays, the first of them in file order. 64-bit
    hashes: among 100 million different events a false double has a chance of about one in 3,700.
    """
    if not parts:
        return ()
    rows = pl.concat(parts).with_row_index("row")
    first = pl.col("row").sort_by("missing_type", "row").first().over("identity")
    is_double = rows.select((pl.col("row") != first).alias("double"))["double"]
    ends = list(accumulate(part.height for part in parts))
    return tuple(is_double.slice(end - part.height, part.height) for end, part in zip(ends, parts, strict=True))
