"""Syncs of an HPA ↔ the JSON lines of the Go program beside this file; and what differs between the two answers."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from leadtime.mechanics import hpa

START_S = 946_684_800.0  # midnight of 1 January 2000, UTC: when every virtual clock of Go starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One sync: with ``spec``, on ``observed``; ``restart`` means a new controller makes it."""

    spec: hpa.HpaSpec
    observed: hpa.HpaObserved
    restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Syncs of one HPA. ``own_clock``: one sync period after the other, timed by the controller's own queue."""

    steps: tuple[Step, ...]
    own_clock: bool = False
    scaled_to_zero: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What one sync did: replicas and the HPA's conditions as status/reason ("" where never set)."""

    desired: int
    able_to_scale: str
    scaling_active: str
    scaling_limited: str
    scaled_to_zero: bool


@dataclass(slots=True)
class Conditions:
    """The conditions on the HPA object: a sync that does not touch one leaves the old one standing."""

    active: str = ""
    limited: str = ""

    def after(self, done: hpa.HpaSync) -> Answer:
        """Apply one sync."""
        if done.scaling_active is not None:
            valid = done.scaling_active is hpa.ScalingActive.VALID_METRIC_FOUND
            self.active = f"{valid}/{done.scaling_active}"
        if done.scaling_limited is not None:
            self.limited = f"{done.scaling_limited is not hpa.ScalingLimited.WITHIN_RANGE}/{done.scaling_limited}"
        able = f"True/{done.able_to_scale}"
        return Answer(done.desired, able, self.active, self.limited, done.state.scaled_to_zero)


def ours(sequence: Sequence) -> list[Answer]:
    """leadtime's answers."""
    state, conditions, answers = hpa.HpaState(scaled_to_zero=sequence.scaled_to_zero), Conditions(), []
    for step in sequence.steps:
        done = hpa.sync(step.spec, state.after_restart() if step.restart else state, step.observed)
        state = done.state
        answers.append(conditions.after(done))
    return answers


@dataclass
class Original:
    """The running Go program. One line in, one line out."""

    program: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        env = {**os.environ, "GOMAXPROCS": "2"}
        self.process = subprocess.Popen([str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def answers(self, sequence: Sequence) -> list[Answer]:
        """Kubernetes' answers. Raises RuntimeError when the program cannot play the sequence."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(encoded(sequence)) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.startswith(b"{"):
            raise RuntimeError(f"the oracle ended: {(line + self.process.stdout.read())[:4000]!r}")
        answer = msgspec.json.decode(line)
        if answer.get("error"):
            raise RuntimeError(f"the oracle could not play the sequence: {answer['error']}")
        return [
            Answer(
                sync["desired"],
                sync["able_to_scale"],
                sync["scaling_active"],
                sync["scaling_limited"],
                sync["scaled_to_zero"].startswith("True"),
            )
            for sync in answer["syncs"]
        ]

    def close(self) -> None:
        """End the program: it leaves by itself when its input ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)


def first_difference(sequence: Sequence, original: Original) -> int | None:
    """The first sync the two disagree on."""
    mine, theirs = ours(sequence), original.answers(sequence)
    assert len(mine) == len(theirs)
    return next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b), None)


def reduced(sequence: Sequence, original: Original) -> Sequence:
    """A shorter sequence that still differs: cut after the difference, then leave out whatever it does not need."""
    at = first_difference(sequence, original)
    assert at is not None
    short = Sequence(
        steps=sequence.steps[: at + 1], own_clock=sequence.own_clock, scaled_to_zero=sequence.scaled_to_zero
    )
    free = Sequence(steps=short.steps, scaled_to_zero=short.scaled_to_zero)
    if sequence.own_clock and first_difference(free, original) is None:
        return short
    steps, chunk = free.steps, len(free.steps) // 2
    while chunk:
        begin = 0
        while begin < len(steps):
            fewer = steps[:begin] + steps[begin + chunk :]
            smaller = Sequence(steps=fewer, scaled_to_zero=free.scaled_to_zero)
            if fewer and first_difference(smaller, original) is not None:
                steps = fewer
            else:
                begin += chunk
        chunk //= 2
    return Sequence(steps=steps, scaled_to_zero=free.scaled_to_zero)


# --- leadtime's values as JSON ----------------------------------------------------------------------------------


def _ms(at_s: float) -> int:
    return round((at_s - START_S) * 1000)


def encoded(sequence: Sequence) -> dict[str, Any]:
    """The sequence as protocol_test.go reads it. Only the spec and the pods that changed are written."""
    first, steps = sequence.steps[0], []
    flags = first.spec.flags
    spec: hpa.HpaSpec | None = None
    pods: dict[str, hpa.PodReading] = {}
    for step in sequence.steps:
        seen = step.observed
        one: dict[str, Any] = {
            "at_ms": _ms(seen.now_s),
            "restart": step.restart,
            "spec_replicas": seen.spec_replicas,
            "status_replicas": seen.status_replicas,
            "no_selector": seen.selector_problem is not None,
            "readings": [_reading(reading) for reading in seen.readings],
        }
        if step.spec is not spec:
            spec = step.spec
            one["spec"] = _spec(spec)
        before, pods = pods, {pod.name: pod for pod in seen.pods}
        one["pods"] = [_pod(pod) for name, pod in pods.items() if before.get(name) is not pod]
        one["pods_gone"] = [name for name in before if name not in pods]
        steps.append(one)
    return {
        "id": "",
        "own_clock": sequence.own_clock,
        "scaled_to_zero": sequence.scaled_to_zero,
        "flags": {
            "sync_period_ms": round(flags.sync_period_s * 1000),
            "tolerance_ratio": flags.tolerance_ratio,
            "downscale_stabilisation_ms": round(flags.downscale_stabilisation_s * 1000),
            "cpu_initialisation_ms": round(flags.cpu_initialisation_s * 1000),
            "initial_readiness_delay_ms": round(flags.initial_readiness_delay_s * 1000),
        },
        "steps": steps,
    }


def _reading(reading: hpa.Reading | hpa.ReadingError) -> dict[str, Any]:
    if isinstance(reading, hpa.ReadingError):
        return {"error": True}
    if isinstance(reading, hpa.ExternalReading):
        return {"values_milli": reading.values_milli}
    if isinstance(reading, hpa.ObjectReading):
        return {"values_milli": [reading.value_milli]}
    samples = reading.samples
    return {
        "sample_pods": [s.pod for s in samples],
        "values_milli": [s.value_milli for s in samples],
        "at_ms": [_ms(s.at_s) for s in samples],
        "window_ms": [round(s.window_s * 1000) for s in samples],
    }


def _pod(pod: hpa.PodReading) -> dict[str, Any]:
    return {
        "name": pod.name,
        "phase": pod.phase.value,
        "ready": pod.ready.value,
        "ready_changed_ms": _ms(pod.ready_changed_at_s),
        "started_ms": None if pod.started_at_s is None else _ms(pod.started_at_s),
        "deleting": pod.deleting,
        "containers": [{"container": c.container, "requests_milli": dict(c.requests_milli)} for c in pod.containers],
    }


_KINDS: dict[type[hpa.MetricSpec], str] = {
    hpa.ExternalMetric: "External",
    hpa.ObjectMetric: "Object",
    hpa.PodsMetric: "Pods",
    hpa.ResourceMetric: "Resource",
    hpa.ContainerResourceMetric: "ContainerResource",
}


def _spec(spec: hpa.HpaSpec) -> dict[str, Any]:
    metrics = []
    for metric in spec.metrics:
        target = metric.target
        named = isinstance(metric, hpa.ExternalMetric | hpa.ObjectMetric | hpa.PodsMetric)
        metrics.append(
            {
                "type": _KINDS[type(metric)],
                "name": metric.name if named else metric.resource,
                "container": getattr(metric, "container", ""),
                "target_type": "Utilization" if isinstance(target, hpa.Utilisation) else type(target).__name__,
                "target": target.percent if isinstance(target, hpa.Utilisation) else target.milli,
            }
        )
    behavior = spec.behavior
    return {
        "min_replicas": spec.min_replicas,
        "max_replicas": spec.max_replicas,
        "metrics": metrics,
        "behavior": behavior and {"scale_up": _rules(behavior.scale_up), "scale_down": _rules(behavior.scale_down)},
    }


def _rules(rules: hpa.ScalingRules) -> dict[str, Any] | None:
    if rules == hpa.ScalingRules():
        return None
    tolerance = rules.tolerance_ratio
    return {
        "window_s": rules.window_s,
        "select": rules.select and rules.select.value,
        "policies": rules.policies
        and [{"type": p.type.value, "value": p.value, "period_s": p.period_s} for p in rules.policies],
        "tolerance_milli": None if tolerance is None else round(tolerance * 1000),
    }
