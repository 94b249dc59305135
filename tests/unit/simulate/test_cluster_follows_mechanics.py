"""The cluster's fast bookkeeping does what mechanics says: placement, and who is deleted first."""

from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import replicaset, scheduler
from leadtime.mechanics.stages import StageDistribution
from leadtime.simulate.cluster_events import Bench
from leadtime.simulate.cluster_nodes import NodePool
from leadtime.simulate.pods import Pod, PodGroup
from leadtime.simulate.scenario import PoolScenario, StageScenario

GPUS = 8
NOW_S = 1_000_000.0


def pool_of(used: list[int], scheduling: str) -> tuple[Bench, NodePool]:
    """A pool whose static nodes carry ``used`` one-GPU pods of somebody else."""
    bench = Bench(seed=1)
    scenario = PoolScenario.model_validate(
        {
            "name": "gpu", "gpus_per_node": GPUS, "static_nodes": len(used), "max_nodes": len(used),
            "scheduling": scheduling, "stages": [StageScenario(name="boot", p50_s=60)],
        }
    )  # fmt: skip
    pool = NodePool(scenario, bench, NOW_S)
    others = group_on(pool, bench, key="others", gpus=1)
    for node, count in zip(list(pool.nodes.values()), used, strict=True):
        for _ in range(count):
            pool.take(others.stand(node, NOW_S), node)
    return bench, pool


def group_on(pool: NodePool, bench: Bench, *, key: str, gpus: int) -> PodGroup:
    stage = StageDistribution(name="image", p50_s=30)
    return PodGroup(
        key=key, pool=pool, gpus=gpus, priority=0, stages=(stage, stage), cached_ratio=1.0, run_s=None, bench=bench,
        start_s=NOW_S,
    )  # fmt: skip


@given(
    used=st.lists(st.integers(0, GPUS), min_size=1, max_size=12),
    pods=st.integers(0, 40),
    gpus=st.integers(1, GPUS),
    strategy=st.sampled_from(list(scheduler.Strategy)),
)
def test_pods_are_placed_as_the_scheduler_would_place_them(
    *, used: list[int], pods: int, gpus: int, strategy: scheduler.Strategy
) -> None:
    names = {scheduler.Strategy.MOST_ALLOCATED: "most_allocated", scheduler.Strategy.LEAST_ALLOCATED: "least_allocated"}
    bench, pool = pool_of(used, names[strategy])
    mine = group_on(pool, bench, key="mine", gpus=gpus)
    for _ in range(pods):
        mine.create(NOW_S)
    pool.settle(NOW_S)
    free = [GPUS - count for count in used]
    chosen = scheduler.pack(pods, gpus, free, strategy, gpus_per_node=GPUS)
    for index in chosen:
        free[index] -= gpus
    # Which of several equal nodes is taken differs; how full the nodes end up does not.
    assert sorted(node.free_gpus for node in pool.nodes.values()) == sorted(free)
    assert len(mine.pending) == pods - len(chosen)


def as_ranked(pod: Pod) -> replicaset.RankedPod:
    """The pod as the ReplicaSet controller sees it."""
    running = pod.ready_s is not None or pod.stage > 0
    return replicaset.RankedPod(
        uid=pod.uid,
        node=None if pod.node is None else str(pod.node.serial),
        phase=replicaset.Phase.RUNNING if running else replicaset.Phase.PENDING,
        ready=pod.ready_s is not None,
        ready_since_s=pod.ready_s,
        created_s=pod.created_s,
    )


@given(
    used=st.lists(st.integers(0, GPUS), min_size=1, max_size=6),
    waves=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=4),
    count=st.integers(0, 50),
)
def test_pods_are_deleted_in_the_replicasets_order(
    *, used: list[int], waves: list[tuple[int, int]], count: int
) -> None:
    bench, pool = pool_of(used, "least_allocated")
    mine = group_on(pool, bench, key="mine", gpus=1)
    at_s = NOW_S
    for created, passing in waves:  # some of each wave get on with their start-up, the rest stay where they are
        for _ in range(created):
            mine.create(at_s)
        pool.settle(at_s)
        for pod in list(mine.starting.values())[:passing]:
            mine.stage_ended(pod, at_s + 40.0)
        for pod in list(mine.starting.values())[: passing // 2]:
            if pod.stage == 1:
                mine.stage_ended(pod, at_s + 70.0)
        at_s += 1000.0
    pods = [*mine.pending.values(), *mine.starting.values(), *mine.ready.values()]
    order = replicaset.deletion_order([as_ranked(pod) for pod in pods], now_s=at_s)
    expected = [pods[index].serial for index in order[:count]]
    assert [pod.serial for pod in mine.first_to_go(count, at_s)] == expected
