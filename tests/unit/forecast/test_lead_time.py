"""Lead times from stages: the incident's lead comes out composed, episodes count, priors stand beside too few."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from leadtime.domain.lead_time import LeadTime, StageSample
from leadtime.domain.refs import WorkloadRef
from leadtime.forecast import checkpoint, lead_time
from leadtime.forecast.lead_time import LeadTimeState
from leadtime.policy.schema import LeadTimePolicy, Policy

REF = WorkloadRef(namespace="serving", name="chat")
POLICY = Policy()
DAY_ONE = datetime(2026, 2, 23, 7, tzinfo=UTC)
NODE_STAGES = {"request": 60.0, "boot": 540.0, "join": 300.0, "driver": 1500.0}  # 2,400 s
POD_STAGES = {"image": 300.0, "weights": 270.0}
P90 = 1.2816  # standard normal


def sample(
    stage: str, duration_s: float, episode: str, *, day: int = 0, node: bool = True, censored: bool = False
) -> StageSample:
    return StageSample(
        pool="gpu", workload=None if node else REF, stage=stage, duration_s=duration_s, censored=censored,
        episode=episode, ended_at=DAY_ONE + timedelta(days=day),
    )  # fmt: skip


def incident_week(days: int = 7, nodes: int = 20, seed: int = 4) -> Iterator[list[StageSample]]:
    """HPA alone: every day its own factor; pods end on old nodes, those waiting for new nodes are deleted first."""
    rng = np.random.default_rng(seed)
    for day in range(days):
        slow = 1.05 ** (rng.standard_normal() / P90)
        samples = []
        for _ in range(nodes):
            own = slow * 1.02 ** (rng.standard_normal() / P90)
            samples += [sample(s, sec * own, f"gpu/{day}", day=day) for s, sec in NODE_STAGES.items()]
        for _ in range(40):
            for stage, seconds in POD_STAGES.items():
                took = seconds * 1.3 ** (rng.standard_normal() / P90)
                samples.append(sample(stage, took, f"chat/{day}", day=day, node=False))
        for cut in rng.uniform(5.0, 200.0, 150):
            samples.append(sample("image", float(cut), f"chat/{day}", day=day, node=False, censored=True))
        yield samples


def after(*batches: list[StageSample], policy: Policy = POLICY) -> LeadTimeState:
    state = lead_time.start()
    for samples in batches:
        state = lead_time.observe(state, samples, policy)
    return state


def learned(state: LeadTimeState, policy: Policy = POLICY) -> LeadTime:
    return lead_time.learn(state, REF, "gpu", policy)


def test_the_incidents_lead_comes_out_composed() -> None:
    lead = learned(after(*incident_week(days=14)))
    assert lead.node_p90_s == pytest.approx(2400 * 1.05, rel=0.06)
    assert lead.pod_p90_s == pytest.approx(660, rel=0.10)
    assert lead.total_p90_s == pytest.approx(3240, rel=0.06)
    assert lead.total_p90_s < lead.node_p90_s + lead.pod_p90_s
    assert lead.learned_from == (
        "nodes: 14 episodes, 280 nodes (0 censored); pods: 14 episodes, 2660 pods (2100 censored)"
    )


def test_censored_pods_do_not_make_pods_look_quick() -> None:
    with_cut = learned(after(*incident_week()))
    whole = [[s for s in day if not s.censored] for day in incident_week()]
    assert with_cut.pod_p90_s == pytest.approx(learned(after(*whole)).pod_p90_s, rel=0.05)


def test_stages_of_a_slow_day_are_slow_together() -> None:
    slow = [
        [sample(s, sec * (2.0 if day >= 4 else 1.0), f"gpu/{day}", day=day) for s, sec in NODE_STAGES.items()]
        for day in range(5)
    ]
    assert learned(after(*slow)).node_p90_s == pytest.approx(4800)  # independent draws would say about 4,000


def test_episodes_count_and_not_nodes() -> None:
    quick = [[sample("boot", 100.0, f"gpu/{day}", day=day)] for day in range(8)]
    crowd = [[sample("boot", 1000.0, "gpu/8", day=8) for _ in range(200)]]
    lead = learned(after(*quick, *crowd))
    assert lead.node_p50_s == 100.0
    assert lead.stages[0].episodes == 9
    assert lead.stages[0].samples == 208


def test_without_samples_the_priors_stand() -> None:
    lead = learned(lead_time.start())
    assert lead.node_p90_s == pytest.approx(POLICY.lead_time.prior_node_p90_s, rel=0.01)
    assert lead.pod_p50_s == pytest.approx(POLICY.lead_time.prior_pod_p50_s, rel=0.01)
    assert lead.node_p90_s < lead.total_p90_s < lead.node_p90_s + lead.pod_p90_s
    assert lead.learned_from == "nodes: none seen, the policy's prior; pods: none seen, the policy's prior"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(300.0, POLICY.lead_time.prior_node_p90_s), (5000.0, 5000.0)], ids=["quick", "slow"]
)
def test_too_few_episodes_may_lengthen_the_prior_but_not_shorten_it(seconds: float, expected: float) -> None:
    lead = learned(after([sample("boot", seconds, "gpu/0")], [sample("boot", seconds, "gpu/1", day=1)]))
    assert lead.node_p90_s == pytest.approx(expected, rel=0.01)
    assert lead.stages[0].from_prior
    assert "fewer than 3 episodes" in lead.learned_from


def test_a_stage_that_never_ended_leaves_the_prior_standing() -> None:
    days = [
        [sample("boot", 60.0, f"gpu/{d}", day=d), sample("driver", 90.0, f"gpu/{d}", day=d, censored=True)]
        for d in range(6)
    ]
    assert learned(after(*days)).node_p90_s == pytest.approx(POLICY.lead_time.prior_node_p90_s, rel=0.01)


def test_other_pools_and_workloads_teach_nothing() -> None:
    state = after(*incident_week())
    other = lead_time.learn(state, WorkloadRef(namespace="serving", name="other"), "gpu", POLICY)
    assert other.pod_p90_s == pytest.approx(POLICY.lead_time.prior_pod_p90_s, rel=0.01)
    assert other.node_p90_s == learned(state).node_p90_s
    assert lead_time.learn(state, REF, "cpu", POLICY).stages == ()


def test_old_samples_are_forgotten() -> None:
    policy = Policy(lead_time=LeadTimePolicy(window_s=7 * 86_400))
    old = [[sample("boot", 9000.0, f"gpu/{d}", day=d)] for d in range(5)]
    new = [[sample("boot", 100.0, f"gpu/{d}", day=d)] for d in range(20, 25)]
    assert learned(after(*old, *new, policy=policy), policy).node_p90_s == 100.0


def test_memory_is_bounded_and_often_seen_stages_settle_hourly() -> None:
    state = lead_time.start()
    for minute in range(2000):
        taken = StageSample(
            pool="gpu", workload=None, stage="boot", duration_s=100.0 + minute % 7, censored=False,
            episode=f"gpu/{minute}", ended_at=DAY_ONE + timedelta(minutes=minute),
        )  # fmt: skip
        state = lead_time.observe(state, [taken], POLICY)
    (episodes,) = state.seen.stages.values()
    assert len(episodes) == lead_time.KEPT_EPISODES
    assert state.settled_at is not None
    assert DAY_ONE + timedelta(minutes=1999) - state.settled_at < lead_time.SETTLE_EVERY
    assert learned(state) is learned(lead_time.observe(state, [], POLICY))


def test_equal_samples_give_equal_leads_and_old_states_stay() -> None:
    days = list(incident_week())
    first = after(*days[:3])
    before = learned(first)
    after_all = lead_time.observe(first, [s for day in days[3:] for s in day], POLICY)
    assert learned(first) == before
    assert learned(after_all) != before
    assert learned(after(*days)) == learned(after(*days))


def test_a_saved_state_teaches_the_same() -> None:
    state = after(*incident_week())
    copy = checkpoint.from_plain(json.loads(json.dumps(checkpoint.to_plain(state), allow_nan=False)))
    assert learned(copy) == learned(state)
    more = [sample("boot", 700.0, "gpu/9", day=9)]
    assert learned(lead_time.observe(copy, more, POLICY)) == learned(lead_time.observe(state, more, POLICY))
