"""One replay in a scenario with failures + a failure model → what the model was worth, over several draws of failures.

Four worlds a draw, all under the same loop and from the same state: *none* (no model), *placebo*, *model*, *oracle*
(risk_scorers.py). The pods of a draw fail alike in all four. Differences are paired by draw; their interval is
Student's, over draws. A model has shown a gain when its interval of requests lost lies below zero both beside no model
and beside its placebo; otherwise it has not, and that is what is said.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from leadtime.domain.risk import RiskScore, RiskScorer
from leadtime.loop.risks import RISK_KEY, RiskMemory
from leadtime.loop.tick import TickResult
from leadtime.scorecard.risk_alerts import AlertOutcome, AlertRecord, AlertScore, EndSeen, ends_of, record, scores_of
from leadtime.scorecard.run import WorldRun
from leadtime.simulate.pod_failures import WINDOW_S
from leadtime.simulate.risk_scorers import OracleScorer, PlaceboScorer
from leadtime.simulate.worlds import Prepared, Progress, begun, play_loop, pod_hours

DRAWS = 5
WORLDS = ("none", "placebo", "model", "oracle")
# Student's 97.5 % quantile by degrees of freedom; beyond ten, the tenth's is used (wider, never narrower).
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One world under one draw of failures.

    ``requests_lost``: expired, rejected, or in flight on a pod that failed (``in_flight_lost`` of them).
    """

    world: str
    seed: int
    requests_lost: float
    in_flight_lost: float
    pod_hours: float
    failures: int
    spare_replicas: int
    alerts: int
    alerts_failed: int
    alerts_false: int
    failures_missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean of paired differences and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskStudy:
    """All trials, in order of seed and then of WORLDS."""

    model: str
    horizon_min: int
    budget_per_day: int
    trials: tuple[Trial, ...]

    def of(self, world: str) -> list[Trial]:
        """The trials of one world, in order of seed."""
        return [trial for trial in self.trials if trial.world == world]

    def difference(self, world: str, to: str, value: Callable[[Trial], float]) -> Difference:
        """``world`` minus ``to``, paired by draw."""
        pairs = zip(self.of(world), self.of(to), strict=True)
        return difference([value(one) - value(other) for one, other in pairs])


class Watch:
    """Collects, tick by tick, what a trial is judged by."""

    def __init__(self) -> None:
        self.spares = 0
        self.scores: list[AlertScore] = []
        self.ends: list[EndSeen] = []
        self.told: dict[str, dict[int, RiskScore]] = {}  # pod → window end (epoch s) → alert

    def __call__(self, result: TickResult) -> None:
        """One tick."""
        self.scores += scores_of(result.tick)
        self.ends += ends_of(result.tick)
        for score in result.tick.risks:
            self.told.setdefault(score.pod, {})[int(score.window_end.timestamp())] = score
        memory = result.state.scaling.get(RISK_KEY)
        if isinstance(memory, RiskMemory):
            self.spares += sum(spare.started_at == result.tick.as_of for spare in memory.spares)

    def alerts(self) -> list[tuple[RiskScore, ...]]:
        """Every unbroken run of windows in which a pod was an alert, in order of its first window."""
        found: list[tuple[RiskScore, ...]] = []
        for _, by_end in sorted(self.told.items()):
            run: list[RiskScore] = []
            for end_s, score in sorted(by_end.items()):
                if run and end_s - run[-1].window_end.timestamp() > WINDOW_S:
                    found.append(tuple(run))
                    run = []
                run.append(score)
            found.append(tuple(run))
        return sorted(found, key=lambda run: (run[0].window_end, run[0].pod))


def difference(values: Sequence[float]) -> Difference:
    """Mean and Student's 95 % interval of paired differences. Raises ValueError for fewer than two."""
    if len(values) < 2:
        raise ValueError(f"interval of {len(values)} differences: two at least are needed")
    mean = fmean(values)
    half = T_975[min(len(values) - 1, len(T_975)) - 1] * stdev(values) / sqrt(len(values))
    return Difference(mean=mean, low=mean - half, high=mean + half)


def study(prepared: Prepared, scorer: RiskScorer, progress: Progress, *, draws: int = DRAWS) -> RiskStudy:
    """Play the four worlds under ``draws`` draws of failures, the replay's own seed first."""
    replay = prepared.replay
    trials: list[Trial] = []
    for draw in range(draws):
        seed = replay.seed + draw
        what = f"failures, draw {draw + 1} of {draws}"
        progress(what, 0.0)
        none = _trial(prepared, "none", seed, None)[0]
        progress(what, 0.2)
        model, watch = _trial(prepared, "model", seed, scorer)
        progress(what, 0.7)
        dealt = PlaceboScorer(scorer.name, watch.alerts(), seed=seed, from_s=replay.scored_from_s, until_s=replay.end_s)
        placebo = _trial(prepared, "placebo", seed, dealt)[0]
        oracle = _trial(prepared, "oracle", seed, None)[0]
        trials += [none, placebo, model, oracle]
    risk = replay.policy.risk
    return RiskStudy(
        model=scorer.name, horizon_min=risk.horizon_min, budget_per_day=risk.spare_replicas_per_day,
        trials=tuple(trials),
    )  # fmt: skip


def _trial(prepared: Prepared, world: str, seed: int, scorer: RiskScorer | None) -> tuple[Trial, Watch]:
    """Play one world; the oracle's scorer is made here, from the failures it knows."""
    replay, watch = prepared.replay, Watch()
    cluster = begun(prepared, seed)
    failures = cluster.failures
    if failures is None or replay.scenario.failures is None:
        raise ValueError(f"playing world {world}: the scenario has no failures")
    if world == "oracle":
        scorer = OracleScorer(failures, replay.scenario.failures.base_rate)
    played = play_loop(prepared, cluster, scorer, watch, lambda _what, _share: None, until_s=replay.end_s)
    found: AlertRecord = record(watch.scores, watch.ends, float(replay.end_s))
    trial = Trial(
        world=world, seed=seed, requests_lost=requests_lost(played.run), in_flight_lost=failures.in_flight_lost,
        pod_hours=pod_hours(played.run), failures=failures.failed, spare_replicas=watch.spares,
        alerts=len(found.alerts), alerts_failed=found.count(AlertOutcome.FAILED),
        alerts_false=found.count(AlertOutcome.DID_NOT_FAIL), failures_missed=len(found.missed),
    )  # fmt: skip
    return trial, watch


def requests_lost(run: WorldRun) -> float:
    """Requests of all workloads that arrived in scored steps and were not served."""
    return sum(float(work.unserved[work.demand_rps == work.demand_rps].sum()) for work in run.workloads.values())


def sentence(found: RiskStudy) -> tuple[bool, str]:
    """Whether the model has shown a gain, and the sentence for people."""
    lost = found.difference("model", "none", lambda trial: trial.requests_lost)
    cost = found.difference("model", "none", lambda trial: trial.pod_hours)
    fake = found.difference("model", "placebo", lambda trial: trial.requests_lost)
    none = fmean(trial.requests_lost for trial in found.of("none"))
    draws, failed = len(found.of("none")), sum(trial.failures for trial in found.of("none"))
    base = f"{none:,.0f} requests a draw are lost without a model ({failed:,} failures in {draws} draws)"
    change = f"{lost.mean:+,.0f} with it (95 % {lost.low:+,.0f} to {lost.high:+,.0f})"
    price = f"{cost.mean:+,.2f} pod-hours"
    if failed == 0:
        return False, "no pod failed in any draw: nothing can be said about the model"
    if lost.high < 0 and fake.high < 0:
        return True, f"the model pays in requests: {base}, {change}, and fewer than with its placebo, for {price}"
    why = "the interval reaches zero"
    if lost.high < 0:
        why = f"it is not told apart from its placebo ({fake.mean:+,.0f}, 95 % {fake.low:+,.0f} to {fake.high:+,.0f})"
    return False, f"no gain is shown, {why}: {base}, {change}, for {price}"


def as_json(found: RiskStudy, rounded: Callable[[float], float | None]) -> Mapping[str, object]:
    """The report's ``risk``; docs/report.md has every field."""
    gain, words = sentence(found)

    def interval(one: Difference) -> dict[str, float | None]:
        return {"mean": rounded(one.mean), "low": rounded(one.low), "high": rounded(one.high)}

    against = [(world, to) for to in ("none", "placebo") for world in WORLDS if world not in {"none", to}]
    return {
        "model": found.model,
        "horizon_min": found.horizon_min,
        "spare_replicas_per_day": found.budget_per_day,
        "draws": len(found.of("none")),
        "gain": gain,
        "sentence": words,
        "worlds": {world: _world(found.of(world), rounded) for world in WORLDS},
        "differences": {
            f"{world}_minus_{to}": {
                "requests_lost": interval(found.difference(world, to, lambda trial: trial.requests_lost)),
                "pod_hours": interval(found.difference(world, to, lambda trial: trial.pod_hours)),
            }
            for world, to in against
        },
    }


def _world(trials: Sequence[Trial], rounded: Callable[[float], float | None]) -> dict[str, object]:
    """Means over draws where a field ends in nothing, sums where it counts events; one list entry a draw."""
    failed, false = sum(t.alerts_failed for t in trials), sum(t.alerts_false for t in trials)
    judged = failed + false
    return {
        "requests_lost": rounded(fmean(t.requests_lost for t in trials)),
        "in_flight_lost": rounded(fmean(t.in_flight_lost for t in trials)),
        "pod_hours": rounded(fmean(t.pod_hours for t in trials)),
        "failures": sum(t.failures for t in trials),
        "spare_replicas": sum(t.spare_replicas for t in trials),
        "alerts": sum(t.alerts for t in trials),
        "alerts_failed": failed,
        "alerts_false": false,
        "precision_ratio": rounded(failed / judged) if judged else None,
        "failures_missed": sum(t.failures_missed for t in trials),
        "by_draw": [
            {
                "seed": t.seed, "requests_lost": rounded(t.requests_lost), "pod_hours": rounded(t.pod_hours),
                "failures": t.failures, "spare_replicas": t.spare_replicas, "alerts": t.alerts,
            }
            for t in trials
        ],
    }  # fmt: skip
