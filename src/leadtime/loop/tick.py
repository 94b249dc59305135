"""One tick of the loop: (as_of, ports, policy, state) → (Tick, state). The only place where the rooms meet.

Live, shadow, replay and simulation differ only in the ports. Nothing here asks the time: ``as_of`` is what the tick is
about, ``recorded_at`` when it runs. The shell appends the tick to the ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from leadtime.domain.decision import Proposal
from leadtime.domain.ports import Actuator, Source
from leadtime.domain.tick import LoopState, Tick
from leadtime.guard import judge as guard
from leadtime.loop import carry, quiet, view
from leadtime.loop.view import RiskPorts
from leadtime.policy.schema import Policy
from leadtime.propose import admission, efficiency, safety, scaling, unblock
from leadtime.propose.context import TickContext
from leadtime.referee import rank

AGENTS = (safety, admission, unblock, scaling, efficiency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the loop reads from and writes through. ``risk``: usage and the model that scores it, where there is one."""

    source: Source
    actuator: Actuator
    risk: RiskPorts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickResult:
    """The record of the tick and the state for the next one."""

    tick: Tick
    state: LoopState


def tick(as_of: datetime, ports: Ports, policy: Policy, state: LoopState, recorded_at: datetime) -> TickResult:
    """Observe, assess, propose, decide and act once. Equal inputs give an equal result; ``state`` is not changed."""
    # 1. Observe: the only reads of this tick.
    seen = view.observe(as_of, ports.source, policy, state, ports.risk)
    # 2. Assess: forecast, surge, lead, plan and queue health of everything seen.
    assessed = view.assess(seen, policy, state)
    # 3. Propose: every agent speaks, none acts.
    proposals = propose_all(assessed.context)
    # 4. Decide: the guard judges each proposal, the referee picks one winner per scope.
    verdicts = guard.judge_all(proposals, assessed.guard_facts)
    decisions = rank.decide(proposals, verdicts, quiet.explanations(assessed.context), policy.referee)
    # 5. Act: the only writes.
    outcomes = tuple(ports.actuator.act(decisions, as_of))
    # 6. Record: the tick for the ledger (the shell appends it), the state for the next tick.
    record = Tick(
        as_of=as_of,
        recorded_at=recorded_at,
        policy_hash=_hash(policy),
        snapshot=seen.snapshot,
        assessments=tuple(w.assessment for w in assessed.context.workloads),
        queue_health=tuple(q.health for q in assessed.context.queues),
        evidence=assessed.evidence,
        proposals=proposals,
        verdicts=verdicts,
        decisions=decisions,
        outcomes=outcomes,
        risks=tuple(pod.score for pod in assessed.context.risk.pods if pod.alert) if assessed.context.risk else (),
        pod_ends=seen.risk.ends if seen.risk else (),
    )
    return TickResult(tick=record, state=carry.after(state, seen, assessed, decisions, outcomes))


def propose_all(context: TickContext) -> tuple[Proposal, ...]:
    """Ask every agent, in the order of AGENTS."""
    spoken: Sequence[tuple[Proposal, ...]] = [agent.propose(context) for agent in AGENTS]
    return tuple(proposal for said in spoken for proposal in said)


@lru_cache(maxsize=16)
def _hash(policy: Policy) -> str:
    return policy.hash
