"""A proposal and the facts → a Verdict: every rule in order, each seeing what the ones before it left.

Places on a pool are shared: what one workload is granted in this tick is not free for the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leadtime.domain.decision import Action, Answer, Proposal, SetFloor, Verdict
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.guard.facts import GuardFacts, raise_base
from leadtime.guard.rules import RULES
from leadtime.guard.ruling import Rule


def judge(proposal: Proposal, facts: GuardFacts, rules: Sequence[Rule] = RULES) -> Verdict:
    """Allowed (with what must be on record), limited, or refused at the first rule that forbids it.

    A raise that the limits leave without any effect (no floor of ours stands, and no more than is wanted anyway would
    be left of it) is refused, not written.
    """
    action: Action = proposal.action
    said: list[Explanation] = []
    for rule in rules:
        ruling = rule(proposal, action, facts)
        if ruling is None:
            continue
        said.append(ruling.why)
        if ruling.action is None:
            return _verdict(proposal, Answer.REFUSED, None, said)
        action = ruling.action
    if action == proposal.action:
        return _verdict(proposal, Answer.ALLOWED, action, said)
    if isinstance(action, SetFloor) and action.replicas <= facts.workloads[action.workload].state.owner_min_replicas:
        return _verdict(proposal, Answer.REFUSED, None, said)
    return _verdict(proposal, Answer.LIMITED, action, said)


def judge_all(proposals: Sequence[Proposal], facts: GuardFacts) -> tuple[Verdict, ...]:
    """One verdict per proposal, in order. GPUs granted to one workload are taken off the pool for the others."""
    granted: dict[str, _Granted] = {}
    verdicts: list[Verdict] = []
    for proposal in proposals:
        verdict = judge(proposal, _less_granted(proposal, facts, granted))
        verdicts.append(verdict)
        action = verdict.allowed_action
        if isinstance(action, SetFloor):
            _grant(action, facts, granted)
    return tuple(verdicts)


@dataclass(slots=True)
class _Granted:
    """GPUs granted on one pool in this tick, by workload. Lives for one call of judge_all."""

    total: int
    by_workload: dict[WorkloadRef, int]


def _grant(action: SetFloor, facts: GuardFacts, granted: dict[str, _Granted]) -> None:
    workload = facts.workloads[action.workload]
    gpus = max(0, action.replicas - raise_base(workload)) * workload.state.gpus_per_pod
    pool = granted.setdefault(workload.state.pool, _Granted(total=0, by_workload={}))
    before = pool.by_workload.get(action.workload, 0)
    if gpus > before:
        pool.by_workload[action.workload] = gpus
        pool.total += gpus - before


def _less_granted(proposal: Proposal, facts: GuardFacts, granted: dict[str, _Granted]) -> GuardFacts:
    action = proposal.action
    if not isinstance(action, SetFloor):
        return facts
    name = facts.workloads[action.workload].state.pool
    pool = granted.get(name)
    if pool is None or name not in facts.pools:
        return facts
    others = pool.total - pool.by_workload.get(action.workload, 0)
    if others == 0:
        return facts
    state = facts.pools[name]
    pools = {**facts.pools, name: replace(state, used_gpus=state.used_gpus + others)}
    return replace(facts, pools=pools)


def _verdict(proposal: Proposal, answer: Answer, action: Action | None, said: list[Explanation]) -> Verdict:
    if not said:
        said = [Explanation(reason=Reason.APPLIED, sentence="no rule speaks against it")]
    return Verdict(proposal_id=proposal.id, answer=answer, allowed_action=action, why=tuple(said))
