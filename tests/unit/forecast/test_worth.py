"""Does acting pay: shortfall and pod-hours of plans beside the HPA's, by hand."""

import numpy as np
import pytest

from leadtime.forecast import worth
from leadtime.forecast.worth import ShadowRecord, Worth

MINUTES = 600
BURST = slice(300, 330)


def record(**plans: np.ndarray) -> ShadowRecord:
    """100 units, 200 during the burst; the HPA wants what stands, 3 minutes late; a pod serves 10."""
    demand = np.full(MINUTES, 100.0)
    demand[BURST] = 200.0
    wanted = np.full(MINUTES, 12.0)
    wanted[BURST.start + 3 : BURST.stop + 3] = 24.0
    return ShadowRecord(demand=demand, hpa_wanted=wanted, plans=plans)


def ahead(minutes: int, pods: float = 24.0) -> np.ndarray:
    floor = np.full(MINUTES, np.nan)
    floor[BURST.start - minutes : BURST.stop] = pods
    return floor


def judged(rec: ShadowRecord, max_extra_ratio: float = 0.12) -> Worth:
    return worth.judge_worth(rec, capacity_per_pod=10.0, pod_lead_s=600.0, max_extra_ratio=max_extra_ratio)


def test_pods_come_a_lead_after_they_were_wanted_and_go_at_once() -> None:
    wanted = np.array([1.0, 5.0, 5.0, 5.0, 2.0, 2.0, 6.0, 2.0])
    assert worth.ready_after(wanted, 2).tolist() == [1.0, 1.0, 1.0, 5.0, 2.0, 2.0, 2.0, 2.0]


def test_a_plan_that_is_ready_in_time_pays() -> None:
    answer = judged(record(upper=ahead(10)))
    assert answer.act
    assert answer.plan == "upper"
    hpa, upper = answer.per_plan
    assert (hpa.name, hpa.shortfall_minutes) == ("hpa", 13)  # 3 late in wanting, 10 in starting
    assert upper.shortfall_minutes == 0
    assert upper.pod_hours_ratio_to_hpa == pytest.approx((12 * 600 + 12 * 43) / (12 * 600 + 12 * 30))
    assert answer.sentence == (
        "prediction pays: plan upper gives 0 minutes short instead of 13 with the HPA alone, at 1.02 × its pod-hours"
    )


def test_of_two_affordable_plans_the_one_with_less_shortfall_is_chosen() -> None:
    answer = judged(record(expected=ahead(5), upper=ahead(10), late=ahead(1)))
    assert answer.plan == "upper"
    assert [s.name for s in answer.per_plan] == ["hpa", "expected", "late", "upper"]


def test_equal_shortfall_goes_to_the_cheaper_plan() -> None:
    assert judged(record(upper=ahead(10), wasteful=ahead(30))).plan == "upper"


def test_a_plan_beyond_the_budget_is_not_chosen() -> None:
    answer = judged(record(upper=np.full(MINUTES, 24.0)))
    assert not answer.act
    assert answer.plan is None
    assert answer.sentence == (
        "prediction does not pay here: no plan stays within 1.12 × the HPA's pod-hours (the cheapest takes 1.90 ×)"
    )


@pytest.mark.parametrize("minutes_ahead", [-3, -2])
def test_saving_less_than_two_minutes_is_luck(minutes_ahead: int) -> None:
    answer = judged(record(upper=ahead(minutes_ahead)))
    assert not answer.act
    assert answer.sentence.startswith("prediction does not pay here: the best plan, upper, gives 1")


def test_no_plan_at_all_stands_back() -> None:
    answer = judged(record(none=np.full(MINUTES, np.nan)))
    assert not answer.act
    assert "13 minutes short instead of 13" in answer.sentence


def test_minutes_without_demand_are_never_short() -> None:
    rec = record()
    demand = rec.demand.copy()
    demand[BURST.start : BURST.start + 5] = np.nan
    gapped = ShadowRecord(demand=demand, hpa_wanted=rec.hpa_wanted, plans={})
    assert judged(gapped).per_plan[0].shortfall_minutes == 8


def test_a_thousandth_unserved_is_no_shortfall() -> None:
    demand = np.array([100.0, 100.1, 100.2])
    rec = ShadowRecord(demand=demand, hpa_wanted=np.full(3, 10.0), plans={})
    assert judged(rec).per_plan[0].shortfall_minutes == 1


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="judging plan upper"):
        judged(record(upper=np.full(3, 1.0)))


def test_the_record_is_not_changed() -> None:
    rec = record(upper=ahead(10))
    before = [rec.demand.copy(), rec.hpa_wanted.copy(), rec.plans["upper"].copy()]
    judged(rec)
    for was, now in zip(before, [rec.demand, rec.hpa_wanted, rec.plans["upper"]], strict=True):
        np.testing.assert_array_equal(was, now)


def bad_minutes(*at: int, days: int) -> np.ndarray:
    """A record of ``days`` days, one minute a step, short in the ten minutes from each of ``at`` on."""
    short = np.zeros(days * 1440, dtype=np.bool_)
    for minute in at:
        short[minute : minute + 10] = True
    return short


@pytest.mark.parametrize(
    ("short", "pattern"),
    [
        pytest.param(bad_minutes(days=5), False, id="never short"),
        pytest.param(bad_minutes(400, days=5), False, id="one bad day is an incident"),
        pytest.param(bad_minutes(400, 4 * 1440 + 900, days=5), False, id="two bad days at different times are two"),
        pytest.param(bad_minutes(400, 1440 + 405, days=5), True, id="two bad days at the same time"),
        pytest.param(bad_minutes(400, 1440 + 439, days=5), True, id="409 and 439: exactly half an hour apart"),
        pytest.param(bad_minutes(400, 1440 + 440, days=5), False, id="409 and 440: a minute more"),
        pytest.param(bad_minutes(1435, 2 * 1440 + 10, days=5), True, id="around midnight is around the same time"),
        pytest.param(bad_minutes(400, 1440 + 900, 3 * 1440 + 60, days=5), True, id="three bad days at any time"),
        pytest.param(bad_minutes(400, days=1), True, id="a record of a day must do with what it has"),
    ],
)
def test_a_shortfall_is_a_pattern_on_three_days_or_around_the_same_time_on_two(
    short: np.ndarray, pattern: bool
) -> None:
    assert worth.recurs(short, 60) is pattern


def test_a_plan_that_only_helped_in_an_incident_does_not_pay() -> None:
    days = 3 * 1440 // MINUTES + 1
    calm = record()
    demand = np.concatenate([np.full(MINUTES, 100.0)] * days + [calm.demand])
    wanted = np.concatenate([np.full(MINUTES, 12.0)] * days + [calm.hpa_wanted])
    floor = np.concatenate([np.full(MINUTES, np.nan)] * days + [ahead(10)])
    answer = judged(ShadowRecord(demand=demand, hpa_wanted=wanted, plans={"upper": floor}))
    assert not answer.act
    assert "no pattern" in answer.sentence
