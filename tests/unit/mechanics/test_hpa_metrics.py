"""External and object metrics → proposals. Each comment is the arithmetic by hand."""

import pytest

from leadtime.mechanics import hpa, hpa_metrics
from leadtime.mechanics.hpa import (
    AverageValue,
    Behavior,
    ExternalMetric,
    ExternalReading,
    HpaFlags,
    HpaObserved,
    HpaSpec,
    ObjectMetric,
    ObjectReading,
    PodPhase,
    PodReading,
    Ready,
    ScalingRules,
    Value,
)
from leadtime.mechanics.hpa_pods import MetricFailed

PER_POD = ExternalMetric(name="rps", target=AverageValue(milli=10_000))
IN_ALL = ExternalMetric(name="queue_age", target=Value(milli=10_000))
MAX_INT32 = 2**31 - 1
MIN_INT32 = -(2**31)


def proposal(
    metric: hpa.MetricSpec,
    *values_milli: int,
    replicas: int = 10,
    status: int | None = None,
    ready_pods: int | None = None,
    pods: tuple[PodReading, ...] = (),
    behavior: Behavior | None = None,
    tolerance_ratio: float = 0.1,
) -> int:
    flags = HpaFlags(tolerance_ratio=tolerance_ratio)
    spec = HpaSpec(max_replicas=1000, metrics=(metric,), behavior=behavior, flags=flags)
    is_object = isinstance(metric, ObjectMetric)
    reading = ObjectReading(value_milli=values_milli[0]) if is_object else ExternalReading(values_milli=values_milli)
    observed = HpaObserved(
        now_s=0.0,
        spec_replicas=replicas,
        status_replicas=replicas if status is None else status,
        readings=(reading,),
        pods=pods,
        ready_pods=ready_pods,
    )
    return hpa_metrics.propose(spec, metric, reading, observed)


# --- AverageValue ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total_milli", "expected"),
    [
        pytest.param(110_000, 10, id="110/(10·10) = 1.1 is still inside"),
        pytest.param(110_001, 12, id="1.10001 is outside: 11.0001 pods -> 12"),
        pytest.param(90_000, 10, id="0.9 is still inside"),
        pytest.param(89_999, 9, id="0.89999 is outside: 8.9999 -> 9"),
        pytest.param(80_000, 8, id="0.8: exactly 8"),
        pytest.param(0, 0, id="nothing"),
    ],
)
def test_the_tolerance_includes_its_ends(total_milli: int, expected: int) -> None:
    assert proposal(PER_POD, total_milli) == expected


def test_average_value_compares_with_the_pods_there_are_not_the_pods_wanted() -> None:
    # 100 rps on 4 pods that exist (10 are wanted): 100/(10·4) = 2.5 -> 10; on 10 it would be inside
    assert proposal(PER_POD, 100_000, replicas=10, status=4) == 10
    # 41 on 4: 1.025, inside -> the 4 that exist, not the 10 wanted
    assert proposal(PER_POD, 41_000, replicas=10, status=4) == 4


def test_series_of_an_external_metric_are_summed() -> None:
    # 70 + 50 + 3 = 123 -> 12.3 -> 13
    assert proposal(PER_POD, 70_000, 50_000, 3_000) == 13


def test_no_series_is_a_failure_not_zero() -> None:
    with pytest.raises(MetricFailed, match="no values for external metric rps"):
        proposal(PER_POD)


def test_each_direction_may_have_its_own_tolerance() -> None:
    rules = Behavior(scale_up=ScalingRules(tolerance_ratio=0.0), scale_down=ScalingRules(tolerance_ratio=0.3))
    assert proposal(PER_POD, 100_001, behavior=rules) == 11  # 1.00001 > 1 + 0
    assert proposal(PER_POD, 70_000, behavior=rules) == 10  # 0.7 is 1 - 0.3: inside
    assert proposal(PER_POD, 69_000, behavior=rules) == 7  # 6.9 -> 7


def test_the_flag_holds_in_the_direction_behavior_does_not_name() -> None:
    rules = Behavior(scale_up=ScalingRules(tolerance_ratio=0.5))
    assert proposal(PER_POD, 149_000, behavior=rules) == 10
    assert proposal(PER_POD, 89_000, behavior=rules, tolerance_ratio=0.1) == 9


def test_float_noise_reaches_the_edge_of_the_tolerance() -> None:
    # 1.0 - 0.3 is 0.7, and 0.7 is inside; 1.0 - 0.9 is 0.09999999999999998, so 0.1 is inside but barely
    rules = Behavior(scale_down=ScalingRules(tolerance_ratio=0.9))
    assert proposal(PER_POD, 10_000, behavior=rules) == 10


# --- Value -------------------------------------------------------------------------------------------------------


def test_a_total_scales_the_ready_pods_not_the_wanted_ones() -> None:
    # 25/10 = 2.5; 6 of the 10 wanted are ready: ceil(2.5 · 6) = 15, not 25
    assert proposal(IN_ALL, 25_000, ready_pods=6) == 15


def test_a_total_inside_the_tolerance_leaves_the_wanted_replicas() -> None:
    assert proposal(IN_ALL, 10_900, replicas=10, status=7, ready_pods=3) == 10  # 1.09


def test_from_zero_the_ratio_itself_is_the_answer_without_tolerance() -> None:
    assert proposal(IN_ALL, 10_500, replicas=0) == 2  # ceil(1.05)
    assert proposal(IN_ALL, 1, replicas=0) == 1
    assert proposal(IN_ALL, 0, replicas=0) == 0


def test_only_running_and_ready_pods_count_even_when_they_are_going() -> None:
    # counted: plain, going -> 2 · 2.0 = 4
    pods = (
        PodReading(name="plain"),
        PodReading(name="going", deleting=True),
        PodReading(name="pending", phase=PodPhase.PENDING),
        PodReading(name="not-ready", ready=Ready.FALSE),
        PodReading(name="unknown", ready=Ready.UNKNOWN),
        PodReading(name="no-condition", ready=Ready.ABSENT),
    )
    assert proposal(IN_ALL, 20_000, pods=pods) == 4


def test_a_total_without_any_pod_fails() -> None:
    with pytest.raises(MetricFailed, match="no pods"):
        proposal(IN_ALL, 20_000)


def test_an_object_metric_knows_both_targets() -> None:
    assert proposal(ObjectMetric(name="rps", target=AverageValue(milli=10_000)), 61_000, replicas=5) == 7
    assert proposal(ObjectMetric(name="rps", target=Value(milli=10_000)), 25_000, ready_pods=6) == 15


# --- numbers that fit nowhere (the original does the same) --------------------------------------------------------


def test_an_external_proposal_is_capped_an_object_one_overflows_to_none() -> None:
    # 2^31 pods' worth of load: external stops at 2^31 - 1, object becomes the smallest int32
    assert proposal(PER_POD, 2**31 * 10_000) == MAX_INT32
    assert proposal(ObjectMetric(name="rps", target=AverageValue(milli=10_000)), 2**31 * 10_000) == MIN_INT32


def test_an_absurd_object_metric_sends_the_workload_to_its_minimum() -> None:
    metric = ObjectMetric(name="rps", target=AverageValue(milli=10_000))
    state = hpa.HpaState(recommendations=(hpa.Recommendation(-400.0, 9),))
    observed = HpaObserved(
        now_s=0.0, spec_replicas=9, status_replicas=9, readings=(ObjectReading(value_milli=2**31 * 10_000),)
    )
    assert hpa.sync(HpaSpec(min_replicas=3, max_replicas=50, metrics=(metric,)), state, observed).desired == 3


def test_a_total_is_capped_when_pods_exist_but_overflows_from_zero() -> None:
    assert proposal(IN_ALL, 2**62, ready_pods=10) == MAX_INT32
    assert proposal(IN_ALL, 2**62, replicas=0) == MIN_INT32


def test_sums_beyond_64_bits_stop_at_the_largest() -> None:
    # 2^62 + 2^62 does not fit: 2^63 - 1, far above any target
    assert proposal(PER_POD, 2**62, 2**62) == MAX_INT32
    assert proposal(IN_ALL, 2**62, 2**62, ready_pods=10) == MAX_INT32


def test_a_negative_external_sum_is_taken_for_an_overflow_per_pod_only() -> None:
    assert proposal(PER_POD, -5) == MAX_INT32
    assert proposal(PER_POD, -5, 3) == MAX_INT32  # already below zero after the first series
    assert proposal(PER_POD, 7, -9, 4) == MAX_INT32
    assert proposal(IN_ALL, -50_000, ready_pods=10) == -50  # -5 · 10
