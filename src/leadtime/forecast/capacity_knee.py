"""Load of a pod and latency, by cells → the load from which latency stays at least doubled, or None."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatColumn = npt.NDArray[np.float64]

MOST_STEPS = 20
CELLS_A_STEP = 6  # half an hour of cells: fewer are one bad moment
FEWEST_STEPS = 6
CALM_SHARE = 1 / 3  # the lowest third of the steps is what latency is without queueing
RISEN_RATIO = 2.0  # a queue as long as the service itself: half full in M/M/1, nearly full for many slots a pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """``load``: where latency begins to stay doubled; ``below``, ``above``: the steps of load on its two sides."""

    load: float
    below: float
    above: float


def find_knee(load: FloatColumn, latency_s: FloatColumn) -> Knee | None:
    """The knee in columns (cells,), NaN a gap; None when latency never stays doubled or too little is known.

    Cells are put in order of load and cut into at most 20 steps of equal count; a step's latency is its median. The
    knee is the first step from which on every step is at least ``RISEN_RATIO`` times the calm one.
    """
    known = ~np.isnan(load) & ~np.isnan(latency_s) & (load > 0)
    steps = min(MOST_STEPS, int(known.sum()) // CELLS_A_STEP)
    if steps < FEWEST_STEPS:
        return None
    order = np.argsort(load[known], kind="stable")
    loads = [float(np.median(part)) for part in np.array_split(load[known][order], steps)]
    seen = np.array([float(np.median(part)) for part in np.array_split(latency_s[known][order], steps)])
    calm = float(np.median(seen[: max(2, round(steps * CALM_SHARE))]))
    risen = seen >= RISEN_RATIO * calm
    if calm <= 0 or not risen[-1]:
        return None
    first = int(steps - np.argmin(risen[::-1])) if not risen.all() else 0
    if first == 0:
        return None  # latency is doubled everywhere: there is no calm part to compare with
    return Knee(load=(loads[first - 1] + loads[first]) / 2.0, below=loads[first - 1], above=loads[first])
