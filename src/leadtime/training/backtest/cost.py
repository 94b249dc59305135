"""Upper bounds of demand one lead ahead → pods, what they cost, and what they leave unserved.

Pods for a bucket are those asked for one lead before it (record 0019). Models are compared at equal pod-hours: each
bound is scaled by one factor until it costs what last value's costs, so nobody wins by asking for more.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.worth import NOT_SERVED_RATIO

EQUAL_RATIO = 0.01  # pod-hours count as equal within 1 %
MOST_SCALE, BISECTIONS = 64.0, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a pod serves, and how full it may be: pods are sized for ``target_ratio`` of it."""

    per_pod: float
    target_ratio: float

    def pods(self, upper: FloatColumn) -> FloatColumn:
        """⌈upper ÷ (per_pod · target_ratio)⌉, at least one; NaN where the bound is unknown."""
        return np.maximum(1.0, np.ceil(upper / (self.per_pod * self.target_ratio) - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cost:
    """One plan over the judged buckets. ``short[i]``: 1.0 where the bucket was short, NaN where it is not judged.

    ``strained``: the same for demand above the target utilisation, which the pods were sized for.
    """

    pod_hours: float
    short: FloatColumn
    strained: FloatColumn
    scale: float
    bucket_min: int

    @property
    def shortfall_minutes(self) -> int:
        """Minutes that were short."""
        return int(np.nansum(self.short)) * self.bucket_min

    @property
    def strained_minutes(self) -> int:
        """Minutes with demand above the target utilisation."""
        return int(np.nansum(self.strained)) * self.bucket_min


def cost(upper: FloatColumn, truth: FloatColumn, capacity: Capacity, bucket_min: int, scale: float = 1.0) -> Cost:
    """What the bounds (NaN: not judged) times ``scale`` cost over buckets with demand ``truth``."""
    pods = capacity.pods(upper * scale)
    judged = ~(np.isnan(pods) | np.isnan(truth))
    served = pods * capacity.per_pod
    return Cost(
        pod_hours=float(pods[judged].sum()) * bucket_min / 60.0,
        short=np.where(judged, truth * (1.0 - NOT_SERVED_RATIO) > served, np.nan),
        strained=np.where(judged, truth * (1.0 - NOT_SERVED_RATIO) > served * capacity.target_ratio, np.nan),
        scale=scale,
        bucket_min=bucket_min,
    )


def bound_loss(upper: FloatColumn, truth: FloatColumn, level_ratio: float) -> FloatColumn:
    """Pinball loss of each upper bound at the quantile it stands for: what the loop's race is run by; NaN unknown."""
    tau = (1.0 + level_ratio) / 2.0
    off = truth - upper
    return np.maximum(tau * off, (tau - 1.0) * off)


def at_pod_hours(
    wanted: float, upper: FloatColumn, truth: FloatColumn, capacity: Capacity, bucket_min: int
) -> Cost | None:
    """The cost at the scale at which the bounds take ``wanted`` pod-hours, within EQUAL_RATIO if pods are fine enough.

    None where no scale up to MOST_SCALE reaches it (a bound of zero stays zero), or nothing is judged.
    """
    low, high = 0.0, 1.0
    while cost(upper, truth, capacity, bucket_min, high).pod_hours < wanted:
        low, high = high, high * 2.0
        if high > MOST_SCALE:
            return None
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if cost(upper, truth, capacity, bucket_min, middle).pod_hours < wanted:
            low = middle
        else:
            high = middle
        if high - low < 1e-4 * high:
            break
    pair = [cost(upper, truth, capacity, bucket_min, scale) for scale in (low, high)]
    return min(pair, key=lambda one: abs(one.pod_hours - wanted))
