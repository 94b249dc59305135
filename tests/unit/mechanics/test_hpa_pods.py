"""Samples of pods → proposals. Each comment is the arithmetic by hand."""

from dataclasses import replace

import pytest

from leadtime.mechanics import hpa, hpa_pods
from leadtime.mechanics.hpa import (
    AverageValue,
    ContainerRequests,
    ContainerResourceMetric,
    HpaObserved,
    HpaSpec,
    PodPhase,
    PodReading,
    PodSample,
    PodSamples,
    PodsMetric,
    Ready,
    ResourceMetric,
    Utilisation,
)
from leadtime.mechanics.hpa_pods import MetricFailed

CPU = ResourceMetric(resource="cpu", target=Utilisation(percent=50))
MEMORY = ResourceMetric(resource="memory", target=Utilisation(percent=50))
TOKENS = PodsMetric(name="tokens", target=AverageValue(milli=1000))
NOW_S = 10_000.0
ASKED = (ContainerRequests(container="main", requests_milli={"cpu": 1000, "memory": 1000}),)


def pod(name: str, **changed: object) -> PodReading:
    """Running and Ready for long; asks for one CPU."""
    return replace(PodReading(name=name, containers=ASKED), **changed)  # type: ignore[arg-type]


def pods(count: int) -> tuple[PodReading, ...]:
    return tuple(pod(f"p{index}") for index in range(count))


def used(*milli: int) -> PodSamples:
    """Samples of p0, p1, …"""
    return PodSamples(samples=tuple(PodSample(pod=f"p{i}", value_milli=m, at_s=NOW_S) for i, m in enumerate(milli)))


def proposal(
    metric: hpa.MetricSpec, samples: PodSamples, selected: tuple[PodReading, ...], replicas: int | None = None
) -> int:
    spec = HpaSpec(max_replicas=1000, metrics=(metric,))
    current = len(selected) if replicas is None else replicas
    observed = HpaObserved(
        now_s=NOW_S, spec_replicas=current, status_replicas=current, readings=(samples,), pods=selected
    )
    return hpa.sync(spec, hpa.HpaState(), observed).proposals[0] or 0


def failure(metric: hpa.MetricSpec, samples: PodSamples, selected: tuple[PodReading, ...]) -> str:
    spec = HpaSpec(max_replicas=1000, metrics=(metric,))
    observed = HpaObserved(now_s=NOW_S, spec_replicas=2, status_replicas=2, readings=(samples,), pods=selected)
    answer = hpa.sync(spec, hpa.HpaState(), observed)
    assert answer.proposals == (None,)
    return answer.failure or ""


# --- the ratio ---------------------------------------------------------------------------------------------------


def test_utilisation_is_whole_percent_cut_off() -> None:
    # (559 + 560) · 100 / 2000 = 55.95 -> 55; 55/50 = 1.1 is inside; rounded it would be 1.12 and 3 pods
    assert proposal(CPU, used(559, 560), pods(2)) == 2
    # 1120 · 100 / 2000 = 56; 56/50 = 1.12; ceil(1.12 · 2) = 3
    assert proposal(CPU, used(560, 560), pods(2)) == 3


def test_the_average_of_a_pods_metric_is_cut_off_too() -> None:
    # (1100 + 1101) / 2 = 1100.5 -> 1100; 1.1 is inside
    assert proposal(TOKENS, used(1100, 1101), pods(2)) == 2
    # 2202 / 2 = 1101; 1.101 -> ceil(2.202) = 3
    assert proposal(TOKENS, used(1101, 1101), pods(2)) == 3


def test_a_negative_average_is_cut_off_toward_zero() -> None:
    # -1 / 2 is 0, not -1: ratio 0 -> 0 pods
    assert proposal(TOKENS, used(-1, 0), pods(2)) == 0


def test_average_value_of_a_resource_uses_no_requests() -> None:
    bare = tuple(replace(one, containers=()) for one in pods(2))
    metric = ResourceMetric(resource="cpu", target=AverageValue(milli=100))
    assert proposal(metric, used(150, 150), bare) == 3  # 1.5 · 2


def test_the_ready_pods_are_scaled_not_the_wanted_replicas() -> None:
    # ratio 2.0 over 3 pods with samples while 10 are wanted: ceil(2.0 · 3) = 6, which even lies below 10
    assert proposal(CPU, used(1000, 1000, 1000), pods(3), replicas=10) == 6


# --- missing samples ---------------------------------------------------------------------------------------------


def test_missing_pods_count_at_their_full_request_on_the_way_down() -> None:
    # 4 pods, 2 samples of 200: 20 % / 50 = 0.4. Filled: (400 + 2 · 1000)/4000 = 60 %; 1.2 turns round -> stays 4
    assert proposal(CPU, used(200, 200), pods(4)) == 4
    # 8 pods, 7 samples of 200: filled (1400 + 1000)/8000 = 30 %; 0.6 · 8 = 4.8 -> 5
    assert proposal(CPU, used(*[200] * 7), pods(8)) == 5


def test_missing_pods_count_at_a_target_above_100_percent_where_it_is_higher() -> None:
    # target 150 %: 7 · 200 at 20 %; the missing one at 150 % = 1500: 2900 · 100 / 8000 = 36; 36/150 · 8 = 1.92 -> 2
    metric = ResourceMetric(resource="cpu", target=Utilisation(percent=150))
    assert proposal(metric, used(*[200] * 7), pods(8)) == 2


def test_missing_pods_of_a_plain_metric_count_at_exactly_the_target() -> None:
    # 7 · 200 and one at 1000: 2400 / 8 = 300; 0.3 · 8 = 2.4 -> 3
    assert proposal(TOKENS, used(*[200] * 7), pods(8)) == 3


def test_missing_pods_count_as_idle_on_the_way_up() -> None:
    # 3 samples of 1000, one missing: 100 %/50 = 2.0; filled 3000/4000 = 75 %; 1.5 · 4 = 6, not ceil(2.0 · 4) = 8
    assert proposal(CPU, used(1000, 1000, 1000), pods(4)) == 6


def test_missing_pods_can_stop_a_scale_up_but_not_turn_it_round() -> None:
    # 1 sample of 1000 and 3 missing: 2.0, filled 1000/4000 = 25 % = 0.5: turned round -> stays 4
    assert proposal(CPU, used(1000), pods(4)) == 4


def test_a_filled_ratio_inside_the_tolerance_stays() -> None:
    # 600, 600 and one missing: 1.2, filled 1200/3000 = 40 % = 0.8: turned round -> stays; with 800, 800: 53 % = 1.06
    assert proposal(CPU, used(600, 600), pods(3)) == 3
    assert proposal(CPU, used(800, 800), pods(3)) == 3


def test_a_proposal_against_its_own_direction_is_dropped() -> None:
    # 10 wanted, 4 exist: 3 · 1000 and one missing: filled 1.5 · 4 = 6 < 10 although the ratio says up -> 10
    assert proposal(CPU, used(1000, 1000, 1000), pods(4), replicas=10) == 10


def test_exactly_on_target_missing_pods_are_left_out() -> None:
    assert proposal(CPU, used(500, 500), pods(3)) == 3


# --- unready pods ------------------------------------------------------------------------------------------------


def test_pending_pods_count_as_idle_on_the_way_up() -> None:
    # 2 · 1000 and one Pending: 2.0, with it 2000/3000 = 66 %; 1.32 · 3 = 3.96 -> 4
    selected = (*pods(2), pod("new", phase=PodPhase.PENDING))
    assert proposal(CPU, used(1000, 1000), selected) == 4
    assert proposal(TOKENS, used(2000, 2000), selected) == 4  # 4000 / 3 = 1333; 1.333 · 3 = 3.999 -> 4


def test_pending_pods_are_left_out_on_the_way_down() -> None:
    # 2 · 100: 0.2 · 2 ready = 0.4 -> 1
    assert proposal(CPU, used(100, 100), (*pods(2), pod("new", phase=PodPhase.PENDING))) == 1


def test_pods_on_their_way_out_are_ignored_with_their_samples() -> None:
    # p0 going, p1 failed: only p2's 1000 counts: 2.0 · 1 = 2
    selected = (pod("p0", deleting=True), pod("p1", phase=PodPhase.FAILED), pod("p2"))
    assert proposal(CPU, used(0, 0, 1000), selected) == 2


def test_a_sample_of_a_pod_no_longer_selected_still_speaks() -> None:
    # p0 1000, gone-by p1 1000. Tokens: 2000 / 2 = 1000 -> inside; cpu: p1 has no request and is left out: 100 % -> 2
    assert proposal(TOKENS, used(1000, 1000), pods(1)) == 1
    assert proposal(CPU, used(1000, 1000), pods(1)) == 2


def starting(started_ago_s: float, changed_ago_s: float, ready: Ready) -> PodReading:
    return pod("p1", started_at_s=NOW_S - started_ago_s, ready_changed_at_s=NOW_S - changed_ago_s, ready=ready)


# p0 uses 1000 of 1000 (2.0); p1 is said to use 0. If p1 counts: 1000/2000 = 50 % -> 1.0, stays 2.
# If it is unready: 2.0 with p1 at 0 -> again 50 % -> stays 2. So p1 uses 900: counting gives 95 % = 1.9 · 2 = 3.8 -> 4,
# unready gives 50 % -> stays 2.
COUNTS, UNREADY = 4, 2


@pytest.mark.parametrize(
    ("one", "sample_age_s", "expected"),
    [
        pytest.param(starting(100, 60, Ready.TRUE), 0.0, COUNTS, id="within 300 s, a whole window since Ready"),
        pytest.param(starting(100, 60, Ready.TRUE), 30.0, COUNTS, id="sample exactly one window after Ready"),
        pytest.param(starting(100, 60, Ready.TRUE), 30.5, UNREADY, id="sample reaches back before Ready"),
        pytest.param(starting(100, 100, Ready.FALSE), 0.0, UNREADY, id="within 300 s, not ready"),
        pytest.param(starting(299.5, 299.5, Ready.UNKNOWN), 0.0, COUNTS, id="unknown is not False"),
        pytest.param(starting(300, 10, Ready.TRUE), 0.0, COUNTS, id="at 300 s the sample's age no longer matters"),
        pytest.param(starting(299.5, 10, Ready.TRUE), 0.0, UNREADY, id="just before 300 s it does"),
        pytest.param(starting(400, 371, Ready.FALSE), 0.0, UNREADY, id="later: never ready (changed 29 s after start)"),
        pytest.param(starting(400, 370, Ready.FALSE), 0.0, COUNTS, id="later: changed 30 s after start, so was ready"),
        pytest.param(starting(400, 50, Ready.FALSE), 0.0, COUNTS, id="lost readiness later: counts"),
        pytest.param(replace(starting(400, 50, Ready.TRUE), started_at_s=None), 0.0, UNREADY, id="no start time"),
        pytest.param(starting(400, 50, Ready.ABSENT), 0.0, UNREADY, id="no Ready condition"),
    ],
)
def test_cpu_samples_of_starting_pods_are_told_from_real_load(
    one: PodReading, sample_age_s: float, expected: int
) -> None:
    samples = PodSamples(
        samples=(
            PodSample(pod="p0", value_milli=1000, at_s=NOW_S, window_s=30.0),
            PodSample(pod="p1", value_milli=900, at_s=NOW_S - sample_age_s, window_s=30.0),
        )
    )
    assert proposal(CPU, samples, (pod("p0"), one)) == expected


def test_readiness_means_nothing_for_memory_and_own_metrics() -> None:
    selected = (pod("p0"), starting(100, 100, Ready.FALSE))
    assert proposal(MEMORY, used(1000, 900), selected) == 4
    assert proposal(TOKENS, used(2000, 1800), selected) == 4  # 1900/1000 · 2 = 3.8


# --- failures ----------------------------------------------------------------------------------------------------


def test_no_selected_pod_fails() -> None:
    assert "no pods" in failure(CPU, used(1), ())


def test_no_sample_left_fails() -> None:
    assert "no sample" in failure(CPU, used(1000), (pod("p0", phase=PodPhase.PENDING),))
    assert "no sample" in failure(TOKENS, PodSamples(samples=()), pods(2))


def test_one_pod_without_the_request_fails_the_metric_even_when_it_is_going() -> None:
    bare = pod("p2", containers=(ContainerRequests(container="main", requests_milli={"memory": 5}),), deleting=True)
    assert "requests no cpu" in failure(CPU, used(900, 900), (*pods(2), bare))


def test_requests_of_zero_fail_instead_of_dividing() -> None:
    empty = (ContainerRequests(container="main", requests_milli={"cpu": 0}),)
    assert "no sample belongs" in failure(CPU, used(5), (pod("p0", containers=empty),))


# --- one container -----------------------------------------------------------------------------------------------


def test_a_container_metric_looks_at_its_own_request() -> None:
    # main asks 400, the sidecar nothing; 600 used: 150 % / 50 = 3.0
    containers = (
        ContainerRequests(container="sidecar", requests_milli={}),
        ContainerRequests(container="main", requests_milli={"cpu": 400}),
    )
    metric = ContainerResourceMetric(resource="cpu", container="main", target=Utilisation(percent=50))
    assert proposal(metric, used(600), (pod("p0", containers=containers),)) == 3
    assert "requests no cpu" in failure(CPU, used(600), (pod("p0", containers=containers),))


def test_a_container_that_is_not_there_fails() -> None:
    metric = ContainerResourceMetric(resource="cpu", container="absent", target=Utilisation(percent=50))
    assert "has no container absent" in failure(metric, used(600), pods(1))


def test_classes_say_which_pod_stands_where() -> None:
    selected = (pod("p0"), pod("p1"), pod("new", phase=PodPhase.PENDING), pod("old", deleting=True))
    spec = HpaSpec(max_replicas=10, metrics=(TOKENS,))
    observed = HpaObserved(now_s=NOW_S, spec_replicas=4, status_replicas=4, readings=(), pods=selected)
    classes = hpa_pods.classify(spec, "", used(700), observed)
    assert (classes.ready, classes.unready, classes.missing) == (1, ("new",), ("p1",))
    assert classes.counted == {"p0": 700}
    with pytest.raises(MetricFailed):
        hpa_pods.classify(spec, "", PodSamples(samples=()), observed)
