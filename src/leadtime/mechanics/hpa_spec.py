"""What the HorizontalPodAutoscaler v2 is told: metrics, targets, behavior, the controller's flags → ``HpaSpec``.

Amounts are integers in thousandths (``milli``), as Kubernetes' own quantities are inside the controller: 2.5 requests/s
is 2500, 0.3 CPU is 300, 1 GiB is 1073741824000.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

# --- targets and metrics (spec.metrics) -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageValue:
    """So much of the metric for each pod."""

    milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """So much of the metric in all, whatever the number of pods."""

    milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Percent of what the pods request, averaged over them."""

    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMetric:
    """A metric of no Kubernetes object, e.g. requests/s from Prometheus. Its series are summed."""

    name: str
    target: AverageValue | Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMetric:
    """A metric of one Kubernetes object, e.g. requests/s of an Ingress."""

    name: str
    target: AverageValue | Value


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsMetric:
    """A metric each pod reports itself."""

    name: str
    target: AverageValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceMetric:
    """``cpu`` or ``memory`` of whole pods. Only for cpu does readiness decide whether a sample counts."""

    resource: str
    target: Utilisation | AverageValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResourceMetric:
    """``cpu`` or ``memory`` of one container of each pod."""

    resource: str
    container: str
    target: Utilisation | AverageValue


MetricSpec = ExternalMetric | ObjectMetric | PodsMetric | ResourceMetric | ContainerResourceMetric

# --- behavior (spec.behavior) -----------------------------------------------------------------------------------


class PolicyType(StrEnum):
    """What ``RatePolicy.value`` counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class SelectPolicy(StrEnum):
    """Which of several rate policies holds: the largest change, the smallest, or no change in this direction."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePolicy:
    """At most ``value`` pods (or percent of the pods at the period's start) within ``period_s``."""

    type: PolicyType
    value: int
    period_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRules:
    """One direction of ``behavior``. None: not written by the user, the API server's default holds.

    ``tolerance_ratio`` is the float the API server's canonical form gives: 50m is 50 × 0.001.
    """

    window_s: int | None = None
    select: SelectPolicy | None = None
    policies: tuple[RatePolicy, ...] | None = None
    tolerance_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """``spec.behavior``. Even an empty one differs from none: events are kept and windows end open."""

    scale_up: ScalingRules = ScalingRules()
    scale_down: ScalingRules = ScalingRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveRules:
    """One direction with every default filled in."""

    window_s: float
    select: SelectPolicy
    policies: tuple[RatePolicy, ...]
    longest_period_s: int


# kubernetes v1.37.2, pkg/apis/autoscaling/v2/defaults.go. The API reference says 60 s in one place; 15 s is applied.
DEFAULT_UP_POLICIES = (
    RatePolicy(type=PolicyType.PODS, value=4, period_s=15),
    RatePolicy(type=PolicyType.PERCENT, value=100, period_s=15),
)
DEFAULT_DOWN_POLICIES = (RatePolicy(type=PolicyType.PERCENT, value=100, period_s=15),)


def effective_rules(rules: ScalingRules, default_window_s: float, defaults: tuple[RatePolicy, ...]) -> EffectiveRules:
    """``rules`` with the API server's defaults for what is missing; each missing part is filled on its own."""
    policies = defaults if rules.policies is None else rules.policies
    return EffectiveRules(
        window_s=default_window_s if rules.window_s is None else rules.window_s,
        select=SelectPolicy.MAX if rules.select is None else rules.select,
        policies=policies,
        longest_period_s=max(policy.period_s for policy in policies),
    )


# --- the controller's flags and the whole spec ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaFlags:
    """``--horizontal-pod-autoscaler-*`` of the controller manager. ``sync_period_s`` is for whoever calls ``sync``:
    an HPA is queued again one period after it was processed."""

    sync_period_s: float = 15.0
    tolerance_ratio: float = 0.1
    downscale_stabilisation_s: float = 300.0
    cpu_initialisation_s: float = 300.0
    initial_readiness_delay_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaSpec:
    """One HPA. The fields below ``flags`` are derived once here, so that a sync need not.

    Raises ValueError for what the API server would refuse: the caller built a spec that cannot exist.
    """

    max_replicas: int
    metrics: tuple[MetricSpec, ...]
    min_replicas: int = 1
    behavior: Behavior | None = None
    flags: HpaFlags = HpaFlags()
    lowest_ratio: float = field(init=False, repr=False, compare=False)  # tolerance: no change inside, ends included
    highest_ratio: float = field(init=False, repr=False, compare=False)
    wakes_on_metrics: bool = field(init=False, repr=False, compare=False)  # has an object or external metric
    up: EffectiveRules | None = field(init=False, repr=False, compare=False)
    down: EffectiveRules | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive tolerance band and effective rules."""
        behavior, flags, put = self.behavior, self.flags, object.__setattr__
        up_tolerance = down_tolerance = flags.tolerance_ratio
        put(self, "up", None)
        put(self, "down", None)
        if behavior is not None:
            put(self, "up", effective_rules(behavior.scale_up, 0.0, DEFAULT_UP_POLICIES))
            default_window_s = float(int(flags.downscale_stabilisation_s))
            put(self, "down", effective_rules(behavior.scale_down, default_window_s, DEFAULT_DOWN_POLICIES))
            if behavior.scale_up.tolerance_ratio is not None:
                up_tolerance = behavior.scale_up.tolerance_ratio
            if behavior.scale_down.tolerance_ratio is not None:
                down_tolerance = behavior.scale_down.tolerance_ratio
        put(self, "lowest_ratio", 1.0 - down_tolerance)
        put(self, "highest_ratio", 1.0 + up_tolerance)
        put(self, "wakes_on_metrics", any(isinstance(m, ExternalMetric | ObjectMetric) for m in self.metrics))
        self._refuse_impossible()

    def _refuse_impossible(self) -> None:
        if not self.metrics:
            raise ValueError("building an HPA spec: metrics is empty; give at least one metric")
        if not 0 <= self.min_replicas <= self.max_replicas or self.max_replicas < 1:
            bounds = f"min_replicas {self.min_replicas}, max_replicas {self.max_replicas}"
            raise ValueError(
                f"building an HPA spec: {bounds}; need 0 ≤ min_replicas ≤ max_replicas and max_replicas ≥ 1"
            )
        if self.min_replicas == 0 and not self.wakes_on_metrics:
            raise ValueError(
                "building an HPA spec: min_replicas 0 needs an object or external metric to wake up; add one"
            )

    def with_bounds(self, min_replicas: int, max_replicas: int) -> "HpaSpec":
        """A copy with other bounds, e.g. a floor written to minReplicas."""
        return replace(self, min_replicas=min_replicas, max_replicas=max_replicas)
