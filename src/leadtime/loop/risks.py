"""Usage and a risk model → which pods are at risk in this tick, what stands for them, and what the budgets allow.

Scores are made when a new usage window is there, kept until they expire, and never used after that. Usage that cannot
be read gives no score, and the evidence says so. All state is RiskMemory, a value in LoopState.scaling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leadtime.domain.at_risk import AvoidedNode, PodAtRisk, RiskStanding, Spare
from leadtime.domain.decision import Action, AvoidNode, Decision, ProtectPod, SetFloor
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import PodEnd, RiskScore, RiskScorer, UsageSource
from leadtime.domain.series import Missing
from leadtime.domain.time_window import TimeWindow
from leadtime.loop.evidence import EvidenceBook
from leadtime.policy.schema import RiskPolicy
from leadtime.propose import wording as say
from leadtime.propose.context import WorkloadView

RISK_KEY = "risk"  # in LoopState.scaling; a workload key holds a slash, so they never meet
WINDOW = timedelta(seconds=300)  # a usage window's usual length (domain.borg.WINDOW_US)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A pod that is protected, until when (open)."""

    workload: WorkloadRef
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskMemory:
    """What survives a tick. ``spares``: all started within the last 24 h, those that stand among them."""

    scores: tuple[RiskScore, ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    newest_window: datetime | None = None
    ends_until: datetime | None = None
    absent: str | None = None
    protected: Mapping[str, Protected] = field(default_factory=dict)
    avoided: Mapping[str, AvoidedNode] = field(default_factory=dict)
    spares: tuple[Spare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskSeen:
    """What was read and scored: scores in force, pods that ended since the last tick, and the memory that knows them.

    ``absent``: why there is nothing new to score, in words; None while usage can be read.
    """

    model: str
    scores: tuple[RiskScore, ...]
    ends: tuple[PodEnd, ...]
    memory: RiskMemory
    absent: str | None = None


def read(source: UsageSource, scorer: RiskScorer, memory: RiskMemory, as_of: datetime, policy: RiskPolicy) -> RiskSeen:
    """Read pod ends, and usage when a new window is due; score it. A pod that ended has no score any more."""
    ends = source.pod_ends(memory.ends_until or as_of, as_of)
    absent = None
    if isinstance(ends, Missing):
        absent, ends = f"{ends.source}: {ends.reason}", ()
    else:
        memory = replace(memory, ends_until=as_of)
    gone = {end.pod for end in ends}
    memory = _scored(source, scorer, memory, as_of, policy)
    scores = tuple(s for s in memory.scores if s.expires_at > as_of and s.pod not in gone)
    memory = replace(_without(memory, gone, as_of), scores=scores)
    return RiskSeen(model=scorer.name, scores=scores, ends=tuple(ends), memory=memory, absent=absent or memory.absent)


def _scored(
    source: UsageSource, scorer: RiskScorer, memory: RiskMemory, as_of: datetime, policy: RiskPolicy
) -> RiskMemory:
    if memory.newest_window is not None and as_of < memory.newest_window + WINDOW:
        return memory
    usage = source.usage(as_of - timedelta(seconds=policy.history_s), as_of)
    if isinstance(usage, Missing):
        return replace(memory, absent=f"{usage.source}: {usage.reason}")
    newest = max((window.end for window in usage.windows), default=None)
    if newest is None:
        return replace(memory, absent="no usage window is there yet")
    if newest == memory.newest_window:
        return replace(memory, absent=None)
    scored = scorer.scores(
        usage,
        horizon=timedelta(minutes=policy.horizon_min),
        expiry=timedelta(seconds=policy.score_expiry_s),
        explain_from=policy.min_probability,
    )
    if isinstance(scored, Missing):
        return replace(memory, newest_window=newest, scores=(), absent=f"{scored.source}: {scored.reason}")
    return replace(memory, newest_window=newest, scores=scored.scores, unscored=dict(scored.unscored), absent=None)


def _without(memory: RiskMemory, gone: set[str], as_of: datetime) -> RiskMemory:
    """Without what has run out, and without what stood for pods that ended. Spares of a day count on for the budget."""
    spares = tuple(
        replace(spare, until=min(spare.until, as_of)) if spare.pod in gone else spare
        for spare in memory.spares
        if spare.started_at > as_of - DAY
    )
    return replace(
        memory,
        protected={pod: p for pod, p in memory.protected.items() if p.until > as_of and pod not in gone},
        avoided={node: avoided for node, avoided in memory.avoided.items() if avoided.until > as_of},
        spares=spares,
    )


def standing(
    book: EvidenceBook, seen: RiskSeen, views: Sequence[WorkloadView], as_of: datetime, policy: RiskPolicy
) -> RiskStanding:
    """The pods worth a look with their evidence, and what limits and budgets leave for them, most probable first."""
    memory = seen.memory
    _evidence_of_all(book, seen)
    spares = tuple(spare for spare in memory.spares if spare.until > as_of)
    protect_left = policy.max_protected_pods - len(memory.protected)
    spare_left = policy.spare_replicas_per_day - len(memory.spares)
    have = {spare.pod for spare in spares}
    by_ref = {view.state.ref: view for view in views}
    pods: list[PodAtRisk] = []
    for score in worth_a_look(seen.scores, policy):
        alert = is_alert(score, policy)
        protected = score.pod in memory.protected
        may_protect = alert and (protected or protect_left > 0)
        protect_left -= may_protect and not protected
        dear = _no_spare_because(score, by_ref.get(score.workload) if score.workload else None, policy)
        may_spare = may_protect and spare_left > 0
        spare_left -= may_spare and dear is None and score.pod not in have
        evidence = _evidence_of(book, score)
        pods.append(
            PodAtRisk(
                score=score, alert=alert, may_protect=may_protect, may_spare=may_spare, no_spare_because=dear,
                evidence=evidence,
            )
        )  # fmt: skip
    return RiskStanding(
        model=seen.model,
        pods=tuple(pods),
        protected={pod: p.workload for pod, p in memory.protected.items()},
        avoided=memory.avoided,
        spares=spares,
        spares_started=len(memory.spares),
    )


def is_alert(score: RiskScore, policy: RiskPolicy) -> bool:
    """Both bars are passed: probable, and far above the others."""
    return score.probability >= policy.min_probability and score.lift >= policy.min_lift


def worth_a_look(scores: Sequence[RiskScore], policy: RiskPolicy) -> list[RiskScore]:
    """Scores that pass at least one bar, most probable first, then by name."""
    passing = [s for s in scores if s.probability >= policy.min_probability or s.lift >= policy.min_lift]
    return sorted(passing, key=lambda s: (-s.probability, s.pod))


def _no_spare_because(score: RiskScore, view: WorkloadView | None, policy: RiskPolicy) -> str | None:
    """Why a spare replica does not pay for this pod, or None.

    It pays when the others could not carry the load (demand above ``full_ratio`` of what they serve), and when the
    pod-minutes it may save, P × start-up × ``missing_minute_worth``, are not fewer than those it takes: its start-up
    and the hold. P 0.3, start-up 10 min, worth 10, hold 15 min: 30 against 25.
    """
    if view is None:
        return f"{score.pod} belongs to no workload that can be raised"
    state, lead_s = view.state, view.assessment.lead.pod_p90_s
    demand = view.reading.value
    if demand is None:
        return f"demand of {state.ref.key} is not known"
    if view.assessment.forecasts:
        demand = max(demand, view.assessment.forecasts[0].expected)
    if demand <= 0:
        return f"nothing is asked of {state.ref.key}"
    left = max(0, state.ready_pods - 1) * state.capacity_per_pod
    if demand <= policy.full_ratio * left:
        return (
            f"without {score.pod} the other {say.pods(state.ready_pods - 1)} are {say.share(demand / left)} full, not "
            f"above {say.share(policy.full_ratio)}"
        )
    saves_s = score.probability * lead_s * policy.missing_minute_worth
    takes_s = lead_s + policy.hold_s
    if saves_s < takes_s:
        return (
            f"at {say.share(score.probability)} a spare replica may save {saves_s / 60:.0f} pod-minutes (start-up "
            f"{say.span(lead_s)}, each worth {policy.missing_minute_worth:g}) and takes {takes_s / 60:.0f}"
        )
    return None


def _evidence_of_all(book: EvidenceBook, seen: RiskSeen) -> None:
    scored = len(seen.scores)
    total = scored + len(seen.memory.unscored)
    text = f"{scored:,} of {total:,} running pods have a fresh score"
    if seen.absent is not None:
        text += f"; {seen.absent}"
    elif seen.memory.unscored:
        pod, why = next(iter(sorted(seen.memory.unscored.items())))
        text += f"; {pod} has none: {why}"
    book.add("risk model", f"scores of {seen.model}", text, "pods")


def _evidence_of(book: EvidenceBook, score: RiskScore) -> tuple[str, ...]:
    window = TimeWindow(start=score.window_end - WINDOW, end=score.window_end)
    horizon = say.span(score.horizon.total_seconds())
    ids = [
        book.add(
            score.model,
            f"P(failure of {score.pod} within {horizon})",
            round(score.probability, 4),
            "probability",
            window,
        ),
        book.add(score.model, f"share of pods that fail within {horizon}", round(score.base_rate, 6), "base rate"),
    ]
    ids += [
        book.add(
            score.model, f"{driver.feature} of {score.pod}", driver.value, f"{driver.effect:+.2f} log-odds", window
        )
        for driver in score.drivers
    ]
    return tuple(ids)


def after(
    memory: RiskMemory,
    risk: RiskStanding,
    done: Sequence[Decision],
    *,
    bases: Mapping[WorkloadRef, int],
    as_of: datetime,
    policy: RiskPolicy,
) -> RiskMemory:
    """The memory after the tick's applied decisions. ``bases``: pods of each workload without any spare replica."""
    protected, avoided = dict(memory.protected), dict(memory.avoided)
    spares = memory.spares
    for decision in done:
        action: Action | None = decision.action
        match action:
            case ProtectPod(pod=pod, workload=workload, expires_at=ends):
                protected.pop(pod, None)
                if ends is not None:
                    protected[pod] = Protected(workload=workload, until=ends)
            case AvoidNode(node=node, pool=pool, expires_at=ends):
                avoided.pop(node, None)
                if ends is not None:
                    avoided[node] = AvoidedNode(pool=pool, until=ends)
            case SetFloor() if decision.why.reason is Reason.SPARE_BEFORE_FAILURE:
                spares = _with_spares(spares, risk, action, base=bases[action.workload], as_of=as_of, policy=policy)
            case _:
                pass
    return replace(memory, protected=protected, avoided=avoided, spares=spares)


def _with_spares(
    spares: tuple[Spare, ...], risk: RiskStanding, action: SetFloor, *, base: int, as_of: datetime, policy: RiskPolicy
) -> tuple[Spare, ...]:
    """Spares that the floor has room for are started or renewed: until the hold after the newest alert, at most."""
    stand = len(risk.spares_of(action.workload))
    new = risk.granted(action.workload)[: max(0, action.replicas - base - stand)]
    hold, longest = timedelta(seconds=policy.hold_s), timedelta(seconds=policy.max_spare_s)
    alerts = {pod.score.pod: pod.score.window_end for pod in risk.pods if pod.alert}
    renewed = tuple(
        replace(spare, until=min(spare.started_at + longest, alerts[spare.pod] + hold))
        if spare.until > as_of and spare.pod in alerts
        else spare
        for spare in spares
    )
    started = tuple(
        Spare(
            pod=pod.score.pod, workload=action.workload, started_at=as_of,
            until=min(as_of + longest, pod.score.window_end + hold),
        )
        for pod in new
    )  # fmt: skip
    return (*renewed, *started)
