"""A policy + one workload's numbers → thresholds that can never be reached, or never be left.

Such a threshold looks fine in a file and does nothing, or never stops: a CPU target that no pod can show, a minReplicas
above everything demand asks for. Arithmetic only; a check whose number was not given is left out and named as such.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from leadtime.policy.schema import Policy, Stage

HPA_TOLERANCE_RATIO = 0.1  # --horizontal-pod-autoscaler-tolerance, its default
HPA_DOWN_WINDOW_S = 300  # --horizontal-pod-autoscaler-downscale-stabilization, its default
MINUTE_S = 60


class Reach(StrEnum):
    """What is wrong with a threshold, given the numbers."""

    NEVER_REACHED = "never reached"
    NEVER_LEFT = "never left"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNumbers:
    """What is known of one workload; None is not known. Demand and capacity in one unit, e.g. requests/s.

    ``highest_utilisation_ratio``: the most a saturated pod's metric shows (CPU: limit / request); None: no ceiling.
    """

    min_replicas: int | None = None
    max_replicas: int | None = None
    capacity_per_pod: float | None = None
    hpa_target_ratio: float | None = None
    peak_demand: float | None = None
    low_demand: float | None = None
    pods_now: int | None = None
    node_lead_s: float | None = None
    pod_lead_s: float | None = None
    highest_utilisation_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One threshold that can never be reached or left. ``harmful`` False: so by design, said for completeness."""

    threshold: str
    reach: Reach
    sentence: str
    cure: str
    harmful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachReport:
    """All findings, and the checks that could not be made: ``hpa-target (needs hpa_target_ratio)``."""

    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...]


def check(policy: Policy, numbers: WorkloadNumbers) -> ReachReport:
    """Every check whose numbers are there."""
    findings: list[Finding] = []
    skipped: list[str] = []
    for name, needs, run in _CHECKS:
        absent = [need for need in needs if getattr(numbers, need) is None]
        if absent:
            skipped.append(f"{name} (needs {', '.join(absent)})")
        else:
            findings.extend(run(policy, _Known(numbers)))
    return ReachReport(findings=tuple(findings), not_checked=tuple(skipped))


class _Known:
    """The numbers, read as present: a check runs only when those it needs are there."""

    def __init__(self, numbers: WorkloadNumbers) -> None:
        self._numbers = numbers

    def __getattr__(self, name: str) -> float:
        value: float = getattr(self._numbers, name)
        return value


def _pods(demand: float, capacity: float, target_ratio: float) -> int:
    """Pods that serve ``demand`` at the target; a hair below a whole number is that number."""
    return math.ceil(demand / (capacity * target_ratio) - 1e-9)


def _cap(policy: Policy, known: _Known) -> Iterator[Finding]:
    cap, largest, least = policy.scaling.replica_cap, int(known.max_replicas), int(known.min_replicas)
    if cap > largest:
        yield Finding(
            threshold="scaling.replica_cap", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"the cap is {cap} pods and maxReplicas {largest}: the HPA's own limit comes first",
            cure="leave it as a lid over all workloads, or lower it to be a limit for this one",
        )  # fmt: skip
    if policy.scaling.max_buffer_pods > min(cap, largest):
        yield Finding(
            threshold="scaling.max_buffer_pods", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"a buffer may hold {policy.scaling.max_buffer_pods} pods and only {min(cap, largest)} may run",
            cure=f"leave it, or lower it to {min(cap, largest)}",
        )  # fmt: skip
    if cap <= least:
        yield Finding(
            threshold="scaling.replica_cap", reach=Reach.NEVER_LEFT, harmful=True,
            sentence=f"the cap is {cap} pods and minReplicas {least}: no floor above minReplicas is ever allowed",
            cure=f"raise it above {least}",
        )  # fmt: skip


def _minimum(_policy: Policy, known: _Known) -> Iterator[Finding]:
    holds = known.min_replicas * known.capacity_per_pod * known.hpa_target_ratio
    if holds >= known.peak_demand:
        yield Finding(
            threshold="minReplicas", reach=Reach.NEVER_LEFT, harmful=True,
            sentence=f"{known.min_replicas:.0f} pods hold {holds:g} at the HPA's target and the peak is "
            f"{known.peak_demand:g}: the HPA never leaves minReplicas, and nothing here ever acts",
            cure=f"{_pods(known.peak_demand, known.capacity_per_pod, known.hpa_target_ratio)} pods hold the peak; "
            "lower minReplicas, or leave this workload alone",
        )  # fmt: skip


def _maximum(policy: Policy, known: _Known) -> Iterator[Finding]:
    target = policy.scaling.target_utilisation_ratio
    wanted = _pods(known.peak_demand, known.capacity_per_pod, target)
    if wanted > known.max_replicas:
        yield Finding(
            threshold="scaling.target_utilisation_ratio", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"the peak of {known.peak_demand:g} wants {wanted} pods at {target:g} and maxReplicas is "
            f"{known.max_replicas:.0f}: at the peak the target is never met, however early leadtime asks",
            cure=f"raise maxReplicas to {wanted}",
        )  # fmt: skip
    if wanted > policy.scaling.replica_cap:
        yield Finding(
            threshold="scaling.target_utilisation_ratio", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"the peak wants {wanted} pods and replica_cap is {policy.scaling.replica_cap}",
            cure=f"raise scaling.replica_cap to {wanted}",
        )  # fmt: skip


def _target(policy: Policy, known: _Known) -> Iterator[Finding]:
    ours, theirs = policy.scaling.target_utilisation_ratio, known.hpa_target_ratio
    if ours > theirs:
        yield Finding(
            threshold="scaling.target_utilisation_ratio", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"leadtime aims at {ours:g} and the HPA at {theirs:g}: for the same demand the HPA asks for more "
            f"pods, so a floor binds only where demand is about to rise by more than {ours / theirs - 1:.0%}",
            cure=f"lower it to {theirs:g} or below",
        )  # fmt: skip


def _ceiling(_policy: Policy, known: _Known) -> Iterator[Finding]:
    most, target = known.highest_utilisation_ratio, known.hpa_target_ratio
    if most <= target * (1 + HPA_TOLERANCE_RATIO):
        yield Finding(
            threshold="HPA target", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"a saturated pod shows {most:g} at most and the HPA acts above {target * 1.1:g} (its target "
            f"{target:g} and 10 % tolerance): it never scales up",
            cure=f"lower the HPA's target below {most / 1.1:.2f}, or scale on requests per pod",
        )  # fmt: skip


def _rise(policy: Policy, known: _Known) -> Iterator[Finding]:
    rise = _pods(known.peak_demand, known.capacity_per_pod, policy.scaling.target_utilisation_ratio) - known.pods_now
    ahead_min = known.pod_lead_s / MINUTE_S
    for field, rate in (
        ("scaling.surge_pods_added_per_min", policy.scaling.surge_pods_added_per_min),
        ("scaling.normal_pods_added_per_min", policy.scaling.normal_pods_added_per_min),
    ):
        if rise > 0 and rate * ahead_min < rise:
            yield Finding(
                threshold=field, reach=Reach.NEVER_REACHED, harmful=field.startswith("scaling.surge"),
                sentence=f"{known.pods_now:.0f} pods now, {rise:.0f} more at the peak: at {rate} pods/min that takes "
                f"{rise / rate:.0f} min, and a floor is raised one pod lead ({ahead_min:.0f} min) before: "
                f"{rate * ahead_min:.0f} of them",
                cure=f"{math.ceil(rise / ahead_min)} pods/min would do, or begin from more pods",
            )  # fmt: skip


def _buffer(policy: Policy, known: _Known) -> Iterator[Finding]:
    rise = _pods(known.peak_demand, known.capacity_per_pod, policy.scaling.target_utilisation_ratio) - known.pods_now
    if rise > policy.scaling.max_buffer_pods:
        yield Finding(
            threshold="scaling.max_buffer_pods", reach=Reach.NEVER_LEFT, harmful=True,
            sentence=f"the rise to the peak is {rise:.0f} pods and a buffer may hold {policy.scaling.max_buffer_pods}: "
            "the limit binds at every peak",
            cure=f"raise it to {rise:.0f}",
        )  # fmt: skip


def _surge(policy: Policy, known: _Known) -> Iterator[Finding]:
    excess = known.peak_demand / known.low_demand - 1 if known.low_demand > 0 else math.inf
    if excess < policy.surge.min_excess_ratio:
        yield Finding(
            threshold="surge.min_excess_ratio", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"the peak lies {excess:.0%} above the low and a surge must exceed the forecast by "
            f"{policy.surge.min_excess_ratio:.0%}: no surge is ever seen",
            cure=f"lower it below {excess:.2f}, or do without the detector",
        )  # fmt: skip


def _extrapolation(policy: Policy, known: _Known) -> Iterator[Finding]:
    reach_s = policy.surge.extrapolate_s
    if known.pod_lead_s > reach_s:
        yield Finding(
            threshold="surge.extrapolate_s", reach=Reach.NEVER_REACHED, harmful=True,
            sentence=f"a rise is carried on for {reach_s / MINUTE_S:g} min and a pod takes "
            f"{known.pod_lead_s / MINUTE_S:g} min: what a surge asks for is never ready within what it foresees",
            cure="only warm pods help a surge here; or raise it to the pod lead, knowing that it guesses",
        )  # fmt: skip
    elif known.node_lead_s + known.pod_lead_s > reach_s:
        yield Finding(
            threshold="surge.extrapolate_s", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"a rise is carried on for {reach_s / MINUTE_S:g} min and a pod on a new node takes "
            f"{(known.node_lead_s + known.pod_lead_s) / MINUTE_S:g} min: only nodes that stand serve a surge in time",
            cure="keep room or warm pods for surges",
        )  # fmt: skip


def _tolerance(policy: Policy, known: _Known) -> Iterator[Finding]:
    ratio, largest = policy.scaling.floor_tolerance_ratio, known.max_replicas
    if 0 < ratio * largest < 1:
        yield Finding(
            threshold="scaling.floor_tolerance_ratio", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"{ratio:g} of {largest:.0f} pods is less than one pod: no move is small enough to be left out",
            cure=f"{1 / largest:.3f} would leave out moves of one pod at the largest size",
        )  # fmt: skip
    least = known.min_replicas
    if least > 0 and largest > least and ratio * largest >= largest - least:
        yield Finding(
            threshold="scaling.floor_tolerance_ratio", reach=Reach.NEVER_LEFT, harmful=True,
            sentence=f"any move between {least:.0f} and {largest:.0f} pods is within {ratio:.0%}: no floor ever moves",
            cure=f"lower it below {(largest - least) / largest:.2f}",
        )  # fmt: skip


def _ladder(policy: Policy, _known: _Known) -> Iterator[Finding]:
    stage = policy.actuation.stage
    if policy.actuation.kill_switch:
        yield Finding(
            threshold="actuation.kill_switch", reach=Reach.NEVER_REACHED, harmful=False,
            sentence="the kill switch is on: no other threshold matters", cure="set it to false to let leadtime act",
        )  # fmt: skip
    elif stage in {Stage.OFF, Stage.SHADOW}:
        yield Finding(
            threshold="actuation.stage", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"the stage is {stage.value}: leadtime writes nothing, whatever the rates and caps are",
            cure="set capacity_buffer or hpa_floor when its record has earned it",
        )  # fmt: skip
    elif stage is Stage.CAPACITY_BUFFER:
        yield Finding(
            threshold="scaling.normal_pods_added_per_min", reach=Reach.NEVER_REACHED, harmful=False,
            sentence="the stage is capacity_buffer: no floor is written, so the floor rates limit nothing",
            cure="set hpa_floor when its record has earned it",
        )  # fmt: skip


def _see_saw(policy: Policy, _known: _Known) -> Iterator[Finding]:
    if policy.scaling.floor_hold_s < HPA_DOWN_WINDOW_S:
        yield Finding(
            threshold="scaling.floor_hold_s", reach=Reach.NEVER_REACHED, harmful=False,
            sentence=f"a floor is held {policy.scaling.floor_hold_s} s after its need and the HPA itself holds "
            f"{HPA_DOWN_WINDOW_S} s: the shorter hold is never felt",
            cure=f"raise it above {HPA_DOWN_WINDOW_S}, or take it as it is",
        )  # fmt: skip


_Check = Callable[[Policy, _Known], Iterator[Finding]]
_DEMAND = ("capacity_per_pod", "peak_demand")
_CHECKS: tuple[tuple[str, tuple[str, ...], _Check], ...] = (
    ("stage", (), _ladder),
    ("floor-hold", (), _see_saw),
    ("replica-cap", ("min_replicas", "max_replicas"), _cap),
    ("min-replicas", ("min_replicas", *_DEMAND, "hpa_target_ratio"), _minimum),
    ("max-replicas", ("max_replicas", *_DEMAND), _maximum),
    ("target", ("hpa_target_ratio",), _target),
    ("hpa-target", ("hpa_target_ratio", "highest_utilisation_ratio"), _ceiling),
    ("rates", ("pods_now", *_DEMAND, "pod_lead_s"), _rise),
    ("buffer", ("pods_now", *_DEMAND), _buffer),
    ("surge-excess", ("peak_demand", "low_demand"), _surge),
    ("surge-reach", ("node_lead_s", "pod_lead_s"), _extrapolation),
    ("floor-tolerance", ("min_replicas", "max_replicas"), _tolerance),
)
