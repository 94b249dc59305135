"""Risk in the tick: what an alert leads to, in which order of cost, within which limits, and when nothing is done."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leadtime.domain.decision import Action, AvoidNode, ProtectPod, ReleaseFloor, SetFloor
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import node_scope, pod_scope, workload_scope
from leadtime.domain.risk import (
    PodEnd,
    PodEnding,
    PodFacts,
    PodUsage,
    RiskDriver,
    RiskReading,
    RiskScore,
    UsageWindow,
)
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.snapshot import Floor
from leadtime.domain.tick import LoopState, Tick
from leadtime.loop.checkpoint import load, save
from leadtime.loop.risks import RISK_KEY
from leadtime.loop.tick import Ports, TickResult, tick
from leadtime.loop.view import RiskPorts
from leadtime.policy import Policy
from leadtime.testing.builders import cluster, ref
from leadtime.testing.fakes import FakeSource, RecordingActuator

API = ref("serving/api")
START = datetime(2026, 3, 2, tzinfo=UTC)
T0 = START + timedelta(hours=6, seconds=15)
BASE_RATE = 0.01
FULL = Series(name="api", start=START, step_s=60, values=(6.8,) * (24 * 60), unit=Unit.REQUESTS_PER_S)
POLICY = Policy.model_validate({"actuation": {"stage": "hpa_floor"}})


class Usage:
    """Pods with one window each, that ends on the last five minutes; ``gone`` have ended; ``absent``: unreadable."""

    def __init__(
        self, pods: Sequence[str], gone: Mapping[str, datetime] | None = None, *, absent: bool = False
    ) -> None:
        self.pods, self.gone, self.absent = pods, gone or {}, absent

    def usage(self, since: datetime, as_of: datetime) -> PodUsage | Missing:
        if self.absent:
            return Missing(source="usage windows", reason="no answer")
        end = as_of.replace(minute=as_of.minute // 5 * 5, second=0)
        facts = tuple(_facts(pod) for pod in self.pods if pod not in self.gone)
        windows = (
            UsageWindow(pod=f.pod, start=end - timedelta(minutes=5), end=end, avg_cpu=0.6, avg_memory=0.1)
            for f in facts
        )
        return PodUsage(as_of=as_of, pods=facts, windows=tuple(windows))

    def pod_ends(self, since: datetime, as_of: datetime) -> Sequence[PodEnd]:
        return [
            PodEnd(pod=pod, workload=API, node=_node(pod), at=at, how=PodEnding.FAILED)
            for pod, at in self.gone.items()
            if since < at <= as_of
        ]


class Scorer:
    """Says what it was told to say."""

    name = "told@0123456789ab"

    def __init__(self, probabilities: Mapping[str, float], base_rate: float = BASE_RATE) -> None:
        self.probabilities, self.base_rate = probabilities, base_rate

    def scores(self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float) -> RiskReading:
        ends = {window.pod: window.end for window in usage.windows}
        driver = (RiskDriver(feature="cpu_ratio", value=0.71, effect=2.5),)
        scores = tuple(
            RiskScore(
                pod=pod.pod, node=pod.node, workload=pod.workload, as_of=usage.as_of, window_end=ends[pod.pod],
                horizon=horizon, probability=self.probabilities.get(pod.pod, 0.001), base_rate=self.base_rate,
                expires_at=ends[pod.pod] + expiry, model=self.name, drivers=driver,
            )
            for pod in usage.pods
        )  # fmt: skip
        return RiskReading(scores=scores, unscored={"serving/api-99": "no usage window"})


def _node(pod: str) -> str:
    return f"gpu-{int(pod.rpartition('-')[2]) // 2}"


def _facts(pod: str) -> PodFacts:
    return PodFacts(
        pod=pod, workload=API, node=_node(pod), created_at=START, started_at=START, request_cpu=1.0, request_memory=1.0
    )


def names(count: int) -> list[str]:
    return [f"serving/api-{i}" for i in range(1, count + 1)]


def snapshot(pods: int = 2, floor: Floor | None = None):
    return (
        cluster()
        .pool("gpu", nodes=4, gpus_per_node=4)
        .workload("serving/api", ready=pods, minimum=2, maximum=12, capacity=5.0, floor=floor)
        .snapshot()
    )


def run(
    scorer: Scorer,
    usage: Usage,
    at: datetime = T0,
    state: LoopState | None = None,
    policy: Policy = POLICY,
    *,
    pods: int = 2,
    floor: Floor | None = None,
    series: Series = FULL,
) -> TickResult:
    source = FakeSource(snapshot(pods, floor), {API: series})
    ports = Ports(source=source, actuator=RecordingActuator(), risk=RiskPorts(source=usage, scorer=scorer))
    return tick(at, ports, policy, state or LoopState(), at)


def with_risk(**risk: object) -> Policy:
    return Policy.model_validate({"actuation": {"stage": "hpa_floor"}, "risk": risk})


def actions(seen: Tick) -> dict[str, Action]:
    return {d.scope.key: d.action for d in seen.decisions if d.action is not None}


def rejected(seen: Tick) -> dict[str, Reason]:
    return {r.proposal_id: r.why.reason for d in seen.decisions for r in d.rejections}


def test_an_alert_leads_to_all_three_measures_the_cheapest_first():
    seen = run(Scorer({"serving/api-1": 0.4}), Usage(names(2))).tick
    risky = [
        p
        for p in seen.proposals
        if p.why.reason in {Reason.POD_AT_RISK, Reason.NODE_AT_RISK, Reason.SPARE_BEFORE_FAILURE}
    ]
    assert [type(p.action) for p in risky] == [ProtectPod, AvoidNode, SetFloor]
    until = T0.replace(second=0) + timedelta(seconds=POLICY.risk.hold_s)
    done = actions(seen)
    assert done[pod_scope("serving/api-1").key] == ProtectPod(pod="serving/api-1", workload=API, expires_at=until)
    assert done[node_scope("gpu-0").key] == AvoidNode(node="gpu-0", pool="gpu", expires_at=until)
    floor = done[workload_scope(API).key]
    assert isinstance(floor, SetFloor)
    assert floor.replicas == 3
    assert floor.expires_at == until


def test_every_measure_says_probability_base_rate_lift_drivers_and_its_evidence():
    seen = run(Scorer({"serving/api-1": 0.4}), Usage(names(2))).tick
    known = {entry.id: entry for entry in seen.evidence}
    for proposal in seen.proposals:
        if proposal.why.reason in {Reason.POD_AT_RISK, Reason.NODE_AT_RISK, Reason.SPARE_BEFORE_FAILURE}:
            for words in ("probability 40 %", "base rate 1 %", "40.0 times", "cpu_ratio 0.71 (+2.5)"):
                assert words in proposal.why.sentence
            units = {known[i].unit for i in proposal.why.because}
            assert {"probability", "base rate"} <= units
    assert [risk.pod for risk in seen.risks] == ["serving/api-1"]


def test_a_pod_below_one_of_the_bars_gets_nothing_and_the_reason_is_on_record():
    seen = run(Scorer({"serving/api-1": 0.08}), Usage(names(2))).tick  # eight times the base rate, but below 10 %
    assert rejected(seen) == {"safety/pod:serving/api-1": Reason.RISK_BELOW_THRESHOLD}
    assert actions(seen) == {}
    assert seen.risks == ()


def test_a_probable_failure_that_is_no_news_gets_nothing():
    seen = run(Scorer({"serving/api-1": 0.4}, base_rate=0.2), Usage(names(2))).tick
    assert rejected(seen)["safety/pod:serving/api-1"] is Reason.RISK_BELOW_THRESHOLD
    assert (
        "2.0 times the base rate"
        in next(d for d in seen.decisions if d.scope == pod_scope("serving/api-1")).why.sentence
    )


def test_at_most_so_many_pods_are_protected_the_most_probable_first():
    scorer = Scorer({"serving/api-1": 0.3, "serving/api-2": 0.5, "serving/api-3": 0.4})
    seen = run(scorer, Usage(names(4)), policy=with_risk(max_protected_pods=1), pods=4).tick
    assert pod_scope("serving/api-2").key in actions(seen)
    assert rejected(seen)["safety/pod:serving/api-1"] is Reason.RISK_BUDGET
    assert rejected(seen)["safety/pod:serving/api-3"] is Reason.RISK_BUDGET


def test_no_spare_replica_without_its_cheaper_measure():
    seen = run(Scorer({"serving/api-1": 0.9}), Usage(names(2)), policy=with_risk(max_protected_pods=0)).tick
    assert workload_scope(API).key not in actions(seen)
    assert not [p for p in seen.proposals if p.why.reason is Reason.SPARE_BEFORE_FAILURE]


def test_spare_replicas_stop_at_the_budget_of_a_day():
    policy = with_risk(spare_replicas_per_day=1)
    first = run(Scorer({"serving/api-1": 0.4, "serving/api-2": 0.5}), Usage(names(2)), policy=policy)
    floor = actions(first.tick)[workload_scope(API).key]
    assert isinstance(floor, SetFloor)
    assert floor.replicas == 3  # two alerts, one spare
    assert [spare.pod for spare in first.state.scaling[RISK_KEY].spares] == ["serving/api-2"]
    later = T0 + timedelta(hours=3)
    again = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)), later, first.state, policy)
    assert rejected(again.tick)["safety/workload:serving/api"] is Reason.RISK_BUDGET
    next_day = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)), T0 + timedelta(hours=24), again.state, policy,
                   series=replace(FULL, values=FULL.values * 2))  # fmt: skip
    assert isinstance(actions(next_day.tick)[workload_scope(API).key], SetFloor)


@pytest.mark.parametrize(
    ("probability", "pods", "words"),
    [
        pytest.param(0.4, 4, "the other 3 pods are 45 % full", id="the others can carry the load"),
        pytest.param(0.11, 2, "it may save", id="too improbable for its price"),
    ],
)
def test_a_spare_replica_that_does_not_pay_is_refused_with_the_numbers(probability, pods, words):
    seen = run(Scorer({"serving/api-1": probability}), Usage(names(pods)), pods=pods).tick
    assert pod_scope("serving/api-1").key in actions(seen)
    assert rejected(seen)["safety/workload:serving/api"] is Reason.SPARE_DOES_NOT_PAY
    assert words in next(r for d in seen.decisions for r in d.rejections).why.sentence.replace("a spare replica", "it")


def test_the_only_pod_of_a_service_that_nobody_calls_gets_no_spare_replica():
    idle = replace(FULL, values=(0.0,) * len(FULL.values))
    seen = run(Scorer({"serving/api-1": 0.4}), Usage(names(1)), pods=1, series=idle).tick
    assert pod_scope("serving/api-1").key in actions(seen)
    assert rejected(seen)["safety/workload:serving/api"] is Reason.SPARE_DOES_NOT_PAY


def test_a_score_is_used_until_it_expires_and_never_after():
    first = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)))
    blind, scorer = Usage(names(2), absent=True), Scorer({})
    within = run(scorer, blind, T0 + timedelta(minutes=9), first.state)
    assert [risk.pod for risk in within.tick.risks] == ["serving/api-1"]
    after = run(scorer, blind, T0 + timedelta(minutes=10), within.state)
    assert after.tick.risks == ()
    assert not [p for p in after.tick.proposals if p.why.reason is Reason.POD_AT_RISK]
    assert "usage windows: no answer" in str(next(e.value for e in after.tick.evidence if e.source == "risk model"))


def test_a_pod_without_a_score_is_named_with_the_reason():
    seen = run(Scorer({}), Usage(names(2))).tick
    told = next(e for e in seen.evidence if e.source == "risk model")
    assert told.value == "2 of 3 running pods have a fresh score; serving/api-99 has none: no usage window"


def test_a_spare_replica_goes_when_the_pod_it_was_started_for_has_failed():
    first = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)))
    floor = Floor(replicas=3, expires_at=T0 + timedelta(minutes=15))
    scorer, at = Scorer({"serving/api-1": 0.4}), T0 + timedelta(minutes=1)
    stands = run(scorer, Usage(names(3)), at, first.state, pods=3, floor=floor)
    assert isinstance(actions(stands.tick)[workload_scope(API).key], SetFloor)
    failed = Usage(names(3), {"serving/api-1": at + timedelta(seconds=30)})
    seen = run(scorer, failed, at + timedelta(minutes=1), stands.state, pods=3, floor=floor)
    assert isinstance(actions(seen.tick)[workload_scope(API).key], ReleaseFloor)
    assert [end.pod for end in seen.tick.pod_ends] == ["serving/api-1"]
    assert seen.tick.risks == ()


def test_a_spare_replica_stands_no_longer_than_the_policy_says():
    policy = with_risk(max_spare_s=1200, hold_s=900)
    state, scorer, usage, ends = LoopState(), Scorer({"serving/api-1": 0.4}), Usage(names(2)), []
    for minute in range(0, 40, 5):
        result = run(scorer, usage, T0 + timedelta(minutes=minute), state, policy)
        state = result.state
        ends += [spare.until for spare in state.scaling[RISK_KEY].spares if spare.started_at == T0]
    assert max(ends) == T0 + timedelta(seconds=1200)


def test_the_kill_switch_gives_back_what_stands_and_asks_for_nothing():
    first = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)))
    killed = Policy.model_validate({"actuation": {"stage": "hpa_floor", "kill_switch": True}})
    seen = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)), T0 + timedelta(minutes=1), first.state, killed)
    done = actions(seen.tick)
    assert done[pod_scope("serving/api-1").key] == ProtectPod(pod="serving/api-1", workload=API, expires_at=None)
    assert done[node_scope("gpu-0").key] == AvoidNode(node="gpu-0", pool="gpu", expires_at=None)
    assert seen.state.scaling[RISK_KEY].protected == {}


def test_measures_left_out_of_the_policy_are_not_proposed():
    seen = run(Scorer({"serving/api-1": 0.4}), Usage(names(2)), policy=with_risk(measures=("protect_pod",))).tick
    assert {type(action) for action in actions(seen).values()} == {ProtectPod}


def test_equal_inputs_give_an_equal_tick_and_a_state_that_can_be_saved():
    one, two = (run(Scorer({"serving/api-1": 0.4}), Usage(names(2))) for _ in range(2))
    assert one.tick == two.tick
    assert save(load(save(one.state))) == save(two.state)


def test_without_a_model_nothing_is_read_said_or_kept():
    source = FakeSource(snapshot(), {API: FULL})
    result = tick(T0, Ports(source=source, actuator=RecordingActuator()), POLICY, LoopState(), T0)
    assert result.tick.risks == ()
    assert result.tick.pod_ends == ()
    assert RISK_KEY not in result.state.scaling
    assert not [entry for entry in result.tick.evidence if "risk" in entry.source]
