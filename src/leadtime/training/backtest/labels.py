"""Surges a person marked → episodes: a column of the demand file, or a CSV file of intervals.

A labelled bucket is known at its end, like every bucket. Intervals are half-open, [start, end).
"""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from leadtime.domain.errors import BadDemandFile, WrongUse
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.scorecard.surge_episodes import Episode, episodes_of_buckets
from leadtime.training.backtest.series import BacktestSeries

COLUMNS = ("start", "end")
MAX_BYTES = 10_000_000


def from_series(labels: BacktestSeries) -> tuple[Episode, ...]:
    """The buckets with a label above 0 (1 = labelled; empty is not); neighbours up to an hour apart are one episode.

    A bucket of several rows holds their mean. Raises BadDemandFile for a column with values above 1: it is no label.
    """
    highest = float(np.nan_to_num(labels.values).max(initial=0.0))
    if highest > 1.0:
        raise BadDemandFile(
            "labels-not-marks", f"reading labels from column {labels.name}",
            f"it holds {highest:g}, and labels are 0 or 1",
            "name the column in which 1 marks a surge with --label-column",
        )  # fmt: skip
    marked = np.nan_to_num(labels.values) > 0
    return episodes_of_buckets(marked, labels.start_s, step_s=labels.step_s)


def inside(labels: tuple[Episode, ...], series: BacktestSeries) -> tuple[Episode, ...]:
    """The episodes that overlap [first bucket's start, last bucket's end] of the series.

    Raises WrongUse when there are some and none overlaps: they are another series' labels, or of another time zone.
    """
    start_s, end_s = series.start_s, series.start_s + series.step_s * len(series.values)
    kept = tuple(one for one in labels if one.end_s >= start_s and one.onset_s <= end_s)
    if labels and not kept:
        raise WrongUse(
            "labels-outside-series", f"backtesting {series.name}",
            f"none of the {len(labels)} labels lies in the series, from {rfc3339(from_epoch(start_s))} to "
            f"{rfc3339(from_epoch(end_s))}; the first begins {rfc3339(from_epoch(labels[0].onset_s))}",
            "give the labels of this series, with times in UTC or with an offset",
        )  # fmt: skip
    return kept


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
