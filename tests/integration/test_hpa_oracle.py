"""``mechanics.hpa`` beside Kubernetes' own HPA controller, sync by sync.

Hypothesis draws workloads (metrics, behavior, bounds, weather, clock); ``hpa_world`` plays each for a thousand syncs;
the original (``tests/oracles/hpa``, whole, in virtual time) is shown the same and must do the same: replicas and all
four conditions. A difference is cut down and printed; it then becomes a plain test in ``tests/unit/mechanics``.
"""

import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from oracle_program import ORACLES
from oracle_program import program as program_of
from real_cluster import MARKS, progress

from leadtime.mechanics import hpa

sys.path.insert(0, str(ORACLES / "hpa"))

from hpa_protocol import Original, Sequence, first_difference, ours, reduced
from hpa_world import Plan, Weather, World, needs_pods

pytestmark = MARKS

SEQUENCES = 210
SYNCS = 1000


@pytest.fixture(scope="module")
def original(request: pytest.FixtureRequest) -> Iterator[Original]:
    """The Go program, built if need be; skipped or failed with the reason where it cannot be."""
    program = Original(program_of(request, "hpa", test_binary=True))
    yield program
    program.close()


def probability(highest: float) -> st.SearchStrategy[float]:
    """Often zero: a rule is easiest to see when nothing else happens."""
    return st.sampled_from((0.0, highest / 10, highest))


def milli_target() -> st.SearchStrategy[int]:
    return st.sampled_from((1000, 10_000, 333, 7, 2_500, 100_000, 1_000_000_007))


AVERAGE = st.builds(hpa.AverageValue, milli=milli_target())
TOTAL = st.builds(hpa.Value, milli=milli_target())
PERCENT = st.builds(hpa.Utilisation, percent=st.sampled_from((50, 70, 80, 95, 100, 130)))
CPU_AVERAGE = st.builds(hpa.AverageValue, milli=st.sampled_from((100, 250, 777)))
METRICS = st.one_of(
    st.builds(hpa.ExternalMetric, name=st.just("queue"), target=AVERAGE | TOTAL),
    st.builds(hpa.ObjectMetric, name=st.just("ingress"), target=AVERAGE | TOTAL),
    st.builds(hpa.PodsMetric, name=st.just("tokens"), target=AVERAGE),
    st.builds(hpa.ResourceMetric, resource=st.just("cpu"), target=PERCENT | CPU_AVERAGE),
    st.builds(hpa.ResourceMetric, resource=st.just("memory"), target=PERCENT),
    st.builds(
        hpa.ContainerResourceMetric,
        resource=st.sampled_from(("cpu", "memory")),
        container=st.sampled_from(("main", "main", "absent")),
        target=PERCENT | CPU_AVERAGE,
    ),
)
RATES = st.builds(
    hpa.RatePolicy,
    type=st.sampled_from(hpa.PolicyType),
    value=st.sampled_from((1, 2, 4, 10, 10, 10, 33, 50, 100, 900, 2_000_000_000)),
    period_s=st.sampled_from((1, 15, 30, 60, 300, 1800)),
)
RULES = st.builds(
    hpa.ScalingRules,
    window_s=st.sampled_from((None, 0, 15, 30, 60, 300, 3600)),
    select=st.sampled_from((None, *hpa.SelectPolicy)),
    policies=st.none() | st.lists(RATES, min_size=1, max_size=3).map(tuple),
    tolerance_ratio=st.sampled_from((None, None, 0, 50, 100, 300)).map(lambda m: None if m is None else m * 0.001),
)
ONE_RATE = st.builds(hpa.ScalingRules, window_s=st.just(0), policies=RATES.map(lambda rate: (rate,)))
BEHAVIORS = st.none() | st.builds(hpa.Behavior, scale_up=RULES | ONE_RATE, scale_down=RULES | ONE_RATE)
FLAGS = st.just(hpa.HpaFlags()) | st.builds(
    hpa.HpaFlags,
    sync_period_s=st.sampled_from((15.0, 30.0, 7.5)),
    tolerance_ratio=st.sampled_from((0.1, 0.0, 0.05, 0.25)),
    downscale_stabilisation_s=st.sampled_from((300.0, 0.0, 60.0, 47.5)),
    cpu_initialisation_s=st.sampled_from((300.0, 0.0, 60.0)),
    initial_readiness_delay_s=st.sampled_from((30.0, 0.0, 10.0)),
)
WEATHER = st.builds(
    Weather,
    failing=probability(0.2),
    missing=probability(0.3),
    restart=probability(0.02),
    new_bounds=probability(0.03),
    new_behavior=probability(0.1),
    hand=probability(0.05),
    on_the_edge=st.sampled_from((0.0, 0.3, 0.9)),
    absurd=probability(0.05),
    pod_trouble=probability(0.02),
)
GAPS = st.sampled_from(((15.0,), (15.0, 15.125, 14.875), (1.0, 5.0, 15.0, 60.0), (15.0, 30.0, 299.875, 300.0, 900.0)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A workload. Where single pods must be played it is small; where only totals count it may be of any size."""
    kinds = draw(st.lists(METRICS, min_size=1, max_size=3, unique_by=lambda m: (type(m), getattr(m, "resource", ""))))
    outside = any(isinstance(m, hpa.ExternalMetric | hpa.ObjectMetric) for m in kinds)
    low = draw(st.sampled_from((0, 1, 1, 3) if outside else (1, 1, 3)))
    only_totals = not any(needs_pods(metric) for metric in kinds)
    high = draw(st.sampled_from((12, 60, 120, 120, 2**31 - 1, 2**31 - 1) if only_totals else (5, 8, 12, 30, 60)))
    behaviors = (*draw(st.lists(BEHAVIORS, min_size=1, max_size=3)),)
    spec = hpa.HpaSpec(
        min_replicas=low, max_replicas=high, metrics=tuple(kinds), behavior=behaviors[0], flags=draw(FLAGS)
    )
    return Plan(
        spec=spec,
        behaviors=behaviors,
        weather=draw(WEATHER),
        gaps_s=draw(GAPS),
        syncs=SYNCS,
        own_clock=draw(st.booleans()),
        seed=draw(st.integers(min_value=0, max_value=2**32)),
    )


def told(sequence: Sequence, original: Original) -> str:
    """A cut-down difference, ready to be copied into a unit test."""
    short = reduced(sequence, original)
    mine, theirs = ours(short), original.answers(short)
    lines = [f"own clock {short.own_clock}, scaled to zero {short.scaled_to_zero}"]
    for step, we, they in zip(short.steps, mine, theirs, strict=True):
        lines += [f"  {step}", f"    leadtime:   {we}", f"    kubernetes: {they}"]
    return "\n".join(lines)


def test_every_sync_is_the_same_as_kubernetes_own_controller(
    original: Original, request: pytest.FixtureRequest
) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=SEQUENCES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(plan=plans())
    def agree(plan: Plan) -> None:
        sequence, syncs = World(plan).play()
        if first_difference(sequence, original) is not None:
            note(told(sequence, original))
            pytest.fail("leadtime and Kubernetes differ; the note has the shortest sequence found")
        seen.update(sequences=1, syncs=len(syncs), own_clock=int(plan.own_clock))
        seen.update(str(sync.reason) for sync in syncs)
        seen.update(str(sync.scaling_active) for sync in syncs)
        seen.update(str(sync.scaling_limited) for sync in syncs)
        seen.update(str(sync.able_to_scale) for sync in syncs)

    agree()
    with progress(request):
        print(
            f"\nHPA oracle: {seen['syncs']:,} syncs in {seen['sequences']} sequences agree; seen: {dict(seen)}",
            file=sys.stderr,
        )
    assert seen["sequences"] >= 200
    assert seen["syncs"] >= 200_000
    reasons = [*hpa.SyncReason, *hpa.ScalingLimited, *hpa.AbleToScale, *hpa.ScalingActive]
    unseen = {str(reason) for reason in reasons if not seen[str(reason)]} - {"AmbiguousSelector"}
    assert not unseen, f"the sequences never reached {unseen}; the agreement says nothing about them"
