"""What the HorizontalPodAutoscaler v2 sees, remembers and answers: ``HpaObserved``, ``HpaState``, ``HpaSync``.

Amounts are integers in thousandths (``_milli``). Times are epoch seconds; whole seconds and binary fractions of them
compare exactly, which matters at the ends of windows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

# --- what one sync sees -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingError:
    """The metrics API answered this metric with an error, or had no such metric. Not zero: an error."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalReading:
    """All series an external metric's selector matched. An empty tuple is an error, as the metrics client says."""

    values_milli: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReading:
    """The object's value."""

    value_milli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """One pod's value: taken at ``at_s`` over the ``window_s`` before it. Times matter for cpu only."""

    pod: str
    value_milli: int
    at_s: float = 0.0
    window_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSamples:
    """Samples of a pods, resource or container-resource metric. A pod without a sample is missing, not zero."""

    samples: tuple[PodSample, ...]


Reading = ExternalReading | ObjectReading | PodSamples


class PodPhase(StrEnum):
    """``status.phase``."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Ready(StrEnum):
    """The pod's Ready condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"
    ABSENT = "Absent"  # the pod has no such condition yet


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequests:
    """What one container asks for, by resource name. A resource not named is not requested, which is an error.

    A pod with pod-level requests is written as one container that holds them.
    """

    container: str
    requests_milli: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReading:
    """One pod the target's selector matches. ``ready_changed_at_s`` is the Ready condition's last transition."""

    name: str
    phase: PodPhase = PodPhase.RUNNING
    ready: Ready = Ready.TRUE
    ready_changed_at_s: float = 0.0
    started_at_s: float | None = 0.0  # status.startTime; None: the kubelet has not seen it
    deleting: bool = False  # has a deletion timestamp
    containers: tuple[ContainerRequests, ...] = ()


class SelectorProblem(StrEnum):
    """Why the target's pods cannot be told: no metric is read then."""

    INVALID = "InvalidSelector"
    AMBIGUOUS = "AmbiguousSelector"  # another HPA selects one of these pods too


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaObserved:
    """What the controller reads in one sync. ``readings`` stand in the order of ``spec.metrics``.

    ``pods`` are needed by resource, pods and Value-target metrics only. ``ready_pods`` may stand in for the list where
    only Value targets need it: the number of Running and Ready pods.
    """

    now_s: float
    spec_replicas: int
    status_replicas: int
    readings: tuple[Reading | ReadingError, ...]
    pods: tuple[PodReading, ...] = ()
    ready_pods: int | None = None
    selector_problem: SelectorProblem | None = None


# --- what it remembers ------------------------------------------------------------------------------------------


class Recommendation(NamedTuple):
    """What the metrics proposed, before any window. A named tuple: read twenty at a time in every sync."""

    at_s: float
    replicas: int


class ScaleEvent(NamedTuple):
    """Replicas added (or removed) by one write. ``outdated``: its slot may be used again."""

    at_s: float
    change: int
    outdated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaState:
    """The controller's memory, plus the one thing that is not memory: ``scaled_to_zero`` is a condition on the HPA
    object and outlives the controller. ``HpaState()`` is an HPA the controller has never seen.

    Order matters: the original uses the last expired slot of its lists again, and what it leaves behind there comes
    back to life when a longer window is written into the spec.
    """

    recommendations: tuple[Recommendation, ...] = ()
    up_events: tuple[ScaleEvent, ...] = ()
    down_events: tuple[ScaleEvent, ...] = ()
    scaled_to_zero: bool = False

    def after_restart(self) -> "HpaState":
        """What is left when the controller manager restarts or another replica takes the lease."""
        return HpaState(scaled_to_zero=self.scaled_to_zero)


# --- what it answers --------------------------------------------------------------------------------------------


class SyncReason(StrEnum):
    """Why ``desired`` is what it is."""

    SCALING_DISABLED = "ScalingDisabled"  # zero replicas that the HPA did not make
    ABOVE_MAX = "AboveMaxReplicas"
    BELOW_MIN = "BelowMinReplicas"
    METRICS_FAILED = "MetricsFailed"  # nothing is changed
    METRIC_ABOVE_TARGET = "MetricAboveTarget"
    METRICS_BELOW_TARGET = "AllMetricsBelowTarget"
    EARLIER_RECOMMENDATION = "EarlierRecommendation"  # not asked for now, but within a window
    UNCHANGED = "Unchanged"


class AbleToScale(StrEnum):
    """Reason of the AbleToScale condition; its status is True for all of these."""

    SUCCEEDED_GET_SCALE = "SucceededGetScale"
    READY_FOR_NEW_SCALE = "ReadyForNewScale"
    SCALE_UP_STABILISED = "ScaleUpStabilized"
    SCALE_DOWN_STABILISED = "ScaleDownStabilized"
    SUCCEEDED_RESCALE = "SucceededRescale"


class ScalingLimited(StrEnum):
    """Reason of the ScalingLimited condition; its status is False for ``WITHIN_RANGE`` only."""

    WITHIN_RANGE = "DesiredWithinRange"
    TOO_FEW = "TooFewReplicas"
    TOO_MANY = "TooManyReplicas"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"


class ScalingActive(StrEnum):
    """Reason of the ScalingActive condition; its status is True for ``VALID_METRIC_FOUND`` only."""

    VALID_METRIC_FOUND = "ValidMetricFound"
    SCALING_DISABLED = "ScalingDisabled"
    INVALID_SELECTOR = "InvalidSelector"
    AMBIGUOUS_SELECTOR = "AmbiguousSelector"
    FAILED_EXTERNAL = "FailedGetExternalMetric"
    FAILED_OBJECT = "FailedGetObjectMetric"
    FAILED_PODS = "FailedGetPodsMetric"
    FAILED_RESOURCE = "FailedGetResourceMetric"
    FAILED_CONTAINER_RESOURCE = "FailedGetContainerResourceMetric"


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaSync:
    """The answer. ``desired`` is what scale.spec.replicas is after the sync (written only where it differs).

    A condition that is None was not touched: on the HPA object the older one still stands, however stale.
    """

    desired: int
    state: HpaState
    reason: SyncReason
    proposals: tuple[int | None, ...] = ()  # per metric, None where it failed; empty when no metric was read
    stabilised: int | None = None  # after the windows, before rate limits and bounds
    able_to_scale: AbleToScale = AbleToScale.SUCCEEDED_GET_SCALE
    scaling_limited: ScalingLimited | None = None
    scaling_active: ScalingActive | None = None
    failure: str | None = None  # the first failed metric's words
