"""A small cluster for tests: one workload, 10 requests/s a pod, 4 GPUs a node, a node in 100 s, a pod in 30 s."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.scenario import Scenario

START_S = 1_772_409_600  # a midnight


@pytest.fixture
def start_s() -> int:
    return START_S


@pytest.fixture
def small_scenario() -> Callable[..., Scenario]:
    """Overrides by part: workload={…}, pool={…}, anything else for the scenario itself."""

    def build(*, workload: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **top: Any) -> Scenario:
        work = {
            "name": "chat", "queue": "serving", "pool": "gpu", "capacity_per_pod_rps": 10, "min_replicas": 4,
            "max_replicas": 40, "image": {"name": "image", "p50_s": 20}, "weights": {"name": "weights", "p50_s": 10},
        }  # fmt: skip
        nodes = {
            "name": "gpu", "gpus_per_node": 4, "static_nodes": 2, "max_nodes": 12, "consolidate_after_s": 120,
            "stages": [{"name": "boot", "p50_s": 60}, {"name": "device-plugin", "p50_s": 40}],
        }  # fmt: skip
        return Scenario.model_validate(
            {"name": "small", "slo_s": 5, "service_time_s": 1, **top}
            | {"workloads": [work | (workload or {})], "pools": [nodes | (pool or {})]}
        )

    return build


@pytest.fixture
def small_cluster(small_scenario: Callable[..., Scenario]) -> Callable[..., SimulatedCluster]:
    """A recording cluster under ``rps``, one rate a step of 15 s (the last one goes on for an hour)."""

    def build(rps: Sequence[float], *, seed: int = 1, **overrides: Any) -> SimulatedCluster:
        scenario = small_scenario(**overrides)
        trace = DemandTrace(start_s=START_S, rps=np.asarray([*rps, *([rps[-1]] * 240)], dtype=np.float64))
        cluster = SimulatedCluster(
            scenario, {work.key: trace for work in scenario.workloads}, seed=seed, start_s=START_S
        )  # fmt: skip
        cluster.start_recording()
        return cluster

    return build
