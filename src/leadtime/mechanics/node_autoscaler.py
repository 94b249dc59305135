"""Pods without a place, room on nodes → how many new nodes a node autoscaler asks for.

Room that is ordered and not here yet counts as room: a pod that will fit an arriving node asks for nothing. The
cadences of the two autoscalers stand in node_autoscaler_karpenter.py and node_autoscaler_cluster.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil


def nodes_wanted(
    pending_gpu_requests: Sequence[int],
    free_gpus_by_node: Sequence[int],
    gpus_per_node: int,
    max_nodes: int,
    standing_nodes: int,
    *,
    buffer_gpu_requests: Sequence[int] = (),
) -> int:
    """New nodes to request now; standing + new never exceeds ``max_nodes``.

    ``pending_gpu_requests``: GPUs of each unscheduled pod (any one unit, say milli-GPU, through all arguments).
    ``free_gpus_by_node``: free GPUs of each node, ready or in flight; a node in flight counts with all it will have.
    ``standing_nodes``: nodes ready or in flight. ``buffer_gpu_requests``: the virtual pods of capacity buffers.
    A request above ``gpus_per_node`` fits no new node and asks for none; a request of 0 never asks.

    As Karpenter's provisioner: pods largest first, into the first standing node with room, then into the node to be
    created with the fewest pods, then a new one. Karpenter sorts by CPU and memory; here GPUs stand for size.
    """
    room = max(0, max_nodes - standing_nodes)
    if room == 0 or gpus_per_node < 1:
        return 0
    packing = _Packing(free=list(free_gpus_by_node), gpus_per_node=gpus_per_node)
    packing.add(pending_gpu_requests)
    packing.add(buffer_gpu_requests)  # lowest precedence: real pods have taken their room by now
    return min(len(packing.new_free), room)


def buffer_nodes(buffer_gpu_requests: Sequence[int], free_gpus_by_node: Sequence[int]) -> frozenset[int]:
    """Indexes of the standing nodes that hold the room of capacity buffers, first fit, largest first.

    ``free_gpus_by_node`` is what is left after every real pod. These nodes are not empty to consolidation.
    """
    packing = _Packing(free=list(free_gpus_by_node), gpus_per_node=0)
    packing.add(buffer_gpu_requests)
    return frozenset(packing.touched)


def buffer_size(replicas: int | None, percentage: int | None, limits: int | None, *, scalable_replicas: int = 0) -> int:
    """Pods of room a CapacityBuffer asks for: min(max(replicas, percentage of the scalable), limits).

    None = not set. ``percentage`` of ``scalable_replicas`` is rounded up; ``limits`` is the most pods that the buffer's
    resource limits leave room for. Source: CapacityBuffer proposal, autoscaling.x-k8s.io v1beta1 (July 2026).
    """
    share = ceil(scalable_replicas * percentage / 100) if percentage is not None else 0
    size = max(0, replicas or 0, share)
    return size if limits is None else min(size, max(0, limits))


@dataclass(slots=True)
class _Packing:
    """Working state of one packing; lives within one call."""

    free: list[int]
    gpus_per_node: int
    new_free: list[int] = field(default_factory=list)
    new_pods: list[int] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def add(self, requests: Sequence[int]) -> None:
        for gpus, count in sorted(_counted(requests).items(), reverse=True):
            left = self._into_standing(gpus, count)
            if gpus <= self.gpus_per_node:
                self._into_new(gpus, left)

    def _into_standing(self, gpus: int, count: int) -> int:
        for index, free in enumerate(self.free):
            if count == 0:
                break
            fits = min(count, free // gpus)
            if fits > 0:
                self.free[index] = free - fits * gpus
                self.touched.add(index)
                count -= fits
        return count

    def _into_new(self, gpus: int, count: int) -> None:
        while count > 0:
            fitting = [index for index, free in enumerate(self.new_free) if free >= gpus]
            if not fitting:
                break
            chosen = min(fitting, key=self.new_pods.__getitem__)
            self.new_free[chosen] -= gpus
            self.new_pods[chosen] += 1
            count -= 1
        per_node = self.gpus_per_node // gpus
        while count > 0:  # every node to be created is full for this size: open whole nodes
            pods = min(count, per_node)
            self.new_free.append(self.gpus_per_node - pods * gpus)
            self.new_pods.append(pods)
            count -= pods


def _counted(requests: Sequence[int]) -> Mapping[int, int]:
    counts = Counter(requests)
    return {gpus: count for gpus, count in counts.items() if gpus > 0}
