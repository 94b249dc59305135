"""One sync of the HPA as a whole, rule by rule. Each comment is the arithmetic by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import hpa
from leadtime.mechanics.hpa import (
    AverageValue,
    Behavior,
    ExternalMetric,
    ExternalReading,
    HpaObserved,
    HpaSpec,
    HpaState,
    HpaSync,
    ReadingError,
    Recommendation,
    ScaleEvent,
    ScalingActive,
    ScalingLimited,
    SyncReason,
)

RPS = ExternalMetric(name="requests_per_second", target=AverageValue(milli=10_000))
QUEUE = ExternalMetric(name="queue_length", target=AverageValue(milli=5_000))
SPEC = HpaSpec(max_replicas=20, metrics=(RPS,))
NO_ANSWER = ReadingError(message="prometheus: connection refused")


def rps(total: float) -> ExternalReading:
    return ExternalReading(values_milli=(round(total * 1000),))


def seen(replicas: int, *readings: hpa.Reading | ReadingError, now_s: float = 0.0) -> HpaObserved:
    return HpaObserved(now_s=now_s, spec_replicas=replicas, status_replicas=replicas, readings=readings)


def fresh(spec: HpaSpec, observed: HpaObserved) -> HpaSync:
    return hpa.sync(spec, HpaState(), observed)


def settled(replicas: int, now_s: float = -15.0) -> HpaState:
    """A controller that has seen ``replicas`` once."""
    return HpaState(recommendations=(Recommendation(now_s, replicas),))


# --- step 0: bounds, before any metric ---------------------------------------------------------------------------


def test_above_max_goes_to_max_at_once_without_reading_metrics() -> None:
    # 50 > 20 -> 20, although the metric fails and 50 -> 20 is far more than any rate
    answer = fresh(SPEC, seen(50, NO_ANSWER))
    assert (answer.desired, answer.reason) == (20, SyncReason.ABOVE_MAX)
    assert answer.proposals == ()


def test_below_min_goes_to_min_at_once_past_rate_limits() -> None:
    # 2 < 12 -> 12; the rate limit max(2·2, 4) = 4 does not hold here
    answer = fresh(SPEC.with_bounds(12, 20), seen(2, NO_ANSWER))
    assert (answer.desired, answer.reason) == (12, SyncReason.BELOW_MIN)


def test_a_raised_minimum_moves_even_inside_the_tolerance() -> None:
    # 10 rps a pod on 10 pods is exactly the target; min 11 moves all the same
    assert fresh(SPEC.with_bounds(11, 20), seen(10, rps(100))).desired == 11


def test_moves_into_bounds_use_up_the_rate_allowance() -> None:
    # t=0: 5 -> 8 by min, stored as +3. t=5: load for 40; base = 8 - 3 = 5, up to max(5 + 4, ceil(5 · 2)) = 10, not 16
    spec = HpaSpec(min_replicas=8, max_replicas=50, metrics=(RPS,), behavior=Behavior())
    first = fresh(spec, seen(5, rps(50), now_s=0.0))
    assert first.state.up_events == (ScaleEvent(0.0, 3, outdated=False),)
    second = hpa.sync(spec, first.state, seen(8, rps(400), now_s=5.0))
    assert (second.desired, second.scaling_limited) == (10, ScalingLimited.SCALE_UP_LIMIT)


def test_without_behavior_no_event_is_kept() -> None:
    assert fresh(SPEC, seen(5, rps(80))).state.up_events == ()


# --- metrics together --------------------------------------------------------------------------------------------


def test_average_value_divides_the_total_by_the_target_and_rounds_up() -> None:
    # 61 / (10 · 5) = 1.22, outside 0.9..1.1; 61 / 10 = 6.1 -> 7; at most max(2 · 5, 4) = 10
    answer = fresh(SPEC, seen(5, rps(61)))
    assert (answer.desired, answer.reason) == (7, SyncReason.METRIC_ABOVE_TARGET)
    assert answer.state.recommendations == (Recommendation(0.0, 5), Recommendation(0.0, 7))


def test_the_largest_proposal_wins() -> None:
    # 61/10 -> 7 and 45/5 = 9 -> 9
    answer = fresh(replace(SPEC, metrics=(RPS, QUEUE)), seen(5, rps(61), rps(45)))
    assert (answer.desired, answer.proposals) == (9, (7, 9))


def test_a_failed_metric_does_not_stop_scale_up() -> None:
    answer = fresh(replace(SPEC, metrics=(QUEUE, RPS)), seen(5, NO_ANSWER, rps(61)))
    assert (answer.desired, answer.proposals) == (7, (None, 7))
    assert answer.scaling_active is ScalingActive.VALID_METRIC_FOUND
    assert answer.failure == NO_ANSWER.message


def test_a_failed_metric_stops_scale_down_and_leaves_no_recommendation() -> None:
    # rps asks for 2 < 5, the queue is unknown: nothing is changed, nothing is remembered
    spec = replace(SPEC, metrics=(RPS, QUEUE))
    answer = hpa.sync(spec, settled(5), seen(5, rps(20), NO_ANSWER))
    assert (answer.desired, answer.reason) == (5, SyncReason.METRICS_FAILED)
    assert answer.scaling_active is ScalingActive.FAILED_EXTERNAL
    assert answer.state == settled(5)


def test_a_failed_metric_with_the_others_at_the_current_count_is_no_failure() -> None:
    # 5 is not < 5: the sync goes on, with 5
    answer = fresh(replace(SPEC, metrics=(RPS, QUEUE)), seen(5, rps(50), NO_ANSWER))
    assert (answer.desired, answer.reason) == (5, SyncReason.UNCHANGED)


def test_all_metrics_failed_changes_nothing() -> None:
    answer = fresh(SPEC, seen(5, NO_ANSWER))
    assert (answer.desired, answer.reason, answer.stabilised) == (5, SyncReason.METRICS_FAILED, None)


@pytest.mark.parametrize("problem", list(hpa.SelectorProblem))
def test_unknown_pods_stop_everything_that_metrics_decide(problem: hpa.SelectorProblem) -> None:
    answer = fresh(SPEC, replace(seen(5, rps(200)), selector_problem=problem))
    assert (answer.desired, answer.reason) == (5, SyncReason.METRICS_FAILED)
    assert answer.scaling_active == problem.value


def test_a_reading_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="ObjectReading; give ExternalReading"):
        fresh(SPEC, seen(5, hpa.ObjectReading(value_milli=1)))


def test_a_missing_reading_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        fresh(SPEC, seen(5))


# --- zero --------------------------------------------------------------------------------------------------------

TO_ZERO = replace(SPEC, min_replicas=0)


def test_a_hand_set_zero_stays_paused() -> None:
    answer = fresh(TO_ZERO, seen(0, rps(500)))
    assert (answer.desired, answer.reason) == (0, SyncReason.SCALING_DISABLED)
    assert answer.scaling_active is ScalingActive.SCALING_DISABLED


def test_zero_with_a_minimum_of_one_stays_paused_too() -> None:
    assert fresh(SPEC, seen(0, rps(500))).desired == 0


def test_the_hpa_goes_to_zero_and_comes_back() -> None:
    # 0 rps -> ceil(0 / 10) = 0. From 0: 35 / (10 · 0) is infinite, ceil(35 / 10) = 4, at most max(2 · 0, 4) = 4
    down = hpa.sync(TO_ZERO, HpaState(recommendations=(Recommendation(-301.0, 1),)), seen(1, rps(0)))
    assert (down.desired, down.state.scaled_to_zero) == (0, True)
    up = hpa.sync(TO_ZERO, down.state, seen(0, rps(95), now_s=15.0))
    assert (up.desired, up.state.scaled_to_zero) == (4, False)  # 95 rps asks for 10; 4 is the first step


def test_idle_at_zero_stays_at_zero() -> None:
    # 0 / 0 is no number, so not inside the tolerance; ceil(0 / 10) = 0
    answer = hpa.sync(TO_ZERO, HpaState(scaled_to_zero=True), seen(0, rps(0)))
    assert (answer.desired, answer.reason) == (0, SyncReason.UNCHANGED)


def test_a_minimum_raised_while_at_zero_is_reached_in_the_next_sync() -> None:
    # without behavior the lower bound does it: 0 -> 6, past the limit of 4
    state = HpaState(scaled_to_zero=True)
    assert hpa.sync(SPEC.with_bounds(6, 20), state, seen(0, rps(0))).desired == 6
    # with behavior only a rule of its own does: 0 -> 6
    spec = replace(SPEC.with_bounds(6, 20), behavior=Behavior())
    answer = hpa.sync(spec, state, seen(0, rps(0)))
    assert (answer.desired, answer.reason) == (6, SyncReason.BELOW_MIN)


def test_the_zero_condition_outlives_a_restart() -> None:
    state = HpaState(recommendations=(Recommendation(0.0, 0),), scaled_to_zero=True).after_restart()
    assert state == HpaState(scaled_to_zero=True)
    assert hpa.sync(TO_ZERO, state, seen(0, rps(20))).desired == 2


# --- memory ------------------------------------------------------------------------------------------------------


def test_a_fresh_controller_takes_the_current_count_as_its_first_recommendation() -> None:
    # 10 rps asks for 1, but 5 was recommended this very second: no scale-down for 300 s
    answer = fresh(SPEC, seen(5, rps(10)))
    assert (answer.desired, answer.able_to_scale) == (5, hpa.AbleToScale.SCALE_DOWN_STABILISED)


def test_a_restart_forgets_a_higher_recommendation() -> None:
    # 18 was asked for 100 s ago; after a restart only the current 6 counts, so the raise back to 18 never comes
    state = HpaState(recommendations=(Recommendation(0.0, 18), Recommendation(0.0, 6)))
    now = seen(6, rps(60), now_s=100.0)
    assert hpa.sync(SPEC, state, now).desired == 12  # 18, limited to 2 · 6
    assert hpa.sync(SPEC, state.after_restart(), now).desired == 6


def test_a_raise_by_an_earlier_recommendation_says_so() -> None:
    state = HpaState(recommendations=(Recommendation(0.0, 9),))
    answer = hpa.sync(SPEC, state, seen(6, rps(60), now_s=100.0))
    assert (answer.desired, answer.reason) == (9, SyncReason.EARLIER_RECOMMENDATION)


def test_memory_stays_as_long_as_its_window() -> None:
    # 300 s / 15 s + both ends = 21 live ones, and one that has just expired waits for its slot to be used again
    state = HpaState()
    for index in range(500):
        state = hpa.sync(SPEC, state, seen(5, rps(50), now_s=15.0 * index)).state
    assert len(state.recommendations) <= 22


def test_equal_inputs_give_equal_answers_and_inputs_stay_as_they_were() -> None:
    state, observed = settled(5), seen(5, rps(70))
    assert hpa.sync(SPEC, state, observed) == hpa.sync(SPEC, state, observed)
    assert state == settled(5)


# --- impossible specs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high"),
    [pytest.param(5, 4, id="min above max"), pytest.param(-1, 4, id="negative"), pytest.param(0, 0, id="max of zero")],
)
def test_bounds_that_cannot_be_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="need 0 ≤ min_replicas ≤ max_replicas"):
        HpaSpec(min_replicas=low, max_replicas=high, metrics=(RPS,))


def test_no_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="give at least one metric"):
        HpaSpec(max_replicas=4, metrics=())


def test_a_minimum_of_zero_needs_a_metric_from_outside_the_pods() -> None:
    with pytest.raises(ValueError, match="needs an object or external metric"):
        HpaSpec(
            min_replicas=0,
            max_replicas=4,
            metrics=(hpa.ResourceMetric(resource="cpu", target=hpa.Utilisation(percent=50)),),
        )


# --- invariants --------------------------------------------------------------------------------------------------

BEHAVIORS = st.sampled_from((None, Behavior(), Behavior(scale_up=hpa.ScalingRules(window_s=60))))


@given(
    behavior=BEHAVIORS,
    replicas=st.integers(1, 20),
    loads=st.lists(st.one_of(st.none(), st.floats(0, 500)), min_size=1, max_size=30),
)
def test_replicas_stay_within_bounds_and_unknown_loads_never_move_them(
    behavior: Behavior | None, replicas: int, loads: list[float | None]
) -> None:
    spec, state = replace(SPEC, min_replicas=2, behavior=behavior), HpaState()
    replicas = max(replicas, 2)
    for index, load in enumerate(loads):
        reading = NO_ANSWER if load is None else rps(load)
        answer = hpa.sync(spec, state, seen(replicas, reading, now_s=15.0 * index))
        assert 2 <= answer.desired <= 20
        assert load is not None or answer.desired == replicas
        state, replicas = answer.state, answer.desired
