"""What KEDA itself decides beside the HPA it makes: 0 ↔ 1, idle, and what a failing trigger counts as.

Between 1 and maxReplicas KEDA only feeds metrics to the HPA (mechanics/hpa.py), which takes the largest proposal.
Source: kedacore/keda 2.20, pkg/scaling/executor/scale_scaledobjects.go, pkg/fallback/fallback.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaCadence:
    """Defaults of a ScaledObject."""

    polling_s: float = 30.0  # pollingInterval
    cooldown_s: float = 300.0  # cooldownPeriod, after the last active poll
    initial_cooldown_s: float = 0.0  # initialCooldownPeriod, after creation, while it was never active


KEDA = KedaCadence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger at one poll. ``value`` None = the scaler answered with an error; 0.0 is a measurement."""

    value: float | None
    target: float  # AverageValue: units a replica should carry
    activation: float = 0.0  # active when value > activation


class FallbackBehaviour(StrEnum):
    """What replicas a failing trigger stands for."""

    STATIC = "static"
    CURRENT_REPLICAS = "currentReplicas"
    CURRENT_REPLICAS_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_REPLICAS_IF_LOWER = "currentReplicasIfLower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The fallback of a ScaledObject; it speaks after more than ``failure_threshold`` errors in a row."""

    replicas: int
    failure_threshold: int = 3
    behaviour: FallbackBehaviour = FallbackBehaviour.STATIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Replica bounds of a ScaledObject. ``idle`` None = no idle mode."""

    min_replicas: int = 0
    max_replicas: int = 100
    idle: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What KEDA remembers between polls. ``last_active_s`` None = never active since creation."""

    created_s: float
    last_active_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Result of one poll: ``replicas`` to write, None when KEDA leaves the number alone."""

    activity: Activity
    replicas: int | None = None


def poll(
    activity: Activity,
    triggers: Sequence[Trigger],
    *,
    current: int,
    bounds: Bounds,
    now_s: float,
    fallback: Fallback | None = None,
    cadence: KedaCadence = KEDA,
) -> Poll:
    """One poll of the scale loop at ``now_s``.

    Two things to know: an error beside an active trigger leaves the cool-down clock where it stood; an error of the
    only trigger keeps the replicas, unless a fallback of 0 replicas is set, which lets the target go to zero.
    """
    failing = any(trigger.value is None for trigger in triggers)
    if any(is_active(trigger) for trigger in triggers):
        asleep = current == 0 or (bounds.idle is not None and current < bounds.min_replicas)
        if asleep:
            woken = Activity(created_s=activity.created_s, last_active_s=now_s)
            return Poll(activity=woken, replicas=max(1, bounds.min_replicas))
        if failing:
            return Poll(activity=activity)
        return Poll(activity=Activity(created_s=activity.created_s, last_active_s=now_s))
    if failing and (fallback is None or fallback.replicas != 0):
        return Poll(activity=activity)
    may_sleep = current > bounds.idle if bounds.idle is not None else False
    if may_sleep or (current > 0 and bounds.min_replicas == 0):
        resting = bounds.idle if bounds.idle is not None else bounds.min_replicas
        return Poll(activity=activity, replicas=resting if _cooled_down(activity, now_s, cadence) else None)
    if bounds.idle is None and current < bounds.min_replicas:
        return Poll(activity=activity, replicas=bounds.min_replicas)
    return Poll(activity=activity)


def is_active(trigger: Trigger) -> bool:
    """True when the trigger is above its activation value; exactly at it, or in error, is not active."""
    return trigger.value is not None and trigger.value > trigger.activation


def fallback_replicas(fallback: Fallback, *, current: int) -> int:
    """Replicas a failing trigger stands for."""
    match fallback.behaviour:
        case FallbackBehaviour.CURRENT_REPLICAS:
            return current
        case FallbackBehaviour.CURRENT_REPLICAS_IF_HIGHER:
            return max(current, fallback.replicas)
        case FallbackBehaviour.CURRENT_REPLICAS_IF_LOWER:
            return min(current, fallback.replicas)
        case FallbackBehaviour.STATIC:
            return fallback.replicas


def metric_value(trigger: Trigger, *, failures_in_a_row: int, fallback: Fallback | None, current: int) -> float | None:
    """What the HPA is given for this trigger: its value, the fallback's, or None (an error the HPA sees).

    ``failures_in_a_row`` counts this poll. The fallback is a value of target × replicas, so the HPA's division by the
    target (or its tolerance) applies to it as to any other. One None keeps the HPA from scaling down.
    """
    if trigger.value is not None:
        return trigger.value
    if fallback is None or failures_in_a_row <= fallback.failure_threshold:
        return None
    return trigger.target * fallback_replicas(fallback, current=current)


def floor_metric_replicas(values: Sequence[float], triggers: Sequence[Trigger], bounds: Bounds) -> int:
    """Replicas the HPA would want from AverageValue triggers alone: the largest of ceil(value / target), in bounds.

    A floor published as a trigger (target 1 per replica) is therefore a floor: it can raise, never lower. Tolerance,
    windows and rates are the HPA's and are left out here. Without triggers: the lower bound.
    """
    wanted = max((ceil(value / trigger.target) for value, trigger in zip(values, triggers, strict=True)), default=0)
    return min(max(wanted, bounds.min_replicas, 1), bounds.max_replicas)


def _cooled_down(activity: Activity, now_s: float, cadence: KedaCadence) -> bool:
    if activity.last_active_s is None:
        return activity.created_s + cadence.initial_cooldown_s < now_s
    return activity.last_active_s + cadence.cooldown_s < now_s
