"""One node pool: pending pods and the nodes they wait for → bindings, stage transitions, buffers of room.

Work is done only when something changed (``changed``): a pod came or went, a node became allocatable, a buffer moved.
When nodes are requested and given back is decided in cluster_autoscaler.py; a quiet step costs nothing.
"""

from dataclasses import dataclass
from typing import Protocol

from leadtime.mechanics.stages import draw_s
from leadtime.simulate.cluster_events import DAY_S, Bench, Due, Episodes, Passage
from leadtime.simulate.pods import Node, Pod
from leadtime.simulate.recorder import PoolColumns
from leadtime.simulate.scenario import PoolScenario

READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A capacity buffer: room for ``pods`` pods of ``gpus`` GPUs that do not exist yet, until ``expires_s``."""

    pods: int
    gpus: int
    expires_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Pending pods that ordered capacity will take, and those that nothing will take yet; highest priority first."""

    covered: tuple[Pod, ...]
    uncovered: tuple[Pod, ...]


class Autoscaler(Protocol):
    """What a pool tells its node autoscaler."""

    def react(self, at_s: float, *, new_pods: bool) -> None:
        """Pods without a place, empty nodes or buffers changed; ``new_pods``: a pod came since the last call."""


class NodePool:
    """Nodes and the pods that wait for them."""

    __slots__ = (
        "allocatable_gpus", "arriving", "autoscaler", "avoided", "bench", "buffers", "by_free", "changed", "columns",
        "consolidation_offered", "empties", "episodes", "name", "new_pods", "next_draw", "node_area_s", "nodes",
        "pending", "scenario", "stage_counts", "stages", "touched_s", "used_gpus",
    )  # fmt: skip

    def __init__(self, scenario: PoolScenario, bench: Bench, start_s: float) -> None:
        self.scenario = scenario
        self.name = scenario.name
        self.bench = bench
        self.stages = tuple(stage.distribution() for stage in scenario.stages)
        self.stage_counts = [0] * (len(self.stages) + 1)  # the last one is ready
        self.nodes: dict[int, Node] = {}
        self.arriving: dict[int, Node] = {}
        self.empties: dict[int, Node] = {}  # ready, without pods, not static
        self.by_free: list[dict[int, Node]] = [{} for _ in range(scenario.gpus_per_node + 1)]  # ready nodes
        self.pending: dict[int, dict[int, Pod]] = {}  # by priority, each in order of creation
        self.buffers: dict[str, Room] = {}
        self.avoided: dict[int, float] = {}  # node serial → until when new pods rather go elsewhere
        self.episodes = Episodes(scenario.name)
        self.next_draw = 0
        self.allocatable_gpus = 0
        self.used_gpus = 0
        self.consolidation_offered = False
        self.autoscaler: Autoscaler | None = None
        self.changed = False
        self.new_pods = False
        self.touched_s = start_s
        self.node_area_s = 0.0  # node seconds since the last step's end
        self.columns: PoolColumns | None = None
        for _ in range(scenario.static_nodes):
            self.stand(start_s, static=True)

    # --- pods ----------------------------------------------------------------------------------------------------

    def queue_up(self, pod: Pod) -> None:
        """A new pod waits for a node."""
        self.pending.setdefault(pod.group.priority, {})[pod.serial] = pod
        self.changed = self.new_pods = True

    def leave_queue(self, pod: Pod) -> None:
        """A pod was deleted while it waited."""
        del self.pending[pod.group.priority][pod.serial]
        self.changed = True

    def waiting(self) -> list[Pod]:
        """Pending pods, highest priority first, then in order of creation."""
        return [pod for level in sorted(self.pending, reverse=True) for pod in self.pending[level].values()]

    def take(self, pod: Pod, node: Node) -> None:
        """``node`` gives GPUs to ``pod``. Raises RuntimeError rather than overcommit."""
        gpus = pod.group.gpus
        if node.free_gpus < gpus:
            raise RuntimeError(f"binding pod {pod.serial}: node {node.serial} has {node.free_gpus} of {gpus} GPUs free")
        del self.by_free[node.free_gpus][node.serial]
        node.free_gpus -= gpus
        self.by_free[node.free_gpus][node.serial] = node
        node.pods[pod.serial] = pod
        self.empties.pop(node.serial, None)
        self.used_gpus += gpus
        pod.node = node

    def release(self, pod: Pod, at_s: float) -> None:
        """A bound pod has gone: its GPUs are free."""
        node = pod.node
        if node is None:
            raise RuntimeError(f"releasing pod {pod.serial}: it is not bound")
        gpus = pod.group.gpus
        del self.by_free[node.free_gpus][node.serial]
        node.free_gpus += gpus
        self.by_free[node.free_gpus][node.serial] = node
        del node.pods[pod.serial]
        self.used_gpus -= gpus
        if not node.pods:
            self._emptied(node, at_s)
        self.changed = True

    def place_for(self, gpus: int) -> Node | None:
        """The ready node a pod of ``gpus`` GPUs goes to: fullest (or emptiest) that fits; among equals the one that has
        been so filled for longest. A node that is avoided comes last. None when none fits."""
        sizes = range(gpus, self.scenario.gpus_per_node + 1)
        shunned: Node | None = None
        for free in sizes if self.scenario.scheduling == "most_allocated" else reversed(sizes):
            if not self.avoided:
                if self.by_free[free]:
                    return next(iter(self.by_free[free].values()))
                continue
            for node in self.by_free[free].values():
                if node.serial not in self.avoided:
                    return node
                shunned = shunned or node
        return shunned

    def avoid(self, serial: int, until_s: float | None) -> None:
        """Keep new pods from this node while others have room, until ``until_s`` (None: no longer)."""
        self.avoided.pop(serial, None)
        if until_s is not None:
            self.avoided[serial] = until_s

    def _schedule(self, at_s: float) -> None:
        """Bind what fits: highest priority first, then oldest; a pod that does not fit does not hold back others."""
        for pod in self.waiting():
            node = self.place_for(pod.group.gpus)
            if node is None:
                if not any(self.by_free[1:]):
                    return
                continue
            self.take(pod, node)
            del self.pending[pod.group.priority][pod.serial]
            pod.group.bound(pod, node, at_s)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def touch(self, at_s: float) -> None:
        """Add the node seconds up to ``at_s``; called before every change of the number of nodes."""
        if at_s > self.touched_s:
            self.node_area_s += len(self.nodes) * (at_s - self.touched_s)
            self.touched_s = at_s

    def stand(self, at_s: float, *, static: bool) -> Node:
        """A node that stands, allocatable, when the world begins. It takes no draw."""
        self.bench.nodes_created += 1
        gpus = self.scenario.gpus_per_node
        node = Node(self, self.bench.nodes_created, gpus, draw=None, static=static, requested_s=at_s)
        node.stage = len(self.stages)
        self.nodes[node.serial] = node
        self._allocatable(node, at_s)
        return node

    def stage_s(self, stage: int, draw: int, at_s: float) -> float:
        """How long node ``draw`` stays in ``stage`` when it was requested at ``at_s`` (the request's day counts)."""
        return draw_s(self.stages[stage], seed=self.bench.seed, pool=self.name, day=int(at_s // DAY_S), k=draw)

    def order(self, at_s: float, draw: int | None = None) -> Node:
        """Request one node; ``draw`` None takes the next index. It costs from now on."""
        if draw is None:
            draw = self.next_draw
            self.next_draw += 1
        self.touch(at_s)
        self.bench.nodes_created += 1
        gpus = self.scenario.gpus_per_node
        node = Node(self, self.bench.nodes_created, gpus, draw=draw, static=False, requested_s=at_s)
        node.episode = self.episodes.of(at_s)
        self.nodes[node.serial] = node
        self.arriving[node.serial] = node
        self.stage_counts[0] += 1
        self.bench.push(at_s + self.stage_s(0, draw, at_s), Due.NODE_STAGE, node)
        self.bench.log.add(at_s, "node_requested", workload=None, pool=self.name, count=1)
        return node

    def stage_ended(self, node: Node, at_s: float) -> None:
        """The node's current stage is over: the next begins, or its GPUs count."""
        self._note_passage(node, at_s, censored=False)
        self.stage_counts[node.stage] -= 1
        node.stage += 1
        node.stage_began_s = at_s
        if node.stage < len(self.stages):
            self.stage_counts[node.stage] += 1
            self.bench.push(at_s + self.stage_s(node.stage, node.draw or 0, node.requested_s), Due.NODE_STAGE, node)
            return
        del self.arriving[node.serial]
        self._allocatable(node, at_s)
        self.bench.log.add(at_s, "node_ready", workload=None, pool=self.name, count=1)

    def _allocatable(self, node: Node, at_s: float) -> None:
        self.stage_counts[-1] += 1
        self.allocatable_gpus += self.scenario.gpus_per_node
        self.by_free[node.free_gpus][node.serial] = node
        self._emptied(node, at_s)
        self.changed = True

    def _emptied(self, node: Node, at_s: float) -> None:
        node.empty_since_s = at_s
        if not node.static:
            self.empties[node.serial] = node

    def delete(self, node: Node, at_s: float) -> None:
        """Take away a node without pods, ready or on its way. Raises RuntimeError when pods stand on it."""
        if node.pods:
            raise RuntimeError(f"deleting node {node.serial}: {len(node.pods)} pods stand on it; delete them first")
        self.touch(at_s)
        node.alive = False
        del self.nodes[node.serial]
        self.stage_counts[node.stage] -= 1
        if self.arriving.pop(node.serial, None) is not None:
            self._note_passage(node, at_s, censored=True)
        else:
            self.empties.pop(node.serial, None)
            del self.by_free[node.free_gpus][node.serial]
            self.allocatable_gpus -= self.scenario.gpus_per_node
        self.changed = True
        self.bench.log.add(at_s, "node_deleted", workload=None, pool=self.name, count=1)

    def _note_passage(self, node: Node, at_s: float, *, censored: bool) -> None:
        spent_s = at_s - node.stage_began_s
        stage = self.stages[node.stage].name
        self.bench.passages.append(Passage(at_s, self.name, None, stage, spent_s, censored, node.episode))

    # --- what changed ----------------------------------------------------------------------------------------------

    def settle(self, at_s: float) -> None:
        """React to what changed: bind what fits, tell the node autoscaler about the rest."""
        new_pods = self.new_pods
        self.changed = self.new_pods = False
        if any(self.pending.values()):
            self._schedule(at_s)
        if self.autoscaler is not None:
            self.autoscaler.react(at_s, new_pods=new_pods)

    def buffer_requests(self) -> list[int]:
        """GPUs of each virtual pod of the capacity buffers."""
        return [room.gpus for room in self.buffers.values() for _ in range(room.pods)]

    def expire_avoided(self, at_s: float) -> None:
        """Forget what is no longer avoided at ``at_s``."""
        self.avoided = {serial: until_s for serial, until_s in self.avoided.items() if until_s > at_s}

    def expire_buffers(self, at_s: float) -> None:
        """Drop buffers whose time is over at ``at_s``."""
        for key in [key for key, room in self.buffers.items() if at_s >= room.expires_s]:
            self.set_buffer(key, None, at_s, detail="lapsed")

    def set_buffer(self, key: str, room: Room | None, at_s: float, *, detail: str = "") -> None:
        """Write, change or (None) remove the buffer of workload ``key``."""
        old = self.buffers.pop(key, None)
        if room is not None:
            self.buffers[key] = room
        pods = room.pods if room else 0
        if pods != (old.pods if old else 0):
            self.changed = True
            self.bench.log.add(at_s, "buffer_set", workload=key, pool=self.name, count=pods, detail=detail)

    def offer_consolidation(self, *, offered: bool) -> None:
        """Offer empty nodes for removal at once, or leave them to the autoscaler's own waiting time."""
        self.consolidation_offered = offered
        self.changed = True

    def covered(self) -> Cover:
        """Split the pending pods by whether nodes already requested (or room not yet taken) will hold them."""
        room = [gpus for gpus in range(1, self.scenario.gpus_per_node + 1) for _ in self.by_free[gpus]]
        room += [self.scenario.gpus_per_node] * len(self.arriving)
        covered: list[Pod] = []
        uncovered: list[Pod] = []
        first = 0  # nodes before it are full
        for pod in self.waiting():
            gpus = pod.group.gpus
            while first < len(room) and room[first] == 0:
                first += 1
            at = next((i for i in range(first, len(room)) if room[i] >= gpus), None)
            if at is None:
                uncovered.append(pod)
            else:
                room[at] -= gpus
                covered.append(pod)
        return Cover(covered=tuple(covered), uncovered=tuple(uncovered))

    # --- records -------------------------------------------------------------------------------------------------

    def end_step(self, end_s: float) -> None:
        """Close the step: write its columns when somebody records."""
        self.touch(end_s)
        columns = self.columns
        if columns is not None:
            columns.node_s.append(self.node_area_s)
            for column, count in zip(columns.by_stage, self.stage_counts, strict=True):
                column.append(count)
        self.node_area_s = 0.0

    def stage_names(self) -> tuple[str, ...]:
        """Every stage in order, ``ready`` last."""
        return (*(stage.name for stage in self.stages), READY)
