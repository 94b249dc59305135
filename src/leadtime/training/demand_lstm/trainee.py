"""A history → the recurrent network as it would serve, ready for a backtest; or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leadtime.forecast.model import TooShort
from leadtime.forecast.sequence_model import SequenceModel
from leadtime.training.backtest.trainee import MinuteHistory, NotFitted
from leadtime.training.demand.trainee import NEEDED_S, known_s
from leadtime.training.demand_lstm.samples import samples
from leadtime.training.demand_lstm.settings import LstmSettings

NAME = "bi_lstm"
COMPARED = 512  # windows on which the served network is compared with JAX
WALKED_SHARE = 0.1  # of the time, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmTrainee:
    """A ``backtest.trainee.Trainee``: one workload's history → SequenceModel with onnxruntime as its reader."""

    zone: str = "UTC"
    settings: LstmSettings = field(default_factory=LstmSettings)
    name: str = NAME

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Callable[[float], None]
    ) -> SequenceModel | TooShort | NotFitted:
        """See Trainee. NotFitted where the extra is not installed, or one epoch takes more than the budget.

        Raises DependencyFailed where the exported network does not say what JAX says.
        """
        have_s = known_s(history)
        if have_s < NEEDED_S:
            what = f"{self.name} needs a day of known minutes to be fitted"
            return TooShort(reason=what, needed_s=NEEDED_S, have_s=have_s)
        try:
            from leadtime.training.demand_lstm import fit, publish
        except ImportError as error:
            return NotFitted(
                reason=f"{self.name}: extra lstm not installed ({error.name}): pip install 'leadtime[lstm]'"
            )
        rows = samples(
            history, zone=self.zone, most_origins=self.settings.origins, note=lambda s: progress(s * WALKED_SHARE)
        )
        try:
            network = fit.fit(
                rows, self.settings, seed=seed, budget_s=budget_s,
                note=lambda share: progress(WALKED_SHARE + share * (1.0 - WALKED_SHARE)),
            )  # fmt: skip
        except (fit.BudgetSpent, ValueError) as error:
            why = str(error) or f"the first epoch took more than {budget_s:.0f} s"
            return NotFitted(reason=f"{self.name}: {why}")
        taken = np.linspace(0, len(rows.x) - 1, min(COMPARED, len(rows.x))).astype(np.intp)
        reader, _ = publish.served(network, rows.x[taken])
        progress(1.0)
        return SequenceModel(reader=reader, zone=self.zone, name=self.name)
