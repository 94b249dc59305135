"""Losses of every model → the model that speaks at each horizon, whether it may act, and the numbers for saying so.

The loss is the pinball loss of the calibrated upper bound, because that is what capacity is sized by: a rare hour in
which demand doubles costs as much there as a day of small errors, and a mean error would not see it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.forecast.model import FloatColumn
from leadtime.forecast.race import HORIZONS_MIN, Block
from leadtime.policy.schema import ForecastPolicy

AS_GOOD_ERRORS = 1.0  # within one standard error of the best counts as no worse: the simpler model is taken
FULL_RATIO = 0.9  # a block counts for a model when it was scored nearly as often as the one scored most


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """``models[h]``: index of the model that speaks at HORIZONS_MIN[h]. Losses are shares of the mean demand."""

    models: tuple[int, ...]
    loss_ratio: float | None = None
    last_value_loss_ratio: float | None = None
    covered_ratio: float | None = None
    scored: int = 0
    scored_s: int = 0


def first(horizons: int = len(HORIZONS_MIN)) -> Champion:
    """Before anything was scored last value speaks."""
    return Champion(models=(0,) * horizons)


def choose(blocks: tuple[Block, ...]) -> Champion:
    """At each horizon the simplest model whose loss is not worse than the best one's within one standard error."""
    loss = np.stack([b.loss for b in blocks])
    count = np.stack([b.count for b in blocks])
    most = count.max(axis=1, keepdims=True)
    valid = np.asarray((count > 0) & (count >= FULL_RATIO * most))
    models = tuple(_simplest(loss[:, :, h], count[:, :, h], valid[:, :, h]) for h in range(loss.shape[2]))
    every = range(len(models))
    both = np.stack([valid[:, models[h], h] & valid[:, 0, h] for h in every], axis=1)
    mean = sum(b.actual for b in blocks) / max(1, sum(b.minutes for b in blocks))
    mine = np.stack([loss[:, models[h], h] for h in every], axis=1)[both].sum()
    theirs = loss[:, 0, :][both].sum()
    scored = np.stack([count[:, models[h], h] for h in every], axis=1)[both].sum()
    inside = np.stack([np.stack([b.inside[models[h], h] for h in every]) for b in blocks])[both].sum()
    if not scored or mean <= 0:
        return first(len(models))
    return Champion(
        models=models,
        loss_ratio=float(mine / scored / mean),
        last_value_loss_ratio=float(theirs / scored / mean),
        covered_ratio=float(inside / scored),
        scored=int(scored),
        scored_s=int(both.any(axis=1).sum()) * 21_600,
    )


def _simplest(loss: FloatColumn, count: FloatColumn, valid: npt.NDArray[np.bool_]) -> int:
    """Index of the first model not worse than the best on the blocks both were scored in; arrays (block, model)."""
    per = np.where(valid, loss / np.maximum(count, 1.0), np.nan)
    enough = valid.sum(axis=0) >= max(1, int(valid.sum(axis=0).max()) // 2)
    compared = np.asarray(valid[:, enough].all(axis=1))
    if not compared.any():
        return 0
    mean = np.where(enough, np.where(compared[:, None], np.nan_to_num(per), 0.0).sum(axis=0), np.inf)
    best = int(mean.argmin())
    for m in range(best):
        if not enough[m]:
            continue
        off = (per[:, m] - per[:, best])[compared]
        error = off.std(ddof=1) / np.sqrt(len(off)) if len(off) > 1 else 0.0
        if off.mean() <= AS_GOOD_ERRORS * error:
            return m
    return best


def standing(champion: Champion, name: str, have_s: int, policy: ForecastPolicy) -> tuple[bool, Explanation]:
    """Whether forecasts may be acted on, and why or why not, with numbers."""
    if have_s < policy.min_history_s:
        sentence = f"{have_s / 3600:.1f} h of history; {policy.min_history_s / 3600:.0f} h are needed"
        return False, Explanation(reason=Reason.HISTORY_TOO_SHORT, sentence=sentence)
    if champion.scored < policy.min_scored or champion.loss_ratio is None or champion.last_value_loss_ratio is None:
        sentence = f"{champion.scored} forecasts scored; {policy.min_scored} are needed before a model may act"
        return False, Explanation(reason=Reason.HISTORY_TOO_SHORT, sentence=sentence)
    needed = champion.last_value_loss_ratio * (1.0 - policy.better_than_last_value_ratio)
    numbers = (
        f"{name} loses {champion.loss_ratio:.2%} of the mean demand at the upper bound, last value "
        f"{champion.last_value_loss_ratio:.2%}, over {champion.scored_s / 86_400:.1f} days ({champion.scored} "
        f"forecasts); {champion.covered_ratio or 0:.0%} of actuals lay inside the {policy.level_ratio:.0%} interval"
    )
    if any(champion.models) and champion.loss_ratio < needed:
        return True, Explanation(reason=Reason.FORECAST_BEATS_LAST_VALUE, sentence=numbers)
    return False, Explanation(reason=Reason.MODEL_LOSES_TO_LAST_VALUE, sentence=f"no model beats last value: {numbers}")
