"""One workload: demand, its HPA, its Deployment and its queue → pods wanted, created, deleted; requests served or not.

The HPA reads the mean rate of the last complete step as an external metric. A gap in the demand series is an error to
it, never zero. Its minReplicas is the owner's or a live floor's, whichever is higher.
"""

import math
from dataclasses import dataclass

from leadtime.domain.risk import PodEnding
from leadtime.mechanics import hpa
from leadtime.simulate.cluster_events import Bench, Due
from leadtime.simulate.cluster_nodes import NodePool
from leadtime.simulate.pods import Pod, PodGroup
from leadtime.simulate.queueing import FluidQueue
from leadtime.simulate.recorder import WorkloadColumns
from leadtime.simulate.scenario import DirectionScenario, HpaScenario, LowPriorityScenario, Scenario, WorkloadScenario

RISE_OVER_S = 900.0  # a rise is over when the HPA asked for nothing more for a quarter of an hour
STAYED_RATIO = 0.95  # demand stayed: at least this share of what it was …
STAYED_LOOKBACK_S = 600  # … ten minutes earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """No scale-down below ``level`` replicas until ``until_s`` (open)."""

    until_s: float
    level: int


class Workload:
    """One Deployment behind an HPA, its users and its queue."""

    __slots__ = (
        "arrivals_rps", "bench", "capacity_rps", "columns", "floor", "floor_expires_s", "group", "hpa_on", "hpa_spec",
        "hpa_state", "hpa_wish", "key", "lost_now", "low", "metric_rps", "next_sync_s", "owner_min", "protected",
        "queue", "rise_seen_s", "scenario", "step", "step_s", "target_ratio", "wanted", "warm_hold_s",
    )  # fmt: skip

    def __init__(
        self, scenario: Scenario, mine: WorkloadScenario, pool: NodePool, bench: Bench, *, start_s: int,
        step: int, metric_rps: list[float], arrivals_rps: list[float], target_ratio: float,
    ) -> None:  # fmt: skip
        self.scenario = mine
        self.key = mine.key
        self.bench = bench
        self.step_s = scenario.step_s
        self.warm_hold_s = scenario.warm_hold_s
        self.capacity_rps = mine.capacity_per_pod_rps
        self.step = step  # index, in the two demand columns, of the step that begins at the cluster's now
        self.metric_rps = metric_rps  # NaN: the series has no value; shared, never changed
        self.arrivals_rps = arrivals_rps
        self.group = PodGroup(
            key=mine.key, pool=pool, gpus=mine.gpus_per_pod, priority=mine.priority,
            stages=(mine.image.distribution(), mine.weights.distribution()), cached_ratio=mine.image_cached_ratio,
            run_s=None, bench=bench, start_s=start_s,
        )  # fmt: skip
        self.group.owner = self
        self.queue = FluidQueue(
            patience_s=scenario.patience_s, service_s=scenario.service_time_s, slo_s=scenario.slo_s,
            limit=scenario.queue_limit_requests,
        )  # fmt: skip
        self.owner_min = mine.min_replicas
        self.floor: int | None = None
        self.floor_expires_s = 0.0
        self.target_ratio = target_ratio
        self.hpa_on = True
        self.hpa_state = hpa.HpaState()
        self.hpa_spec = hpa_spec(mine.hpa, mine, target_ratio)
        self.next_sync_s = float(start_s)
        self.rise_seen_s = -math.inf
        self.wanted = mine.initial_replicas or mine.min_replicas
        self.hpa_wish = 0  # what the HPA's metric alone asked for at its last sync
        self.protected: dict[int, Protection] = {}  # by pod serial
        self.lost_now = 0.0  # requests in flight on pods that failed in this step
        self.columns: WorkloadColumns | None = None
        self.low = LowPriority(mine.low_priority_pods, mine, pool, bench, start_s) if mine.low_priority_pods else None

    # --- once a step, before the step is played --------------------------------------------------------------------

    def control(self, at_s: int) -> None:
        """Expire the floor, sync the HPA when it is due, and let the Deployment follow."""
        if self.floor is not None and at_s >= self.floor_expires_s:
            self.set_floor(None, 0.0, at_s, detail="lapsed")
        if self.hpa_on and at_s >= self.next_sync_s:
            self.next_sync_s = max(self.next_sync_s, at_s - self.step_s) + self.scenario.hpa.sync_s
            before = self.wanted
            self._sync(at_s)
            if self.protected:
                self.wanted = max(self.wanted, min(before, self._held(at_s)))
        group = self.group
        missing = self.wanted - len(group.pending) - len(group.starting) - len(group.ready)
        if missing > 0:
            for _ in range(missing):
                group.create(at_s)
        elif missing < 0:
            self.delete(group.first_to_go(-missing, at_s), at_s)

    @property
    def effective_min(self) -> int:
        """minReplicas as the HPA sees it."""
        floor = self.floor
        return self.owner_min if floor is None or floor < self.owner_min else floor

    def _sync(self, at_s: int) -> None:
        rps = self.metric_rps[self.step - 1] if self.step > 0 else math.nan
        reading: hpa.Reading | hpa.ReadingError
        if rps != rps:  # noqa: PLR0124 -- NaN
            reading = hpa.ReadingError(message="the series has no value for the last step")
        else:
            reading = hpa.ExternalReading(values_milli=(round(rps * 1000.0),))
        before = self.wanted
        seen = hpa.HpaObserved(
            now_s=float(at_s), spec_replicas=before, status_replicas=self.group.total, readings=(reading,)
        )  # fmt: skip
        sync = hpa.sync(self.hpa_spec, self.hpa_state, seen)
        self.hpa_state = sync.state
        self.wanted = sync.desired
        if sync.proposals:
            self.hpa_wish = sync.proposals[0] or 0
        if sync.proposals and (sync.proposals[0] or 0) > before:
            self._note_rise(at_s, sync.proposals[0] or 0, before)
        if sync.reason is hpa.SyncReason.BELOW_MIN and sync.desired > before and self.columns is not None:
            self.columns.now.floor_added += max(0, sync.desired - max(before, self.owner_min))

    def _note_rise(self, at_s: int, asked: int, before: int) -> None:
        """The HPA asks for more than stands; only the first sync of a rise is an event."""
        if at_s - self.rise_seen_s > RISE_OVER_S:
            self.bench.log.add(
                at_s, "threshold_crossed", workload=self.key, pool=self.group.pool.name, count=asked - before,
                detail=f"the HPA asks for {asked} where {before} stood",
            )  # fmt: skip
        self.rise_seen_s = at_s

    # --- deletions -------------------------------------------------------------------------------------------------

    def delete(self, pods: list[Pod], at_s: float, how: PodEnding = PodEnding.DELETED) -> None:
        """Delete ``pods`` and count what it cost.

        A Ready pod is *busy* when the fluid load keeps at least one request in flight per ready pod (rate per pod ×
        service time ≥ 1) or anybody waits; *warm* when its weights are loaded and it served within the warm hold.
        """
        ready, step = len(self.group.ready), self.step
        rate_rps = self.arrivals_rps[step - 1] if step > 0 else self.arrivals_rps[0]
        in_flight = min(rate_rps, ready * self.capacity_rps) * self.queue.service_s
        busy = bool(self.queue.cohorts) or (ready > 0 and in_flight >= ready)
        served_s = self._last_served_s(at_s)
        back = max(0, step - 1 - STAYED_LOOKBACK_S // self.step_s)
        stayed = rate_rps >= STAYED_RATIO * self.arrivals_rps[back]
        counts = None if self.columns is None else self.columns.now
        for pod in pods:
            if counts is not None and pod.node is not None:
                counts.deleted += 1
                counts.deleted_stayed += stayed
                if pod.ready_s is not None:
                    counts.busy_killed += busy
                    counts.warm_killed += pod.ready_s < served_s
            self.group.delete(pod, at_s, how)

    def fail(self, pod: Pod, at_s: float) -> float:
        """``pod`` fails: requests in flight on it are lost, and it serves nothing more. Returns how many.

        In flight on one pod: its share of the arrivals, or its capacity while anybody waits, times the service time.
        """
        share_rps = self.arrivals_rps[self.step] / max(1, len(self.group.ready))
        rate_rps = self.capacity_rps if self.queue.cohorts else min(share_rps, self.capacity_rps)
        lost = rate_rps * self.queue.service_s
        self.lost_now += lost
        self.group.delete(pod, at_s, PodEnding.FAILED)
        return lost

    def pod_gone(self, pod: Pod) -> None:
        """Its protection goes with it."""
        self.protected.pop(pod.serial, None)

    def protect(self, serial: int, until_s: float | None) -> None:
        """Hold scale-downs while the pod stands, until ``until_s`` (None: no longer).

        What only our floor holds above the HPA's wish is not protected: a spare replica goes when its floor does.
        """
        before = self.protected.pop(serial, None)
        if until_s is not None:
            by_floor = self.floor is not None and self.wanted <= self.floor
            level = max(self.owner_min, min(self.wanted, self.hpa_wish)) if by_floor else self.wanted
            self.protected[serial] = Protection(until_s=until_s, level=level if before is None else before.level)

    def _held(self, at_s: float) -> int:
        """Replicas below which nothing is scaled down now."""
        self.protected = {serial: held for serial, held in self.protected.items() if held.until_s > at_s}
        return max((held.level for held in self.protected.values()), default=0)

    def _last_served_s(self, at_s: float) -> float:
        """End of the newest complete step in which requests came; minus infinity when none did within the hold."""
        for back in range(min(self.step, int(self.warm_hold_s // self.step_s) + 1)):
            if self.arrivals_rps[self.step - 1 - back] > 0.0:
                return float(at_s - back * self.step_s)
        return -math.inf

    # --- the step itself -------------------------------------------------------------------------------------------

    def end_step(self, start_s: int, end_s: int) -> None:
        """Serve the step's requests with the ready pod seconds it had, and write its columns when somebody records."""
        group = self.group
        group.touch(end_s)
        arrived = self.arrivals_rps[self.step] * self.step_s
        columns = self.columns
        if columns is not None:
            columns.begin_step(arrived)
        capacity = group.ready_area_s * self.capacity_rps
        self.queue.step(self.step, start_s, self.step_s, arrived=arrived, capacity=capacity, book=columns)
        if self.lost_now:
            if columns is not None:
                columns.lose(self.step, self.lost_now)
            self.lost_now = 0.0
        if columns is not None:
            columns.end_step(
                wanted=self.wanted, ready=len(group.ready), starting=len(group.starting), pending=len(group.pending),
                floor=self.effective_min, pod_s=group.bound_area_s, pending_s=group.pending_area_s,
            )  # fmt: skip
        group.ready_area_s = group.bound_area_s = group.pending_area_s = 0.0
        self.step += 1

    # --- writes ----------------------------------------------------------------------------------------------------

    def set_floor(self, replicas: int | None, expires_s: float, at_s: float, *, detail: str = "") -> None:
        """Write or (None) remove the floor; never above maxReplicas, which the API server would refuse."""
        before = self.effective_min
        self.floor = None if replicas is None else min(replicas, self.scenario.max_replicas)
        self.floor_expires_s = expires_s
        self._minimum_moved(before, at_s, detail)

    def set_owner_min(self, replicas: int) -> None:
        """The owner writes another minReplicas, at most maxReplicas."""
        self.owner_min = replicas
        self.hpa_spec = self.hpa_spec.with_bounds(self.effective_min, self.scenario.max_replicas)

    def set_target_ratio(self, target_ratio: float) -> None:
        """The owner aims the HPA at another share of a pod's capacity; its recommendations so far stay."""
        self.target_ratio = target_ratio
        spec = hpa_spec(self.scenario.hpa, self.scenario, target_ratio)
        self.hpa_spec = spec.with_bounds(self.effective_min, self.scenario.max_replicas)

    def _minimum_moved(self, before: int, at_s: float, detail: str) -> None:
        after = self.effective_min
        if after != self.hpa_spec.min_replicas:
            self.hpa_spec = self.hpa_spec.with_bounds(after, self.scenario.max_replicas)
        if after != before:
            kind = "floor_raised" if after > before else "floor_released"
            count = abs(after - before)
            self.bench.log.add(at_s, kind, workload=self.key, pool=self.group.pool.name, count=count, detail=detail)


class LowPriority:
    """A batch workload in the same queue: pods at a steady pace, each running a while. Paused, new ones are held."""

    __slots__ = ("bench", "group", "held", "paused", "scenario")

    def __init__(
        self, scenario: LowPriorityScenario, host: WorkloadScenario, pool: NodePool, bench: Bench, start_s: int
    ) -> None:
        self.scenario = scenario
        self.bench = bench
        self.group = PodGroup(
            key=f"{host.namespace}/{scenario.name}", pool=pool, gpus=scenario.gpus_per_pod, priority=scenario.priority,
            stages=(), cached_ratio=1.0, run_s=scenario.run_s, bench=bench, start_s=start_s,
        )  # fmt: skip
        self.paused = False
        self.held = 0
        bench.push(start_s + scenario.every_s, Due.BATCH_ARRIVAL, self)

    def arrive(self, at_s: float) -> None:
        """A pod is submitted: created, or held while admission is paused."""
        self.bench.push(at_s + self.scenario.every_s, Due.BATCH_ARRIVAL, self)
        if self.paused:
            self.held += 1
        else:
            self.group.create(at_s)

    def pause(self, at_s: float, *, paused: bool) -> None:
        """Hold back new pods, or admit them and all that were held."""
        self.paused = paused
        if not paused:
            for _ in range(self.held):
                self.group.create(at_s)
            self.held = 0


def hpa_spec(scenario: HpaScenario, mine: WorkloadScenario, target_ratio: float) -> hpa.HpaSpec:
    """The HPA object: one external metric, AverageValue = target · capacity in thousandths of a request/s."""
    behavior = None
    if scenario.behavior != "default":
        behavior = hpa.Behavior(
            scale_up=_rules(scenario.behavior.scale_up), scale_down=_rules(scenario.behavior.scale_down)
        )  # fmt: skip
    target = hpa.AverageValue(milli=max(1, round(target_ratio * mine.capacity_per_pod_rps * 1000.0)))
    return hpa.HpaSpec(
        min_replicas=mine.min_replicas,
        max_replicas=mine.max_replicas,
        metrics=(hpa.ExternalMetric(name="requests_per_second", target=target),),
        behavior=behavior,
        flags=hpa.HpaFlags(
            sync_period_s=float(scenario.sync_s),
            tolerance_ratio=scenario.tolerance_ratio,
            downscale_stabilisation_s=float(scenario.downscale_stabilisation_s),
        ),
    )


def _rules(direction: DirectionScenario) -> hpa.ScalingRules:
    policies = None
    if direction.policies is not None:
        policies = tuple(
            hpa.RatePolicy(type=hpa.PolicyType(rate.type), value=rate.value, period_s=rate.period_s)
            for rate in direction.policies
        )
    return hpa.ScalingRules(
        window_s=direction.window_s,
        select=None if direction.select is None else hpa.SelectPolicy(direction.select),
        policies=policies,
        tolerance_ratio=direction.tolerance_ratio,
    )
