"""A data set and a plan → the horizons that can be learnt, told by their failures before the first tree is grown.

Every block is counted for every horizon, so that one line says all that is lacking instead of the first of it after
an hour.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.training.booster import FEWEST_POSITIVES
from leadtime.training.sampling import FeatureSet
from leadtime.training.train_plan import Plan

# Two parameters are fitted in the last of them at least (Platt), and of 10 failures the rate is known to 1/√10 = 32 %.
NEEDED: Mapping[str, int] = {"fit": FEWEST_POSITIVES, "stop": FEWEST_POSITIVES, "calibrate": 10}
_PURPOSE: Mapping[str, str] = {"fit": "to fit", "stop": "to stop by", "calibrate": "to calibrate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures of one horizon by block (names of NEEDED)."""

    horizon_min: int
    blocks: Mapping[str, int]

    @property
    def is_enough(self) -> bool:
        """Every block holds what it needs."""
        return all(self.blocks[name] >= needed for name, needed in NEEDED.items())

    @property
    def times_more(self) -> float:
        """So many times as long a trace would do, if it failed as often; infinite where a block has none."""
        return max(needed / self.blocks[name] if self.blocks[name] else math.inf for name, needed in NEEDED.items())

    def words(self) -> str:
        """``5 min has 12 failures to fit (20 needed), 3 to stop by (20 needed)``: what is lacking."""
        short = [
            f"{self.blocks[name]} {_PURPOSE[name]} ({needed} needed)"
            for name, needed in NEEDED.items()
            if self.blocks[name] < needed
        ]
        return f"{self.horizon_min} min has {', '.join(short)}"

    def as_json(self) -> dict[str, Any]:
        """As a card tells of a horizon that was left out."""
        return {"horizon_min": self.horizon_min, "failures": dict(self.blocks), "needed": dict(NEEDED)}


def only(data: FeatureSet, horizons_min: Collection[int]) -> FeatureSet:
    """The same data with these horizons alone (none: all). Raises BadTrace for one that has no labels there."""
    if absent := sorted(set(horizons_min) - set(data.horizons_min)):
        raise BadTrace(
            "horizon-absent", f"reading the features in {data.folder}",
            f"they hold no labels for {', '.join(map(str, absent))} min",
            f"name some of {', '.join(map(str, data.horizons_min))}, or make features of these horizons",
        )  # fmt: skip
    return replace(data, horizons_min=tuple(sorted(set(horizons_min)))) if horizons_min else data


def count_failures(data: FeatureSet, plan: Plan) -> tuple[Failures, ...]:
    """Failures of each horizon of ``data`` in the blocks ``plan`` cuts, shortest horizon first."""
    blocks = {"fit": plan.fit, "stop": plan.watch, "calibrate": plan.calibrate}
    sums = [
        (block & (pl.col(f"y_{m}") == 1)).sum().cast(pl.Int64).alias(f"{name}_{m}")
        for name, block in blocks.items()
        for m in data.horizons_min
    ]
    counted = pl.concat([data.scan(path).select(sums).collect() for path in data.partitions]).sum().row(0, named=True)
    return tuple(
        Failures(horizon_min=m, blocks={name: int(counted[f"{name}_{m}"]) for name in blocks})
        for m in data.horizons_min
    )


def learnable(
    data: FeatureSet, plan: Plan, *, doing: str, leave_out: bool = False
) -> tuple[FeatureSet, tuple[Failures, ...]]:
    """``data`` with the horizons that have failures enough in every block, and those that were left out.

    Raises BadTrace(too-few-failures), naming every horizon that lacks some, unless ``leave_out``; then only where none
    has enough.
    """
    counted = count_failures(data, plan)
    short = tuple(one for one in counted if not one.is_enough)
    kept = tuple(one.horizon_min for one in counted if one.is_enough)
    if short and (not leave_out or not kept):
        said = "; ".join(one.words() for one in short)
        raise BadTrace("too-few-failures", doing, f"there are too few failures: {said}", _cure(short, kept))
    return (replace(data, horizons_min=kept) if short else data), short


def _cure(short: Collection[Failures], kept: Collection[int]) -> str:
    factor = max(one.times_more for one in short)
    more = "" if math.isinf(factor) else f" (about {max(factor, 1.1):.1f} times as many)"
    brought = f"bring more hours or cells{more}"
    if not kept:
        return brought
    return (
        f"{brought}, or go on without: --horizons {','.join(map(str, kept))}, or --leave-out-sparse, which the card "
        "then tells of"
    )
