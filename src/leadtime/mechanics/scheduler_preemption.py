"""A pod that fits nowhere, nodes and the pods on them → which pods would have to go, and the scheduler's words for it.

As DefaultPreemption of kube-scheduler 1.37. On each node that eviction could help: take away every pod of lower
priority, see whether the pod fits, then bring back as many as still leave room, the most important first. Among the
nodes, the one whose victims matter least. Left out: PodDisruptionBudgets (only a preference there), pod groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from leadtime.mechanics import scheduler
from leadtime.mechanics.scheduler_shapes import NodeShape, OccupiedNode, PlacedPod, PodShape

_NEVER = "not eligible due to preemptionPolicy=Never."
_MAX_INT32_AND_ONE = 2**31  # added to each priority in a sum, so that many negative ones do not look cheap


class NoHelp(StrEnum):
    """Why evicting pods of a node does not help; the scheduler's own words."""

    NOT_HELPFUL = "Preemption is not helpful for scheduling"
    NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """``node``: index of the node; ``victims``: indexes into its pods, the most important first; never empty."""

    node: int
    victims: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What evicting on one node comes to: victims, or the reasons why it does not help."""

    victims: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()


def preemption_victims(pod: PodShape, nodes: Sequence[OccupiedNode]) -> Preemption | None:
    """The pods that would be evicted for ``pod``, on one node; None when it fits as it is or eviction cannot help.

    Fewest victims in the scheduler's sense, not by count: lowest highest priority, then lowest sum of priorities, then
    fewest pods, then the latest start of the most important ones, then the lowest index.
    """
    if not pod.may_preempt or any(not scheduler.failures(pod, each.node) for each in nodes):
        return None
    found = [
        Preemption(node=index, victims=trial.victims)
        for index, trial in enumerate(_trial(pod, each) for each in nodes)
        if trial.victims
    ]
    return min(found, key=lambda each: _harm(each, nodes[each.node]), default=None)


def preemption_sentence(pod: PodShape, nodes: Sequence[OccupiedNode]) -> str:
    """The half of FailedScheduling that begins with ``preemption:``. Raises ValueError when eviction would help."""
    if not pod.may_preempt:
        return f"preemption: {_NEVER}"
    trials = [_trial(pod, each) for each in nodes]
    if any(trial.victims for trial in trials):
        raise ValueError(f"evicting pods makes room for pod {pod.name}: there is no sentence")
    return f"preemption: {scheduler.histogram([trial.reasons for trial in trials])}"


def full_sentence(pod: PodShape, nodes: Sequence[OccupiedNode]) -> str:
    """Both halves, as the PodScheduled condition of a pod that nothing can help carries them."""
    shapes = [each.node for each in nodes]
    row = scheduler.feasibility([pod], shapes).rows[0]
    return f"{scheduler.sentence(row, shapes)} {preemption_sentence(pod, nodes)}"


def _trial(pod: PodShape, occupied: OccupiedNode) -> _Trial:
    refused = scheduler.first_refusal(scheduler.failures(pod, occupied.node))
    if any(failure.unresolvable for failure in refused):
        return _Trial(reasons=(NoHelp.NOT_HELPFUL,))
    lower = [index for index, placed in enumerate(occupied.pods) if placed.shape.priority < pod.priority]
    if not lower:
        return _Trial(reasons=(NoHelp.NO_VICTIMS,))
    node = occupied.node
    for index in lower:
        node = _without(node, occupied.pods[index])
    still = scheduler.first_refusal(scheduler.failures(pod, node))
    if still:
        return _Trial(reasons=tuple(failure.reason for failure in still))
    victims = []
    for index in sorted(lower, key=lambda each: _importance(occupied.pods[each])):
        reprieved = _with(node, occupied.pods[index])
        if scheduler.failures(pod, reprieved):
            victims.append(index)
        else:
            node = reprieved
    return _Trial(victims=tuple(victims))


def _importance(placed: PlacedPod) -> tuple[int, float]:
    """Sorts the most important first: higher priority, then running longer."""
    return (-placed.shape.priority, placed.started_s)


def _harm(preemption: Preemption, occupied: OccupiedNode) -> tuple[int, int, int, float]:
    victims = [occupied.pods[index] for index in preemption.victims]
    highest = max(placed.shape.priority for placed in victims)
    total = sum(placed.shape.priority + _MAX_INT32_AND_ONE for placed in victims)
    earliest_s = min(placed.started_s for placed in victims if placed.shape.priority == highest)
    return (highest, total, len(victims), -earliest_s)


def _without(node: NodeShape, placed: PlacedPod) -> NodeShape:
    return node.without_pod(placed.shape, placed.gpu_device)


def _with(node: NodeShape, placed: PlacedPod) -> NodeShape:
    """The pod back where it was: on its own shared device, not on the one a new pod would be given."""
    return node.with_pod_on(placed.shape, placed.gpu_device)
