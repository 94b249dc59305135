"""The HPA's shadow: what it would ask for, kept beside the real one."""

from leadtime.loop.hpa_shadow import follow
from leadtime.loop.memory import HpaShadow
from leadtime.testing.builders import cluster

STATE = cluster().pool("gpu", nodes=65).workload("serving/chat", ready=480, minimum=480).snapshot().workloads[0]


def test_at_the_target_it_wants_what_stands() -> None:
    shadow = follow(HpaShadow(replicas=480), STATE, 1680.0, end_s=60.0, span_s=60.0, syncs=4)
    assert shadow.replicas == 480  # 1,680 / (0.7 × 5) = 480


def test_within_a_minute_the_default_behaviour_lets_it_double() -> None:
    shadow = follow(HpaShadow(replicas=480), STATE, 3120.0, end_s=60.0, span_s=60.0, syncs=4)
    assert shadow.replicas == 892  # ceil(3,120 / 3.5)


def test_it_never_goes_below_the_owners_minimum_and_waits_five_minutes_to_go_down() -> None:
    shadow = follow(HpaShadow(replicas=480), STATE, 3120.0, end_s=60.0, span_s=60.0, syncs=4)
    for minute in range(2, 6):
        shadow = follow(shadow, STATE, 100.0, end_s=60.0 * minute, span_s=60.0, syncs=4)
    assert shadow.replicas == 892
    for minute in range(6, 9):
        shadow = follow(shadow, STATE, 100.0, end_s=60.0 * minute, span_s=60.0, syncs=4)
    assert shadow.replicas == 480


def test_without_a_metric_it_holds() -> None:
    shadow = follow(HpaShadow(replicas=700), STATE, None, end_s=60.0, span_s=60.0, syncs=4)
    assert shadow.replicas == 700
