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
from leadtime.forecast.race import BLOCK_S, HORIZONS_MIN, Block
from leadtime.policy.schema import ForecastPolicy

# No worse than the best: within one standard error of it, and within a tenth. The second, because a surge that comes
# once a day makes the errors of six-hour blocks so uneven that three times the loss may lie within one standard error.
AS_GOOD_ERRORS = 1.0
AS_GOOD_RATIO = 0.10
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


def choose(blocks: tuple[Block, ...], window_s: int) -> Champion:
    """At each horizon the simplest model that is no worse than the best (see AS_GOOD); ``blocks`` oldest first.

    Recent blocks weigh more (half as much per third of the window), because a model of days improves with each day.
    """
    loss, count = np.stack([b.loss for b in blocks]), np.stack([b.count for b in blocks])
    inside = np.stack([b.inside for b in blocks])
    ages = blocks[-1].number - np.array([b.number for b in blocks])
    weight = 0.5 ** (ages * BLOCK_S / (window_s / 3.0))
    valid = np.asarray((count > 0) & (count >= FULL_RATIO * count.max(axis=1, keepdims=True)))
    horizons = range(loss.shape[2])
    models = tuple(_simplest(loss[:, :, h], count[:, :, h], valid[:, :, h], weight) for h in horizons)
    mine = loss[:, models, horizons]
    both = valid[:, models, horizons] & valid[:, 0, :]
    scored = np.where(both, count[:, models, horizons], 0.0)
    mean = sum(b.actual for b in blocks) / max(1, sum(b.minutes for b in blocks))
    if not scored.any() or mean <= 0:
        return first(len(models))
    weighted = (weight[:, None] * scored).sum() * mean
    return Champion(
        models=models,
        loss_ratio=float((weight[:, None] * np.where(both, mine, 0.0)).sum() / weighted),
        last_value_loss_ratio=float((weight[:, None] * np.where(both, loss[:, 0, :], 0.0)).sum() / weighted),
        covered_ratio=float(inside[:, models, horizons][both].sum() / scored.sum()),
        scored=int(scored.sum()),
        scored_s=int(both.any(axis=1).sum()) * BLOCK_S,
    )


def _simplest(loss: FloatColumn, count: FloatColumn, valid: npt.NDArray[np.bool_], weight: FloatColumn) -> int:
    """Index of the first model no worse than the best on the blocks both were scored in; arrays (block, model).

    A model scored in fewer than half of the blocks of the one scored most is out.
    """
    enough = valid.sum(axis=0) >= max(1, int(valid.sum(axis=0).max()) // 2)
    compared = np.asarray(valid[:, enough].all(axis=1))
    if not compared.any():
        return 0
    per = loss[compared] / np.maximum(count[compared], 1.0)
    share = weight[compared, None] / weight[compared].sum()
    mean = np.where(enough, (share * per).sum(axis=0), np.inf)
    best = int(mean.argmin())
    off = per - per[:, [best]]
    error = np.sqrt((share**2 * (off - (share * off).sum(axis=0)) ** 2).sum(axis=0))
    no_worse = enough & (mean - mean[best] <= np.minimum(AS_GOOD_ERRORS * error, AS_GOOD_RATIO * mean[best]))
    return int(no_worse.argmax())


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
