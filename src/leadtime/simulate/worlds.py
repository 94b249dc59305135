"""One replay → its worlds: hpa, hpa_equal_cost, cron, cron_ahead, leadtime, oracle, forked from one state, equal draws.

The days before the scored span are played once, under the HPA alone, while leadtime watches and learns. Then the state
is forked. leadtime's ticks go to a sink as they happen; the other worlds leave only their columns.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from leadtime.actuators.ladder import LadderActuator
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.ports import TickSink
from leadtime.domain.risk import RiskScorer
from leadtime.domain.tick import LoopState
from leadtime.domain.time_window import from_epoch
from leadtime.forecast import lead_time
from leadtime.loop.memory import CLUSTER_KEY
from leadtime.loop.tick import Ports, TickResult, tick
from leadtime.loop.view import RiskPorts
from leadtime.loop.warm import learn
from leadtime.policy.schema import Policy
from leadtime.scorecard.run import WorldRun
from leadtime.simulate import cron
from leadtime.simulate.cluster import SimulatedCluster
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.equal_cost import EqualCost, match_cost
from leadtime.simulate.oracle_world import OracleWorld, run_oracle
from leadtime.simulate.scenario import Scenario
from leadtime.simulate.source import SimulatedSource
from leadtime.simulate.usage_source import SimulatedUsage
from leadtime.simulate.writer import SimulatedWriter

CHEAPEST_TARGET_RATIO = 0.20  # below a fifth of a pod's capacity nobody runs an HPA
MOST_CRON_FACTOR = 3.0

DAY_S = 86_400
TICKS_PER_NOTE = 60

Progress = Callable[[str, float], None]  # (what is played, share done 0..1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What is replayed. ``demand`` by workload key; instants are epoch seconds on whole ticks.

    [demand start, scored_from_s) is the warm-up, [scored_from_s, end_s) is scored. ``kill_at_s``: the kill switch is on
    from that tick on. ``warm_pods``: pods added to the first workload's minReplicas, standing warm when the scored span
    begins, in every world. ``risk``: the failure model of leadtime's world; in a scenario with failures pods fail in
    every world but the oracle's, alike (draws by ``seed``).
    """

    scenario: Scenario
    demand: Mapping[str, DemandTrace]
    seed: int
    policy: Policy
    scored_from_s: int
    end_s: int
    kill_at_s: int | None = None
    warm_pods: int = 0
    risk: RiskScorer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The state at the scored span's start: the cluster (fork it, never advance it), and what leadtime has learned."""

    replay: Replay
    cluster: SimulatedCluster
    state: LoopState
    leads: Mapping[str, LeadTime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All worlds of one replay, in the order they are shown; ``equal_cost``: how well the rivals' costs match."""

    runs: Mapping[str, WorldRun]
    oracle_pod_hours_at_full_utilisation: float | None
    equal_cost: Mapping[str, EqualCost[WorldRun]]
    absent: Mapping[str, str]  # world → why it could not be played
    final_state: LoopState


def prepare(replay: Replay, progress: Progress) -> Prepared:
    """Play the warm-up under the HPA alone; then leadtime learns from what was visible at its end."""
    start_s = max(trace.start_s for trace in replay.demand.values())
    cluster = SimulatedCluster(replay.scenario, replay.demand, seed=replay.seed, start_s=start_s)
    for at_s in range(start_s, replay.scored_from_s, DAY_S):
        progress("the days before", (at_s - start_s) / (replay.scored_from_s - start_s))
        cluster.advance(at_s)
    cluster.advance(replay.scored_from_s)
    progress("learning from them", 0.0)
    state = learn(from_epoch(replay.scored_from_s), SimulatedSource(cluster), replay.policy, LoopState())
    if replay.warm_pods:
        cluster.stand_warm(replay.scenario.workloads[0].ref, replay.warm_pods)
    return Prepared(replay=replay, cluster=cluster, state=state, leads=_leads(state, replay))


def _leads(state: LoopState, replay: Replay) -> dict[str, LeadTime]:
    learned = state.lead_times.get(CLUSTER_KEY) or lead_time.start()
    return {
        work.key: lead_time.learn(learned, work.ref, work.pool, replay.policy) for work in replay.scenario.workloads
    }


def begun(prepared: Prepared, failing_seed: int | None = None) -> SimulatedCluster:
    """A world at the scored span's start: recording, and its pods failing where the scenario says so.

    ``failing_seed``: which draw of failures; the replay's seed when left out.
    """
    replay, cluster = prepared.replay, prepared.cluster.fork()
    cluster.start_recording()
    cluster.start_failing(replay.seed if failing_seed is None else failing_seed, replay.end_s)
    return cluster


def run_hpa(prepared: Prepared, world: str = "hpa", target_ratio: float | None = None) -> WorldRun:
    """The HPA alone, its target replaced when ``target_ratio`` is given."""
    cluster = begun(prepared)
    if target_ratio is not None:
        for work in cluster.works.values():
            work.set_target_ratio(target_ratio)
    cluster.advance(prepared.replay.end_s)
    return cluster.collect(world)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadtimeWorld:
    """leadtime's run, the state its loop ended with, and the cluster at its end."""

    run: WorldRun
    state: LoopState
    cluster: SimulatedCluster


def run_leadtime(
    prepared: Prepared, sink: TickSink, progress: Progress, *, until_s: int | None = None
) -> LeadtimeWorld:
    """The loop beside the HPA until ``until_s`` (default: the replay's end), every tick handed to ``sink``."""
    replay = prepared.replay
    until_s = replay.end_s if until_s is None else until_s
    cluster = begun(prepared)

    def watch(result: TickResult) -> None:
        sink.append(result.tick)

    return play_loop(prepared, cluster, replay.risk, watch, progress, until_s=until_s)


def play_loop(
    prepared: Prepared,
    cluster: SimulatedCluster,
    scorer: RiskScorer | None,
    watch: Callable[[TickResult], None],
    progress: Progress,
    *,
    until_s: int,
) -> LeadtimeWorld:
    """Tick by tick on ``cluster``, which ``begun`` made, up to ``until_s``; ``watch`` gets every result."""
    replay = prepared.replay
    source, writer = SimulatedSource(cluster), SimulatedWriter(cluster)
    risk = None if scorer is None else RiskPorts(source=SimulatedUsage(cluster), scorer=scorer)
    killed = _killed(replay.policy)
    state = prepared.state
    tick_s, span_s = replay.policy.loop.tick_s, until_s - replay.scored_from_s
    for at_s in range(first_tick_s(replay), until_s, tick_s):
        cluster.advance(at_s)
        policy = killed if replay.kill_at_s is not None and at_s >= replay.kill_at_s else replay.policy
        as_of = from_epoch(at_s)
        ports = Ports(source=source, actuator=LadderActuator(policy.actuation, writer), risk=risk)
        result = tick(as_of, ports, policy, state, recorded_at=as_of)
        state = result.state
        watch(result)
        if state.ticks % TICKS_PER_NOTE == 0:
            progress("leadtime", (at_s - replay.scored_from_s) / span_s)
    cluster.advance(until_s)
    return LeadtimeWorld(run=cluster.collect("leadtime"), state=state, cluster=cluster)


def first_tick_s(replay: Replay) -> int:
    """The first tick: when the minute before the scored span becomes visible.

    A controller whose ticks fall just before its newest minute is visible would always decide on one that is older.
    """
    step_s = replay.scenario.step_s
    return replay.scored_from_s + math.ceil(replay.scenario.metric_lag_s / step_s) * step_s


def _killed(policy: Policy) -> Policy:
    return policy.model_copy(update={"actuation": policy.actuation.model_copy(update={"kill_switch": True})})


def pod_hours(run: WorldRun) -> float:
    """Σ over workloads of pod-hours bound → deleted, over the scored steps."""
    return (
        sum(float(work.pod_seconds[work.demand_rps == work.demand_rps].sum()) for work in run.workloads.values()) / 3600
    )


def run_equal_cost(prepared: Prepared, hpa: WorldRun, aim_pod_hours: float) -> EqualCost[WorldRun]:
    """The HPA alone with its target lowered until it costs what leadtime costs."""
    target = prepared.replay.scenario.workloads[0].hpa.target_ratio

    def run(ratio: float) -> WorldRun:
        if ratio == target:
            return replace(hpa, world="hpa_equal_cost")
        return run_hpa(prepared, "hpa_equal_cost", ratio)

    return match_cost(run, pod_hours, aim_pod_hours=aim_pod_hours, cheap=target, dear=CHEAPEST_TARGET_RATIO)


def run_cron(
    prepared: Prepared, hpa: WorldRun, aim_pod_hours: float, *, ahead: bool = False
) -> EqualCost[WorldRun] | None:
    """Floors by clock from the days before, at leadtime's pod-hours; None when there is no day before.

    ``ahead``: each floor begins one learned lead before its quarter of an hour, as somebody would write it who knows
    how long nodes and pods take. It is the strongest rival a clock can be, and is shown beside the plain one.
    """
    replay, name = prepared.replay, "cron_ahead" if ahead else "cron"
    schedules = {
        work.key: _schedule(prepared, work.key, prepared.leads[work.key].total_p90_s if ahead else 0.0)
        for work in replay.scenario.workloads
    }
    if all(schedule is None for schedule in schedules.values()):
        return None

    work_refs = {work.key: work.ref for work in replay.scenario.workloads}

    def run(factor: float) -> WorldRun:
        if factor == 0.0:
            return replace(hpa, world=name)
        cluster = begun(prepared)
        at_s = replay.scored_from_s
        while at_s < replay.end_s:
            cluster.advance(at_s)
            next_s = (at_s // cron.SLOT_S + 1) * cron.SLOT_S  # by the clock, wherever the scored span begins
            for key, schedule in schedules.items():
                floor = 0 if schedule is None else schedule.floor_at(at_s, factor)
                if floor > 0:
                    cluster.set_floor(work_refs[key], floor, next_s)
            at_s = next_s
        cluster.advance(replay.end_s)
        return cluster.collect(name)

    return match_cost(run, pod_hours, aim_pod_hours=aim_pod_hours, cheap=0.0, dear=MOST_CRON_FACTOR)


def _schedule(prepared: Prepared, key: str, lead_s: float) -> cron.CronSchedule | None:
    replay = prepared.replay
    work = replay.scenario.workload(key)
    return cron.schedule(
        replay.demand[key],
        start_s=replay.scored_from_s,
        end_s=replay.end_s,
        lead_s=lead_s,
        capacity_per_pod_rps=work.capacity_per_pod_rps,
        target_ratio=work.hpa.target_ratio,
        min_replicas=work.min_replicas,
        max_replicas=work.max_replicas,
    )


def play(replay: Replay, sink: TickSink, progress: Progress) -> tuple[Prepared, Played]:
    """Play every world of ``replay``. ``progress`` is called now and then with what is played and the share done."""
    prepared = prepare(replay, progress)
    progress("HPA alone", 0.0)
    hpa = run_hpa(prepared)
    ours = run_leadtime(prepared, sink, progress)
    aim = pod_hours(ours.run)
    progress("HPA at equal cost", 0.0)
    equal = run_equal_cost(prepared, hpa, aim)
    progress("floors by clock", 0.0)
    by_clock = {name: run_cron(prepared, hpa, aim, ahead=name == "cron_ahead") for name in ("cron", "cron_ahead")}
    progress("oracle", 0.0)
    oracle = run_oracle(prepared.cluster, end_s=replay.end_s) if len(prepared.cluster.works) == 1 else None
    return prepared, _played(hpa, ours, equal, by_clock, oracle)


def _played(
    hpa: WorldRun,
    ours: LeadtimeWorld,
    equal: EqualCost[WorldRun],
    by_clock: Mapping[str, EqualCost[WorldRun] | None],
    oracle: OracleWorld | None,
) -> Played:
    runs = {"hpa": hpa, "hpa_equal_cost": equal.run}
    absent = {}
    for name, found in by_clock.items():
        if found is None:
            absent[name] = "there is no whole day before the scored span to write a schedule from"
        else:
            runs[name] = found.run
    runs["leadtime"] = ours.run
    if oracle is None:
        absent["oracle"] = "the oracle is defined for one workload on its pool"
    else:
        runs["oracle"] = oracle.run
    return Played(
        runs=runs,
        oracle_pod_hours_at_full_utilisation=oracle.pod_hours_at_full_utilisation if oracle else None,
        equal_cost={"hpa_equal_cost": equal} | {name: found for name, found in by_clock.items() if found is not None},
        absent=absent,
        final_state=ours.state,
    )
