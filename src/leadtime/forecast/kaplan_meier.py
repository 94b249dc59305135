"""Durations, some only known to be longer than what was seen → a survival curve, and quantiles read from it.

Source: Kaplan and Meier 1958, with weights: the nodes of one scale-up share their cause, so an episode weighs 1 however
many nodes it had.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.model import FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """``done[i]``: share that had ended by ``times[i]`` (ascending). ``longest``: the longest seen, ended or not."""

    times: FloatColumn
    done: FloatColumn
    longest: float

    def quantile(self, share: FloatColumn) -> FloatColumn:
        """The time by which each ``share`` had ended; where the curve never gets there, the longest seen.

        That is a lower bound, the only one the data allow: whoever needs more adds a prior beside it.
        """
        index = np.searchsorted(self.done, share - 1e-9)
        return np.asarray(np.append(self.times, self.longest)[np.minimum(index, len(self.times))])


def curve(durations: FloatColumn, ended: FloatColumn, weights: FloatColumn) -> Curve:
    """The curve of ``durations``; ``ended`` is 1 where the end was seen and 0 where censored. Raises on no samples."""
    if not len(durations):
        raise ValueError("building a survival curve: no samples; use the prior instead")
    # Among equal times an end comes before a censoring: who was last seen at t was still at risk at t.
    order = np.lexsort((1.0 - ended, durations))
    times, events, weight = durations[order], ended[order], weights[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    survives = np.cumprod(1.0 - np.minimum(1.0, events * weight / at_risk))
    seen = events > 0
    return Curve(times=times[seen], done=np.asarray(1.0 - survives[seen], dtype=np.float64), longest=float(times[-1]))
