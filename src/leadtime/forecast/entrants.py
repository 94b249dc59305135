"""The policy → the models in the race, simplest first. Registering a model is one line here."""

from functools import lru_cache

from leadtime.forecast.ets import Ets
from leadtime.forecast.model import DemandModel
from leadtime.forecast.recent import LastValue, Mean5Min
from leadtime.forecast.seasonal import SeasonalRatio, UsualEnvelope
from leadtime.policy.schema import ForecastPolicy


@lru_cache(maxsize=64)
def entrants(policy: ForecastPolicy) -> tuple[DemandModel, ...]:
    """Every model that competes; the order is the order of simplicity, and ties go to the simpler."""
    days, zone = policy.max_history_days, policy.time_zone
    return (
        LastValue(),
        Mean5Min(),
        Ets(),
        SeasonalRatio(zone=zone, max_days=days),
        UsualEnvelope(zone=zone, max_days=days, tolerance_s=policy.season_tolerance_s, level_ratio=policy.level_ratio),
    )


@lru_cache(maxsize=64)
def memories(policy: ForecastPolicy) -> tuple[DemandModel, ...]:
    """One model a memory: whoever comes first keeps it for all that share it."""
    first: dict[str, DemandModel] = {}
    for model in entrants(policy):
        first.setdefault(model.memory, model)
    return tuple(first.values())
