"""Demand as the simulated users send it → one mean rate a step. NaN: the *series* has no value, the users go on.

Users do not stop because a metric is missing: arrivals continue at the last known rate; such steps are not scored.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandTrace:
    """``rps[i]``: mean rate in requests/s over [start_s + i·step_s, start_s + (i+1)·step_s); times in epoch seconds.

    Raises ValueError for a step below one second, an empty or two-dimensional column, infinite or negative rates.
    """

    start_s: int
    step_s: int = 15
    rps: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.step_s < 1:
            raise ValueError(f"building a DemandTrace: step_s is {self.step_s}; it must be at least 1 s")
        if self.rps.ndim != 1 or not len(self.rps):
            raise ValueError(f"building a DemandTrace: rps has shape {self.rps.shape}; it must be one non-empty column")
        known = self.rps[~np.isnan(self.rps)]
        if len(known) and (np.isinf(known).any() or float(known.min()) < 0):
            raise ValueError("building a DemandTrace: rps holds infinite or negative rates; write NaN for missing")

    @property
    def end_s(self) -> int:
        """End of the last step (open)."""
        return self.start_s + self.step_s * len(self.rps)


def at_step(trace: DemandTrace, step_s: int) -> npt.NDArray[np.float64]:
    """The trace's rates with every bucket held constant over finer steps of ``step_s``.

    Raises ValueError when the trace's step is no multiple of ``step_s``.
    """
    if trace.step_s % step_s:
        raise ValueError(
            f"reading a DemandTrace at {step_s} s: its step is {trace.step_s} s; make it a multiple of {step_s} s"
        )
    return np.repeat(np.asarray(trace.rps, dtype=np.float64), trace.step_s // step_s)


def arrivals_rps(rps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """``rps`` with each gap filled by the last known rate (a leading gap by the first known one, 0 without any)."""
    known = ~np.isnan(rps)
    if not known.any():
        return np.zeros(len(rps))
    last = np.maximum.accumulate(np.where(known, np.arange(len(rps)), -1))
    return np.asarray(rps[np.where(last >= 0, last, int(np.argmax(known)))], dtype=np.float64)


def minute_means(rps: npt.NDArray[np.float64], start_s: int, step_s: int) -> tuple[int, list[float | None]]:
    """(start of the first whole minute in epoch seconds, mean rate per minute); None for a minute with any gap.

    Raises ValueError when a minute is no multiple of ``step_s``.
    """
    if 60 % step_s or start_s % step_s:
        raise ValueError(
            f"averaging {step_s} s steps from {start_s} to minutes: 60 and the start must be multiples of it"
        )
    first = -(-start_s // 60) * 60
    per_minute = 60 // step_s
    rest = rps[(first - start_s) // step_s :]
    whole = len(rest) // per_minute
    means = rest[: whole * per_minute].reshape(whole, per_minute).mean(axis=1)
    return first, [None if value != value else value for value in means.tolist()]  # noqa: PLR0124 -- NaN test, fast
