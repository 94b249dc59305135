"""Demand shared among ready pods; stage times as KWOK reads them."""

import json
from typing import Any

import pytest

from leadtime.testing.cluster.load import Load, running_pods
from leadtime.testing.cluster.stages import Span, StageTimes, stages


def pod(name: str, phase: str = "Running", ready: str = "True") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def load(demand_rps: float) -> Load:
    return Load(namespace="ns", selector={"app": "m"}, demand_rps=lambda _at: demand_rps, capacity_rps=5.0)


@pytest.mark.parametrize(
    ("demand_rps", "served_rps", "cpu_milli"),
    [(8.0, 4.0, 800), (10.0, 5.0, 1000), (100.0, 5.0, 1000), (0.0, 0.0, 0)],
)
def test_demand_is_shared_among_ready_pods_and_capped_at_their_capacity(
    demand_rps: float, served_rps: float, cpu_milli: int
) -> None:
    pods = [pod("a"), pod("b"), pod("loading", ready="False"), pod("waiting", "Pending", "False")]
    rows = running_pods(load(demand_rps), pods, at_s=0.0)
    assert [(row.pod, row.ready, row.served_rps, row.cpu_milli) for row in rows] == [
        ("a", True, served_rps, cpu_milli),
        ("b", True, served_rps, cpu_milli),
        ("loading", False, 0.0, 0),
    ]


def test_nothing_ready_serves_nothing() -> None:
    assert [row.served_rps for row in running_pods(load(9.0), [pod("a", ready="False")], at_s=0.0)] == [0.0]
    assert running_pods(load(9.0), [], at_s=0.0) == []


def test_stage_times_become_delays_and_equal_ends_no_jitter() -> None:
    times = StageTimes(image=Span(least_s=2.0, most_s=3.5), model=Span(least_s=4.0))
    delays = {
        each["metadata"]["name"]: each["spec"]["delay"] for each in map(json.loads, stages(times).split("\n---\n"))
    }
    assert delays["pod-image"] == {"durationMilliseconds": 2000, "jitterDurationMilliseconds": 3500}
    assert delays["pod-model"] == {"durationMilliseconds": 4000}
    assert delays["node-ready"] == {"durationMilliseconds": 0}
