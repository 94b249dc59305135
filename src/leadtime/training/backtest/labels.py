"""Surges a person marked → episodes: a column of the demand file, or a CSV file of intervals.

A labelled bucket is known at its end, like every bucket. Intervals are half-open, [start, end).
"""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from leadtime.domain.errors import BadDemandFile
from leadtime.scorecard.surge_episodes import Episode, episodes_of_buckets
from leadtime.training.backtest.series import BacktestSeries

COLUMNS = ("start", "end")
MAX_BYTES = 10_000_000


def from_series(labels: BacktestSeries) -> tuple[Episode, ...]:
    """The buckets with a label above 0 (1 = labelled; empty is not); neighbours up to an hour apart are one episode."""
    marked = np.nan_to_num(labels.values) > 0
    return episodes_of_buckets(marked, labels.start_s, step_s=labels.step_s)


def from_csv(path: Path) -> tuple[Episode, ...]:
    """Rows of ``start``, ``end`` (RFC 3339; without an offset UTC), in any order.

    Raises BadDemandFile with file, row and cure for a file that cannot be read so.
    """
    name = f"reading labels {path}"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadDemandFile("labels-unreadable", name, "it has more than 10 MB", "give the labelled intervals only")
        with path.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadDemandFile(
            "labels-unreadable", name, f"it cannot be read ({reason})", "check path and rights"
        ) from None
    if rows and not set(COLUMNS) <= set(rows[0]):
        raise BadDemandFile(
            "labels-unreadable",
            name,
            f"its columns are {', '.join(map(str, rows[0]))}",
            "name two of them start and end",
        )
    return tuple(_episode(row, number, name) for number, row in enumerate(rows, start=2))


def _episode(row: dict[str, str | None], number: int, name: str) -> Episode:
    try:
        start_s, end_s = (_epoch_s(str(row[column])) for column in COLUMNS)
    except ValueError as error:
        cure = "write times as 2026-03-02T06:05:00Z"
        raise BadDemandFile("labels-unreadable", name, f"row {number}: {error}", cure) from None
    if end_s < start_s:
        raise BadDemandFile("labels-unreadable", name, f"row {number}: it ends before it starts", "swap the two")
    return Episode(onset_s=start_s, end_s=end_s)


def _epoch_s(text: str) -> int:
    at = datetime.fromisoformat(text.strip())
    return int((at.replace(tzinfo=UTC) if at.tzinfo is None else at).timestamp())
