"""Small hand-made runs: everything is quiet unless a test says otherwise."""

from collections.abc import Callable

import numpy as np
import pytest

from leadtime.scorecard.run import PoolRun, RunEvent, WorkloadRun, WorldRun

START_S = 1_772_409_600  # 2026-03-02T00:00:00Z
KEY = "serving/chat"
_INTS = (
    "wanted", "ready", "starting", "pending", "floor", "deleted", "deleted_while_demand_stayed", "busy_killed",
    "warm_killed", "floor_added",
)  # fmt: skip


@pytest.fixture(scope="session")
def workload() -> Callable[..., WorkloadRun]:
    """A workload of ``steps`` steps of 15 s; columns not given are 0 (latency NaN, demand 1)."""

    def build(steps: int = 40, **given: object) -> WorkloadRun:
        columns = {name: np.zeros(steps, dtype=np.int64) for name in _INTS}
        for name in ("arrived", "unserved", "late", "pod_seconds", "pending_pod_seconds"):
            columns[name] = np.zeros(steps)
        columns["demand_rps"] = np.ones(steps)
        columns["latency_s"] = np.full(steps, np.nan)
        facts = {
            "workload": KEY, "start_s": START_S, "step_s": 15, "capacity_per_pod_rps": 1.0, "gpus_per_pod": 1,
            "slo_s": 10.0, "pool": "h100",
        }  # fmt: skip
        for name, value in given.items():
            if name in columns:
                columns[name] = np.asarray(value, dtype=columns[name].dtype)
            else:
                facts[name] = value
        return WorkloadRun(**columns, **facts)

    return build


@pytest.fixture(scope="session")
def world() -> Callable[..., WorldRun]:
    """A world of the given workloads, pools and events."""

    def build(
        *workloads: WorkloadRun, pools: tuple[PoolRun, ...] = (), events: tuple[RunEvent, ...] = (), name: str = "hpa"
    ) -> WorldRun:
        return WorldRun(
            world=name,
            workloads={columns.workload: columns for columns in workloads},
            pools={pool.pool: pool for pool in pools},
            events=events,
        )

    return build


@pytest.fixture(scope="session")
def pool() -> Callable[..., PoolRun]:
    """A pool with ``node_seconds`` a step."""

    def build(node_seconds: object, *, name: str = "h100", gpus_per_node: int = 8) -> PoolRun:
        seconds = np.asarray(node_seconds, dtype=np.float64)
        return PoolRun(
            pool=name, start_s=START_S, step_s=15, gpus_per_node=gpus_per_node, node_seconds=seconds,
            nodes_by_stage={"ready": (seconds / 15).astype(np.int64)},
        )  # fmt: skip

    return build


@pytest.fixture(scope="session")
def event() -> Callable[..., RunEvent]:
    """An event ``after_s`` seconds after the run began."""

    def build(after_s: int, kind: str, *, workload: str | None = KEY, pool: str | None = "h100", count: int = 1):
        return RunEvent(at_s=START_S + after_s, kind=kind, workload=workload, pool=pool, count=count)

    return build
