"""Two rivals of a failure model in a simulated cluster: its own alerts without what they know, and perfect knowledge.

*Placebo*: every alert of the model's world is dealt out again, at a time drawn over the whole span and to a pod drawn
among those that run then. As many alerts, as long, as probable; but another pod in the same minute would still tell
when to be careful, so the time is drawn anew too. *Oracle*: a pod that will fail within the horizon has probability 1,
all others the base rate; the bound of what any model could do with the same measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import blake2b

import numpy as np

from leadtime.domain.risk import PodUsage, RiskDriver, RiskReading, RiskScore
from leadtime.domain.time_window import from_epoch
from leadtime.simulate.pod_failures import WINDOW_S, PodFailures, ref_of

STREAM = 12  # apart from every other use of the seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealt:
    """One alert dealt out again: from the window that ends at ``first_end_s`` on, one score a window."""

    number: int
    first_end_s: int
    scores: tuple[RiskScore, ...]


class PlaceboScorer:
    """A RiskScorer that deals out ``alerts`` again over window ends in (``from_s``, ``until_s``]."""

    def __init__(
        self, name: str, alerts: Sequence[Sequence[RiskScore]], *, seed: int, from_s: int, until_s: int
    ) -> None:
        self.name = f"placebo of {name}"
        self._seed = seed
        rng = np.random.default_rng([seed, STREAM])
        first, last = from_s // WINDOW_S + 1, until_s // WINDOW_S
        self.dealt = tuple(
            Dealt(
                number=number,
                first_end_s=WINDOW_S * int(rng.integers(first, max(first + 1, last - len(scores) + 2))),
                scores=tuple(scores),
            )
            for number, scores in enumerate(alerts)
        )

    def scores(self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float) -> RiskReading:
        """Scores of the alerts that are running at the newest window's end; nothing about any other pod."""
        del horizon, explain_from
        newest_s = max(int(window.end.timestamp()) for window in usage.windows)
        found: dict[str, RiskScore] = {}
        for dealt in self.dealt:
            i = (newest_s - dealt.first_end_s) // WINDOW_S
            pod = self._pod(dealt, usage) if 0 <= i < len(dealt.scores) else None
            if pod is None or (pod in found and found[pod].probability >= dealt.scores[i].probability):
                continue
            found[pod] = self._dealt(dealt.scores[i], pod, usage, newest_s, expiry)
        return RiskReading(scores=tuple(found[pod] for pod in sorted(found)), unscored={})

    def _pod(self, dealt: Dealt, usage: PodUsage) -> str | None:
        """The pod this alert falls to: drawn among those Ready when it begins; None when that one is gone."""
        there = [pod.pod for pod in usage.pods if pod.started_at.timestamp() < dealt.first_end_s]
        gone = {end.pod for end in usage.ends if end.at.timestamp() < dealt.first_end_s}
        among = [pod for pod in there if pod not in gone]
        if not among:
            return None
        chosen = min(among, key=lambda pod: blake2b(f"{self._seed}/{dealt.number}/{pod}".encode()).digest())
        return None if any(end.pod == chosen for end in usage.ends) else chosen

    def _dealt(self, score: RiskScore, pod: str, usage: PodUsage, newest_s: int, expiry: timedelta) -> RiskScore:
        facts = next(known for known in usage.pods if known.pod == pod)
        end = from_epoch(newest_s)
        return replace(
            score, pod=pod, node=facts.node, workload=facts.workload, as_of=usage.as_of, window_end=end,
            expires_at=end + expiry, model=self.name,
        )  # fmt: skip


class OracleScorer:
    """A RiskScorer that has seen the lives drawn."""

    name = "oracle of failures"

    def __init__(self, failures: PodFailures, base_rate: float) -> None:
        self._failures = failures
        self._base_rate = base_rate

    def scores(self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float) -> RiskReading:
        """1 for pods that fail within the horizon from the newest window's end on, the base rate for all others."""
        del explain_from
        newest_s = max(window.end.timestamp() for window in usage.windows)
        gone = {end.pod for end in usage.ends}
        scores = []
        for pod in usage.pods:
            if pod.pod in gone:
                continue
            life = self._failures.lives[pod.pod]
            at_s = life.fails_at_s
            fails = at_s is not None and newest_s < at_s <= newest_s + horizon.total_seconds()
            end = from_epoch(newest_s)
            drivers = (RiskDriver(feature="the future", value=at_s, effect=0.0),) if fails else ()
            scores.append(
                RiskScore(
                    pod=pod.pod, node=life.node, workload=ref_of(life.workload), as_of=usage.as_of, window_end=end,
                    horizon=horizon, probability=1.0 if fails else self._base_rate, base_rate=self._base_rate,
                    expires_at=end + expiry, model=self.name, drivers=drivers,
                )
            )  # fmt: skip
        return RiskReading(scores=tuple(scores), unscored={})
