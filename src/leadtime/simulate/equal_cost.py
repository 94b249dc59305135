"""Find the setting at which a world costs what another one costs: a monotone run(setting) → pod-hours, bisected.

Used for ``hpa_equal_cost`` (setting: the HPA's target utilisation) and ``cron`` (setting: the schedule's factor). Costs
are counts of whole pods, so an exact match may not exist; the closest run found is kept and its ratio is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

TOLERANCE_RATIO = 0.01  # DESIGN §6: equal within 1 %
MOST_RUNS = 9

Run = TypeVar("Run")


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCost(Generic[Run]):
    """The closest run: its setting, its cost in pod-hours, and how it compares with the cost aimed at."""

    run: Run
    setting: float
    pod_hours: float
    cost_ratio: float

    @property
    def within_tolerance(self) -> bool:
        """True when the costs are equal within 1 %."""
        return abs(self.cost_ratio - 1.0) <= TOLERANCE_RATIO


def match_cost(
    run: Callable[[float], Run],
    pod_hours: Callable[[Run], float],
    *,
    aim_pod_hours: float,
    cheap: float,
    dear: float,
) -> EqualCost[Run]:
    """Bisect between ``cheap`` and ``dear`` settings until the cost is within 1 % of ``aim_pod_hours``.

    ``run`` must cost no less towards ``dear``. The cheap end is tried first: a world that already costs that much is
    kept as it is. At most nine runs; the closest one is returned whether or not it is within the tolerance.
    """
    best: EqualCost[Run] | None = None
    low, high = cheap, dear
    setting = cheap
    for _ in range(MOST_RUNS):
        outcome = run(setting)
        cost = pod_hours(outcome)
        found = EqualCost(run=outcome, setting=setting, pod_hours=cost, cost_ratio=cost / aim_pod_hours)
        if best is None or abs(found.cost_ratio - 1.0) < abs(best.cost_ratio - 1.0):
            best = found
        if best.within_tolerance or (setting == cheap and found.cost_ratio > 1.0):
            break
        low, high = (setting, high) if found.cost_ratio < 1.0 else (low, setting)
        setting = (low + high) / 2
    assert best is not None
    return best
