"""The plan's arithmetic: needs, reach, floors and room, worked out by hand."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.demand import DemandPath
from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Unit
from leadtime.policy import Policy
from leadtime.propose import plan
from leadtime.testing.builders import ref

AT = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
SCALING = Policy().scaling


def path(upper: list[float], expected: list[float] | None = None) -> DemandPath:
    why = Explanation(reason=Reason.ENOUGH_CAPACITY, sentence="a literal path")
    return DemandPath(
        subject=ref("serving/chat"), issued_at=AT, step_s=60, expected=expected or upper, lower=expected or upper,
        upper=upper, level_ratio=0.9, unit=Unit.REQUESTS_PER_S, model="literal", may_act=True, standing=why,
    )  # fmt: skip


def size(pod_steps: int = 2, node_steps: int = 3, rate: float = 10.0, lid: int = 2000) -> plan.Sizing:
    return plan.Sizing(
        per_pod=3.5,
        lid=lid,
        rate_per_step=rate,
        pod_steps=pod_steps,
        node_steps=node_steps,
        settle_steps=2,
        hold_steps=4,
    )


@pytest.mark.parametrize(
    ("demand", "pods"),
    [
        pytest.param(1440.0, 412, id="1,440 requests/s at 3.5 a pod are 411.4, so 412"),
        pytest.param(3120.0, 892, id="the incident's peak wants 892"),
        pytest.param(3.5, 1, id="exactly one pod is one pod"),
        pytest.param(0.0, 0, id="no demand needs no pod"),
        pytest.param(1e9, 2000, id="never above the lid"),
    ],
)
def test_pods_for(demand: float, pods: int) -> None:
    assert plan.pods_for(demand, 3.5, 2000) == pods


def test_a_steep_ramp_begins_early_because_raises_are_limited() -> None:
    # Needs, per minute: 10 10 10 10 10 60. At 10 a minute, 60 in minute 5 means 50 in 4, 40 in 3, 30 in 2, 20 in 1.
    rows = np.array([[10.0, 10.0, 10.0, 10.0, 10.0, 60.0]])
    assert plan.reach(rows, 10.0).tolist() == [[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]]


def test_floor_looks_one_pod_lead_ahead_and_room_one_node_lead_further() -> None:
    # 35 requests/s = 10 pods, 210 = 60 pods in minute 7; pods take 2 steps, nodes 3.
    demand = [35.0] * 7 + [210.0] * 3
    found = plan.candidates(path(demand), 10, size())
    # reach at minute 2 (pod lead): 60 − 10·(7 − 2) = 10; at minute 5 (both leads): 60 − 10·2 = 40.
    assert found.required[0] == 10
    assert found.room[0] == 40
    assert found.need_at_pod_lead == 10
    assert found.need_at_node_lead == 10


def test_what_is_needed_before_the_pod_lead_counts_too_because_late_is_better_than_never() -> None:
    found = plan.candidates(path([35.0, 350.0, 35.0, 35.0, 35.0, 35.0]), 10, size())
    assert found.required[0] == 100


def test_minutes_of_the_path_that_have_passed_do_not_count() -> None:
    demand = [700.0, *[35.0] * 9]
    assert plan.candidates(path(demand), 10, size(), skip_steps=0).required[0] == 200
    assert plan.candidates(path(demand), 10, size(), skip_steps=1).required[0] == 10


def test_plans_lie_between_expected_and_upper() -> None:
    found = plan.candidates(path([350.0] * 9, [175.0] * 9), 10, size())
    assert found.required[:3].tolist() == [100, 75, 50]


def test_a_path_shorter_than_the_leads_is_read_as_if_its_last_minute_lasted() -> None:
    assert plan.candidates(path([35.0, 70.0]), 10, size()).room[0] == 20


@pytest.mark.parametrize(
    ("hpa_want", "wanted"),
    [
        pytest.param(100, [105, 110, 115, 120], id="a share of what the HPA wants"),
        pytest.param(8, [8, 8, 8, 8], id="none where the owner's minimum alone decides"),
        pytest.param(195, [200, 200, 200, 200], id="never above the lid"),
    ],
)
def test_steady_headrooms(hpa_want: int, wanted: list[int]) -> None:
    found = plan.candidates(path([35.0] * 9), hpa_want, size(lid=200), owner_min=8)
    assert found.required[3:].tolist() == wanted


def test_horizon_reaches_both_leads_and_the_raise_and_is_capped() -> None:
    story = plan.horizon_s(pod_lead_s=660, node_lead_s=2460, raise_pods=412, scaling=SCALING, tick_s=60)
    assert story == 2460 + 660 + 2472 + 120
    assert plan.horizon_s(pod_lead_s=660, node_lead_s=2460, raise_pods=5000, scaling=SCALING, tick_s=60) == 9000


needs = st.lists(st.integers(0, 500), min_size=8, max_size=60)


@given(needs=needs, rate=st.integers(1, 50))
def test_following_the_reach_at_the_limited_rate_meets_every_need_it_can(needs: list[int], rate: int) -> None:
    ahead = plan.reach(np.array([needs], dtype=float), float(rate))[0]
    assert (ahead >= needs).all()
    # From one minute to the next it never has to rise by more than the rate.
    assert (np.diff(ahead) <= rate).all()


@given(needs=needs, more=st.integers(0, 300), where=st.integers(0, 59))
def test_more_demand_anywhere_never_asks_for_less(needs: list[int], more: int, where: int) -> None:
    raised = list(needs)
    raised[where % len(needs)] += more
    before = plan.candidates(path([n * 3.5 for n in needs]), 10, size())
    after = plan.candidates(path([n * 3.5 for n in raised]), 10, size())
    assert (after.required >= before.required).all()
    assert (after.room >= before.room).all()


@given(needs=needs)
def test_room_is_never_less_than_the_floor_and_settled_never_less_than_required(needs: list[int]) -> None:
    found = plan.candidates(path([n * 3.5 for n in needs]), 10, size())
    assert (found.room >= found.required).all()
    assert (found.settled >= found.required).all()
