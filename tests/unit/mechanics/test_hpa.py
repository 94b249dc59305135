"""One sync of the HPA, rule by rule. Each comment is the arithmetic by hand."""

from leadtime.mechanics import hpa
from leadtime.mechanics.hpa import AverageValue, ExternalMetric, ExternalReading, HpaObserved, HpaSpec, HpaState

RPS = ExternalMetric(name="requests_per_second", target=AverageValue(milli=10_000))


def seen(replicas: int, rps: float, now_s: float = 0.0) -> HpaObserved:
    reading = ExternalReading(values_milli=(round(rps * 1000),))
    return HpaObserved(now_s=now_s, spec_replicas=replicas, status_replicas=replicas, readings=(reading,))


def test_average_value_divides_the_total_by_the_target_and_rounds_up() -> None:
    # 61 rps / 10 rps a pod = 6.1 -> 7; ratio 61/(10·5) = 1.22 is outside 0.9..1.1; limit max(2·5, 4) = 10
    answer = hpa.sync(HpaSpec(max_replicas=20, metrics=(RPS,)), HpaState(), seen(5, 61))
    assert answer.desired == 7
    assert answer.reason is hpa.SyncReason.METRIC_ABOVE_TARGET


def test_inside_the_tolerance_nothing_moves() -> None:
    # 55/(10·5) = 1.1, the band's end is included
    assert hpa.sync(HpaSpec(max_replicas=20, metrics=(RPS,)), HpaState(), seen(5, 55)).desired == 5
