"""The incident under HPA alone, for ten seeds: the times of the story come from mechanics and stage times."""

import numpy as np
import numpy.typing as npt
import pytest

from leadtime.scorecard.run import WorldRun
from leadtime.simulate import scenario
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace

DAY_S = 1_772_409_600
SIX_S = DAY_S + 6 * 3600
BASE = 480 * 5.0  # requests/s that 480 pods serve


def demand(seed: int) -> npt.NDArray[np.float64]:
    """04:00–08:00 at 15 s: 0.60, from 06:00 in 20 min to 1.30, held to 06:40, gone by 06:45; noise 1 %, AR 0.97."""
    rng = np.random.default_rng(seed)
    minutes = np.arange(4 * 240) / 4 - 120
    shape = np.interp(minutes, [0, 20, 40, 45], [0.60, 1.30, 1.30, 0.60])
    noise = np.empty(len(shape))
    level = rng.normal(0, 0.01)
    for i in range(len(shape)):
        level = 0.97 * level + rng.normal(0, 0.01 * np.sqrt(1 - 0.97**2))
        noise[i] = level
    return shape * (1 + noise) * BASE


@pytest.fixture(scope="module")
def runs() -> list[WorldRun]:
    incident = scenario.load("incident")
    found = []
    for seed in range(10):
        trace = DemandTrace(start_s=DAY_S + 4 * 3600, rps=demand(seed))
        cluster = SimulatedCluster(incident, {"serving/chat": trace}, seed=seed, start_s=trace.start_s)
        cluster.start_recording()
        cluster.advance(trace.end_s)
        found.append(cluster.collect("hpa"))
    return found


def minutes_after_six(run: WorldRun, kind: str) -> float:
    """Of the first event of ``kind``."""
    return (next(event.at_s for event in run.events if event.kind == kind) - SIX_S) / 60


def test_the_hpa_crosses_its_threshold_five_minutes_in(runs: list[WorldRun]) -> None:
    assert all(3 <= minutes_after_six(run, "threshold_crossed") <= 7 for run in runs)


def test_hundreds_of_pods_wait_at_a_quarter_past(runs: list[WorldRun]) -> None:
    at = (SIX_S + 900 - DAY_S - 4 * 3600) // 15 - 1
    assert all(run.workloads["serving/chat"].pending[at] >= 150 for run in runs)


def test_the_first_new_node_comes_after_three_quarters_of_an_hour(runs: list[WorldRun]) -> None:
    assert all(40 <= minutes_after_six(run, "node_ready") <= 50 for run in runs)


def test_the_first_pods_on_free_slots_are_ready_before_a_quarter_past(runs: list[WorldRun]) -> None:
    assert all(10 <= minutes_after_six(run, "pod_ready") <= 15 for run in runs)


def test_the_worst_five_minutes_leave_a_sixth_unserved(runs: list[WorldRun]) -> None:
    for run in runs:
        work = run.workloads["serving/chat"]
        window = np.ones(20)
        worst = (np.convolve(work.unserved, window, "valid") / np.convolve(work.arrived, window, "valid")).max()
        assert 0.15 <= worst <= 0.20


def test_no_pod_is_ever_ready_on_a_new_node(runs: list[WorldRun]) -> None:
    for run in runs:
        assert run.workloads["serving/chat"].ready.max() == 520
        assert run.pools["gpu"].nodes_by_stage["ready"].max() >= 80
        assert run.pools["gpu"].nodes_by_stage["ready"][-1] == 65
