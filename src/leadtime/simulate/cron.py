"""The cron world: demand of the days before → the floors a user would write into clock-driven scaling.

What somebody could do without leadtime: look at the last days, write down how many pods each quarter of an hour needed
(the median over the days of that quarter's highest need), begin one lead earlier, and scale the whole schedule by one
factor. The factor is chosen by the caller so that the world costs what leadtime's costs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.oracle import needed_pods

SLOT_S = 900
DAY_S = 86_400
HISTORY_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    """``need[i]``: pods wanted from start_s + i·900 on, the lead already taken off; NaN: no such day."""

    start_s: int
    need: npt.NDArray[np.float64]

    def floor_at(self, at_s: int, factor: float) -> int:
        """The scheduled floor at ``at_s``; 0 where there was no day to learn from."""
        i = (at_s - self.start_s) // SLOT_S
        value = self.need[i] if 0 <= i < len(self.need) else np.nan
        return 0 if np.isnan(value) else int(np.ceil(value * factor))


def schedule(
    trace: DemandTrace,
    *,
    start_s: int,
    end_s: int,
    lead_s: float,
    capacity_per_pod_rps: float,
    target_ratio: float,
    min_replicas: int,
    max_replicas: int,
) -> CronSchedule | None:
    """The schedule for [start_s, end_s) from at most seven whole UTC days before each day; None without a day before.

    Only demand before a day's midnight is used for that day: a schedule written the evening before.
    """
    need = needed_pods(
        trace.rps,
        capacity_per_pod_rps=capacity_per_pod_rps,
        target_ratio=target_ratio,
        min_replicas=min_replicas,
        max_replicas=max_replicas,
    )
    by_slot = _slot_maxima(need, trace)
    first_slot = trace.start_s // SLOT_S
    per_day = DAY_S // SLOT_S
    ahead = max(0, int(np.ceil(lead_s / SLOT_S)))
    slots = np.arange(start_s // SLOT_S, -(-end_s // SLOT_S))
    rows = np.full(len(slots), np.nan)
    for i, slot in enumerate(slots):
        midnight = (slot // per_day) * per_day
        rows[i] = _highest_median(
            by_slot, first_slot=first_slot, slot=int(slot), midnight=int(midnight), ahead=ahead, per_day=per_day
        )
    if np.isnan(rows).all():
        return None
    return CronSchedule(start_s=int(slots[0]) * SLOT_S, need=rows)


def _slot_maxima(need: npt.NDArray[np.int64], trace: DemandTrace) -> npt.NDArray[np.float64]:
    """The highest need of each quarter of an hour, aligned to the clock, from the trace's first slot on."""
    slot_of = (trace.start_s + np.arange(len(need)) * trace.step_s) // SLOT_S
    slot_of -= slot_of[0]
    out = np.zeros(int(slot_of[-1]) + 1)
    np.maximum.at(out, slot_of, need)
    return out


def _highest_median(
    by_slot: npt.NDArray[np.float64], *, first_slot: int, slot: int, midnight: int, ahead: int, per_day: int
) -> float:
    """Highest over [slot, slot + ahead] of the median over the days before; NaN without any."""
    best = np.nan
    for coming in range(slot, slot + ahead + 1):
        days_back = np.arange(1, HISTORY_DAYS + 2) * per_day
        past = coming - days_back
        past = past[(past < midnight) & (past >= first_slot)][:HISTORY_DAYS]
        if len(past):
            best = np.fmax(best, float(np.median(by_slot[past - first_slot])))
    return float(best)
