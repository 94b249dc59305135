"""The node autoscaler of one pool, on Karpenter's or Cluster Autoscaler's clock → nodes requested, nodes deleted.

The rules are those of mechanics; here they are put on the agenda, and only while there is something to look at: pods
without a place, or nodes that nobody needs. Karpenter gives back empty nodes only (WhenEmpty); Cluster Autoscaler,
where the scenario says so, also drains nodes under half used whose pods fit elsewhere, as it does by default.
"""

from dataclasses import replace
from math import ceil, floor
from typing import Protocol

from leadtime.mechanics import node_autoscaler
from leadtime.mechanics import node_autoscaler_cluster as ca
from leadtime.mechanics import node_autoscaler_karpenter as karpenter
from leadtime.simulate.cluster_events import Bench, Due
from leadtime.simulate.cluster_nodes import NodePool
from leadtime.simulate.pods import Node


class Clock(Protocol):
    """When an autoscaler looks, and which empty nodes it takes away."""

    def looks_at_s(self, at_s: float) -> float:
        """When it looks at pods without a place that it learned of at ``at_s``."""

    def next_pass_s(self, at_s: float, due_s: float) -> float:
        """When it next looks at empty nodes, of which the first is due at ``due_s``."""

    def take_away(self, pool: NodePool, candidates: list[Node], at_s: float, after_s: float) -> list[Node]:
        """Which of ``candidates`` (empty, needed by no buffer) go in the pass at ``at_s``."""

    def ordered(self, at_s: float) -> None:
        """Nodes were requested at ``at_s``."""


class KarpenterClock:
    """Batches of pods; two looks at empty nodes 15 s apart, at most a tenth of the nodes at once."""

    __slots__ = ("batch", "disruption")

    def __init__(self, start_s: float) -> None:
        self.batch: karpenter.Batch | None = None
        self.disruption = karpenter.Disruption(next_at_s=start_s)

    def looks_at_s(self, at_s: float) -> float:
        """The close of the batch, which a further pod at ``at_s`` draws out."""
        self.batch = karpenter.with_new_pod(self.batch, now_s=at_s)
        return self.batch.closes_at_s()

    def next_pass_s(self, at_s: float, due_s: float) -> float:
        """The first poll (or second look) that can find something."""
        self.disruption = karpenter.next_useful_pass(self.disruption, not_before_s=max(at_s, due_s))
        return max(at_s, self.disruption.next_at_s)

    def take_away(self, pool: NodePool, candidates: list[Node], at_s: float, after_s: float) -> list[Node]:
        """One pass of the disruption loop."""
        free = {node.serial: node for node in candidates}
        lives = [
            karpenter.NodeLife(
                key=node.serial,
                pods=len(node.pods),
                initialised_at_s=node.empty_since_s,  # of a node with pods the instant does not matter
                held=node.serial not in free,
                managed=not node.static,
            )
            for bucket in pool.by_free
            for node in bucket.values()
        ]
        step = karpenter.step_disruption(self.disruption, lives, now_s=at_s, consolidate_after_s=after_s)
        self.disruption = step.state
        return [free[key] for key in step.deleted]

    def ordered(self, at_s: float) -> None:  # noqa: ARG002 -- the protocol's
        """The batch is done."""
        self.batch = None


class ClusterAutoscalerClock:
    """A scan every 10 s; nothing is taken away within 10 min of a scale-up, and no more than ten nodes at once."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = ca.ScaleDown(unneeded_since_s={})

    def looks_at_s(self, at_s: float) -> float:
        """The next scan."""
        scan_s = ca.CLUSTER_AUTOSCALER.scan_s
        return (floor(at_s / scan_s) + 1) * scan_s

    def next_pass_s(self, at_s: float, due_s: float) -> float:  # noqa: ARG002 -- a scan must see a node to start its time
        """The next scan."""
        return self.looks_at_s(at_s)

    def watch(self, nodes: list[ca.RemovableNode], at_s: float, cadence: ca.ClusterAutoscalerCadence) -> float | None:
        """Note which nodes are unneeded now; the scan at which the first of them may go, None when there is none.

        Between two changes of the pool every scan would see the same, so only changes are looked at.
        """
        positions = ca.unneeded(nodes, cadence)
        known = self.state.unneeded_since_s
        since = {nodes[p].key: known.get(nodes[p].key, at_s) for p in positions}
        self.state = replace(self.state, unneeded_since_s=since)
        if not since:
            return None
        due_s = min(since.values()) + cadence.unneeded_s
        if self.state.added_at_s is not None:
            due_s = max(due_s, self.state.added_at_s + cadence.after_add_s)
        scan_s = cadence.scan_s
        return max(self.looks_at_s(at_s), ceil(due_s / scan_s) * scan_s)

    def scale_down(
        self, nodes: list[ca.RemovableNode], at_s: float, cadence: ca.ClusterAutoscalerCadence
    ) -> ca.ScaleDownStep:
        """One scan's scale-down, drains included."""
        step = ca.step_scale_down(self.state, nodes, now_s=at_s, cadence=cadence)
        self.state = step.state
        return step

    def take_away(self, pool: NodePool, candidates: list[Node], at_s: float, after_s: float) -> list[Node]:  # noqa: ARG002
        """One scan's scale-down. Nodes offered for removal (``after_s`` 0) need not wait for the cool-down either."""
        cadence = replace(ca.CLUSTER_AUTOSCALER, unneeded_s=after_s)
        if after_s == 0:
            cadence = replace(cadence, after_add_s=0.0)
        nodes = [
            ca.RemovableNode(key=node.serial, utilisation_ratio=0.0, free_gpus=node.free_gpus) for node in candidates
        ]
        step = ca.step_scale_down(self.state, nodes, now_s=at_s, cadence=cadence)
        self.state = step.state
        free = {node.serial: node for node in candidates}
        return [free[key] for key in step.deleted]

    def ordered(self, at_s: float) -> None:
        """A scale-up: the cool-down of scale-downs begins anew."""
        self.state = replace(self.state, added_at_s=at_s)


class NodeAutoscaler:
    """Requests nodes for pods without a place and for buffers; gives empty ones back."""

    __slots__ = ("bench", "clock", "look_s", "on", "pass_s", "pool")

    def __init__(self, pool: NodePool, bench: Bench, start_s: float) -> None:
        self.pool = pool
        self.bench = bench
        self.on = True  # off: requests nothing, still gives back
        self.clock: Clock = (
            KarpenterClock(start_s) if pool.scenario.autoscaler == "karpenter" else ClusterAutoscalerClock()
        )
        self.look_s: float | None = None  # when it looks at pods next; an agenda entry of another instant is stale
        self.pass_s: float | None = None  # when it looks at empty nodes next

    def react(self, at_s: float, *, new_pods: bool) -> None:
        """Something changed in the pool: put the next look and the next pass on the agenda if they have a purpose."""
        if self.on and (self.look_s is None or new_pods) and self.nodes_wanted():
            look_s = self.clock.looks_at_s(at_s)
            if look_s != self.look_s:
                self.look_s = look_s
                self.bench.push(look_s, Due.AUTOSCALE, self)
        self._plan_pass(at_s)

    def look(self, at_s: float) -> None:
        """Request what is missing."""
        if at_s != self.look_s:
            return
        self.look_s = None
        wanted = self.nodes_wanted() if self.on else 0
        for _ in range(wanted):
            self.pool.order(at_s)
        self.clock.ordered(at_s)

    def nodes_wanted(self) -> int:
        """New nodes that pending pods and buffers ask for beyond what stands or arrives."""
        pool = self.pool
        waiting = pool.waiting()
        if pool.scenario.autoscaler == "cluster-autoscaler":
            waiting = [pod for pod in waiting if ca.asks_for_nodes(pod.group.priority)]
        if not waiting and not pool.buffers:
            return 0
        gpus = pool.scenario.gpus_per_node
        free = [f for f in range(1, gpus + 1) for _ in pool.by_free[f]] + [gpus] * len(pool.arriving)
        return node_autoscaler.nodes_wanted(
            [pod.group.gpus for pod in waiting],
            free,
            gpus,
            pool.scenario.max_nodes,
            len(pool.nodes),
            buffer_gpu_requests=pool.buffer_requests(),
        )

    def _candidates(self) -> list[Node]:
        """Empty nodes that no buffer needs. Room is looked for on nodes that stay anyway, then on the newest empty."""
        pool = self.pool
        empties = list(pool.empties.values())
        if not pool.buffers or not empties:
            return empties
        staying = [node for bucket in pool.by_free[1:] for node in bucket.values() if node.serial not in pool.empties]
        empties.reverse()
        holding = node_autoscaler.buffer_nodes(
            pool.buffer_requests(), [node.free_gpus for node in (*staying, *empties)]
        )
        return [node for i, node in enumerate(empties, start=len(staying)) if i not in holding][::-1]

    @property
    def _after_s(self) -> float:
        return 0.0 if self.pool.consolidation_offered else self.pool.scenario.consolidate_after_s

    @property
    def _drains(self) -> bool:
        return self.pool.scenario.consolidation == "underutilised"

    def _cadence(self) -> ca.ClusterAutoscalerCadence:
        """Cluster Autoscaler's flags with the scenario's waiting time."""
        return replace(ca.CLUSTER_AUTOSCALER, unneeded_s=self.pool.scenario.consolidate_after_s)

    def _removable(self) -> list[ca.RemovableNode]:
        """All ready nodes as scale-down sees them; those that hold a buffer's room, or are static, are held."""
        pool, gpus = self.pool, self.pool.scenario.gpus_per_node
        nodes = [node for bucket in pool.by_free for node in bucket.values()]
        nodes.sort(key=lambda node: node.serial)
        holding: frozenset[int] = frozenset()
        if pool.buffers:
            holding = frozenset(
                node_autoscaler.buffer_nodes(pool.buffer_requests(), [node.free_gpus for node in nodes])
            )
        return [
            ca.RemovableNode(
                key=node.serial,
                utilisation_ratio=(gpus - node.free_gpus) / gpus,
                free_gpus=node.free_gpus,
                pod_gpus=tuple(pod.group.gpus for pod in node.pods.values()),
                held=node.static or i in holding,
            )
            for i, node in enumerate(nodes)
        ]

    def _plan_drain(self, at_s: float) -> None:
        if isinstance(self.clock, ClusterAutoscalerClock):
            pass_s = self.clock.watch(self._removable(), at_s, self._cadence())
            if self.pool.consolidation_offered and self._candidates():
                pass_s = self.clock.looks_at_s(at_s)
            if pass_s is not None and pass_s != self.pass_s:
                self.pass_s = pass_s
                self.bench.push(pass_s, Due.CONSOLIDATE, self)

    def _scale_down(self, at_s: float) -> None:
        """Delete empty nodes and drain one under half used."""
        if not isinstance(self.clock, ClusterAutoscalerClock):
            return
        if self.pool.consolidation_offered:  # empty nodes need not wait; nodes with pods keep their ten minutes
            for node in self._candidates():
                self.pool.delete(node, at_s)
        step = self.clock.scale_down(self._removable(), at_s, self._cadence())
        for serial in (*step.deleted, *step.drained):
            node = self.pool.nodes[serial]
            for pod in list(node.pods.values()):
                pod.group.evict(pod, at_s)
            self.pool.delete(node, at_s)

    def _plan_pass(self, at_s: float) -> None:
        if self._drains:
            self._plan_drain(at_s)
            return
        if not self.pool.empties:
            return
        candidates = self._candidates()
        if not candidates:
            return
        due_s = min(node.empty_since_s for node in candidates) + self._after_s
        pass_s = self.clock.next_pass_s(at_s, due_s)
        if self.pass_s is None or pass_s < self.pass_s:
            self.pass_s = pass_s
            self.bench.push(pass_s, Due.CONSOLIDATE, self)

    def consolidate(self, at_s: float) -> None:
        """Look at empty nodes; plan the next look."""
        if at_s != self.pass_s:
            return
        self.pass_s = None
        if self._drains:
            self._scale_down(at_s)
            self._plan_pass(at_s)
            return
        for node in self.clock.take_away(self.pool, self._candidates(), at_s, self._after_s):
            self.pool.delete(node, at_s)
        self._plan_pass(at_s)
