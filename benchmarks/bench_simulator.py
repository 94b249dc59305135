"""How many times faster than real time the simulated cluster runs under HPA alone, by workloads, pods and nodes.

    python benchmarks/bench_simulator.py [--json] [--hours 24]

One core, columns recorded; seconds are CPU seconds, so that a busy machine does not count. Demand is a day's wave
between 40 % and 100 % of the peak with 2 % noise, so that HPAs move up and down; nodes come and go with them. The
figure to beat: 15,000 for one workload of 500 pods.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np

from leadtime.simulate import scenario
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace

STEP_S = 15
START_S = 1_772_409_600
MUST = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``pods`` per workload at the peak; ``gpus_per_node`` decides how many nodes that is."""

    workloads: int
    pods: int
    gpus_per_node: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One case's result. ``nodes``: the most that stood at once."""

    workloads: int
    pods_per_workload: int
    nodes: int
    pods_created: int
    simulated_h: float
    cpu_s: float
    times_real_time: float
    fork_ms: float


CASES = (
    Case(workloads=1, pods=50),
    Case(workloads=1, pods=500),
    Case(workloads=1, pods=5000),
    Case(workloads=10, pods=50),
    Case(workloads=100, pods=50),
    Case(workloads=10, pods=500),
    Case(workloads=1, pods=500, gpus_per_node=1),
    Case(workloads=1, pods=5000, gpus_per_node=1),
)


def build(case: Case, hours: float) -> SimulatedCluster:
    """The cluster of one case."""
    base = scenario.load("gpu-40min")
    low = max(1, case.pods // 4)
    works = tuple(
        base.workloads[0].model_copy(
            update={
                "name": f"w{i}",
                "min_replicas": low,
                "max_replicas": case.pods * 2,
                "initial_replicas": case.pods // 2,
            }
        )
        for i in range(case.workloads)
    )
    static = -(-low * case.workloads // case.gpus_per_node)
    update = {"gpus_per_node": case.gpus_per_node, "static_nodes": static, "max_nodes": 3 * static * 4}
    world = base.model_copy(update={"workloads": works, "pools": (base.pools[0].model_copy(update=update),)})
    steps = int(hours * 3600 / STEP_S)
    peak_rps = case.pods * works[0].capacity_per_pod_rps * 0.7
    demand = {}
    for i, work in enumerate(works):
        rng = np.random.default_rng(i)
        wave = 0.7 - 0.3 * np.cos(2 * np.pi * (np.arange(steps) * STEP_S / 86_400 + i / case.workloads))
        noise = np.clip(1 + 0.02 * rng.standard_normal(steps), 0, None)
        demand[work.key] = DemandTrace(start_s=START_S, rps=wave * noise * peak_rps)
    return SimulatedCluster(world, demand, seed=1, start_s=START_S)


def measure(case: Case, hours: float) -> Measured:
    """Play the case once."""
    cluster = build(case, hours)
    cluster.start_recording()
    seconds = int(hours * 3600)
    began = time.process_time()
    cluster.advance(START_S + seconds)
    cpu_s = time.process_time() - began
    began = time.process_time()
    cluster.fork()
    fork_ms = (time.process_time() - began) * 1000
    (pool,) = cluster.collect("hpa").pools.values()
    nodes = int(np.sum(list(pool.nodes_by_stage.values()), axis=0).max())
    return Measured(
        workloads=case.workloads, pods_per_workload=case.pods, nodes=nodes, pods_created=cluster.bench.pods_created,
        simulated_h=hours, cpu_s=round(cpu_s, 4), times_real_time=round(seconds / cpu_s), fork_ms=round(fork_ms, 1),
    )  # fmt: skip


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hours", type=float, default=24.0)
    options = parser.parse_args()
    results = [measure(case, options.hours) for case in CASES]
    if options.json:
        print(json.dumps({"must": MUST, "results": [asdict(result) for result in results]}, indent=2))
        return
    print("workloads pods-each  nodes  created  cpu-s/day  × real time  fork ms")
    for r in results:
        print(
            f"{r.workloads:>9} {r.pods_per_workload:>9} {r.nodes:>6} {r.pods_created:>8} "
            f"{r.cpu_s * 24 / r.simulated_h:>10.3f} {r.times_real_time:>12,} {r.fork_ms:>8.1f}"
        )


if __name__ == "__main__":
    main()
