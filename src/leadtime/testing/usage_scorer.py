"""A small failure model for tests, without data frames: a logistic on the mean usage ratio of a pod's newest windows.

Not trained and not calibrated: it shows what the loop does with scores that carry information, nothing more.
"""

from collections.abc import Callable
from datetime import timedelta
from math import exp

from leadtime.domain.risk import PodUsage, RiskDriver, RiskReading, RiskScore


class UsageScorer:
    """A RiskScorer: log-odds = ``intercept`` + ``slope`` · (mean ratio of the last ``windows`` windows − 0.5)."""

    def __init__(
        self,
        *,
        intercept: float = -10.0,
        slope: float = 70.0,
        windows: int = 6,
        base_rate: float = 0.005,
        name: str = "usage scorer",
        note: Callable[[RiskReading], None] = lambda _reading: None,
    ) -> None:
        self.name = name
        self._intercept = intercept
        self._slope = slope
        self._windows = windows
        self._base_rate = base_rate
        self._note = note

    def scores(self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float) -> RiskReading:
        """One score a running pod that has at least one window with a measured CPU."""
        gone = {end.pod for end in usage.ends}
        scores, unscored = [], {}
        for pod in sorted(usage.pods, key=lambda pod: pod.pod):
            if pod.pod in gone:
                continue
            mine = [w for w in usage.windows if w.pod == pod.pod and w.avg_cpu is not None]
            newest = sorted(mine, key=lambda window: window.end)[-self._windows :]
            if not newest or not pod.request_cpu:
                unscored[pod.pod] = "no usage window"
                continue
            ratio = sum(w.avg_cpu / pod.request_cpu for w in newest if w.avg_cpu is not None) / len(newest)
            effect = self._slope * (ratio - 0.5) * len(newest) / self._windows
            probability = 1 / (1 + exp(-(self._intercept + effect)))
            drivers = (RiskDriver(feature="cpu_ratio_mean", value=ratio, effect=effect),)
            scores.append(
                RiskScore(
                    pod=pod.pod, node=pod.node, workload=pod.workload, as_of=usage.as_of, window_end=newest[-1].end,
                    horizon=horizon, probability=probability, base_rate=self._base_rate,
                    expires_at=newest[-1].end + expiry, model=self.name,
                    drivers=drivers if probability >= explain_from else (),
                )
            )  # fmt: skip
        reading = RiskReading(scores=tuple(scores), unscored=unscored)
        self._note(reading)
        return reading
