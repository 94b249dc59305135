"""What a reader hands on: a piece of a canonical table, what was rejected by which rule, what a user should know."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

SAMPLES = 5  # rejected rows shown for a rule, of each batch
FAULT = "\0fault"  # column of a raw frame: the line that could not be split into values; null for a good row


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One rejected row: ``row`` counts the file's rows from 1, ``value`` is what stood in ``column`` (cut)."""

    row: int
    column: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Rows of one batch that broke ``rule``; a row that breaks several counts under the first."""

    rule: str
    rows: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something about a file that is no fault of a row; ``code`` is one of a few, ``column`` where it was seen."""

    code: str  # column-ignored, column-absent, rounded-ids, version-unproved, no-rows
    column: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFrame:
    """Values as a file has them under canonical names; columns the file lacks are left out."""

    frame: pl.DataFrame
    first_row: int  # of the file, from 1
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A piece of a shard. ``frame``: columns and types of ``domain.borg.TABLES``, in that order.

    ``rows_in`` = ``frame.height`` + the rejected rows. ``notes``: each once a shard, in the batch that first shows it.
    """

    frame: pl.DataFrame
    rows_in: int
    rejects: tuple[Reject, ...] = field(default=())
    notes: tuple[Note, ...] = field(default=())

    @property
    def rejected_rows(self) -> int:
        """Rows that are not in ``frame``."""
        return sum(reject.rows for reject in self.rejects)


def joined(batches: Sequence[Batch]) -> Batch:
    """Consecutive batches as one; rejects by rule, with the first ``SAMPLES`` of each."""
    if len(batches) == 1:
        return batches[0]
    rules: dict[str, list[Reject]] = {}
    for reject in (reject for batch in batches for reject in batch.rejects):
        rules.setdefault(reject.rule, []).append(reject)
    rejects = tuple(
        Reject(
            rule=rule,
            rows=sum(one.rows for one in found),
            samples=tuple(sample for one in found for sample in one.samples)[:SAMPLES],
        )
        for rule, found in rules.items()
    )
    return Batch(
        frame=pl.concat([batch.frame for batch in batches]),
        rows_in=sum(batch.rows_in for batch in batches),
        rejects=rejects,
        notes=tuple(note for batch in batches for note in batch.notes),
    )
