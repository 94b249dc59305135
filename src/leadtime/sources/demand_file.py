"""A CSV or Parquet file of demand → DemandFile: one value a bucket, requests per second, NaN where nothing is known.

Gaps and empty, NaN or ±Inf cells are missing and counted; whatever would make a number or a time doubtful is an error
that names file, row and cure. Limits: 200 MB, 5,000,000 rows, 5,000,000 buckets from first to last time.
"""

import stat
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from leadtime.domain.errors import BadDemandFile
from leadtime.domain.time_window import from_epoch
from leadtime.sources import demand_file_grid as grid_of
from leadtime.sources import demand_file_zones as zones
from leadtime.sources.demand_file_columns import Columns, FloatColumn
from leadtime.sources.demand_file_csv import read_csv
from leadtime.sources.demand_file_errors import bad_file
from leadtime.sources.demand_file_grid import MINUTE_S
from leadtime.sources.demand_file_options import (
    Aggregate,
    DemandFileOptions,
    OnDuplicate,
    TimeUnit,
    ValueUnit,
)
from leadtime.sources.demand_file_parquet import read_parquet

__all__ = [
    "Aggregate",
    "DemandFile",
    "DemandFileOptions",
    "MinuteDemand",
    "OnDuplicate",
    "TimeUnit",
    "ValueUnit",
    "read_demand",
]

MAX_BYTES = 200_000_000
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinuteDemand:
    """Demand by whole UTC minutes: value i covers [start + i min, start + (i+1) min), requests/s, NaN missing."""

    start: datetime
    values: FloatColumn

    @property
    def end(self) -> datetime:
        """End of the last minute (open)."""
        return self.start + timedelta(minutes=len(self.values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandFile:
    """What a file holds. Value i is the mean demand over [start + i·step_s, start + (i+1)·step_s) in requests/s.

    ``missing_values``: cells that are empty, NaN or ±Inf, among the rows kept. ``gaps``: buckets without any row.
    ``duplicates_merged``: rows that went into another row of the same time. ``on_own_grid`` False: the times lay on no
    even grid, or several groups were put together, and the values were written onto whole minutes.
    """

    path: str
    start: datetime
    step_s: int
    values: FloatColumn
    on_own_grid: bool
    sampling_period_s: int
    groups: int
    rows_read: int
    rows_filtered: int
    missing_values: int
    gaps: int
    duplicates_merged: int
    first_at: datetime
    last_at: datetime

    @property
    def end(self) -> datetime:
        """End of the last bucket (open)."""
        return self.start + timedelta(seconds=self.step_s * len(self.values))

    @property
    def missing_buckets(self) -> int:
        """Buckets without a value, whatever the cause."""
        return int(np.isnan(self.values).sum())

    def minutes(self) -> MinuteDemand:
        """The same demand by whole UTC minutes: longer buckets are held constant, shorter ones averaged.

        A minute of which less than half is known is missing (NaN).
        """
        start_s = (self.start - from_epoch(0)).total_seconds()
        if self.step_s % MINUTE_S == 0 and start_s % MINUTE_S == 0:  # exact: no rounding by weights
            return MinuteDemand(start=self.start, values=np.repeat(self.values, self.step_s // MINUTE_S))
        begins = start_s + self.step_s * np.arange(len(self.values), dtype=np.float64)
        grid = grid_of.spread(begins, begins + self.step_s, self.values, Aggregate.MEAN)
        return MinuteDemand(start=from_epoch(grid.start_s), values=grid.values)

    def summary(self) -> str:
        """One line for people: what was read and what was missing."""
        parts = [
            f"{self.rows_read:,} rows read",
            f"{self.rows_filtered:,} filtered out" if self.rows_filtered else "",
            f"{self.groups:,} groups put together" if self.groups > 1 else "",
            f"{len(self.values):,} buckets of {self.step_s} s",
            f"{self.gaps:,} gaps" if self.gaps else "no gaps",
            f"{self.missing_values:,} missing values" if self.missing_values else "no missing values",
            f"{self.duplicates_merged:,} rows merged" if self.duplicates_merged else "",
        ]
        return f"{self.path}: {', '.join(part for part in parts if part)}"


def read_demand(path: Path | str, options: DemandFileOptions) -> DemandFile:
    """Read a demand series from a CSV or Parquet file.

    Raises BadDemandFile (file, row, cure) for a file that cannot be read as a series without guessing, WrongUse when
    Parquet is wanted and polars is not installed.
    """
    file = Path(path)
    zone = zones.zone_named(options.time_zone, str(path))
    columns = _columns(file, options)
    instants = zones.to_instants(columns, zone, str(path))
    samples = grid_of.in_order(columns, instants, options.on_duplicate, str(path))
    grid = grid_of.even_grid(samples, str(path)) if options.group_by is None else None
    on_own_grid = grid is not None
    if grid is None:
        together = (options.aggregate or Aggregate.SUM) if options.group_by is not None else Aggregate.MEAN
        grid = grid_of.minute_grid(samples, together, str(path))
    if not np.isfinite(grid.values).any():
        raise _no_values(str(path), options, samples)
    per_s = 1.0 / MINUTE_S if options.value_unit is ValueUnit.PER_MINUTE else 1.0
    return DemandFile(
        path=str(path), start=from_epoch(grid.start_s), step_s=grid.step_s, values=grid.values * per_s,
        on_own_grid=on_own_grid, sampling_period_s=grid_of.sampling_period_s(samples), groups=columns.groups,
        rows_read=columns.rows_read, rows_filtered=columns.rows_filtered,
        missing_values=int(np.isnan(columns.value).sum()), gaps=grid.gaps, duplicates_merged=samples.merged,
        first_at=from_epoch(float(samples.time_s.min())), last_at=from_epoch(float(samples.time_s.max())),
    )  # fmt: skip


def _no_values(path: str, options: DemandFileOptions, samples: grid_of.Samples) -> BadDemandFile:
    """Nothing to work with: no value in any row, or rows that stand for seconds here and there."""
    if np.isfinite(samples.value).any():
        wrong = f"a row stands for {grid_of.sampling_period_s(samples)} s and no minute is known for half of it"
        return bad_file("demand-no-values", path, wrong, "give a row at least every minute or two")
    wrong = f"column {options.value_column} holds no value at all"
    return bad_file("demand-no-values", path, wrong, "name the column of demand with --value-column")


def _columns(file: Path, options: DemandFileOptions) -> Columns:
    """The file's wanted columns, by its kind. Raises BadDemandFile for what is no readable file."""
    name = str(file)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # a folder, a pipe, a device: endless or empty
            raise bad_file("demand-file-absent", name, "it is not a file", "give the path of a CSV or Parquet file")
        if status.st_size > MAX_BYTES:
            raise bad_file(
                "demand-too-large", name, f"it has {status.st_size / 1e6:,.0f} MB, more than {MAX_BYTES / 1e6:.0f} MB",
                "average it to one row a minute, or split it by time",
            )  # fmt: skip
        with file.open("rb") as opened:
            is_parquet = opened.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
        return read_parquet(file, options) if is_parquet else read_csv(file, options)
    except FileNotFoundError:
        raise bad_file("demand-file-absent", name, "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or str(error)
        raise bad_file(
            "demand-file-unreadable", name, f"it cannot be opened ({reason})", "check path and rights"
        ) from None
