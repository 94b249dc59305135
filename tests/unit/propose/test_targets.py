"""Where a floor should stand: when it goes down, how far, and what room is kept beside it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from leadtime.domain.evidence import Explanation
from leadtime.domain.reasons import Reason
from leadtime.domain.snapshot import Floor
from leadtime.policy import Policy
from leadtime.propose.targets import PlanChoice, PlanWish, Targets, targets
from leadtime.testing.builders import cluster

AT = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
UPPER = PlanChoice(plan="upper", why=Explanation(reason=Reason.FORECAST_ABOVE_READY, sentence="it pays"))
STANDS_BACK = PlanChoice(plan=None, why=Explanation(reason=Reason.PREDICTION_DOES_NOT_PAY, sentence="it does not"))
STEPWISE = Policy.model_validate({"actuation": {"floor_release": "stepwise"}})


def where(
    plan: PlanWish,
    *,
    ours: int = 0,
    ready: int = 480,
    nodes: int = 200,
    surge: PlanWish | None = None,
    **about: Any,
) -> Targets:
    """480 pods are the owner's minimum; ``ours`` is the floor that stands."""
    floor = Floor(replicas=ours, expires_at=AT + timedelta(seconds=900)) if ours else None
    seen = cluster().pool("gpu", nodes=nodes)
    seen = seen.workload("serving/chat", ready=max(ready, ours), minimum=480, floor=floor)
    snapshot = seen.snapshot(AT)
    given: dict[str, Any] = {
        "policy": Policy(), "choice": UPPER, "surge": surge or PlanWish(), "added_last_minute": 0, "lowered_at": None,
        "as_of": AT, **about,
    }  # fmt: skip
    return targets(workload=snapshot.workloads[0], pool=snapshot.pools[0], plan=plan, **given)


def wish(required: int, held: int = 0, settled: int = 0, later: int = 0, room: int = 0) -> PlanWish:
    held, settled = max(held, required), max(settled, required)
    return PlanWish(required=required, held=held, settled=settled, later=later, room=room, held_room=max(room, held))


@pytest.mark.parametrize(
    ("plan", "ours", "about", "lower_to"),
    [
        pytest.param(wish(412), 0, {}, None, id="nothing of ours stands, nothing goes down"),
        pytest.param(wish(412), 900, {}, 480, id="nothing above the owner's minimum is kept: given back whole"),
        pytest.param(wish(412, held=900), 900, {}, None, id="held for a quarter of an hour after the need"),
        pytest.param(wish(412, settled=700), 900, {}, None, id="whole within two holds is worth waiting for"),
        pytest.param(wish(700, later=600), 900, {}, 700, id="else a large part goes at once"),
        pytest.param(wish(830, later=600), 900, {}, None, id="less than a tenth is not worth a step"),
        pytest.param(
            wish(700, later=600), 900, {"lowered_at": AT - timedelta(seconds=899)}, None,
            id="a part goes at most once a hold",
        ),
        pytest.param(
            wish(700, later=600), 900, {"lowered_at": AT - timedelta(seconds=900)}, 700, id="and again after a hold"
        ),
        pytest.param(
            wish(412), 900, {"lowered_at": AT - timedelta(seconds=60)}, 480, id="giving back whole never waits"
        ),
        pytest.param(wish(830), 900, {"policy": STEPWISE}, 830, id="stepwise, every step above the tolerance is taken"),
        pytest.param(wish(890), 900, {"policy": STEPWISE}, None, id="stepwise, within the tolerance nothing moves"),
        pytest.param(PlanWish(), 900, {"choice": STANDS_BACK}, 480, id="a plan that stands back keeps no floor"),
        pytest.param(
            PlanWish(), 900, {"choice": STANDS_BACK, "surge": wish(0, held=900)}, None, id="but a surge just over does"
        ),
    ],
)  # fmt: skip
def test_when_a_floor_goes_down(plan: PlanWish, ours: int, about: dict[str, Any], lower_to: int | None) -> None:
    assert where(plan, ours=ours, **about).lower_to == lower_to


def test_the_floor_of_this_tick_takes_the_rate_and_the_free_places_into_account() -> None:
    assert where(wish(900)).floor_next == 490
    assert where(wish(900), added_last_minute=4).floor_next == 486
    assert where(wish(900), nodes=60).floor_next == 480
    assert where(PlanWish(), surge=wish(900)).floor_next == 500


def test_room_is_for_pods_that_have_no_place_yet_and_shrinks_as_the_floor_rises() -> None:
    assert where(wish(412, room=892)).buffer_pods == 892 - 480
    assert where(wish(600, room=892), ours=590, ready=590).buffer_pods == 892 - 600
    assert where(wish(892, room=892), ours=892).buffer_pods == 0


def test_spare_nodes_of_the_policy_stand_on_top_of_the_plan() -> None:
    spare = Policy.model_validate({"scaling": {"pool_headroom_nodes": 2}})
    assert where(wish(412, room=500), policy=spare).buffer_pods == 20 + 16


def test_without_a_plan_only_the_surge_orders_room() -> None:
    found = where(PlanWish(), choice=STANDS_BACK, surge=wish(700, room=700))
    assert (found.buffer_pods, found.surge_buffer_pods) == (0, 200)
