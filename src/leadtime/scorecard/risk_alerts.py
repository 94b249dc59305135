"""Scores that were alerts + how pods ended → one line an alert with what came of it, and the failures nobody foresaw.

One definition for replay, shadow and live. Scores of one pod at most a quarter of an hour apart are one alert. It is
kept: the pod failed by the end of the newest score's horizon; false: that time passed and the pod had not ended. An
alert whose pod ended otherwise before that, or whose time has not passed, is neither.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from leadtime.domain.risk import PodEnding, RiskDriver, lift
from leadtime.domain.tick import Tick

SAME_ALERT_S = 900.0


class AlertOutcome(StrEnum):
    """What came of an alert."""

    FAILED = "failed"
    DID_NOT_FAIL = "did not fail"
    ENDED_OTHERWISE = "ended otherwise"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertScore:
    """One score in force at ``at_s`` that was an alert. ``until_s``: end (closed) of the time it speaks about."""

    at_s: float
    pod: str
    node: str | None
    workload: str | None
    probability: float
    base_rate: float
    until_s: float
    horizon_s: float
    drivers: tuple[RiskDriver, ...] = ()

    @property
    def lift(self) -> float:
        """How many times the base rate; 1 = as everybody."""
        return lift(self.probability, self.base_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSeen:
    """One pod's end."""

    at_s: float
    pod: str
    node: str | None
    workload: str | None
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert: from ``first_s`` to ``last_s`` in force; ``highest``: its most probable score. ``ended_s``: the pod's
    end, None while it runs or where it came after ``until_s``."""

    pod: str
    first_s: float
    last_s: float
    until_s: float
    highest: AlertScore
    outcome: AlertOutcome = AlertOutcome.OPEN
    ended_s: float | None = None

    @property
    def warned_ahead_s(self) -> float | None:
        """From the alert's first instant to the failure; None where there was none."""
        failed = self.outcome is AlertOutcome.FAILED and self.ended_s is not None
        return self.ended_s - self.first_s if failed and self.ended_s is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """All alerts in order of their first instant, and failures without one. ``now_s``: known up to here."""

    alerts: tuple[Alert, ...]
    missed: tuple[EndSeen, ...]

    def count(self, outcome: AlertOutcome) -> int:
        """Alerts with this outcome."""
        return sum(alert.outcome is outcome for alert in self.alerts)

    @property
    def precision_ratio(self) -> float | None:
        """Failed / (failed + did not fail); None while there is neither."""
        kept, false = self.count(AlertOutcome.FAILED), self.count(AlertOutcome.DID_NOT_FAIL)
        return kept / (kept + false) if kept + false else None


def record(scores: Iterable[AlertScore], ends: Sequence[EndSeen], now_s: float) -> AlertRecord:
    """Put scores together to alerts and judge each by what is known at ``now_s``. ``scores`` in order of time."""
    ended = {end.pod: end for end in ends if end.at_s <= now_s}
    open_alerts: dict[str, Alert] = {}
    done: list[Alert] = []
    for score in scores:
        before = open_alerts.get(score.pod)
        if before is not None and score.at_s - before.last_s <= SAME_ALERT_S:
            highest = score if score.probability > before.highest.probability else before.highest
            until_s = max(before.until_s, score.until_s)
            open_alerts[score.pod] = replace(before, last_s=score.at_s, until_s=until_s, highest=highest)
            continue
        if before is not None:
            done.append(before)
        open_alerts[score.pod] = Alert(
            pod=score.pod, first_s=score.at_s, last_s=score.at_s, until_s=score.until_s, highest=score
        )
    judged = [_judged(alert, ended.get(alert.pod), now_s) for alert in (*done, *open_alerts.values())]
    judged.sort(key=lambda alert: (alert.first_s, alert.pod))
    warned = {alert.pod for alert in judged if alert.outcome is AlertOutcome.FAILED}
    missed = tuple(end for end in ends if end.failed and end.at_s <= now_s and end.pod not in warned)
    return AlertRecord(alerts=tuple(judged), missed=missed)


def _judged(alert: Alert, end: EndSeen | None, now_s: float) -> Alert:
    if end is not None and end.at_s <= alert.until_s:
        how = AlertOutcome.FAILED if end.failed else AlertOutcome.ENDED_OTHERWISE
        return replace(alert, outcome=how, ended_s=end.at_s)
    if now_s > alert.until_s:
        return replace(alert, outcome=AlertOutcome.DID_NOT_FAIL)
    return alert


def scores_of(tick: Tick) -> list[AlertScore]:
    """A tick's alerts."""
    return [
        AlertScore(
            at_s=tick.as_of.timestamp(), pod=risk.pod, node=risk.node,
            workload=None if risk.workload is None else risk.workload.key, probability=risk.probability,
            base_rate=risk.base_rate, until_s=(risk.window_end + risk.horizon).timestamp(),
            horizon_s=risk.horizon.total_seconds(),
            drivers=risk.drivers,
        )
        for risk in tick.risks
    ]  # fmt: skip


def ends_of(tick: Tick) -> list[EndSeen]:
    """A tick's pod ends."""
    return [
        EndSeen(
            at_s=end.at.timestamp(), pod=end.pod, node=end.node,
            workload=None if end.workload is None else end.workload.key, failed=end.how is PodEnding.FAILED,
        )
        for end in tick.pod_ends
    ]  # fmt: skip
