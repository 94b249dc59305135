"""KEDA's own part: waking, cooling down, errors, fallbacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import keda
from leadtime.mechanics.keda import Activity, Bounds, Fallback, FallbackBehaviour, Trigger

BUSY = Trigger(value=5.0, target=10.0)
QUIET = Trigger(value=0.0, target=10.0)
BROKEN = Trigger(value=None, target=10.0)
ZERO = Bounds(min_replicas=0)


def poll(
    *triggers: Trigger,
    current: int,
    bounds: Bounds = ZERO,
    last_active_s: float | None = 0.0,
    now_s: float = 1000.0,
    fallback: Fallback | None = None,
) -> keda.Poll:
    activity = Activity(created_s=0.0, last_active_s=last_active_s)
    return keda.poll(activity, triggers, current=current, bounds=bounds, now_s=now_s, fallback=fallback)


def test_activity_wakes_to_one_or_the_minimum() -> None:
    assert poll(BUSY, current=0).replicas == 1
    assert poll(BUSY, current=0, bounds=Bounds(min_replicas=3)).replicas == 3
    assert poll(BUSY, current=0).activity.last_active_s == 1000.0


def test_awake_and_active_leaves_the_number_to_the_hpa_and_notes_the_time() -> None:
    result = poll(BUSY, current=7)
    assert (result.replicas, result.activity.last_active_s) == (None, 1000.0)


@pytest.mark.parametrize(
    ("value", "activation", "active"),
    [(0.0, 0.0, False), (0.1, 0.0, True), (5.0, 5.0, False), (5.1, 5.0, True), (None, 0.0, False)],
)
def test_active_means_above_the_activation_value(value: float | None, activation: float, active: bool) -> None:
    assert keda.is_active(Trigger(value=value, target=1.0, activation=activation)) is active


@pytest.mark.parametrize(
    ("now_s", "expected"),
    [
        pytest.param(299.0, None, id="cooling down"),
        pytest.param(300.0, None, id="exactly 300 s: not yet"),
        pytest.param(301.0, 0, id="past the cool-down: N to 0 at one stroke"),
    ],
)
def test_to_zero_only_after_the_cool_down(now_s: float, expected: int | None) -> None:
    assert poll(QUIET, current=40, now_s=now_s).replicas == expected


def test_never_active_is_not_protected_by_the_cool_down() -> None:
    assert poll(QUIET, current=40, last_active_s=None, now_s=1.0).replicas == 0


def test_initial_cool_down_protects_what_was_never_active() -> None:
    cadence = keda.KedaCadence(initial_cooldown_s=600.0)
    activity = Activity(created_s=0.0)
    for now_s, expected in ((600.0, None), (601.0, 0)):
        result = keda.poll(activity, [QUIET], current=4, bounds=ZERO, now_s=now_s, cadence=cadence)
        assert result.replicas == expected


def test_idle_mode_rests_at_idle_and_wakes_to_the_minimum() -> None:
    bounds = Bounds(min_replicas=4, idle=1)
    assert poll(QUIET, current=9, bounds=bounds).replicas == 1
    assert poll(QUIET, current=1, bounds=bounds).replicas is None
    assert poll(BUSY, current=1, bounds=bounds).replicas == 4


def test_below_the_minimum_is_mended_without_activity() -> None:
    assert poll(QUIET, current=1, bounds=Bounds(min_replicas=2)).replicas == 2
    assert poll(QUIET, current=5, bounds=Bounds(min_replicas=2)).replicas is None


def test_an_error_is_not_zero_and_keeps_what_stands() -> None:
    assert poll(BROKEN, current=40).replicas is None
    assert poll(BROKEN, current=40, fallback=Fallback(replicas=10)).replicas is None
    assert poll(BROKEN, QUIET, current=40).replicas is None


def test_an_error_with_a_fallback_of_none_lets_the_target_go_to_zero() -> None:
    assert poll(BROKEN, current=40, fallback=Fallback(replicas=0)).replicas == 0


def test_an_error_beside_an_active_trigger_leaves_the_cool_down_clock() -> None:
    result = poll(BROKEN, BUSY, current=40, last_active_s=100.0)
    assert (result.replicas, result.activity.last_active_s) == (None, 100.0)
    assert poll(BROKEN, BUSY, current=0).replicas == 1


@pytest.mark.parametrize(
    ("behaviour", "at_4", "at_20"),
    [
        (FallbackBehaviour.STATIC, 10, 10),
        (FallbackBehaviour.CURRENT_REPLICAS, 4, 20),
        (FallbackBehaviour.CURRENT_REPLICAS_IF_HIGHER, 10, 20),
        (FallbackBehaviour.CURRENT_REPLICAS_IF_LOWER, 4, 10),
    ],
)
def test_fallback_behaviours_with_ten_replicas(behaviour: FallbackBehaviour, at_4: int, at_20: int) -> None:
    fallback = Fallback(replicas=10, behaviour=behaviour)
    assert keda.fallback_replicas(fallback, current=4) == at_4
    assert keda.fallback_replicas(fallback, current=20) == at_20


@pytest.mark.parametrize(
    ("failures", "fallback", "expected"),
    [
        pytest.param(3, Fallback(replicas=10), None, id="three errors: still an error"),
        pytest.param(4, Fallback(replicas=10), 100.0, id="the fourth: target 10 × 10 replicas"),
        pytest.param(99, None, None, id="no fallback: an error for ever"),
    ],
)
def test_a_failing_trigger_speaks_for_its_fallback_after_the_threshold(
    failures: int, fallback: Fallback | None, expected: float | None
) -> None:
    assert keda.metric_value(BROKEN, failures_in_a_row=failures, fallback=fallback, current=20) == expected


def test_a_measured_zero_stays_zero() -> None:
    assert keda.metric_value(QUIET, failures_in_a_row=0, fallback=Fallback(replicas=10), current=20) == 0.0


def test_floor_trigger_raises_and_never_lowers() -> None:
    load, floor = Trigger(value=75.0, target=10.0), Trigger(value=12.0, target=1.0)
    bounds = Bounds(min_replicas=2, max_replicas=20)
    assert keda.floor_metric_replicas([75.0], [load], bounds) == 8
    assert keda.floor_metric_replicas([75.0, 12.0], [load, floor], bounds) == 12
    assert keda.floor_metric_replicas([75.0, 3.0], [load, floor], bounds) == 8
    assert keda.floor_metric_replicas([75.0, 99.0], [load, floor], bounds) == 20
    assert keda.floor_metric_replicas([], [], bounds) == 2


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.1, 1e3)), min_size=1, max_size=4), st.integers(0, 500))
def test_adding_a_floor_never_lowers_the_answer(load: list[tuple[float, float]], floor: int) -> None:
    triggers = [Trigger(value=value, target=target) for value, target in load]
    values = [value for value, _ in load]
    bounds = Bounds(min_replicas=0, max_replicas=300)
    with_floor = keda.floor_metric_replicas(
        [*values, float(floor)], [*triggers, Trigger(value=float(floor), target=1.0)], bounds
    )
    assert with_floor >= keda.floor_metric_replicas(values, triggers, bounds)
    assert with_floor >= min(floor, 300)
