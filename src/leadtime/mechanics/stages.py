"""A stage of provisioning and the key of a draw → how long that stage takes this time.

Log-normal: P50 × one factor all items of a day share × one factor per item. The factors come from a hash of the key,
not from a running generator: two worlds that ask for the k-th node of a pool get the same one whatever else they do.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import exp, hypot, log
from statistics import NormalDist

_STANDARD = NormalDist()
_Z90 = _STANDARD.inv_cdf(0.90)
_2_POW_53 = 9007199254740992.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDistribution:
    """One stage's duration. ``*_p90_over_p50`` ≥ 1.0; 1.0 means that this factor does not vary.

    ``day_…``: one factor for every item of a day (a slow cloud is slow for all). ``item_…``: one per node or pod.
    Raises ValueError for a negative ``p50_s`` or a ratio below 1.0.
    """

    name: str
    p50_s: float
    day_p90_over_p50: float = 1.0
    item_p90_over_p50: float = 1.0

    def __post_init__(self) -> None:
        if self.p50_s < 0.0:
            raise ValueError(f"stage {self.name}: p50_s is {self.p50_s}, must be 0 s or more")
        if self.day_p90_over_p50 < 1.0 or self.item_p90_over_p50 < 1.0:
            raise ValueError(
                f"stage {self.name}: P90/P50 ratios are {self.day_p90_over_p50} (day) and {self.item_p90_over_p50} "
                "(item), must be 1.0 or more"
            )


def draw_s(dist: StageDistribution, *, seed: int, pool: str, day: int, k: int) -> float:
    """Seconds the ``k``-th item of ``pool`` spends in this stage on ``day``.

    The day factor is keyed by (seed, pool, stage, day), the item's by (seed, pool, stage, k): equal keys, equal
    seconds, in any process and order. ``k`` counts requests of the pool over the whole run, not within a day.
    """
    if dist.p50_s == 0.0:
        return 0.0
    seconds = dist.p50_s
    if dist.day_p90_over_p50 != 1.0:
        seconds *= _day_factor(dist.day_p90_over_p50, seed, pool, dist.name, day)
    if dist.item_p90_over_p50 != 1.0:
        seconds *= exp(_sigma(dist.item_p90_over_p50) * _normal(f"item\x1f{seed}\x1f{pool}\x1f{dist.name}\x1f{k}"))
    return seconds


def quantile_s(dist: StageDistribution, ratio: float) -> float:
    """The duration that a share ``ratio`` (0–1, both open) of all items of all days stays below."""
    sigma = hypot(_sigma(dist.day_p90_over_p50), _sigma(dist.item_p90_over_p50))
    return dist.p50_s * exp(sigma * _STANDARD.inv_cdf(ratio))


@lru_cache(maxsize=4096)
def _day_factor(p90_over_p50: float, seed: int, pool: str, stage: str, day: int) -> float:
    return exp(_sigma(p90_over_p50) * _normal(f"day\x1f{seed}\x1f{pool}\x1f{stage}\x1f{day}"))


@lru_cache(maxsize=1024)
def _sigma(p90_over_p50: float) -> float:
    return log(p90_over_p50) / _Z90


def _normal(key: str) -> float:
    """A standard normal number that depends on ``key`` alone."""
    bits = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") >> 11
    # Half a step in, so that neither 0 nor 1 (an infinite normal) can come out.
    return _STANDARD.inv_cdf((bits + 0.5) / _2_POW_53)
