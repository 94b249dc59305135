"""Columns as one format has them → the canonical job frame, checked: every rule that a row breaks is one clear error.

A job whose end was not seen (running, pending, or deleted with the trace) is censored at ``observed_until_s``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.domain.jobs import JOB_COLUMNS, Outcome

TIMES = ("submitted_s", "eligible_s", "started_s", "ended_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """``frame``: JOB_COLUMNS, sorted by submission, then job. ``observed_until_s``: the last instant of the accounts.

    ``epoch``: seconds count from 1970 (else from the trace's own start, and clock features mean only a period).
    ``notes``: what was folded, read as missing or left out → rows.
    """

    frame: pl.DataFrame
    observed_until_s: int
    epoch: bool
    notes: Mapping[str, int] = field(default_factory=dict)


def bad_jobs(slug: str, path: Path, wrong: str, cure: str) -> BadTrace:
    """An error about one accounting file."""
    return BadTrace(slug, f"reading jobs from {path}", wrong, cure)


def require(path: Path, have: list[str], want: tuple[str, ...], cure: str) -> None:
    """Raise jobs-column-missing for the first of ``want`` that the file lacks."""
    missing = [name for name in want if name not in have]
    if missing:
        raise bad_jobs("jobs-column-missing", path, f"there is no column {', '.join(missing)}", cure)


def canonical(
    path: Path, rows: pl.DataFrame, *, observed_until_s: int, epoch: bool, notes: Mapping[str, int] | None = None
) -> Jobs:
    """``rows`` (any of JOB_COLUMNS; absent ones become null) → ``Jobs``.

    Raises jobs-empty, jobs-submit-missing, jobs-double, and jobs-time-order for a start or an end before the
    submission, an end before the start, or a time after ``observed_until_s``.
    """
    if rows.is_empty():
        raise bad_jobs("jobs-empty", path, "it holds no job", "export the span you want to learn from, with its jobs")
    dtypes = {name: getattr(pl, dtype) for name, dtype in JOB_COLUMNS.items()}
    frame = rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in dtypes.items()
    )
    open_end = pl.col("outcome").is_in([Outcome.RUNNING.value, Outcome.PENDING.value])
    frame = frame.with_columns(
        ended_s=pl.when(open_end).then(None).otherwise(pl.col("ended_s")),
        censored=open_end | pl.col("ended_s").is_null(),
    ).sort("submitted_s", "job")
    _refuse_disorder(path, frame)
    return Jobs(frame=frame, observed_until_s=observed_until_s, epoch=epoch, notes=dict(notes or {}))


def _refuse_disorder(path: Path, frame: pl.DataFrame) -> None:
    lacking = frame.filter(pl.col("submitted_s").is_null())
    if lacking.height:
        raise bad_jobs(
            "jobs-submit-missing", path, f"job {lacking['job'][0]!r} has no time of submission ({lacking.height} jobs)",
            "export the column of submission times too",
        )  # fmt: skip
    double = frame.filter(pl.col("job").is_duplicated())
    if double.height:
        raise bad_jobs(
            "jobs-double", path, f"job {double['job'][0]!r} stands there more than once ({double.height} rows)",
            "export each job once, or add the column of submission times that tells requeued ones apart",
        )  # fmt: skip
    for earlier, later in (
        ("submitted_s", "eligible_s"), ("submitted_s", "started_s"), ("submitted_s", "ended_s"),
        ("started_s", "ended_s"),
    ):  # fmt: skip
        wrong = frame.filter(pl.col(later) < pl.col(earlier))
        if wrong.height:
            row = wrong.row(0, named=True)
            raise bad_jobs(
                "jobs-time-order", path,
                f"job {row['job']!r}: {later} {row[later]} s lies {row[earlier] - row[later]} s before {earlier} "
                f"{row[earlier]} s ({wrong.height} jobs)",
                "all times must be of one clock: check the time zone and the columns",
            )  # fmt: skip
