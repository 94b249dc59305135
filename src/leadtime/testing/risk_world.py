"""A small simulated service whose pods fail, standing at the first instant of its scored hours, for tests of risk."""

import numpy as np

from leadtime.policy import Policy
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.scenario import load
from leadtime.simulate.worlds import Prepared, Replay, prepare

T0 = 1_772_409_600
HOUR_S = 3600
WARM_UP_S = 6 * HOUR_S
TICKS = {"loop": {"tick_s": 300, "stale_after_s": 300}, "queue": {"growth_window_s": 600}}


def prepared(hours: int, *, base_rate: float = 0.02, seed: int = 1, **risk: object) -> Prepared:
    """A service on two pods at 64 % of their capacity, after six hours of warm-up; ticks every five minutes.

    ``hours`` are scored; ``base_rate``: share of 15 min in which a pod fails; ``risk``: fields of the policy's section.
    """
    scenario = load("gpu-failures")
    assert scenario.failures is not None
    failures = scenario.failures.model_copy(update={"base_rate": base_rate})
    policy = Policy.model_validate({"actuation": {"stage": "hpa_floor"}, "risk": risk, **TICKS})
    end_s = T0 + WARM_UP_S + hours * HOUR_S
    return prepare(
        Replay(
            scenario=scenario.model_copy(update={"failures": failures}), seed=seed, policy=policy,
            demand={"serving/api": DemandTrace(start_s=T0, rps=np.full((end_s - T0) // 15, 6.4))},
            scored_from_s=T0 + WARM_UP_S, end_s=end_s,
        ),
        lambda _what, _share: None,
    )  # fmt: skip
