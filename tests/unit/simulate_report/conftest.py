"""A hand-made incident in five worlds: no simulator, only curves that look like one, for the report and the page."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from leadtime.domain.time_window import from_epoch
from leadtime.scorecard.digest import Bounds, DecisionDigest, LostProposal, TickDigest, WorkloadDigest
from leadtime.scorecard.run import PoolRun, RunEvent, WorkloadRun, WorldRun
from leadtime.simulate.report import Conclusion, ReportInputs

KEY = "serving/chat"
DAY_S = 1_772_409_600  # 2026-03-02T00:00:00Z
STEP_S = 15
STEPS = 86_400 // STEP_S
CAPACITY_RPS = 2.0
ONSET_S = 6 * 3600


def _demand() -> np.ndarray:
    t = np.arange(STEPS) * STEP_S - ONSET_S
    ratio = np.interp(t, [0, 1200, 2400, 2700], [0.60, 1.30, 1.30, 0.60])
    return ratio * 480 * CAPACITY_RPS * (1 + 0.01 * np.sin(np.arange(STEPS) / 37.0))


def _wanted(demand: np.ndarray, ahead_s: int) -> np.ndarray:
    shifted = (
        np.concatenate((demand[ahead_s // STEP_S :], np.repeat(demand[-1], ahead_s // STEP_S))) if ahead_s else demand
    )
    top = np.array([shifted[max(0, i - 40) : i + 1].max() for i in range(len(shifted))])
    return np.maximum(480, np.ceil(top / (0.7 * CAPACITY_RPS))).astype(np.int64)


def _run(world: str, *, ahead_s: int, pod_lead_s: int, node_lead_s: int) -> WorldRun:
    demand = _demand()
    wanted = _wanted(demand, ahead_s)
    placed = np.minimum(wanted, np.maximum(520, np.roll(wanted, node_lead_s // STEP_S)))
    ready = np.minimum(placed, np.roll(placed, pod_lead_s // STEP_S))
    arrived = demand * STEP_S
    unserved = np.maximum(arrived - ready * CAPACITY_RPS * STEP_S, 0.0)
    zeros = np.zeros(STEPS, dtype=np.int64)
    pods = WorkloadRun(
        workload=KEY, start_s=DAY_S, step_s=STEP_S, capacity_per_pod_rps=CAPACITY_RPS, gpus_per_pod=1, slo_s=10.0,
        demand_rps=demand, arrived=arrived, unserved=unserved, late=unserved * 0.5,
        latency_s=np.where(unserved > 0, 12.0, 1.5), wanted=wanted, ready=ready, starting=placed - ready,
        pending=wanted - placed, floor=np.where(world == "leadtime", wanted, 480), pod_seconds=placed * float(STEP_S),
        pending_pod_seconds=(wanted - placed) * float(STEP_S), deleted=zeros, deleted_while_demand_stayed=zeros,
        busy_killed=zeros, warm_killed=zeros,
        floor_added=np.maximum(np.diff(wanted, prepend=wanted[0]), 0) if world == "leadtime" else zeros, pool="h100",
    )  # fmt: skip
    nodes = -(-placed // 8)
    coming = np.maximum(-(-wanted // 8) - nodes, 0)
    pool = PoolRun(
        pool="h100", start_s=DAY_S, step_s=STEP_S, gpus_per_node=8, node_seconds=(nodes + coming) * float(STEP_S),
        nodes_by_stage={"request": coming // 3, "boot": coming - coming // 3, "ready": np.maximum(nodes, 65)},
    )  # fmt: skip
    return WorldRun(world=world, workloads={KEY: pods}, pools={"h100": pool}, events=_events(world, ahead_s))


def _events(world: str, ahead_s: int) -> tuple[RunEvent, ...]:
    cross = DAY_S + ONSET_S + 330 - ahead_s
    ours = (RunEvent(at_s=cross - 600, kind="buffer_set", workload=KEY, pool="h100", count=20),)
    return (ours if world == "leadtime" else ()) + (
        RunEvent(at_s=cross, kind="threshold_crossed", workload=KEY, pool=None, count=1),
        RunEvent(at_s=cross + 15, kind="pod_bound", workload=KEY, pool="h100", count=40),
        RunEvent(at_s=cross + 30, kind="node_requested", workload=None, pool="h100", count=5),
        RunEvent(at_s=cross + 2430, kind="node_ready", workload=None, pool="h100", count=5),
    )


def _digests(wanted: np.ndarray, demand: np.ndarray) -> list[TickDigest]:
    ticks = []
    for minute in range(1440):
        at_s, step = DAY_S + minute * 60, minute * 4
        ahead = demand[min(step + 40, STEPS - 1)] * (0.8 if minute % 400 < 20 else 1.02)
        decision = DecisionDigest(
            scope=f"workload:{KEY}", reason="EnoughCapacity", sentence="480 pods ready, 412 needed", action=None,
            asks="nothing", pods=None, agent=None, lost=(),
        )  # fmt: skip
        if wanted[step] > 480:
            expires = from_epoch(at_s) + timedelta(minutes=15)
            decision = DecisionDigest(
                scope=f"workload:{KEY}", reason="ForecastAboveReady",
                sentence=f"{wanted[step]} pods are needed in 14 min, 480 are ready", action="SetFloor",
                asks=f"floor {wanted[step]} until {expires:%H:%MZ}", pods=int(wanted[step]), agent="scaling",
                lost=(
                    LostProposal(
                        proposal_id="efficiency/pool:h100", agent="efficiency", reason="Outranked",
                        sentence="power saving waits while <queue serving> needs capacity",
                    ),
                ),
            )  # fmt: skip
        state = WorkloadDigest(
            workload=KEY, pool="h100", queue="serving", warned=340 <= minute < 365,
            forecast=Bounds(expected=float(ahead), lower=float(ahead) * 0.95, upper=float(ahead) * 1.05),
        )  # fmt: skip
        ticks.append(TickDigest(as_of_s=at_s, workloads=(state,), decisions=(decision,)))
    return ticks


@pytest.fixture(scope="session")
def incident() -> Callable[..., ReportInputs]:
    runs = {
        "hpa": _run("hpa", ahead_s=0, pod_lead_s=570, node_lead_s=2400),
        "hpa_equal_cost": _run("hpa_equal_cost", ahead_s=120, pod_lead_s=570, node_lead_s=2400),
        "cron": _run("cron", ahead_s=600, pod_lead_s=570, node_lead_s=600),
        "leadtime": _run("leadtime", ahead_s=900, pod_lead_s=570, node_lead_s=15),
        "oracle": _run("oracle", ahead_s=600, pod_lead_s=570, node_lead_s=15),
    }
    ticks = _digests(runs["leadtime"].workloads[KEY].wanted, _demand())

    def build(**changed: object) -> ReportInputs:
        given = {
            "run_class": "simulated", "scenario": "recurring", "seed": 7, "policy_hash": "0123456789abcdef",
            "verdict": Conclusion(act=True, sentence="Act: 96 % of the unserved requests can be had for 2 % more."),
            "runs": runs, "digests": ticks, "learned_lead_p90_s": {KEY: 3240.0}, "surge_start_s": DAY_S + ONSET_S,
        }  # fmt: skip
        return ReportInputs(**(given | changed))

    return build
