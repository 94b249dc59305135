"""The policy → everyone who competes in a backtest, simplest first. Registering a model is one line here.

The order is the order of simplicity: ties go to whoever stands first.
"""

from leadtime.forecast.entrants import entrants
from leadtime.policy.schema import ForecastPolicy
from leadtime.training.backtest.trainee import Ready, Trainee


def field(policy: ForecastPolicy) -> tuple[Trainee, ...]:
    """The models of the loop, then those that have to be fitted."""
    return tuple(Ready(model=model) for model in entrants(policy))
