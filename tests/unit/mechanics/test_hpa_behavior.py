"""Windows, rates and bounds. Each comment is the arithmetic by hand."""

import pytest

from leadtime.mechanics import hpa, hpa_behavior
from leadtime.mechanics.hpa import (
    AbleToScale,
    AverageValue,
    Behavior,
    ExternalMetric,
    HpaFlags,
    HpaSpec,
    HpaState,
    PolicyType,
    RatePolicy,
    Recommendation,
    ScaleEvent,
    ScalingLimited,
    ScalingRules,
    SelectPolicy,
)

METRIC = ExternalMetric(name="rps", target=AverageValue(milli=1000))


def spec(behavior: Behavior | None = None, low: int = 1, high: int = 1000) -> HpaSpec:
    return HpaSpec(min_replicas=low, max_replicas=high, metrics=(METRIC,), behavior=behavior)


def recommended(*pairs: tuple[float, int]) -> tuple[Recommendation, ...]:
    return tuple(Recommendation(at_s, replicas) for at_s, replicas in pairs)


def events(*pairs: tuple[float, int]) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(at_s, change, outdated=False) for at_s, change in pairs)


# --- without behavior --------------------------------------------------------------------------------------------


def test_the_highest_recommendation_of_the_window_holds_both_ends_included() -> None:
    # now 1000, window 300: from 700 on. 9 at 700 counts, at 699.875 it does not
    at_the_end = hpa_behavior.stabilise(recommended((700, 9)), 4, 1000, 300)
    assert (at_the_end.replicas, at_the_end.able_to_scale) == (9, AbleToScale.SCALE_DOWN_STABILISED)
    past_it = hpa_behavior.stabilise(recommended((699.875, 9)), 4, 1000, 300)
    assert (past_it.replicas, past_it.able_to_scale) == (4, AbleToScale.READY_FOR_NEW_SCALE)


def test_the_last_expired_slot_is_used_again_and_only_one() -> None:
    kept = recommended((10, 7), (900, 5), (20, 6), (950, 5))
    assert hpa_behavior.stabilise(kept, 4, 1000, 300).recommendations == recommended(
        (10, 7), (900, 5), (1000, 4), (950, 5)
    )
    assert hpa_behavior.stabilise(recommended((900, 5)), 4, 1000, 300).recommendations == recommended(
        (900, 5), (1000, 4)
    )


@pytest.mark.parametrize(
    ("current", "wanted", "bounds", "expected"),
    [
        pytest.param(1, 50, (1, 100), (4, ScalingLimited.SCALE_UP_LIMIT), id="max(2·1, 4) = 4"),
        pytest.param(3, 50, (1, 100), (6, ScalingLimited.SCALE_UP_LIMIT), id="2·3 = 6"),
        pytest.param(30, 50, (1, 40), (40, ScalingLimited.TOO_MANY), id="max before 2·30 = 60"),
        pytest.param(20, 50, (1, 40), (40, ScalingLimited.TOO_MANY), id="2·20 = 40 is max itself"),
        pytest.param(20, 2, (5, 40), (5, ScalingLimited.TOO_FEW), id="min"),
        pytest.param(20, 1, (1, 40), (1, ScalingLimited.WITHIN_RANGE), id="down knows no rate"),
        pytest.param(2**30, 2**30 + 5, (1, 2**31 - 1), (-(2**31), ScalingLimited.SCALE_UP_LIMIT), id="2^31 overflows"),
    ],
)
def test_up_at_most_twice_but_four_always(
    current: int, wanted: int, bounds: tuple[int, int], expected: tuple[int, ScalingLimited]
) -> None:
    assert hpa_behavior.limit(spec(low=bounds[0], high=bounds[1]), current, wanted) == expected


# --- windows with behavior ---------------------------------------------------------------------------------------


def both_ways(
    kept: tuple[Recommendation, ...], proposal: int, current: int, up_s: float, down_s: float
) -> tuple[int, AbleToScale]:
    done = hpa_behavior.stabilise_both_ways(kept, proposal, current, now_s=1000, up_window_s=up_s, down_window_s=down_s)
    return done.replicas, done.able_to_scale


def test_the_older_end_of_a_window_is_open() -> None:
    # exactly 300 s old: no longer counts here, although it does without behavior
    assert both_ways(recommended((700, 9)), 4, 8, 0, 300) == (4, AbleToScale.READY_FOR_NEW_SCALE)
    assert both_ways(recommended((700.125, 9)), 4, 8, 0, 300) == (8, AbleToScale.SCALE_DOWN_STABILISED)


def test_down_goes_no_lower_than_the_windows_highest() -> None:
    # proposals 6 and 7 within 300 s, now 4; current 10: clamped into [4, 7] -> 7
    assert both_ways(recommended((800, 6), (900, 7)), 4, 10, 0, 300) == (7, AbleToScale.SCALE_DOWN_STABILISED)


def test_up_goes_no_higher_than_the_windows_lowest() -> None:
    # 12 and 15 within 60 s, now 20; current 10: clamped into [12, 20] -> 12
    assert both_ways(recommended((950, 12), (980, 15)), 20, 10, 60, 0) == (12, AbleToScale.SCALE_UP_STABILISED)


def test_an_old_high_recommendation_does_not_raise() -> None:
    # 30 was proposed 100 s ago; current 10, now 10: lowest 10, highest 30 -> stays 10 (before 1.21 it went up twice)
    assert both_ways(recommended((900, 30)), 10, 10, 0, 300)[0] == 10


def test_current_below_everything_recommended_is_raised_to_the_lowest() -> None:
    # somebody set 2 by hand; 8 and 9 lately, now 7: lowest 7 -> 7
    assert both_ways(recommended((980, 8), (990, 9)), 7, 2, 60, 300)[0] == 7


def test_the_proposal_is_kept_unstabilised_and_slots_expire_past_both_windows() -> None:
    kept = recommended((600, 3), (800, 6))
    done = hpa_behavior.stabilise_both_ways(kept, 4, 10, now_s=1000, up_window_s=60, down_window_s=300)
    assert done.recommendations == recommended((1000, 4), (800, 6))
    # 700 is exactly at the end of the down window: neither counted nor free
    at_the_end = hpa_behavior.stabilise_both_ways(
        recommended((700, 3)), 4, 10, now_s=1000, up_window_s=60, down_window_s=300
    )
    assert at_the_end.recommendations == recommended((700, 3), (1000, 4))


def test_a_longer_window_brings_old_recommendations_back_to_life() -> None:
    # two expired, one slot reused: 9 at t=10 is still there when the window grows from 15 s to 3600 s
    first = hpa_behavior.stabilise_both_ways(
        recommended((10, 9), (20, 8)), 4, 4, now_s=1000, up_window_s=0, down_window_s=15
    )
    assert first.recommendations == recommended((10, 9), (1000, 4))
    second = hpa_behavior.stabilise_both_ways(
        first.recommendations, 4, 12, now_s=1015, up_window_s=0, down_window_s=3600
    )
    assert second.replicas == 9


# --- rates -------------------------------------------------------------------------------------------------------


def pods_per(period_s: int, value: int) -> RatePolicy:
    return RatePolicy(type=PolicyType.PODS, value=value, period_s=period_s)


def percent_per(period_s: int, value: int) -> RatePolicy:
    return RatePolicy(type=PolicyType.PERCENT, value=value, period_s=period_s)


def up(*policies: RatePolicy, select: SelectPolicy | None = None) -> Behavior:
    return Behavior(scale_up=ScalingRules(policies=policies, select=select))


def down(*policies: RatePolicy, select: SelectPolicy | None = None) -> Behavior:
    return Behavior(scale_down=ScalingRules(policies=policies, select=select))


NOTHING_YET = HpaState()


def limited(behavior: Behavior, current: int, wanted: int, state: HpaState = NOTHING_YET, *, high: int = 1000) -> int:
    return hpa_behavior.limit_rate(spec(behavior, high=high), state, current, wanted, 1000.0).replicas


@pytest.mark.parametrize(
    ("behavior", "current", "expected"),
    [
        pytest.param(Behavior(), 2, 6, id="defaults: max(2 + 4, ceil(2 · 2)) = 6"),
        pytest.param(Behavior(), 10, 20, id="defaults: max(10 + 4, ceil(10 · 2)) = 20"),
        pytest.param(up(pods_per(60, 3)), 10, 13, id="three pods"),
        pytest.param(up(percent_per(60, 10)), 100, 111, id="100 · (1 + 10/100) = 110.00000000000001 -> 111"),
        pytest.param(up(percent_per(60, 10)), 50, 56, id="50 · 1.1 = 55.00000000000001 -> 56"),
        pytest.param(up(percent_per(60, 10)), 20, 22, id="20 · 1.1 = 22.0"),
        pytest.param(up(percent_per(60, 1)), 3, 4, id="3.03 -> 4: a small workload can grow"),
        pytest.param(up(pods_per(60, 3), percent_per(60, 50), select=SelectPolicy.MIN), 10, 13, id="Min of 13 and 15"),
        pytest.param(up(pods_per(60, 3), percent_per(60, 50), select=SelectPolicy.MAX), 10, 15, id="Max of 13 and 15"),
        pytest.param(up(pods_per(60, 3), select=SelectPolicy.DISABLED), 10, 10, id="Disabled"),
    ],
)
def test_up_limits(behavior: Behavior, current: int, expected: int) -> None:
    assert limited(behavior, current, 900) == expected


@pytest.mark.parametrize(
    ("behavior", "current", "expected"),
    [
        pytest.param(Behavior(), 100, 1, id="defaults: 100 % -> down to min"),
        pytest.param(down(pods_per(60, 3)), 10, 7, id="three pods"),
        pytest.param(down(percent_per(60, 10)), 25, 22, id="25 · 0.9 = 22.5 -> 22, cut off"),
        pytest.param(down(percent_per(60, 10)), 10, 9, id="10 · 0.9 = 9"),
        pytest.param(down(percent_per(60, 10)), 1, 1, id="0.9 -> 0, then min 1"),
        pytest.param(
            down(pods_per(60, 3), percent_per(60, 50), select=SelectPolicy.MIN), 10, 7, id="Min: 7 of 7 and 5"
        ),
        pytest.param(down(pods_per(60, 3), percent_per(60, 50)), 10, 5, id="Max: 5 of 7 and 5"),
        pytest.param(down(pods_per(60, 3), select=SelectPolicy.DISABLED), 10, 10, id="Disabled"),
    ],
)
def test_down_limits(behavior: Behavior, current: int, expected: int) -> None:
    assert limited(behavior, current, 0) == expected


def test_events_strictly_younger_than_the_period_use_up_the_allowance() -> None:
    # now 1000, +5 per 60 s. 4 were added at 940.125 (younger): base 10 - 4 = 6, limit 11. At 940 it is free: 15
    assert limited(up(pods_per(60, 5)), 10, 900, HpaState(up_events=events((940.125, 4)))) == 11
    assert limited(up(pods_per(60, 5)), 10, 900, HpaState(up_events=events((940.0, 4)))) == 15


def test_removed_pods_give_allowance_back() -> None:
    # 6 were removed lately: the period began with 10 + 6 = 16; +5 -> 21
    assert limited(up(pods_per(60, 5)), 10, 900, HpaState(down_events=events((990.0, 6)))) == 21
    # downwards: 6 were added: base 4; 4 - 5 = -1 -> min 1. 3 were removed: base 13; 13 - 5 = 8
    assert limited(down(pods_per(60, 5)), 10, 0, HpaState(up_events=events((990.0, 6)))) == 1
    assert limited(down(pods_per(60, 5)), 10, 0, HpaState(down_events=events((990.0, 3)))) == 8


def test_an_overdrawn_allowance_holds_but_never_turns_round() -> None:
    # 9 added of 5 allowed: base 1, limit 6 < 10 -> stays 10. Downwards: 9 removed, base 19, 14 > 10 -> stays 10
    assert limited(up(pods_per(60, 5)), 10, 900, HpaState(up_events=events((990.0, 9)))) == 10
    assert limited(down(pods_per(60, 5)), 10, 0, HpaState(down_events=events((990.0, 9)))) == 10


def test_bounds_come_after_rates() -> None:
    rate = hpa_behavior.limit_rate(spec(up(pods_per(60, 5)), high=12), HpaState(), 10, 900, 1000.0)
    assert rate == (12, ScalingLimited.TOO_MANY)
    rate = hpa_behavior.limit_rate(spec(down(pods_per(60, 5)), low=8), HpaState(), 10, 0, 1000.0)
    assert rate == (8, ScalingLimited.TOO_FEW)
    rate = hpa_behavior.limit_rate(spec(down(pods_per(60, 5)), low=2), HpaState(), 10, 0, 1000.0)
    assert rate == (5, ScalingLimited.SCALE_DOWN_LIMIT)


def test_a_rate_too_large_for_32_bits_stops_all_scale_up() -> None:
    # 1,000,000,000 + 2,000,000,000 wraps below zero, and a limit below current means current
    assert limited(up(pods_per(60, 2_000_000_000)), 10**9, 10**9 + 5, high=2**31 - 1) == 10**9
    assert limited(up(percent_per(60, 900)), 10**9, 10**9 + 5, high=2**31 - 1) == 10**9


# --- events ------------------------------------------------------------------------------------------------------


def test_a_slot_is_used_again_once_it_is_older_than_the_longest_period() -> None:
    # longest 60 s, now 1000: 940 is exactly 60 s old and kept, 939.875 is outdated and overwritten
    assert hpa_behavior.with_event(events((940, 1)), 1000, 2, 60) == events((940, 1), (1000, 2))
    assert hpa_behavior.with_event(events((939.875, 1)), 1000, 2, 60) == events((1000, 2))


def test_of_several_outdated_slots_the_last_is_used_and_the_others_stay_marked() -> None:
    kept = events((10, 1), (20, 1), (990, 1))
    assert hpa_behavior.with_event(kept, 1000, 2, 60) == (
        ScaleEvent(10, 1, outdated=True),
        ScaleEvent(1000, 2, outdated=False),
        ScaleEvent(990, 1, outdated=False),
    )


# --- defaults ----------------------------------------------------------------------------------------------------


def test_each_missing_part_of_behavior_is_filled_on_its_own() -> None:
    flags = HpaFlags(downscale_stabilisation_s=120.0)
    half = Behavior(scale_up=ScalingRules(window_s=30), scale_down=ScalingRules(select=SelectPolicy.MIN))
    built = HpaSpec(max_replicas=10, metrics=(METRIC,), behavior=half, flags=flags)
    assert built.up is not None
    assert built.down is not None
    assert (built.up.window_s, built.up.select, built.up.longest_period_s) == (30, SelectPolicy.MAX, 15)
    assert built.up.policies == (pods_per(15, 4), percent_per(15, 100))
    assert (built.down.window_s, built.down.select) == (120.0, SelectPolicy.MIN)
    assert built.down.policies == (percent_per(15, 100),)


def test_the_flags_window_is_cut_to_whole_seconds_for_behavior_only() -> None:
    flags = HpaFlags(downscale_stabilisation_s=47.5)
    built = HpaSpec(max_replicas=10, metrics=(METRIC,), behavior=Behavior(), flags=flags)
    assert built.down is not None
    assert built.down.window_s == 47.0


def test_even_an_empty_behavior_differs_from_none() -> None:
    # from 1: without behavior max(2, 4) = 4; with the defaults 1 + 4 = 5
    seen = hpa.HpaObserved(
        now_s=0.0, spec_replicas=1, status_replicas=1, readings=(hpa.ExternalReading(values_milli=(50_000,)),)
    )
    assert hpa.sync(spec(), HpaState(), seen).desired == 4
    assert hpa.sync(spec(Behavior()), HpaState(), seen).desired == 5
