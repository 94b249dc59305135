"""A made-up workload around ``hpa.sync`` → a sequence of syncs, each with what the controller saw.

The loop is closed: replicas follow what was desired, pods come, start, fail and go, load per pod follows the demand.
Everything irregular is a probability in ``Weather``; the same weather and seed give the same sequence. Loads are often
put exactly on the edges (tolerance, target), because that is where two implementations part.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from hpa_protocol import START_S, Sequence, Step

from leadtime.mechanics import hpa


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How irregular life is: probabilities per sync."""

    failing: float = 0.0  # that a metric fails
    missing: float = 0.0  # that a pod has no sample
    restart: float = 0.0
    new_bounds: float = 0.0
    new_behavior: float = 0.0
    hand: float = 0.0  # that somebody else sets the replicas
    on_the_edge: float = 0.0  # that the load lies exactly on an edge
    absurd: float = 0.0  # that a value is negative, zero, or too large to count
    pod_trouble: float = 0.0  # that a pod fails, loses readiness, or loses its conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sequence starts from. ``behaviors`` are those it may change to on the way."""

    spec: hpa.HpaSpec
    behaviors: tuple[hpa.Behavior | None, ...]
    weather: Weather
    gaps_s: tuple[float, ...]  # time between syncs, drawn anew each time
    syncs: int
    own_clock: bool
    seed: int


@dataclass(slots=True)
class LivingPod:
    """A pod on its way: bound after a while, Ready after another."""

    name: str
    starts_at_s: float
    ready_at_s: float
    reading: hpa.PodReading
    gone_at_s: float | None = None


EDGES = (0.9, 1.1, 1.0, 0.95, 1.05, 0.7, 1.3, 0.5, 2.0)
REQUESTS = (
    hpa.ContainerRequests(container="main", requests_milli={"cpu": 500, "memory": 512_000_000_000}),
    hpa.ContainerRequests(container="sidecar", requests_milli={"cpu": 70, "memory": 64_000_000_000}),
)
NO_MEMORY = (*REQUESTS[:1], hpa.ContainerRequests(container="sidecar", requests_milli={"cpu": 70}))


def needs_pods(metric: hpa.MetricSpec) -> bool:
    """Must single pods be played for this metric?"""
    return not isinstance(metric, hpa.ExternalMetric | hpa.ObjectMetric) or isinstance(metric.target, hpa.Value)


class World:
    """One workload. ``play`` gives the whole sequence and leadtime's own syncs along it."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.spec, self.weather = plan, plan.spec, plan.weather
        self.draw = random.Random(plan.seed)
        self.now_s = START_S
        self.replicas = self.draw.randint(max(plan.spec.min_replicas, 1), plan.spec.max_replicas)
        self.demand = float(self.replicas)  # in pods' worth of load
        self.living: list[LivingPod] = []
        self.born = 0
        self.needs_pods = any(needs_pods(metric) for metric in plan.spec.metrics)

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def play(self) -> tuple[Sequence, list[hpa.HpaSync]]:
        state, steps, syncs = hpa.HpaState(), [], []
        for index in range(self.plan.syncs):
            restart = index > 0 and self.chance(self.weather.restart)
            if index:
                own = self.plan.own_clock
                self.now_s += self.spec.flags.sync_period_s if own else self.draw.choice(self.plan.gaps_s)
            self.change_spec()
            self.set_by_hand(paused=self.replicas == 0 and not state.scaled_to_zero)
            step = Step(spec=self.spec, observed=self.observe(), restart=restart)
            done = hpa.sync(self.spec, state.after_restart() if restart else state, step.observed)
            state, self.replicas = done.state, done.desired
            steps.append(step)
            syncs.append(done)
        return Sequence(steps=tuple(steps), own_clock=self.plan.own_clock), syncs

    def set_by_hand(self, *, paused: bool) -> None:
        """Somebody else writes the replicas. A paused workload is woken soon, or most syncs would say nothing."""
        if not self.chance(max(self.weather.hand, 0.2 if paused else 0.0)):
            return
        highest = min(self.spec.max_replicas + 3, 2**31 - 1)
        chosen = self.draw.choice((0, 50, 100, *(self.draw.randint(1, highest) for _ in range(5))))
        self.replicas = min(chosen, highest)

    def change_spec(self) -> None:
        if self.chance(self.weather.new_bounds):
            kept = tuple(metric for metric in self.plan.spec.metrics if self.chance(0.7)) or self.plan.spec.metrics
            outside = any(isinstance(m, hpa.ExternalMetric | hpa.ObjectMetric) for m in kept)
            low = self.draw.choice((0, self.draw.randint(1, 12))) if outside else self.draw.randint(1, 12)
            highest = low + 40 if self.needs_pods else max(low + 40, self.plan.spec.max_replicas)
            bounds = {"min_replicas": low, "max_replicas": self.draw.randint(max(low, 1), highest)}
            self.spec = replace(self.spec, metrics=kept, **bounds)
        if self.chance(self.weather.new_behavior):
            self.spec = replace(self.spec, behavior=self.draw.choice(self.plan.behaviors))

    def observe(self) -> hpa.HpaObserved:
        if self.demand:  # an idle workload stays idle until the demand jumps
            self.demand = max(0.0, self.demand + self.draw.gauss(0, 0.03 * self.demand + 0.1))
        highest = float(self.spec.max_replicas)
        self.demand = min(self.demand, 2 * highest)  # or thousandths outgrow 64 bits
        if self.chance(0.06):
            self.demand = self.draw.choice((0.0, *(self.draw.uniform(0, 1.1 * highest) for _ in range(3))))
        if self.needs_pods:
            self.move_pods()
        pods = tuple(pod.reading for pod in self.living)
        status = sum(1 for pod in pods if not pod.deleting) if self.needs_pods else self.replicas
        if self.chance(0.1):
            status = min(max(0, status + self.draw.randint(-2, 2)), 2**31 - 1)
        hidden = self.chance(self.weather.failing * 0.1)
        return hpa.HpaObserved(
            now_s=self.now_s,
            spec_replicas=self.replicas,
            status_replicas=status,
            readings=tuple(self.read(metric, status) for metric in self.spec.metrics),
            pods=pods,
            selector_problem=hpa.SelectorProblem.INVALID if hidden else None,
        )

    # --- pods -------------------------------------------------------------------------------------------------

    def move_pods(self) -> None:
        self.living = [pod for pod in self.living if pod.gone_at_s is None or pod.gone_at_s > self.now_s]
        staying = [pod for pod in self.living if pod.gone_at_s is None]
        for _ in range(self.replicas - len(staying)):
            self.born += 1
            starts_at_s = self.now_s + self.draw.choice((0.0, 2.0, 20.0, 90.0))
            ready_at_s = starts_at_s + self.draw.choice((1.0, 10.0, 29.875, 30.0, 45.0, 120.0, 285.0, 300.0, 400.0))
            reading = hpa.PodReading(
                name=f"pod-{self.born}",
                phase=hpa.PodPhase.PENDING,
                ready=hpa.Ready.ABSENT,
                started_at_s=None,
                containers=NO_MEMORY if self.chance(self.weather.failing * 0.02) else REQUESTS,
            )
            pod = LivingPod(reading.name, starts_at_s, ready_at_s, reading)
            self.living.append(pod)
        for pod in self.draw.sample(staying, max(0, len(staying) - self.replicas)):
            pod.gone_at_s = self.now_s + self.draw.choice((1.0, 30.0, 100.0))
            pod.reading = replace(pod.reading, deleting=True)
        for pod in self.living:
            pod.reading = self.moved(pod)

    def moved(self, pod: LivingPod) -> hpa.PodReading:
        was = pod.reading
        if was.phase is hpa.PodPhase.PENDING and self.now_s >= pod.starts_at_s:
            began = pod.starts_at_s
            phase, ready = hpa.PodPhase.RUNNING, hpa.Ready.FALSE
            was = replace(was, phase=phase, ready=ready, ready_changed_at_s=began, started_at_s=began)
        if was.ready is hpa.Ready.FALSE and self.now_s >= pod.ready_at_s and was.phase is hpa.PodPhase.RUNNING:
            was = replace(was, ready=hpa.Ready.TRUE, ready_changed_at_s=pod.ready_at_s)
        if self.chance(self.weather.pod_trouble):
            was = self.troubled(pod, was)
        return was

    def troubled(self, pod: LivingPod, was: hpa.PodReading) -> hpa.PodReading:
        trouble = self.draw.randrange(6)
        if trouble == 0:
            return replace(was, phase=self.draw.choice(tuple(hpa.PodPhase)))
        if trouble == 1:
            return replace(was, ready=hpa.Ready.ABSENT)
        if trouble == 2:
            return replace(was, ready=hpa.Ready.UNKNOWN, ready_changed_at_s=self.now_s)
        if trouble == 3:
            return replace(was, started_at_s=None)
        if trouble == 4 and was.started_at_s is not None:  # around the end of the initial readiness delay
            delay_s = self.spec.flags.initial_readiness_delay_s + self.draw.choice((-0.125, 0.0, 0.125))
            return replace(was, ready=hpa.Ready.FALSE, ready_changed_at_s=was.started_at_s + delay_s)
        pod.ready_at_s = self.now_s + 60.0
        return replace(was, ready=hpa.Ready.FALSE, ready_changed_at_s=self.now_s)

    # --- readings ---------------------------------------------------------------------------------------------

    def read(self, metric: hpa.MetricSpec, status: int) -> hpa.Reading | hpa.ReadingError:
        if self.chance(self.weather.failing):
            return hpa.ReadingError(message="no answer")
        if isinstance(metric, hpa.ExternalMetric | hpa.ObjectMetric):
            value = self.total_milli(metric, status)
            if isinstance(metric, hpa.ObjectMetric):
                return hpa.ObjectReading(value_milli=value)
            if self.chance(self.weather.absurd):
                return hpa.ExternalReading(values_milli=self.draw.choice(((), (2**62, 2**62), (-5, 3), (7, -9, 4))))
            share = self.draw.randint(0, abs(value))
            return hpa.ExternalReading(values_milli=(value,) if self.chance(0.7) else (value - share, share))
        return hpa.PodSamples(samples=self.samples(metric))

    def total_milli(self, metric: hpa.ExternalMetric | hpa.ObjectMetric, status: int) -> int:
        if self.chance(self.weather.absurd):
            return self.draw.choice((0, -1, -metric.target.milli * 3, 2**62, 2**31 * metric.target.milli, 1))
        pods = status if isinstance(metric.target, hpa.AverageValue) else 1
        if self.chance(self.weather.on_the_edge):
            return round(metric.target.milli * pods * self.draw.choice(EDGES)) + self.draw.choice((0, 0, 0, 1, -1))
        ratio = self.demand if pods is status else self.demand / max(self.replicas, 1)
        return round(metric.target.milli * ratio)

    def samples(
        self, metric: hpa.PodsMetric | hpa.ResourceMetric | hpa.ContainerResourceMetric
    ) -> tuple[hpa.PodSample, ...]:
        target = metric.target
        if isinstance(target, hpa.Utilisation):
            assert isinstance(metric, hpa.ResourceMetric | hpa.ContainerResourceMetric)
            asked = (
                c.requests_milli.get(metric.resource, 0) for c in REQUESTS[: 1 if hasattr(metric, "container") else 2]
            )
            full = sum(asked) * target.percent / 100
        else:
            full = float(target.milli)
        on_the_edge = self.chance(self.weather.on_the_edge)
        load = self.draw.choice(EDGES) if on_the_edge else self.demand / max(len(self.living), 1)
        noise: Callable[[], float] = (lambda: 1.0) if on_the_edge else (lambda: self.draw.uniform(0.8, 1.2))
        made = []
        for pod in self.living:
            if self.chance(self.weather.missing):
                continue
            value = -3 if self.chance(self.weather.absurd) else round(full * load * noise())
            age_s = self.draw.choice((0.0, 15.0, 29.875, 30.0, 60.0))
            window_s = self.draw.choice((15.0, 30.0))
            made.append(hpa.PodSample(pod=pod.name, value_milli=value, at_s=self.now_s - age_s, window_s=window_s))
        if self.chance(self.weather.pod_trouble * 3):
            made.append(hpa.PodSample(pod="left-behind", value_milli=round(full), at_s=self.now_s, window_s=30.0))
        return tuple(made)
