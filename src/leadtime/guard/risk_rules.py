"""Rules for what a risk score may lead to: both bars, the limits at once and a day, and whether a spare replica pays.

They speak only about ProtectPod, AvoidNode and the floors that spare replicas are (reason SpareBeforeFailure).
"""

from dataclasses import replace

from leadtime.domain.at_risk import PodAtRisk, RiskStanding
from leadtime.domain.decision import Action, AvoidNode, Proposal, ProtectPod, SetFloor
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.guard.facts import GuardFacts, spare_base
from leadtime.guard.ruling import Ruling, limit, refuse


def risk_threshold(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """Nothing is done for a pod below one of the bars: it must be probable, and far above the others."""
    risk = facts.risk
    if risk is None or not isinstance(action, ProtectPod | AvoidNode) or action.expires_at is None:
        return None
    found = _pods(risk, action)
    if any(pod.alert for pod in found):
        return None
    if not found:
        return refuse(Reason.RISK_BELOW_THRESHOLD, f"{proposal.scope.name} has no score that is fresh and worth a look")
    policy, score = facts.policy.risk, found[0].score
    return refuse(
        Reason.RISK_BELOW_THRESHOLD,
        f"{score.pod} fails within {score.horizon.total_seconds() / 60:.0f} min with probability "
        f"{score.probability:.1%}, {score.lift:.1f} times the base rate; both {policy.min_probability:.1%} and "
        f"{policy.min_lift:g} times are asked for",
    )


def protect_limit(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """At most so many pods are protected at once, the most probable first."""
    del proposal
    risk = facts.risk
    if risk is None or not isinstance(action, ProtectPod | AvoidNode) or action.expires_at is None:
        return None
    if any(pod.may_protect for pod in _pods(risk, action)):
        return None
    most = facts.policy.risk.max_protected_pods
    return refuse(Reason.RISK_BUDGET, f"{len(risk.protected):,} pods are protected; {most:,} at once are the limit")


def spare_budget(proposal: Proposal, action: Action, facts: GuardFacts) -> Ruling | None:
    """A spare replica must pay, and be within the day's budget; what stands already is renewed either way.

    Two alerts, budget for one: base + 2 asked, base + 1 allowed, and the reason names the budget.
    """
    risk = facts.risk
    if risk is None or not isinstance(action, SetFloor) or proposal.why.reason is not Reason.SPARE_BEFORE_FAILURE:
        return None
    stand, granted = len(risk.spares_of(action.workload)), len(risk.granted(action.workload))
    allowed = spare_base(facts.workloads[action.workload]) + stand + granted
    if action.replicas <= allowed:
        return None
    why = _why_not(risk, action, facts)
    if stand + granted == 0:
        return Ruling(action=None, why=why)
    return limit(replace(action, replicas=allowed), why.reason, why.sentence)


def _pods(risk: RiskStanding, action: ProtectPod | AvoidNode) -> tuple[PodAtRisk, ...]:
    if isinstance(action, AvoidNode):
        return risk.on_node(action.node)
    pod = risk.pod(action.pod)
    return () if pod is None else (pod,)


def _why_not(risk: RiskStanding, action: SetFloor, facts: GuardFacts) -> Explanation:
    """The first pod that gets none says why: it does not pay, or the budget is spent."""
    left_out = [p for p in risk.wanting_spare(action.workload) if not p.may_spare or p.no_spare_because is not None]
    dear = next((p.no_spare_because for p in left_out if p.no_spare_because is not None), None)
    if dear is not None:
        return Explanation(reason=Reason.SPARE_DOES_NOT_PAY, sentence=dear)
    text = (
        f"{risk.spares_started:,} spare replicas were started in the last 24 h and "
        f"{facts.policy.risk.spare_replicas_per_day:,} are the budget"
    )
    return Explanation(reason=Reason.RISK_BUDGET, sentence=text)
