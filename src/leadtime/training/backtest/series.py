"""A demand file → buckets at its own step, for a backtest: whole minutes or multiples of them, NaN where unknown."""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.conformal import Timing
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.sources.demand_file import DemandFile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BacktestSeries:
    """Value i is the mean demand over [start_s + i·step_s, +step_s); NaN is a gap. ``step_s`` is whole minutes."""

    name: str
    start_s: int
    step_s: int
    values: FloatColumn

    @property
    def bucket_min(self) -> int:
        """Minutes in a bucket."""
        return self.step_s // MINUTE_S

    def ahead(self, horizon_s: int) -> int:
        """Buckets from an origin's newest bucket to the one that holds the minute ``horizon_s`` − 1 min after it.

        ≥ 1. Record 0019: at 600 s ahead, 10 buckets of a minute, 2 of five minutes, 1 of ten.
        """
        return 1 + (horizon_s // MINUTE_S - 1) // self.bucket_min

    def timing(self, ahead: int) -> Timing:
        """When origins are, and what a forecast ``ahead`` buckets on is about."""
        return Timing(start_s=self.start_s, step_s=self.step_s, ahead=ahead)


def from_file(file: DemandFile, name: str) -> BacktestSeries:
    """The file's own buckets where they are whole minutes, else the file put on minutes.

    Shorter buckets are averaged, odd ones spread by the share of each minute they cover (see DemandFile.minutes).
    Buckets that begin within a minute are taken as beginning with the next one: known a little late, never early.
    """
    if file.step_s % MINUTE_S == 0:
        start_s = -(-int(file.start.timestamp()) // MINUTE_S) * MINUTE_S
        return BacktestSeries(
            name=name, start_s=start_s, step_s=file.step_s, values=np.asarray(file.values, dtype=np.float64)
        )
    minutes = file.minutes()
    return BacktestSeries(
        name=name, start_s=int(minutes.start.timestamp()), step_s=MINUTE_S, values=np.asarray(minutes.values)
    )
