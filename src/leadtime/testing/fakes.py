"""Fakes at the seams of the loop, shipped: a source from literal series, an actuator that records, a sink in a list."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from leadtime.domain.decision import Decision, Outcome
from leadtime.domain.evidence import Explanation
from leadtime.domain.lead_time import StageSample
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series
from leadtime.domain.snapshot import ClusterSnapshot
from leadtime.domain.tick import Tick
from leadtime.domain.time_window import TimeWindow


class FakeSource:
    """Offers a snapshot (or a function of ``as_of``), literal demand series and stage samples; hides the future."""

    def __init__(
        self,
        snapshot: ClusterSnapshot | Callable[[datetime], ClusterSnapshot],
        series: Mapping[WorkloadRef, Series | Missing],
        samples: Sequence[StageSample] = (),
    ) -> None:
        self._snapshot = snapshot
        self._series = dict(series)
        self._samples = tuple(samples)

    def snapshot(self, as_of: datetime) -> ClusterSnapshot:
        """The snapshot, stamped ``as_of``."""
        if isinstance(self._snapshot, ClusterSnapshot):
            return replace(self._snapshot, as_of=as_of)
        return self._snapshot(as_of)

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """Buckets of the literal series that lie in ``window`` and are visible at ``as_of``."""
        series = self._series.get(ref)
        if series is None:
            return Missing(source=f"demand of {ref.key}", reason="no such series")
        if isinstance(series, Missing):
            return series
        step = timedelta(seconds=series.step_s)
        visible_until = min(window.end, as_of - timedelta(seconds=series.lag_s))
        first = max(0, -((series.start - window.start) // step))
        last = min(len(series.values), (visible_until - series.start) // step)
        values = series.values[first:last] if last > first else ()
        return replace(series, start=series.start + first * step, values=tuple(values))

    def stage_samples(self, since: datetime | None, as_of: datetime) -> Sequence[StageSample]:
        """Samples that ended in (since, as_of]."""
        return tuple(s for s in self._samples if s.ended_at <= as_of and (since is None or s.ended_at > since))


class RecordingActuator:
    """Says yes to everything and remembers it; changes nothing."""

    def __init__(self) -> None:
        self.acted: list[Decision] = []

    def act(self, decisions: Sequence[Decision], as_of: datetime) -> Sequence[Outcome]:
        """One applied outcome per decision with an action."""
        done = [decision for decision in decisions if decision.action is not None]
        self.acted.extend(done)
        why = Explanation(reason=Reason.APPLIED, sentence="recorded by the fake")
        return tuple(
            Outcome(scope=d.scope, actuator="fake", applied=True, why=why, rollback="nothing to undo", written_at=as_of)
            for d in done
        )


class ListSink:
    """A TickSink that keeps ticks in a list."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []

    def append(self, tick: Tick) -> None:
        """Keep ``tick``."""
        self.ticks.append(tick)


class RecordingWriter:
    """A ClusterWriter that remembers every call as text; ``fail`` makes every write raise OSError."""

    def __init__(self, *, fail: bool = False) -> None:
        self.calls: list[str] = []
        self._fail = fail

    def _write(self, call: str) -> None:
        if self._fail:
            raise OSError("connection refused")
        self.calls.append(call)

    def set_floor(self, ref: WorkloadRef, replicas: int, expires_at: datetime) -> None:
        """Remember the floor."""
        self._write(f"set_floor {ref.key} {replicas} until {expires_at:%H:%M}")

    def release_floor(self, ref: WorkloadRef) -> None:
        """Remember the release."""
        self._write(f"release_floor {ref.key}")

    def set_buffer(self, ref: WorkloadRef, pool: str, pods: int, expires_at: datetime) -> None:
        """Remember the buffer."""
        self._write(f"set_buffer {ref.key} {pool} {pods} until {expires_at:%H:%M}")

    def set_low_priority_admission(self, queue: str, *, paused: bool) -> None:
        """Remember the pause."""
        self._write(f"set_low_priority_admission {queue} {'paused' if paused else 'admitted'}")

    def set_consolidation(self, pool: str, *, offered: bool) -> None:
        """Remember the offer."""
        self._write(f"set_consolidation {pool} {'offered' if offered else 'left to the node autoscaler'}")

    def protect_pod(self, pod: str, ref: WorkloadRef, expires_at: datetime | None) -> None:
        """Remember the protection."""
        self._write(f"protect_pod {pod} of {ref.key} until {'none' if expires_at is None else f'{expires_at:%H:%M}'}")

    def avoid_node(self, node: str, pool: str, expires_at: datetime | None) -> None:
        """Remember the node that is avoided."""
        self._write(f"avoid_node {node} of {pool} until {'none' if expires_at is None else f'{expires_at:%H:%M}'}")
