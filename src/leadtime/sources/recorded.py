"""A recorded demand series → what the loop may see of it at ``as_of``: whole one-minute buckets that have ended.

The series is the past made present: the minute [t, t+1 min) is visible from t + 1 min + lag on, never earlier. Buckets
longer than a minute are replayed as constant demand, so each of their minutes is known when that minute is over.
"""

import math
from datetime import datetime, timedelta

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.sources.demand_file import MinuteDemand

MINUTE = timedelta(minutes=1)


class RecordedDemand:
    """Serves windows of one workload's demand. Holds no clock and no state: equal questions, equal answers."""

    def __init__(self, ref: WorkloadRef, demand: MinuteDemand, *, lag_s: float = 0.0) -> None:
        """``demand`` in requests/s by whole UTC minutes, NaN missing; ``lag_s``: how late a bucket can be read."""
        self._ref = ref
        self._start = demand.start
        self._values = tuple(None if math.isnan(value) else value for value in demand.values.tolist())
        self._lag_s = lag_s

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """Minutes that lie wholly within ``window`` and had ended ``lag_s`` before ``as_of``, oldest first.

        A minute that ends exactly at as_of − lag is visible. Missing when there is no such minute: before the record
        begins, after it ends, or for another workload.
        """
        if ref != self._ref:
            return Missing(source="recorded demand", reason=f"no series for {ref.key}")
        known_until = min(window.end, as_of - timedelta(seconds=self._lag_s))
        first = max(0, -((self._start - window.start) // MINUTE))
        end = min(len(self._values), (known_until - self._start) // MINUTE)
        if end <= first:
            record_end = self._start + MINUTE * len(self._values)
            since = record_end if window.start >= record_end else None
            return Missing(source="recorded demand", reason=f"no minute of {ref.key} ends in the window", since=since)
        return Series(
            name=f"demand of {ref.key}",
            start=self._start + MINUTE * first,
            step_s=60,
            values=self._values[first:end],
            unit=Unit.REQUESTS_PER_S,
            lag_s=self._lag_s,
        )
