"""Safety's part about risk: what is done for a pod that is likely to fail soon, the cheapest first.

How the order of cost is read. *No scale-down* of the pod's workload and *no new placement* on its node cost nothing
while nothing wants to move, so they come first and for every alert. *A spare replica on another node* costs a pod for
up to an hour; it is asked for only behind the two (never for a pod whose protection is refused), where the pod's
absence would be felt, where P(failure) is worth it, and within the day's budget. The guard holds all four limits; what
it refuses stays on record with the number that decided. In the same tick the node is avoided and the spare asked for,
so the spare lands elsewhere.

Everything ends by itself: protection and avoidance ``policy.risk.hold_s`` after the last alert, a spare with the pod
it was started for, or after ``policy.risk.max_spare_s``. A pod that passes one bar only is proposed for protection, so
that its refusal is on record; nothing dearer is.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from leadtime.domain.at_risk import PodAtRisk, RiskStanding, Spare
from leadtime.domain.decision import Agent, AvoidNode, Proposal, ProtectPod
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import Scope, node_scope, pod_scope
from leadtime.domain.risk import RiskScore
from leadtime.propose import wishes
from leadtime.propose import wording as say
from leadtime.propose.context import TickContext, WorkloadView

PROTECT, AVOID, SPARE = "protect_pod", "avoid_node", "spare_replica"
MOST_DRIVERS = 3


def propose(context: TickContext, taken: Collection[Scope]) -> tuple[Proposal, ...]:
    """Measures for every pod worth a look. ``taken``: scopes safety already spoke about; they get no spare replica."""
    risk = context.risk
    if risk is None:
        return ()
    measures = context.policy.risk.measures
    spoken: list[Proposal] = []
    if PROTECT in measures:
        spoken.extend(said for pod in risk.pods if (said := _protect(context, pod)) is not None)
    if AVOID in measures:
        spoken.extend(_avoid(context, risk))
    if SPARE in measures:
        spoken.extend(said for view in context.workloads if (said := _spare(context, risk, view)) is not None)
    return tuple(said for said in spoken if said.scope not in taken)


def give_back(context: TickContext) -> tuple[Proposal, ...]:
    """Under the kill switch: whatever is protected or avoided is so no longer. Spares are floors: those go anyway."""
    risk = context.risk
    if risk is None:
        return ()
    text = "the kill switch is on: {} as if there were no alert"
    pods = [
        _proposal(
            pod_scope(pod), ProtectPod(pod=pod, workload=workload, expires_at=None),
            Explanation(reason=Reason.KILL_SWITCH, sentence=text.format(f"{workload.key} is scaled down")),
        )
        for pod, workload in risk.protected.items()
    ]  # fmt: skip
    nodes = [
        _proposal(
            node_scope(node), AvoidNode(node=node, pool=avoided.pool, expires_at=None),
            Explanation(reason=Reason.KILL_SWITCH, sentence=text.format(f"new pods come to {node}")),
        )
        for node, avoided in risk.avoided.items()
    ]  # fmt: skip
    return (*pods, *nodes)


def score_words(score: RiskScore) -> str:
    """``serving/chat-7 fails within 30 min with probability 21 % (base rate 0.9 %, 23 times), most by load 0.74``."""
    horizon = say.span(score.horizon.total_seconds())
    text = (
        f"{score.pod} fails within {horizon} with probability {say.share(score.probability)} "
        f"(base rate {say.share(score.base_rate)}, {score.lift:.1f} times)"
    )
    drivers = ", ".join(
        f"{driver.feature} {'missing' if driver.value is None else say.amount(driver.value)} ({driver.effect:+.1f})"
        for driver in score.drivers[:MOST_DRIVERS]
    )
    return f"{text}, most by {drivers}" if drivers else text


def _protect(context: TickContext, pod: PodAtRisk) -> Proposal | None:
    workload = pod.score.workload
    if workload is None:
        return None
    until = _until(context, pod)
    text = f"{score_words(pod.score)}; {workload.key} is not scaled down until {say.clock(until)}"
    why = Explanation(reason=Reason.POD_AT_RISK, sentence=text, because=pod.evidence)
    name = pod.score.pod
    return _proposal(pod_scope(name), ProtectPod(pod=name, workload=workload, expires_at=until), why)


def _avoid(context: TickContext, risk: RiskStanding) -> list[Proposal]:
    """One a node, for the most probable of its alerts."""
    spoken: dict[str, Proposal] = {}
    pools = {view.state.ref: view.state.pool for view in context.workloads}
    for pod in risk.pods:
        node, workload = pod.score.node, pod.score.workload
        if not pod.alert or node is None or node in spoken or workload not in pools:
            continue
        until = _until(context, pod)
        text = f"{score_words(pod.score)}; new pods go to other nodes than {node} until {say.clock(until)}"
        why = Explanation(reason=Reason.NODE_AT_RISK, sentence=text, because=pod.evidence)
        spoken[node] = _proposal(node_scope(node), AvoidNode(node=node, pool=pools[workload], expires_at=until), why)
    return list(spoken.values())


def _spare(context: TickContext, risk: RiskStanding, view: WorkloadView) -> Proposal | None:
    """A floor of what would stand anyway, plus one for each alert that has none yet and each spare that stands."""
    ref = view.state.ref
    standing = risk.spares_of(ref)
    wanting = [pod for pod in risk.wanting_spare(ref) if pod.may_protect]
    if not standing and not wanting:
        return None
    base = max(view.state.owner_min_replicas, view.assessment.hpa_would_want)
    replicas = base + len(standing) + len(wanting)
    ends = max((*(spare.until for spare in standing), *(_spare_until(context, pod) for pod in wanting)))
    expires_at = min(wishes.floor_expiry(context, view), ends)
    why = _spare_words(view, standing, wanting, base)
    return wishes.floor(Agent.SAFETY, view, replicas, expires_at, why)


def _spare_words(view: WorkloadView, standing: tuple[Spare, ...], wanting: list[PodAtRisk], base: int) -> Explanation:
    parts = [f"a spare replica on another node, because {score_words(pod.score)}" for pod in wanting]
    parts += [f"the spare replica for {spare.pod} stays until {say.clock(spare.until)}" for spare in standing]
    text = f"{'; '.join(parts)}; {say.pods(base)} would stand without"
    ids = tuple(i for pod in wanting for i in pod.evidence)
    return wishes.explain(view, Reason.SPARE_BEFORE_FAILURE, text, *ids, view.evidence.pods, view.evidence.lead)


def _until(context: TickContext, pod: PodAtRisk) -> datetime:
    """``hold_s`` after the newest window of the alert: in the future, because a score is stale before that."""
    return pod.score.window_end + timedelta(seconds=context.policy.risk.hold_s)


def _spare_until(context: TickContext, pod: PodAtRisk) -> datetime:
    longest = context.as_of + timedelta(seconds=context.policy.risk.max_spare_s)
    return min(longest, _until(context, pod))


def _proposal(scope: Scope, action: ProtectPod | AvoidNode, why: Explanation) -> Proposal:
    return wishes.proposal(Agent.SAFETY, scope, action, why)
