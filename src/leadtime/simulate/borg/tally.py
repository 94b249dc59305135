"""Scores and outcomes of a trace of any length → average precision, Brier score, precision at k, ECE, in fixed memory.

Scores are counted in classes as wide as 1.5e-5 of the score (a score is bounded by what a degrading task risks, and the
order close to that bound matters). Standard errors and ECE come from classes of log-odds 0.005 wide; the former by a
bootstrap over groups of collections, so that rows of one collection stay together.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.borg import HORIZONS_MIN
from leadtime.simulate.borg.plan import Bools, Floats, Ints

GROUPS = 200
CLASSES = 4_096
LOWEST_LOG_ODDS, WIDTH = -16.0, 0.005
SIGNAL_FROM, SIGNAL_WIDTH = -8.0, 0.005
LEAST_EXPONENT, KEPT_BITS = 20, 16  # scores below 2^-20 are one class; bits of the mantissa that count
FINE = LEAST_EXPONENT * 2**KEPT_BITS + 1
REPLICATES = 200
ECE_BINS = 20
TOP_RATIOS = (0.001, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the best score reaches on one horizon's labelled rows. None where there is no positive or no row."""

    rows: int
    positives: int
    base_rate: float | None
    average_precision: float | None
    average_precision_se: float | None
    memoryless_average_precision: float | None
    brier: float | None
    ece: float | None
    mean_score: float | None
    precision_at_top: dict[str, float]


def average_precision(positives: Floats, total: Floats) -> Floats:
    """Counts [..., classes] by rising score → average precision [...]; a class is a tie, NaN without positives."""
    hits, shown = (np.cumsum(counts[..., ::-1], axis=-1) for counts in (positives, total))
    precision = np.divide(hits, shown, out=np.zeros_like(hits), where=shown > 0)
    with np.errstate(invalid="ignore"):
        return np.asarray((positives[..., ::-1] * precision).sum(-1) / positives.sum(-1))


class Tally:
    """Counts of one horizon; ``add`` as often as there are cohorts."""

    def __init__(self) -> None:
        self.total = np.zeros((GROUPS, CLASSES), np.int32)
        self.positives = np.zeros((GROUPS, CLASSES), np.int32)
        self.fine = np.zeros((2, FINE), np.int32)
        self.signal = np.zeros((2, CLASSES), np.int64)
        self.sums = np.zeros(CLASSES)
        self.brier = 0.0

    def add(self, score: Floats, y: Bools, group: Ints, x: Floats) -> None:
        """Labelled rows: scores, outcomes, group of the collection, and the window's own signal."""
        odds = np.log(np.clip(score, 1e-12, 1)) - np.log1p(-np.clip(score, 0, 1 - 1e-12))
        place = np.clip((odds - LOWEST_LOG_ODDS) / WIDTH, 0, CLASSES - 1).astype(np.int64)
        cell = group * CLASSES + place
        fine = fine_class(score)
        np.add.at(self.fine[0], fine, 1)
        np.add.at(self.fine[1], fine[y], 1)
        self.total += _counted(cell).reshape(GROUPS, CLASSES)
        self.positives += _counted(cell[y]).reshape(GROUPS, CLASSES)
        self.sums += np.bincount(place, score, minlength=CLASSES)
        self.brier += float(((score - y) ** 2).sum())
        signal = np.clip((x - SIGNAL_FROM) / SIGNAL_WIDTH, 0, CLASSES - 1).astype(np.int64)
        self.signal[0] += np.bincount(signal, minlength=CLASSES)
        self.signal[1] += np.bincount(signal[y], minlength=CLASSES)

    def measured(self, rng: np.random.Generator) -> Measured:
        """Everything of this horizon."""
        total, positives = self.total.sum(0).astype(np.float64), self.positives.sum(0).astype(np.float64)
        n, hits = total.sum(), positives.sum()
        if n == 0:
            return Measured(
                rows=0, positives=0, base_rate=None, average_precision=None, average_precision_se=None,
                memoryless_average_precision=None, brier=None, ece=None, mean_score=None, precision_at_top={},
            )  # fmt: skip
        reached = hits > 0
        signal, fine = self.signal.astype(np.float64), self.fine.astype(np.float64)
        return Measured(
            rows=int(n), positives=int(hits), base_rate=float(hits / n),
            average_precision=float(average_precision(fine[1], fine[0])) if reached else None,
            average_precision_se=self._standard_error(rng) if reached else None,
            memoryless_average_precision=float(average_precision(signal[1], signal[0])) if reached else None,
            brier=self.brier / float(n), ece=self._ece(total, positives), mean_score=float(self.sums.sum() / n),
            precision_at_top={f"{ratio:g}": _precision_at(ratio, fine[1], fine[0]) for ratio in TOP_RATIOS},
        )  # fmt: skip

    def _standard_error(self, rng: np.random.Generator) -> float:
        filled, used = np.flatnonzero(self.total.sum(1)), np.flatnonzero(self.total.sum(0))
        weights = rng.multinomial(len(filled), np.full(len(filled), 1 / len(filled)), size=REPLICATES).astype(
            np.float64
        )
        drawn = average_precision(
            weights @ self.positives[np.ix_(filled, used)].astype(np.float64),
            weights @ self.total[np.ix_(filled, used)].astype(np.float64),
        )
        return float(np.nanstd(drawn, ddof=1))

    def _ece(self, total: Floats, positives: Floats) -> float:
        """Mean |share of failures - mean score| over ECE_BINS bins of about equal mass."""
        share = np.cumsum(total) / total.sum()
        place = np.minimum((share * ECE_BINS - 1e-9).astype(np.int64), ECE_BINS - 1)
        mass, hits, sums = (np.bincount(place, counts, minlength=ECE_BINS) for counts in (total, positives, self.sums))
        return float(np.abs(hits - sums).sum() / mass.sum())


def fine_class(score: Floats) -> Ints:
    """The class of each score in [0, 1]: the leading bits of its float32, which rise with it."""
    least = (127 - LEAST_EXPONENT) << KEPT_BITS
    bits = np.clip(score, 0, 1).astype(np.float32).view(np.int32) >> (23 - KEPT_BITS)
    return np.clip(bits.astype(np.int64) - least, 0, FINE - 1)


def _counted(cell: Ints) -> npt.NDArray[np.int32]:
    return np.bincount(cell, minlength=GROUPS * CLASSES).astype(np.int32)


def _precision_at(ratio: float, positives: Floats, total: Floats) -> float:
    """Share of failures among the top ``ratio`` of the rows; a class cut in two gives its mean."""
    wanted = ratio * total.sum()
    shown = np.cumsum(total[::-1])
    taken = np.diff(np.minimum(shown, wanted), prepend=0.0)
    shares = np.divide(positives[::-1], total[::-1], out=np.zeros_like(positives), where=total[::-1] > 0)
    return float((taken * shares).sum() / wanted)


def tallies() -> dict[int, Tally]:
    """An empty tally for each horizon."""
    return {horizon: Tally() for horizon in HORIZONS_MIN}
