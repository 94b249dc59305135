"""One tick of the loop as the ledger keeps it, and the state that survives it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leadtime.domain.decision import Decision, Outcome, Proposal, Verdict
from leadtime.domain.demand import DemandForecast, Surge, SurgeAlarm
from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import PodEnd, RiskScore
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHealth:
    """The queue rule's state: unhealthy while ``because`` is not empty or fewer than two clean ticks followed."""

    queue: str
    healthy: bool
    clean_ticks: int
    because: tuple[Explanation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAssessment:
    """What the loop believed about one workload: demand now, forecasts at the leads, surge, lead, the HPA's own wish.

    ``demand`` is the newest visible bucket (Missing when there is none). ``needed_pods_at_node_lead`` and
    ``…_pod_lead`` come from the upper forecast at the target utilisation. ``hpa_would_want`` is what the HPA would ask
    for without our floor (recomputed by mechanics). ``path_expected``/``path_upper``: every 5 min, from now on.
    ``surge``: demand above its forecast, which the loop answers; ``alarm``: a surge people are told of.
    """

    ref: WorkloadRef
    demand: float | Missing
    forecasts: tuple[DemandForecast, ...]
    path_step_s: int
    path_expected: tuple[float, ...]
    path_lower: tuple[float, ...]
    path_upper: tuple[float, ...]
    model: str
    may_act: bool
    standing: Explanation
    surge: Surge | None
    lead: LeadTime
    needed_pods_at_pod_lead: int
    needed_pods_at_node_lead: int
    hpa_would_want: int
    alarm: SurgeAlarm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Everything one tick saw, thought and did. ``as_of`` is what it is about, ``recorded_at`` when it ran.

    ``risks``: scores in force that are alerts (both bars of policy.risk), highest probability first; ``pod_ends``: pods
    that ended since the last tick. Both are empty without a risk model, and then left out of the ledger.
    """

    as_of: datetime
    recorded_at: datetime
    policy_hash: str
    snapshot: ClusterSnapshot
    assessments: tuple[WorkloadAssessment, ...]
    queue_health: tuple[QueueHealth, ...]
    evidence: tuple[Evidence, ...]
    proposals: tuple[Proposal, ...]
    verdicts: tuple[Verdict, ...]
    decisions: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...]
    risks: tuple[RiskScore, ...] = ()
    pod_ends: tuple[PodEnd, ...] = ()


LOOP_STATE_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """What survives a tick: a value, in with one tick and out with the next, saved with a format version.

    Each room owns the content behind its key and treats it as immutable (a tick never changes a value it was given):
    ``forecast`` and ``lead_times`` by workload key, ``scaling`` (cool-downs, holds, pod-hour account, HPA shadow, and
    what is known of risk), ``queue_health`` by queue, ``rate`` (floor raises of the last minute), ``missing_since`` by
    source.
    """

    format: int = LOOP_STATE_FORMAT
    ticks: int = 0
    forecast: Mapping[str, Any] = field(default_factory=dict)
    lead_times: Mapping[str, Any] = field(default_factory=dict)
    scaling: Mapping[str, Any] = field(default_factory=dict)
    queue_health: Mapping[str, Any] = field(default_factory=dict)
    rate: Mapping[str, Any] = field(default_factory=dict)
    missing_since: Mapping[str, datetime] = field(default_factory=dict)
