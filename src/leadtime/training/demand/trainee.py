"""A history → the learned demand model, ready for a backtest; or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leadtime.forecast.lag_trees import LagTrees
from leadtime.forecast.model import MINUTE_S, TooShort
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted
from leadtime.training.demand import samples
from leadtime.training.demand.settings import Settings

NEEDED_S = 86_400  # a model of less than a day has seen neither the night nor the day
MOST_ORIGINS = 12_000


def known_s(history: MinuteHistory) -> int:
    """Seconds of history that are no gaps."""
    return int((~np.isnan(history.values)).sum()) * MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LagTreesTrainee:
    """A ``backtest.trainee.Trainee``: one workload's history → LagTrees with XGBoost as its reader."""

    zone: str = "UTC"
    threads: int = 1
    settings: Settings = field(default_factory=Settings)
    name: str = "lag_trees"

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Callable[[float], None]
    ) -> LagTrees | TooShort | NotFitted:
        """See Trainee. NotFitted where XGBoost is not installed."""
        have_s = known_s(history)
        if have_s < NEEDED_S:
            return TooShort(
                reason=f"{self.name} needs a day of known minutes to be fitted", needed_s=NEEDED_S,
                have_s=have_s,
            )  # fmt: skip
        try:
            from leadtime.training.demand import quantiles
        except ImportError as error:
            return NotFitted(reason=f"{self.name} needs {error.name}: pip install 'leadtime[train]'")
        rows = samples.samples(
            history.start_s, history.values, zone=self.zone, most_origins=MOST_ORIGINS,
            seed=seed, note=lambda share: progress(share / 2.0),
        )  # fmt: skip
        reader = quantiles.fit(
            rows, self.settings, seed=seed, threads=self.threads, budget_s=budget_s,
            note=lambda share: progress(0.5 + share / 2.0),
        )  # fmt: skip
        progress(1.0)
        return LagTrees(reader=reader, zone=self.zone, name=self.name)
