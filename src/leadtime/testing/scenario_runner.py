"""A scenario as text → the loop on a small cluster → which expectations failed, in the words of the file.

One statement a line; ``#`` begins a comment. Times are UTC on the last day of the load; minutes before the first
``from`` are learned from, not decided on.

    pool gpu: 65 nodes of 8 GPUs, at most 250, node lead 40m
    workload serving/chat on pool gpu, queue online: capacity 5 requests/s a pod, min 480, max 2000, pod lead 10m
    load serving/chat: 1440 steady for 8d, daily surge 06:00 +20m to 3120 until 06:40
    policy scaling.floor_hold_s 900
    from 04:30
    at 05:00: 12 pods wait in queue online, oldest 400 s
    at 05:10: demand of serving/chat goes missing
    at 05:10: demand of serving/chat is back
    at 05:10: kill switch
    at 05:10: offer of empty nodes on pool gpu ends
    at 05:10: expect proposal scaling SetBuffer
    at 05:10: expect decision pool:gpu/serving/chat SetBuffer because NodesNeededAhead
    at 05:10: expect nothing workload:serving/chat because EnoughCapacity
    at 05:10: expect rejection efficiency pool:gpu because QueueBeforeCost
    at 06:20: expect pods serving/chat ready at least 880
    at 06:20: expect pods serving/chat pending at most 0
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import sin
from typing import Any

from leadtime.actuators.ladder import LadderActuator
from leadtime.domain.errors import BadScenario
from leadtime.domain.series import Series, Unit
from leadtime.domain.snapshot import QueueState
from leadtime.domain.tick import LoopState, Tick
from leadtime.loop.tick import Ports, tick
from leadtime.loop.warm import learn
from leadtime.policy import Policy
from leadtime.testing.builders import ref
from leadtime.testing.toy_cluster import ToyCluster, ToyPool, ToyWorkload

FIRST_DAY = datetime(2026, 3, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An ``at`` line: the time of day, what, and where it stands in the file."""

    clock: str
    text: str
    line: int


@dataclass(slots=True, kw_only=True)
class Scenario:
    """A parsed scenario."""

    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    workloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    loads: dict[str, "Load"] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    begins: str = "00:00"
    statements: list[Statement] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """``base`` for ``days`` days; each day from ``surge_at`` a ramp of ``ramp_min`` to ``peak`` until ``ends_at``."""

    base: float
    days: int
    surge_at: int | None = None
    ramp_min: int = 0
    peak: float = 0.0
    ends_at: int = 0

    def at(self, minute: int) -> float:
        """Demand in the minute of the day, before noise."""
        if self.surge_at is None or not self.surge_at <= minute < self.ends_at:
            return self.base
        share = min(1.0, (minute - self.surge_at + 1) / max(1, self.ramp_min))
        return self.base + (self.peak - self.base) * share

    def series(self, name: str) -> Series:
        """``days`` days and one more, with 1 % of noise that is the same in every run."""
        values = tuple(self.at(m % 1440) * (1 + 0.01 * sin(m * 12.9898 + 4.1)) for m in range((self.days + 1) * 1440))
        return Series(name=name, start=FIRST_DAY, step_s=60, values=values, unit=Unit.REQUESTS_PER_S)


def run(text: str) -> list[str]:
    """Play the scenario; returns one sentence per failed expectation, none when all hold. Raises BadScenario."""
    scenario = parse(text)
    days = max(load.days for load in scenario.loads.values())
    cluster = _cluster(scenario, _moment(scenario.begins, days))
    policy = _policy(scenario)
    ends = max(_moment(s.clock, days) for s in scenario.statements)
    now = cluster.now
    state = learn(now, cluster, policy, LoopState())
    failed: list[str] = []
    while now <= ends:
        due = [s for s in scenario.statements if _moment(s.clock, days) == now]
        for statement in (s for s in due if not s.text.startswith("expect ")):
            policy = _event(statement, cluster, policy, now)
        ports = Ports(source=cluster, actuator=LadderActuator(policy.actuation, cluster))
        result = tick(now, ports, policy, state, now)
        state = result.state
        for statement in (s for s in due if s.text.startswith("expect ")):
            wrong = _expect(statement, result.tick)
            if wrong is not None:
                failed.append(f"line {statement.line}, at {now:%H:%M}: {statement.text}: {wrong}")
        now += timedelta(seconds=policy.loop.tick_s)
    return failed


def parse(text: str) -> Scenario:
    """The statements of a scenario file. Raises BadScenario with the line that cannot be read."""
    scenario = Scenario()
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        for pattern, take in _LINES:
            match = re.fullmatch(pattern, line)
            if match is not None:
                take(scenario, match.groupdict(), number)
                break
        else:
            raise _unreadable(number, f"{line!r} is no statement")
    return scenario


def _unreadable(line: int, wrong: str) -> BadScenario:
    cure = "see the examples at the top of leadtime.testing.scenario_runner"
    return BadScenario("bad-scenario", f"reading line {line} of the scenario", wrong, cure)


def _take_pool(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    del line
    scenario.pools[found["name"]] = {
        "nodes": int(found["nodes"]), "gpus_per_node": int(found["gpus"]), "max_nodes": int(found["most"]),
        "node_lead_s": _seconds(found["lead"]),
    }  # fmt: skip


def _take_workload(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    del line
    scenario.workloads[found["key"]] = {
        "pool": found["pool"], "queue": found["queue"], "capacity": float(found["capacity"]),
        "minimum": int(found["min"]), "maximum": int(found["max"]), "pod_lead_s": _seconds(found["lead"]),
    }  # fmt: skip


def _take_load(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    del line
    surge = found["surge"] is not None
    scenario.loads[found["key"]] = Load(
        base=float(found["base"]), days=int(found["days"]),
        surge_at=_minute(found["begin"]) if surge else None,
        ramp_min=int(_seconds(found["ramp"]) // 60) if surge else 0,
        peak=float(found["peak"]) if surge else 0.0,
        ends_at=_minute(found["end"]) if surge else 0,
    )  # fmt: skip


def _take_policy(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    del line
    section, _, name = found["path"].partition(".")
    scenario.settings.setdefault(section, {})[name] = found["value"]


def _take_from(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    del line
    scenario.begins = found["clock"]


def _take_at(scenario: Scenario, found: Mapping[str, str], line: int) -> None:
    scenario.statements.append(Statement(clock=found["clock"], text=found["text"], line=line))


_POOL = (
    r"pool (?P<name>\S+): (?P<nodes>\d+) nodes of (?P<gpus>\d+) GPUs, at most (?P<most>\d+), "
    r"node lead (?P<lead>\d+[sm])"
)
_WORKLOAD = (
    r"workload (?P<key>\S+) on pool (?P<pool>\S+), queue (?P<queue>\S+): capacity (?P<capacity>[\d.]+) "
    r"requests/s a pod, min (?P<min>\d+), max (?P<max>\d+), pod lead (?P<lead>\d+[sm])"
)
_LOAD = (
    r"load (?P<key>\S+): (?P<base>[\d.]+) steady for (?P<days>\d+)d"
    r"(?P<surge>, daily surge (?P<begin>\d\d:\d\d) \+(?P<ramp>\d+m) to (?P<peak>[\d.]+) until (?P<end>\d\d:\d\d))?"
)
_LINES: tuple[tuple[str, Callable[[Scenario, Mapping[str, str], int], None]], ...] = (
    (_POOL, _take_pool),
    (_WORKLOAD, _take_workload),
    (_LOAD, _take_load),
    (r"policy (?P<path>\S+) (?P<value>\S+)", _take_policy),
    (r"from (?P<clock>\d\d:\d\d)", _take_from),
    (r"at (?P<clock>\d\d:\d\d): (?P<text>.+)", _take_at),
)


def _seconds(text: str) -> float:
    return float(text[:-1]) * (60 if text.endswith("m") else 1)


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def _moment(clock: str, days: int) -> datetime:
    return FIRST_DAY + timedelta(days=days, minutes=_minute(clock))


def _policy(scenario: Scenario) -> Policy:
    """The default policy on the top rung, the leads of the scenario as priors, and what the file sets."""
    node_s = max(pool["node_lead_s"] for pool in scenario.pools.values())
    pod_s = max(workload["pod_lead_s"] for workload in scenario.workloads.values())
    settings: dict[str, Any] = {
        "actuation": {"stage": "hpa_floor"},
        "lead_time": {
            "prior_node_p50_s": node_s, "prior_node_p90_s": node_s,
            "prior_pod_p50_s": pod_s, "prior_pod_p90_s": pod_s,
        },
    }  # fmt: skip
    for section, values in scenario.settings.items():
        settings.setdefault(section, {}).update(values)
    return Policy.model_validate(settings)


def _cluster(scenario: Scenario, now: datetime) -> ToyCluster:
    pools = [ToyPool(name=name, **numbers) for name, numbers in scenario.pools.items()]
    workloads = [
        ToyWorkload(ref=ref(key), series=scenario.loads[key].series(key), **numbers)
        for key, numbers in scenario.workloads.items()
    ]
    return ToyCluster(now, pools, workloads)


def _event(statement: Statement, cluster: ToyCluster, policy: Policy, now: datetime) -> Policy:
    """What happens to the cluster (or the policy) before the tick of this minute."""
    text = statement.text
    if text == "kill switch":
        return policy.model_copy(update={"actuation": policy.actuation.model_copy(update={"kill_switch": True})})
    waiting = re.fullmatch(r"(\d+) pods wait in queue (\S+), oldest (\d+) s", text)
    gone = re.fullmatch(r"demand of (\S+) (goes missing|is back)", text)
    closed = re.fullmatch(r"offer of empty nodes on pool (\S+) ends", text)
    if waiting is not None:
        pods, queue, oldest = waiting.groups()
        cluster.queued[queue] = QueueState(
            name=queue, pool="", pending_pods=int(pods), covered_pending_pods=0,
            oldest_uncovered_pending_s=float(oldest), low_priority_paused=False,
        )  # fmt: skip
    elif gone is not None and gone.group(2) == "goes missing":
        cluster.missing_since[ref(gone.group(1))] = now
    elif gone is not None:
        cluster.missing_since.pop(ref(gone.group(1)), None)
    elif closed is not None:
        cluster.set_consolidation(closed.group(1), offered=False)
    else:
        raise _unreadable(statement.line, f"{text!r} is no event and no expectation")
    return policy


def _expect(statement: Statement, seen: Tick) -> str | None:
    """What is wrong with one expectation, or None."""
    for pattern, check in _EXPECTATIONS:
        match = re.fullmatch(pattern, statement.text)
        if match is not None:
            return check(seen, match.groupdict())
    raise _unreadable(statement.line, f"{statement.text!r} expects nothing known")


def _check_proposal(seen: Tick, found: Mapping[str, str]) -> str | None:
    spoken = [f"{p.agent.value} {type(p.action).__name__}" for p in seen.proposals]
    return None if f"{found['agent']} {found['action']}" in spoken else f"the agents said {spoken or 'nothing'}"


def _check_decision(seen: Tick, found: Mapping[str, str]) -> str | None:
    for decision in seen.decisions:
        if decision.scope.key == found["scope"]:
            did, why = type(decision.action).__name__ if decision.action else "nothing", decision.why.reason.value
            ok = did == found.get("action", "nothing") and found.get("reason") in {None, why}
            return None if ok else f"decided {did} because {why}: {decision.why.sentence}"
    return f"no decision about {found['scope']}; there are {[d.scope.key for d in seen.decisions]}"


def _check_rejection(seen: Tick, found: Mapping[str, str]) -> str | None:
    lost = {r.proposal_id: r.why.reason.value for d in seen.decisions for r in d.rejections}
    got = lost.get(f"{found['agent']}/{found['scope']}")
    return None if got == found["reason"] else f"rejected were {lost or 'none'}"


def _check_pods(seen: Tick, found: Mapping[str, str]) -> str | None:
    workload = seen.snapshot.workload(ref(found["key"]))
    count = {"ready": workload.ready_pods, "pending": workload.pending_pods, "wanted": workload.wanted_replicas}
    got, bound = count[found["what"]], int(found["bound"])
    ok = got >= bound if found["how"] == "least" else got <= bound
    return None if ok else f"{got} are {found['what']}"


_EXPECTATIONS: tuple[tuple[str, Callable[[Tick, Mapping[str, str]], str | None]], ...] = (
    (r"expect proposal (?P<agent>\w+) (?P<action>\w+)", _check_proposal),
    (r"expect decision (?P<scope>\S+) (?P<action>\w+)( because (?P<reason>\w+))?", _check_decision),
    (r"expect nothing (?P<scope>\S+)( because (?P<reason>\w+))?", _check_decision),
    (r"expect rejection (?P<agent>\w+) (?P<scope>\S+) because (?P<reason>\w+)", _check_rejection),
    (r"expect pods (?P<key>\S+) (?P<what>ready|pending|wanted) at (?P<how>least|most) (?P<bound>\d+)", _check_pods),
)
