"""Cells of the wanted columns → arrays: local seconds, values, group codes, row numbers. Text is judged here.

One chunk at a time, so that five million rows never stand in memory as text. A chunk is converted in bulk; only when
that fails is it read cell by cell, to name the row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from leadtime.sources.demand_file_errors import bad_file, shown
from leadtime.sources.demand_file_options import DEFAULT_START, EPOCH_FROM_S, DemandFileOptions, TimeUnit

FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int64]
BoolColumn = npt.NDArray[np.bool_]

LATEST_S = 253_402_300_799.0  # 9999-12-31T23:59:59Z: later instants cannot be written as RFC 3339
HIGHEST = 1e15  # beyond it sums lose whole requests; such numbers are markers for "no value", not demand
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ISO_CURE = "write times as 2026-03-02T06:05:00Z"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Rows in file order. ``time_s``: seconds since 1970 where ``is_instant``, else the wall clock's, zone unknown.

    ``value`` NaN is missing. ``group`` holds codes in order of first appearance (all 0 without --group-by).
    """

    time_s: FloatColumn
    is_instant: BoolColumn
    value: FloatColumn
    group: IntColumn
    row: IntColumn
    groups: int
    rows_read: int
    rows_filtered: int


def numbers(texts: Sequence[str], rows: Sequence[int], path: str, column: str) -> FloatColumn:
    """Cells → values ≥ 0; empty, NaN and ±Inf become NaN. Raises BadDemandFile naming the row of the first bad cell."""
    try:
        values = np.array([float(text) if text else math.nan for text in texts], dtype=np.float64)
        clean = not any("_" in text for text in texts)
    except ValueError:
        clean = False
    if not clean:
        values = np.array([_number(text, row, path, column) for text, row in zip(texts, rows, strict=True)])
    return checked_values(values, rows, path, column)


def checked_values(values: FloatColumn, rows: Sequence[int] | IntColumn, path: str, column: str) -> FloatColumn:
    """Values with ±Inf turned into NaN. Raises BadDemandFile at the first negative or absurdly high one."""
    finite = np.where(np.isfinite(values), values, math.nan) + 0.0  # -0 becomes 0
    negative = np.flatnonzero(finite < 0)
    if negative.size:
        i = int(negative[0])
        raise bad_file(
            "demand-negative", path, f"column {column} holds {finite[i]:g}, and demand cannot be below 0",
            "leave the cell empty if the value is not known, or take it out", row=int(rows[i]),
        )  # fmt: skip
    absurd = np.flatnonzero(finite > HIGHEST)
    if absurd.size:
        i = int(absurd[0])
        raise bad_file(
            "demand-too-high", path, f"column {column} holds {finite[i]:g}, more than {HIGHEST:g}",
            "leave the cell empty if it stands for a missing value", row=int(rows[i]),
        )  # fmt: skip
    return finite


def _number(text: str, row: int, path: str, column: str) -> float:
    """One cell, read with care: it is the slow path that finds the row."""
    stripped = text.strip()
    if not stripped:
        return math.nan
    try:
        if "_" in stripped:  # Python reads 1_000 as a number; no measuring system writes it
            raise ValueError
        return float(stripped)
    except ValueError:
        comma = stripped.replace(",", ".", 1).replace(".", "", 1).isdigit()
        cure = "write a decimal point" if comma else "write a number, or leave the cell empty if it is missing"
        raise bad_file(
            "demand-not-a-number", path, f"column {column} holds {shown(text)}, which is not a number", cure, row=row
        ) from None


def time_numbers(texts: Sequence[str], rows: Sequence[int], path: str, options: DemandFileOptions) -> FloatColumn:
    """Cells of a numeric time column → numbers in the file's unit. Raises BadDemandFile at the first that is none."""
    try:
        return np.array([float(text) for text in texts], dtype=np.float64)
    except ValueError:
        for text, row in zip(texts, rows, strict=True):
            try:
                float(text)
            except ValueError:
                raise bad_file(
                    "demand-time-unreadable", path,
                    f"time {shown(text)} in column {options.time_column} is not a number",
                    "leave --time-unit out if the times are text", row=row,
                ) from None  # fmt: skip
        raise


def instants_of_numbers(
    numbers_in_unit: FloatColumn, rows: IntColumn, path: str, options: DemandFileOptions
) -> FloatColumn:
    """Numbers in s or ms → seconds since 1970.

    ``--start`` is the instant of 0. Without it, a file whose first number is 10⁹ s (2001) or more counts from 1970, and
    any other counts from 2026-01-01T00:00:00Z. Raises BadDemandFile for a number that is no instant.
    """
    seconds = numbers_in_unit / 1000.0 if options.time_unit is TimeUnit.MS else numbers_in_unit
    if options.start is not None:
        zero_s = (options.start - EPOCH).total_seconds()
    else:
        zero_s = 0.0 if seconds[0] >= EPOCH_FROM_S else (DEFAULT_START - EPOCH).total_seconds()
    instants = seconds + zero_s
    refuse_far(instants, rows, path, "check --time-unit (s or ms) and --start")
    return instants


def refuse_far(instants: FloatColumn, rows: IntColumn, path: str, cure: str) -> None:
    """Raise BadDemandFile at the first instant outside the years 1970 to 9999; not a number counts as outside."""
    outside = np.flatnonzero(~((instants >= 0) & (instants <= LATEST_S)))
    if outside.size:
        raise bad_file(
            "demand-time-unreadable", path, "its time lies outside the years 1970 to 9999", cure,
            row=int(rows[outside[0]]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextTimes:
    """Seconds since 1970 of instants, or of the wall clock where the text has no offset."""

    time_s: FloatColumn
    is_instant: BoolColumn


def text_times(texts: Sequence[str], rows: Sequence[int], path: str, column: str) -> TextTimes:
    """RFC 3339 / ISO 8601 cells, with or without offset. Raises BadDemandFile at the first unreadable one."""
    try:
        times = [datetime.fromisoformat(text) for text in texts]
        if any(map(str.isdigit, texts)):
            raise ValueError
    except ValueError:
        times = [_time(text, row, path, column) for text, row in zip(texts, rows, strict=True)]
    has_zone = [at.tzinfo is not None for at in times]
    if not any(has_zone):
        micros = np.array(times, dtype="datetime64[us]").astype(np.int64)
    else:
        micros = np.array([_micros(at) for at in times], dtype=np.int64)
    return TextTimes(time_s=micros / 1e6, is_instant=np.array(has_zone, dtype=np.bool_))


def _micros(at: datetime) -> int:
    """Microseconds since 1970, exactly; a time without a zone is read as if its clock were UTC's."""
    passed = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _time(text: str, row: int, path: str, column: str) -> datetime:
    """One cell, read with care: it is the slow path that finds the row."""
    stripped = text.strip()
    try:
        float(stripped)
    except ValueError:
        pass
    else:
        raise bad_file(
            "demand-time-unit", path, f"time {shown(text)} in column {column} is a number",
            "say its unit with --time-unit s or --time-unit ms", row=row,
        )  # fmt: skip
    try:
        return datetime.fromisoformat(stripped)
    except ValueError:
        raise bad_file(
            "demand-time-unreadable", path, f"time {shown(text)} in column {column} cannot be read", ISO_CURE, row=row
        ) from None
