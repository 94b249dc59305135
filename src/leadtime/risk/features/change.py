"""Features that add small shifts up: has usage left the level the collection had in the last 24 h, and for how long?

One window a little above its level says nothing; six of them in a row do. The cumulative sum (E. S. Page, "Continuous
inspection schemes", Biometrika 1954) adds each window's distance above the level, less an allowance, and never falls
below 0. Level and spread are the collection's own, as of each window, so nothing is assumed about the workload.
"""

from collections.abc import Callable

import numpy as np

from leadtime.domain.borg import WINDOW_US
from leadtime.risk.features.block import Block
from leadtime.risk.features.declare import Builder, Feature
from leadtime.risk.features.siblings import DAY_US, crowd, others_mean, past
from leadtime.risk.features.steps import CLIP, SCALE, Values, fixed, lowest_before, ratio, rows_within, running_sum

LOOK_BACK = 36  # windows of 300 s, 3 h: a level that has moved for longer is the new level
FEWEST_WINDOWS = 12  # an hour of one task; with less, level and spread are not known and the sum stands still
LARGEST = 4.0  # one window counts as at most four spreads, so that a single outlier is no trend
ALLOWANCES = (0.5, 1.0)  # spreads; Page's choice is half the shift that matters, so one and two spreads matter
HIGH = 4.0  # spreads above the allowance: seen by chance in less than one of a thousand windows of white noise
NAMES = {0.5: "slow", 1.0: "fast"}
WORDS = {"cpu": "average CPU / requested CPU", "memory": "average memory / requested memory"}
KNOWN = "windows of the run with end ≤ p, each beside the collection's windows of the 24 h before it"


def distance(block: Block, series: str) -> Values:
    """Spreads above the collection's mean of the 24 h up to the window, within ±LARGEST; NaN where not known."""

    def make() -> Values:
        mean, spread, count = past(block, series)
        known = np.where(count >= FEWEST_WINDOWS, spread, np.nan)
        return np.clip(ratio(block.series(series) - mean, known), -LARGEST, LARGEST)

    return block.once(("distance", series), make)


def cumulative(series: str, allowance: float) -> Builder:
    """Page's sum over the last LOOK_BACK windows of the run, in spreads, at most CLIP; a window not known adds 0."""

    def build(block: Block) -> Values:
        def make() -> Values:
            away = distance(block, series)
            steps = np.where(np.isnan(away), 0, fixed(away) - int(allowance * SCALE))
            total = running_sum(steps)
            oldest = block.once(
                ("oldest", LOOK_BACK),
                lambda: rows_within(block.end, block.run_first, rows=LOOK_BACK, span_us=LOOK_BACK * WINDOW_US),
            )
            return np.minimum((total[1:] - lowest_before(total, oldest, rows=LOOK_BACK)) / SCALE, CLIP)

        return block.once(("cumulative", series, allowance), make)

    return build


def _high(series: str) -> Builder:
    fast = cumulative(series, ALLOWANCES[-1])
    return lambda block: (fast(block) >= HIGH).astype(np.float64)


def _high_share_24h(series: str) -> Builder:
    """Share of the collection's windows of the last 24 h at whose end the fast sum stood high; half a window added."""

    def build(block: Block) -> Values:
        seen = crowd(block)
        high = seen.since(block, _high(series)(block).astype(np.int64), DAY_US)
        all_of_them = seen.since(block, np.ones(len(block.end), dtype=np.int64), DAY_US)
        return ratio(high + 0.5, all_of_them + 50.0)  # a new collection is taken for a common one

    return build


def _own(series: str) -> tuple[Feature, ...]:
    return tuple(
        Feature(
            name=f"{series}_ratio_rise_{NAMES[allowance]}", unit="standard deviations", known=KNOWN,
            formula=f"cumulative sum of {WORDS[series]} above the collection's 24 h mean, less {allowance:g} standard "
            f"deviations a window, never below 0, over the last {LOOK_BACK} windows of the run",
            build=cumulative(series, allowance),
        )
        for allowance in ALLOWANCES
    )  # fmt: skip


def _siblings(series: str) -> tuple[Feature, ...]:
    both: Callable[[Block], tuple[Values, Values]] = others_mean(cumulative(series, 1.0), f"rise_{series}")
    high: Callable[[Block], tuple[Values, Values]] = others_mean(_high(series), f"high_{series}")
    return (
        Feature(
            name=f"siblings_{series}_rise_mean", unit="standard deviations", known=KNOWN,
            formula=f"mean of {series}_ratio_rise_fast over running siblings", build=lambda block: both(block)[0],
        ),
        Feature(
            name=f"siblings_{series}_rise_high_share", unit="ratio", known=KNOWN,
            formula=f"share of running siblings with {series}_ratio_rise_fast of {HIGH:g} or more",
            build=lambda block: high(block)[0],
        ),
        Feature(
            name=f"collection_{series}_rise_high_share_24h", unit="ratio", known=KNOWN,
            formula=f"(windows of the collection's last 24 h with {series}_ratio_rise_fast >= {HIGH:g}, + 0.5) / "
            "(all its windows of the last 24 h + 50)",
            build=_high_share_24h(series),
        ),
    )  # fmt: skip


FEATURES = (*_own("cpu"), *_own("memory"), *_siblings("cpu"), *_siblings("memory")[:1])
