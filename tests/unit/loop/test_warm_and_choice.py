"""Warm-up and the choice of a plan: what is learned in one call, and when leadtime follows which plan."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from leadtime.domain.demand import DemandPath
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.tick import LoopState
from leadtime.forecast import lead_time
from leadtime.loop.choose import choose
from leadtime.loop.memory import HpaShadow, ShadowLog, WorkloadMemory
from leadtime.loop.record import comparable
from leadtime.loop.warm import learn
from leadtime.policy import Policy
from leadtime.testing.builders import cluster, ref
from leadtime.testing.fakes import FakeSource
from leadtime.testing.scenario_runner import FIRST_DAY, Load

AT = datetime(2026, 3, 9, tzinfo=UTC)
CHAT = ref("serving/chat")
SNAPSHOT = cluster().pool("gpu", nodes=65).workload("serving/chat", ready=480, minimum=480).snapshot()
WORKLOAD = SNAPSHOT.workloads[0]
POLICY = Policy()
LEAD = lead_time.learn(lead_time.start(), CHAT, "gpu", POLICY)
SERIES = Load(base=1440.0, days=3, surge_at=360, ramp_min=20, peak=3120.0, ends_at=400).series("chat")


def path(*, may_act: bool) -> DemandPath:
    values = [1440.0] * 90
    return DemandPath(
        subject=CHAT, issued_at=AT, step_s=60, expected=values, lower=values, upper=values, level_ratio=0.9,
        unit=Unit.REQUESTS_PER_S, model="literal", may_act=may_act,
        standing=Explanation(reason=Reason.MODEL_LOSES_TO_LAST_VALUE, sentence="the model's own standing"),
    )  # fmt: skip


def remembering(days: float, *, may_act: bool = True) -> WorkloadMemory:
    """Days of record: each day the HPA's wish jumps to 892 for 40 minutes; the path plans foresee it."""
    log = ShadowLog()
    for minute in range(int(days * 1440)):
        busy = 360 <= minute % 1440 < 400
        soon = 300 <= minute % 1440 < 400
        floor = 892.0 if 345 <= minute % 1440 < 400 else 480.0
        row = np.array(
            [3120.0 if busy else 1440.0, 892.0 if busy else 480.0, *[floor] * 3, *[892.0 if soon else 480.0] * 3]
        )
        if not may_act:
            row[2:] = np.nan
        log = log.after(row.astype(np.float32), 60, may_act=may_act)
    return WorkloadMemory(hpa=HpaShadow(replicas=480), log=log)


def plan_of(memory: WorkloadMemory, seen: DemandPath | Missing) -> str | None:
    return choose(WORKLOAD, memory, seen, LEAD, as_of=AT, policy=POLICY).choice.plan


def test_with_less_than_a_day_of_record_the_upper_path_is_followed_if_its_model_may_act() -> None:
    assert plan_of(remembering(0.9), path(may_act=True)) == "upper"
    assert plan_of(remembering(0.9), path(may_act=False)) is None


def test_with_a_day_of_record_the_plan_that_pays_is_followed() -> None:
    chosen = choose(WORKLOAD, remembering(2), path(may_act=True), LEAD, as_of=AT, policy=POLICY)
    assert chosen.choice.plan in {"upper", "middle", "expected"}
    assert chosen.memory.judged is not None
    assert "instead of" in chosen.choice.why.sentence


def bursts(*, room: float, days: int = 2) -> WorkloadMemory:
    """Days with one burst of eight minutes, for which the path's floors would stand all day: no floor pays.

    The HPA wants 520 in the burst; ``room``: what nodes ahead would hold.
    """
    log = ShadowLog()
    for minute in range(2 * 1440):
        busy = 360 <= minute % 1440 < 368 and minute >= (2 - days) * 1440
        row = np.array([2600.0 if busy else 1440.0, 520.0 if busy else 480.0, *[900.0] * 3, *[room] * 3])
        log = log.after(row.astype(np.float32), 60, may_act=True)
    return WorkloadMemory(hpa=HpaShadow(replicas=480), log=log)


def test_where_no_floor_pays_cheap_nodes_ahead_that_would_have_helped_are_kept_and_dear_ones_are_not() -> None:
    cheap = choose(WORKLOAD, bursts(room=520), path(may_act=True), LEAD, as_of=AT, policy=POLICY).choice
    dear = choose(WORKLOAD, bursts(room=700), path(may_act=True), LEAD, as_of=AT, policy=POLICY).choice
    unable = choose(WORKLOAD, bursts(room=520), path(may_act=False), LEAD, as_of=AT, policy=POLICY).choice
    assert (cheap.plan, dear.plan, unable.plan) == ("room-upper", None, None)
    assert {cheap.why.reason, dear.why.reason} == {Reason.PREDICTION_DOES_NOT_PAY}
    assert "more node-hours" in cheap.why.sentence


@pytest.mark.parametrize("days", [0, 1])
def test_leadtime_stands_back_where_nodes_ahead_would_have_helped_on_no_day_or_on_one(days: int) -> None:
    chosen = choose(WORKLOAD, bursts(room=520, days=days), path(may_act=True), LEAD, as_of=AT, policy=POLICY).choice
    assert (chosen.plan, chosen.why.reason) == (None, Reason.PREDICTION_DOES_NOT_PAY)


def test_a_verdict_stands_for_a_day() -> None:
    first = choose(WORKLOAD, remembering(2), path(may_act=True), LEAD, as_of=AT, policy=POLICY).memory
    later = choose(WORKLOAD, first, path(may_act=True), LEAD, as_of=AT + timedelta(hours=23), policy=POLICY).memory
    next_day = choose(WORKLOAD, first, path(may_act=True), LEAD, as_of=AT + timedelta(hours=24), policy=POLICY).memory
    assert first.judged is not None
    assert next_day.judged is not None
    assert later.judged == first.judged
    assert next_day.judged.at == AT + timedelta(hours=24)


def test_a_model_that_may_not_act_any_more_is_not_followed_even_before_the_next_verdict() -> None:
    first = choose(WORKLOAD, remembering(2), path(may_act=True), LEAD, as_of=AT, policy=POLICY).memory
    soon = choose(WORKLOAD, first, path(may_act=False), LEAD, as_of=AT + timedelta(minutes=1), policy=POLICY)
    assert soon.choice.plan is None
    assert soon.choice.why.sentence == "the model's own standing"


def test_without_a_path_leadtime_stands_back_and_says_what_is_missing() -> None:
    gone = Missing(source="demand of serving/chat", reason="no value was ever seen")
    chosen = choose(WORKLOAD, remembering(2), gone, LEAD, as_of=AT, policy=POLICY)
    assert chosen.choice.plan is None
    assert "no value was ever seen" in chosen.choice.why.sentence


def test_path_plans_race_only_over_the_days_in_which_they_could_act() -> None:
    early, late = remembering(2, may_act=False).log, remembering(1).log
    both = ShadowLog(hours=(*early.hours, *late.hours), path_steps=1440)
    record = comparable(both, WORKLOAD, LEAD, POLICY, paths_may_act=True).record
    assert len(record.demand) == 1440
    assert {"upper", "headroom-05"} <= set(record.plans)
    assert "upper" not in comparable(early, WORKLOAD, LEAD, POLICY, paths_may_act=True).record.plans


def test_a_plan_that_orders_room_ahead_has_places_when_the_hpa_alone_has_none() -> None:
    record = comparable(remembering(2).log, WORKLOAD, LEAD, POLICY, paths_may_act=True).record
    peak = 1440 + 361
    assert record.hpa_wanted[peak] == 480
    assert record.plans["upper"][peak] == 892


def source(series: Series = SERIES) -> FakeSource:
    return FakeSource(SNAPSHOT, {CHAT: series})


def test_one_call_learns_a_span_and_a_second_call_adds_only_what_is_new() -> None:
    noon = FIRST_DAY + timedelta(days=2, hours=12)
    once = learn(noon, source(), POLICY, LoopState())
    memory = once.scaling["serving/chat"]
    assert memory.log.steps() == 2 * 1440 + 720
    assert memory.read_until == noon
    assert once.ticks == 0  # nothing was decided
    later = learn(noon + timedelta(minutes=1), source(), POLICY, once)
    assert later.scaling["serving/chat"].log.steps() == memory.log.steps() + 1


def test_learning_looks_at_nothing_after_its_end() -> None:
    noon = FIRST_DAY + timedelta(days=2, hours=12)
    cut = 2 * 1440 + 720
    other = replace(SERIES, values=(*SERIES.values[:cut], *(9999.0 for _ in SERIES.values[cut:])))
    one, two = learn(noon, source(), POLICY, LoopState()), learn(noon, source(other), POLICY, LoopState())
    assert np.array_equal(
        one.scaling["serving/chat"].log.rows(), two.scaling["serving/chat"].log.rows(), equal_nan=True
    )


def test_a_workload_without_any_demand_is_remembered_and_nothing_is_learned() -> None:
    state = learn(AT, FakeSource(SNAPSHOT, {}), POLICY, LoopState())
    assert state.scaling["serving/chat"].log.steps() == 0
    assert "serving/chat" not in state.forecast
