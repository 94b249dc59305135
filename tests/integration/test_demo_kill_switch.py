"""The kill switch: from it on, leadtime's world is its own state under the HPA alone with the same floors released.

``left_alone`` is that world, built without the loop: what the policy says about releases, written by hand into a fork.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from leadtime.domain.decision import SetBuffer, SetConsolidation, SetFloor, SetLowPriorityAdmission
from leadtime.domain.tick import Tick
from leadtime.policy.schema import Policy
from leadtime.scorecard.run import WorldRun
from leadtime.simulate import worlds
from leadtime.simulate.worlds import Prepared
from leadtime.testing.fakes import ListSink

pytestmark = pytest.mark.slow

DAY_S = 1_772_409_600
TICK_S = 60
END_S = DAY_S + 9 * 3600
KILLS_S = {
    "nodes are on their way": DAY_S + 5 * 3600,
    "the floor stands high": DAY_S + 6 * 3600,
    "in the middle of the surge": DAY_S + 6 * 3600 + 1800,
    "the surge is over": DAY_S + 7 * 3600,
}

Same = Callable[[WorldRun, WorldRun], None]


def with_release(policy: Policy, how: str) -> Policy:
    return policy.model_copy(update={"actuation": policy.actuation.model_copy(update={"floor_release": how})})


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """leadtime's world and its ticks."""

    world: worlds.LeadtimeWorld
    ticks: list[Tick]


def played(prepared: Prepared, *, until_s: int, kill_at_s: int | None = None) -> Played:
    """leadtime's world from the prepared state until ``until_s``."""
    sink = ListSink()
    replay = replace(prepared.replay, kill_at_s=kill_at_s, end_s=until_s)
    world = worlds.run_leadtime(replace(prepared, replay=replay), sink, lambda _what, _share: None)
    return Played(world=world, ticks=sink.ticks)


@pytest.fixture(scope="module", params=["at_once", "stepwise"])
def at_the_kill(request: pytest.FixtureRequest, prepared: Prepared) -> dict[str, Prepared]:
    """leadtime's own state at each kill: cluster and loop as they then stand; the replay begins there."""
    policy = with_release(prepared.replay.policy, request.param)
    stands = replace(prepared, replay=replace(prepared.replay, policy=policy))
    found = {}
    for name, kill_at_s in KILLS_S.items():
        world = played(stands, until_s=kill_at_s).world
        replay = replace(stands.replay, scored_from_s=kill_at_s)
        stands = replace(stands, replay=replay, cluster=world.cluster, state=world.state)
        found[name] = stands
    return found


def left_alone(prepared: Prepared, until_s: int) -> WorldRun:
    """A fork of the prepared cluster, the HPA alone, and all floors and buffers released as the policy says."""
    fork, actuation = prepared.cluster.fork(), prepared.replay.policy.actuation
    (work,) = fork.works.values()
    ref, pool = work.scenario.ref, work.scenario.pool
    fork.start_recording()
    for at_s in range(worlds.first_tick_s(prepared.replay), until_s, TICK_S):
        fork.advance(at_s)
        if work.floor is not None and work.floor_expires_s > at_s:
            lower = work.owner_min
            if actuation.floor_release == "stepwise":
                lower = max(lower, work.floor - max(1, int(work.floor * actuation.release_step_ratio)))
            if lower == work.owner_min:
                fork.release_floor(ref)
            else:
                fork.set_floor(ref, lower, at_s + actuation.floor_expiry_s)
        if fork.pools[pool].buffers:
            fork.set_buffer(ref, pool, 0, at_s)
        if fork.pools[pool].consolidation_offered:
            fork.set_consolidation(pool, offered=False)
    fork.advance(until_s)
    return fork.collect("leadtime")


@pytest.mark.parametrize("when", list(KILLS_S))
def test_from_the_kill_on_the_world_is_its_own_state_under_the_hpa_alone(
    at_the_kill: dict[str, Prepared], assert_same_world: Same, when: str
) -> None:
    stands, kill_at_s = at_the_kill[when], KILLS_S[when]
    (work,) = stands.cluster.works.values()
    assert work.floor is not None or stands.cluster.pools["gpu"].buffers, "nothing of leadtime's stands at the kill"
    killed = played(stands, kill_at_s=kill_at_s, until_s=END_S).world
    assert_same_world(killed.run, left_alone(stands, END_S))
    (work,) = killed.cluster.works.values()
    assert work.floor is None
    assert not killed.cluster.pools["gpu"].buffers
    assert not killed.cluster.pools["gpu"].consolidation_offered


def test_a_kill_in_the_middle_of_a_run_is_the_same_kill(
    prepared: Prepared, at_the_kill: dict[str, Prepared], assert_same_world: Same
) -> None:
    (when, kill_at_s), end_s = next(iter(KILLS_S.items())), DAY_S + 6 * 3600
    stands = at_the_kill[when]
    policy = stands.replay.policy
    whole = replace(prepared, replay=replace(prepared.replay, policy=policy))
    killed = played(whole, kill_at_s=kill_at_s, until_s=end_s).world.cluster
    again = played(stands, kill_at_s=kill_at_s, until_s=end_s).world.cluster
    for cluster in (killed, again):
        cluster.start_recording()
        cluster.advance(end_s + 3600)
    assert_same_world(killed.collect("leadtime"), again.collect("leadtime"))


def test_the_floor_goes_as_the_policy_says_at_once_or_a_tenth_a_tick(at_the_kill: dict[str, Prepared]) -> None:
    when = "in the middle of the surge"
    stands = at_the_kill[when]
    ticks = played(stands, kill_at_s=KILLS_S[when], until_s=KILLS_S[when] + 1800).ticks
    floors = [tick.snapshot.workloads[0].floor for tick in ticks]
    standing = [floor.replicas for floor in floors if floor is not None]
    if stands.replay.policy.actuation.floor_release == "at_once":
        assert len(standing) == 1
        return
    assert len(standing) > 3
    for before, after in pairwise(standing):
        assert before * 0.9 - 1 <= after < before
    assert floors[len(standing) :] == [None] * (len(floors) - len(standing))


def test_after_the_kill_nothing_is_raised_and_every_tick_says_why(at_the_kill: dict[str, Prepared]) -> None:
    # With nodes on their way and the rise an hour off, leadtime alive would raise at almost every tick.
    when = "nodes are on their way"
    for tick in played(at_the_kill[when], kill_at_s=KILLS_S[when], until_s=KILLS_S[when] + 5400).ticks:
        floor = tick.snapshot.workloads[0].floor
        for decision in tick.decisions:
            assert decision.why.sentence
            match decision.action:
                case SetFloor(replicas=replicas):
                    assert floor is not None
                    assert replicas < floor.replicas
                case SetBuffer(pods=pods):
                    assert pods == 0
                case SetConsolidation(offered=offered):
                    assert offered
                case SetLowPriorityAdmission(paused=paused):
                    assert not paused


def test_killed_before_its_first_act_the_world_is_the_hpas_from_the_start(
    prepared: Prepared, assert_same_world: Same
) -> None:
    alive = played(prepared, until_s=KILLS_S["nodes are on their way"]).ticks
    first_act = next(tick for tick in alive if any(outcome.applied for outcome in tick.outcomes))
    hpa = worlds.run_hpa(replace(prepared, replay=replace(prepared.replay, end_s=END_S)))
    for kill_at_s in (DAY_S, int(first_act.as_of.timestamp())):
        assert_same_world(played(prepared, kill_at_s=kill_at_s, until_s=END_S).world.run, hpa)
