"""One workload's demand series → forecast path with bounds, and a surge when demand runs away from it.

The state is a value: every function takes one and returns a new one.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from leadtime.domain.demand import DemandPath, Surge
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import from_epoch
from leadtime.policy.schema import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastState:
    """What survives a tick for one workload."""

    last_at_s: int | None = None  # end of the newest bucket seen
    last_value: float | None = None


def start() -> ForecastState:
    """The state before the first bucket."""
    return ForecastState()


def observe(state: ForecastState, series: Series, policy: Policy) -> ForecastState:
    """Take every bucket of ``series`` newer than the last one seen; gaps are kept as gaps."""
    del policy
    end_s = int(series.end.timestamp())
    if state.last_at_s is not None and end_s <= state.last_at_s:
        return state
    known = series.last_known
    return replace(state, last_at_s=end_s, last_value=state.last_value if known is None else known)


def warm_up(state: ForecastState, series: Series, policy: Policy) -> ForecastState:
    """Take a long history; the same result as observing its buckets one by one."""
    return observe(state, series, policy)


def predict(  # noqa: PLR0917 -- the loop calls it by position, in this agreed order
    state: ForecastState, ref: WorkloadRef, as_of: datetime, horizon_s: int, unit: Unit, policy: Policy
) -> DemandPath | Missing:
    """Expected, lower and upper demand for each minute up to ``horizon_s`` after ``as_of``."""
    if state.last_at_s is None or state.last_value is None:
        return Missing(source=f"demand of {ref.key}", reason="no value was ever seen")
    steps = -(-horizon_s // 60) + max(0, int((as_of - from_epoch(state.last_at_s)) / timedelta(seconds=60)))
    path = (state.last_value,) * steps
    return DemandPath(
        subject=ref, issued_at=from_epoch(state.last_at_s), step_s=60, expected=path, lower=path, upper=path,
        level_ratio=policy.forecast.level_ratio, unit=unit, model="last_value", may_act=False,
        standing=Explanation(reason=Reason.HISTORY_TOO_SHORT, sentence="only the last value is known"),
    )  # fmt: skip


def surge(state: ForecastState, ref: WorkloadRef, policy: Policy, pod_lead_s: float) -> Surge | None:
    """The surge that runs now, or None."""
    del state, ref, policy, pod_lead_s
    return None
