"""One tick over given ports: what it decides, what it says, and what it must never do."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.actuators.ladder import LadderActuator
from leadtime.domain.decision import Decision, ReleaseFloor, SetBuffer, SetFloor
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import ScopeKind
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.snapshot import Buffer, ClusterSnapshot, Floor
from leadtime.domain.tick import LoopState
from leadtime.loop.checkpoint import save
from leadtime.loop.tick import Ports, TickResult, tick
from leadtime.loop.warm import learn
from leadtime.policy import Policy
from leadtime.testing.builders import cluster, ref
from leadtime.testing.fakes import FakeSource, RecordingActuator, RecordingWriter

CHAT = ref("serving/chat")
DAYS = 4
START = datetime(2026, 3, 2, tzinfo=UTC)
LEARNED_AT = START + timedelta(days=DAYS, hours=4)
POLICY = Policy.model_validate({"actuation": {"stage": "hpa_floor"}})
SURGE = range(360, 400)


def demand(minute: int) -> float:
    """1,440 requests/s, from 06:00 a ramp of 20 min to 3,120, gone at 06:40; a little noise that repeats."""
    of_day = minute % 1440
    share = min(1.0, (of_day - 359) / 20) if of_day in SURGE else 0.0
    return (1440 + 1680 * share) * (1 + 0.01 * ((minute * 7919) % 13 - 6) / 6)


VALUES = tuple(demand(m) for m in range((DAYS + 1) * 1440))
SERIES = Series(name="chat", start=START, step_s=60, values=VALUES, unit=Unit.REQUESTS_PER_S)


def snapshot(floor: Floor | None = None, buffer: Buffer | None = None, wanted: int = 480) -> ClusterSnapshot:
    return (
        cluster()
        .pool("gpu", nodes=150)
        .workload("serving/chat", ready=wanted, wanted=wanted, minimum=480, floor=floor, buffer=buffer)
        .snapshot()
    )


@cache
def learned() -> LoopState:
    return learn(LEARNED_AT, FakeSource(snapshot(), {CHAT: SERIES}), POLICY, LoopState())


def at(clock: str) -> datetime:
    return START + timedelta(days=DAYS, hours=int(clock[:2]), minutes=int(clock[3:]))


def run(
    as_of: datetime,
    seen: ClusterSnapshot | None = None,
    series: Series | Missing = SERIES,
    policy: Policy = POLICY,
    state: LoopState | None = None,
) -> TickResult:
    source = FakeSource(seen or snapshot(), {CHAT: series})
    ports = Ports(source=source, actuator=RecordingActuator())
    return tick(as_of, ports, policy, learned() if state is None else state, as_of)


def decision_on(result: TickResult, kind: ScopeKind, name: str) -> Decision:
    return next(d for d in result.tick.decisions if d.scope.kind is kind and d.scope.name == name)


def without(series: Series, minutes: Sequence[int]) -> Series:
    """``series`` with gaps at the given minutes after the first one."""
    gone = set(minutes)
    return replace(series, values=tuple(None if i in gone else v for i, v in enumerate(series.values)))


# --- what it says ---------------------------------------------------------------------------------------------------


def test_nothing_is_done_with_a_sentence_that_has_forecast_lead_and_need() -> None:
    decision = decision_on(run(at("04:01")), ScopeKind.WORKLOAD, "serving/chat")
    assert decision.action is None
    assert decision.why.reason is Reason.ENOUGH_CAPACITY
    assert decision.why.sentence.startswith("serving/chat: kept at 480; forecast 1,4")
    assert "in 50 min needs" in decision.why.sentence


def test_every_scope_has_one_decision_and_every_explanation_points_at_evidence_of_this_tick() -> None:
    seen = run(at("05:40")).tick
    assert {d.scope.key for d in seen.decisions} >= {"workload:serving/chat", "queue:default", "pool:gpu"}
    assert len({d.scope for d in seen.decisions}) == len(seen.decisions)
    ids = [e.id for e in seen.evidence]
    assert ids == [f"ev-{i + 1}" for i in range(len(ids))]
    assert all(d.why.because and set(d.why.because) <= set(ids) for d in seen.decisions)
    assert all(e.unit and e.source and e.query for e in seen.evidence)


def test_as_of_and_recorded_at_are_kept_apart() -> None:
    source = FakeSource(snapshot(), {CHAT: SERIES})
    ports = Ports(source=source, actuator=RecordingActuator())
    late = at("05:00") + timedelta(seconds=7)
    result = tick(at("05:00"), ports, POLICY, learned(), late)
    assert (result.tick.as_of, result.tick.recorded_at) == (at("05:00"), late)
    assert result.tick.policy_hash == POLICY.hash


def test_a_series_too_short_to_forecast_is_said_and_nothing_is_asked() -> None:
    fresh = run(
        at("05:40"), series=replace(SERIES, values=SERIES.values[-3 * 60 :], start=at("03:00")), state=LoopState()
    )
    assert [p for p in fresh.tick.proposals if p.scope.kind is ScopeKind.WORKLOAD] == []
    decision = decision_on(fresh, ScopeKind.WORKLOAD, "serving/chat")
    assert decision.why.reason in {Reason.HISTORY_TOO_SHORT, Reason.MODEL_LOSES_TO_LAST_VALUE}


# --- what it must never do ------------------------------------------------------------------------------------------


def test_the_future_makes_no_difference() -> None:
    cut = int((at("05:40") - START).total_seconds() // 60)
    other = replace(SERIES, values=(*VALUES[:cut], *(9999.0 for _ in VALUES[cut:])))
    assert run(at("05:40")).tick == run(at("05:40"), series=other).tick


def test_equal_inputs_give_an_equal_tick_and_an_equal_state_and_change_nothing_they_were_given() -> None:
    before = save(learned())
    one, two = run(at("05:41")), run(at("05:41"))
    assert one.tick == two.tick
    assert save(one.state) == save(two.state)
    assert save(learned()) == before


MINUTES = st.integers(4 * 60 + 1, 7 * 60)


@given(minute=MINUTES, pods=st.integers(481, 1100), room=st.integers(0, 500), gaps=st.sets(st.integers(0, 90)))
@settings(max_examples=60, deadline=None)
def test_missing_data_never_asks_for_less_than_stands(minute: int, pods: int, room: int, gaps: set[int]) -> None:
    """Whatever of the newest values is dropped: no floor and no room asked for is below what stands."""
    as_of = at(f"{minute // 60:02d}:{minute % 60:02d}")
    ends = as_of + timedelta(seconds=600)
    seen = snapshot(Floor(replicas=pods, expires_at=ends), Buffer(pods=room, expires_at=ends) if room else None, pods)
    last = int((as_of - START).total_seconds() // 60) - 1
    result = run(as_of, seen, without(SERIES, [last, *(last - gap for gap in gaps)]))
    for decision in result.tick.decisions:
        action = decision.action
        assert not isinstance(action, ReleaseFloor)
        if isinstance(action, SetFloor):
            assert action.replicas >= pods
        if isinstance(action, SetBuffer):
            assert action.pods >= room


@given(minute=MINUTES, pods=st.integers(480, 1100), ours=st.booleans(), free=st.integers(0, 90))
@settings(max_examples=60, deadline=None)
def test_never_more_than_twenty_pods_a_minute_nor_more_than_fit(minute: int, pods: int, ours: bool, free: int) -> None:
    as_of = at(f"{minute // 60:02d}:{minute % 60:02d}")
    floor = Floor(replicas=pods, expires_at=as_of + timedelta(seconds=600)) if ours else None
    seen = snapshot(floor, None, pods)
    pool = replace(seen.pools[0], allocatable_gpus=pods + free)
    result = run(as_of, replace(seen, pools=(pool,)))
    action = decision_on(result, ScopeKind.WORKLOAD, "serving/chat").action
    if isinstance(action, SetFloor):
        assert action.replicas - pods <= min(20, free)


@given(minute=MINUTES, pods=st.integers(480, 1100), pending=st.integers(0, 30), gap=st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_proposal_is_judged_once_and_ends_as_winner_or_rejection(
    minute: int, pods: int, pending: int, gap: bool
) -> None:
    as_of = at(f"{minute // 60:02d}:{minute % 60:02d}")
    built = cluster().pool("gpu", nodes=150, empty_nodes=3)
    built = built.workload("serving/chat", ready=pods, pending=pending, minimum=480)
    seen = built.pending("default", pods=pending, oldest_uncovered_s=pending * 20.0).snapshot()
    last = int((as_of - START).total_seconds() // 60) - 1
    found = run(as_of, seen, without(SERIES, [last]) if gap else SERIES).tick
    assert [v.proposal_id for v in found.verdicts] == [p.id for p in found.proposals]
    assert len({p.id for p in found.proposals}) == len(found.proposals)
    ends = [d.proposal_id for d in found.decisions if d.proposal_id]
    ends += [r.proposal_id for d in found.decisions for r in d.rejections]
    assert sorted(ends) == sorted(p.id for p in found.proposals)


# --- missing data, lapses, the kill switch --------------------------------------------------------------------------


def gone_since(clock: str) -> Series:
    first = int((at(clock) - START).total_seconds() // 60)
    return without(SERIES, range(first, len(VALUES)))


def held(clock: str, since: str, floor_ends: str, state: LoopState | None = None) -> TickResult:
    seen = snapshot(Floor(replicas=700, expires_at=at(floor_ends)), None, 700)
    return run(at(clock), seen, gone_since(since), state=state)


def test_a_hold_ends_thirty_minutes_after_the_data_went_missing() -> None:
    decision = decision_on(held("04:25", "04:05", "04:30"), ScopeKind.WORKLOAD, "serving/chat")
    assert decision.why.reason is Reason.MISSING_DATA_HOLD
    assert isinstance(decision.action, SetFloor)
    assert decision.action.replicas == 700
    assert decision.action.expires_at == at("04:35")


def test_after_the_hold_nothing_is_renewed_and_nothing_is_lowered() -> None:
    decision = decision_on(held("04:35", "04:05", "04:36"), ScopeKind.WORKLOAD, "serving/chat")
    assert decision.action is None
    assert decision.why.reason is Reason.HOLD_EXPIRED


def test_a_lapse_is_told_once_and_apart_from_a_decision_to_lower() -> None:
    before = held("04:34", "04:05", "04:35")
    lapsed = run(at("04:35"), snapshot(), gone_since("04:05"), state=before.state)
    after = run(at("04:36"), snapshot(), gone_since("04:05"), state=lapsed.state)
    said = [decision_on(r, ScopeKind.WORKLOAD, "serving/chat").why for r in (lapsed, after)]
    assert [why.reason for why in said] == [Reason.LAPSED, Reason.HOLD_EXPIRED]
    assert "LAPSED: our floor of 700 ran out at" in said[0].sentence
    assert "Nobody decided to lower" in said[0].sentence


def test_a_source_that_is_missing_altogether_holds_too() -> None:
    seen = snapshot(Floor(replicas=700, expires_at=at("04:12")), None, 700)
    result = run(at("04:10"), seen, Missing(source="prometheus", reason="HTTP 503"))
    action = decision_on(result, ScopeKind.WORKLOAD, "serving/chat").action
    assert isinstance(action, SetFloor)
    assert action.replicas >= 700


def test_a_missing_cluster_input_lowers_nothing() -> None:
    seen = replace(
        snapshot(Floor(replicas=900, expires_at=at("07:20")), None, 900),
        missing=(Missing(source="kubernetes:queues", reason="no answer"),),
    )
    action = decision_on(run(at("07:15"), seen), ScopeKind.WORKLOAD, "serving/chat").action
    assert isinstance(action, SetFloor)
    assert action.replicas >= 900


def test_zero_is_a_measurement_and_may_lower() -> None:
    first = int((at("04:05") - START).total_seconds() // 60)
    quiet = replace(SERIES, values=(*VALUES[:first], *(0.0 for _ in VALUES[first:])))
    seen = snapshot(Floor(replicas=900, expires_at=at("04:30")), None, 900)
    action = decision_on(run(at("04:20"), seen, quiet), ScopeKind.WORKLOAD, "serving/chat").action
    assert isinstance(action, ReleaseFloor)


@pytest.mark.parametrize(
    ("release", "kind"),
    [pytest.param("at_once", ReleaseFloor, id="at once"), pytest.param("stepwise", SetFloor, id="a step a tick")],
)
def test_the_kill_switch_gives_back_as_the_policy_says_and_then_stays_silent(release: str, kind: type) -> None:
    killed = Policy.model_validate({"actuation": {"stage": "hpa_floor", "kill_switch": True, "floor_release": release}})
    ends = at("06:00")
    seen = snapshot(Floor(replicas=800, expires_at=ends), Buffer(pods=90, expires_at=ends), 800)
    result = run(at("05:50"), seen, policy=killed)
    floor = decision_on(result, ScopeKind.WORKLOAD, "serving/chat").action
    room = decision_on(result, ScopeKind.POOL, "gpu/serving/chat").action
    assert isinstance(floor, kind)
    assert not isinstance(floor, SetFloor) or floor.replicas == 720
    assert isinstance(room, SetBuffer)
    assert room.pods == 0
    after = run(at("05:51"), snapshot(), policy=killed, state=result.state)
    assert after.tick.proposals == ()


def test_a_raise_that_was_written_is_remembered_by_the_rate_and_one_that_was_not_is_not() -> None:
    for policy, added in ((POLICY, 10), (Policy(), 0)):
        source = FakeSource(snapshot(), {CHAT: SERIES})
        ports = Ports(source=source, actuator=LadderActuator(policy.actuation, RecordingWriter()))
        result = tick(at("05:40"), ports, policy, learned(), at("05:40"))
        assert any(isinstance(d.action, SetFloor) for d in result.tick.decisions)
        assert result.state.rate[CHAT.key].added(at("05:40")) == added
