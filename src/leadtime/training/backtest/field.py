"""The policy → everyone who competes in a backtest, simplest first. Registering a model is one line here.

The order is the order of simplicity: ties go to whoever stands first.
"""

from leadtime.forecast.days import DayRules
from leadtime.forecast.entrants import entrants
from leadtime.policy.schema import ForecastPolicy
from leadtime.training.backtest.plugins import plugged_in
from leadtime.training.backtest.trainee import Ready, Trainee
from leadtime.training.demand.trainee import LagTreesTrainee
from leadtime.training.demand_classical import classical
from leadtime.training.demand_lstm.trainee import LstmTrainee


def field(policy: ForecastPolicy, *, lstm: bool = False) -> tuple[Trainee, ...]:
    """The models of the loop, then those that have to be fitted, then those of installed packages.

    ``lstm``: with the recurrent network, which takes minutes to fit; without the extra it says so in its line.
    """
    rules = DayRules(zone=policy.time_zone)
    ours: tuple[Trainee, ...] = (
        *(Ready(model=model) for model in entrants(policy)),
        *classical(rules, policy.max_history_days),
        LagTreesTrainee(zone=policy.time_zone),
        *((LstmTrainee(zone=policy.time_zone),) if lstm else ()),
    )
    return (*ours, *plugged_in(policy.time_zone, [one.name for one in ours]))
