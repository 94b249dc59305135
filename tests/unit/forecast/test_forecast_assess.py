"""The loop's four calls: observe, warm up, predict, surge; what they keep and what they refuse."""

import json
import math
import pickle
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.demand import DemandPath
from leadtime.domain.errors import WrongUse
from leadtime.domain.reasons import Reason
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import from_epoch
from leadtime.forecast import assess, checkpoint
from leadtime.forecast import race as races
from leadtime.forecast.assess import ForecastState
from leadtime.forecast.champion import Champion
from leadtime.policy.schema import ForecastPolicy, Policy
from leadtime.testing.forecast_battery import START_S, demand

REF = WorkloadRef(namespace="serving", name="chat")
POLICY = Policy()
DAY_MIN = 1440
Values = list[float | None]


def series(values: Values, first: int = 0, step_s: int = 60) -> Series:
    start = from_epoch(START_S + 60 * first)
    return Series(name="rps", start=start, step_s=step_s, values=values, unit=Unit.REQUESTS_PER_S)


def at(minute: int) -> datetime:
    return from_epoch(START_S + 60 * minute)


def warm(values: Values) -> ForecastState:
    return assess.warm_up(assess.start(), series(values), POLICY)


def predict(state: ForecastState, minute: int, horizon_s: int = 3600, policy: Policy = POLICY) -> DemandPath:
    path = assess.predict(state, REF, at(minute), horizon_s, Unit.REQUESTS_PER_S, policy)
    assert isinstance(path, DemandPath)
    return path


def same(one: ForecastState, other: ForecastState) -> bool:
    return checkpoint.to_plain(one) == checkpoint.to_plain(other)


def test_a_warm_up_equals_observing_minute_by_minute() -> None:
    values = demand(2 * DAY_MIN + 400)
    state = assess.start()
    for i, value in enumerate(values):
        state = assess.observe(state, series([value], i), POLICY)
    assert same(state, warm(values))


def test_buckets_already_seen_change_nothing() -> None:
    values = demand(600)
    state = warm(values)
    assert assess.observe(state, series(values[300:], 300), POLICY) is state
    overlapping = assess.observe(warm(values[:550]), series(values[490:], 490), POLICY)
    assert same(overlapping, state)


def test_observing_leaves_the_given_state_alone() -> None:
    state = warm(demand(3 * DAY_MIN))
    before = checkpoint.to_plain(state)
    assess.observe(state, series([1e6] * 120, 3 * DAY_MIN), POLICY)
    assert checkpoint.to_plain(state) == before


def test_a_hole_between_two_series_is_a_gap() -> None:
    values = demand(500)
    holed = assess.observe(warm(values[:400]), series(values[430:], 430), POLICY)
    assert same(holed, warm([*values[:400], *[None] * 30, *values[430:]]))


def test_not_a_number_is_a_gap() -> None:
    values = demand(100)
    dirty = [math.nan if i == 50 else math.inf if i == 51 else v for i, v in enumerate(values)]
    clean = [None if i in {50, 51} else v for i, v in enumerate(values)]
    assert same(warm(dirty), warm(clean))


def test_a_series_of_another_step_is_refused() -> None:
    with pytest.raises(ValueError, match="resample"):
        assess.observe(assess.start(), series([1.0], step_s=300), POLICY)


def test_without_any_value_the_forecast_is_missing() -> None:
    for state in (assess.start(), warm([None] * 30)):
        answer = assess.predict(state, REF, at(30), 3600, Unit.REQUESTS_PER_S, POLICY)
        assert isinstance(answer, Missing)
        assert REF.key in answer.source


def test_a_gap_is_bridged_for_half_an_hour_and_then_missing() -> None:
    state = warm([*demand(3 * DAY_MIN), *[None] * 31])
    hold_min = POLICY.missing_data.hold_max_s // 60
    known = 3 * DAY_MIN - 1 if demand(3 * DAY_MIN)[-1] is None else 3 * DAY_MIN
    bridged = assess.predict(state, REF, at(known + hold_min), 3600, Unit.REQUESTS_PER_S, POLICY)
    assert isinstance(bridged, DemandPath)
    lost = assess.predict(state, REF, at(known + hold_min + 1), 3600, Unit.REQUESTS_PER_S, POLICY)
    assert isinstance(lost, Missing)
    assert lost.since == at(known)


def test_the_path_begins_at_the_newest_bucket_and_covers_the_horizon_from_now() -> None:
    path = predict(warm(demand(600)), 603, horizon_s=3600)
    assert path.issued_at == at(600)
    assert len(path.expected) == len(path.lower) == len(path.upper) == 63


def test_a_short_history_may_not_act_and_says_how_short() -> None:
    path = predict(warm(demand(600)), 600)
    assert not path.may_act
    assert path.standing.reason is Reason.HISTORY_TOO_SHORT
    assert "10.0 h" in path.standing.sentence
    assert "48 h" in path.standing.sentence


def test_enough_history_but_few_scores_may_not_act() -> None:
    policy = Policy(forecast=ForecastPolicy(min_history_s=3600))
    path = predict(warm(demand(400)), 400, policy=policy)
    assert not path.may_act
    assert "300 are needed" in path.standing.sentence


def test_a_surge_of_one_hour_a_day_earns_the_right_to_act() -> None:
    path = predict(warm(demand(7 * DAY_MIN)), 7 * DAY_MIN)
    assert path.may_act
    assert path.standing.reason is Reason.FORECAST_BEATS_LAST_VALUE
    assert "last_value" not in path.model
    assert "last value" in path.standing.sentence


def test_where_nothing_beats_last_value_no_model_may_act() -> None:
    steps = np.random.default_rng(11).standard_normal(6 * DAY_MIN)
    walk = (1000.0 + np.abs(np.cumsum(steps))).tolist()  # a random walk: the last value is the best there is
    policy = Policy(forecast=ForecastPolicy(better_than_last_value_ratio=0.05))
    path = predict(assess.warm_up(assess.start(), series(walk), policy), 6 * DAY_MIN, policy=policy)
    assert not path.may_act
    assert path.standing.reason is Reason.MODEL_LOSES_TO_LAST_VALUE


def test_no_forecast_depends_on_later_values() -> None:
    values = demand(4 * DAY_MIN)
    cut = 3 * DAY_MIN + 77
    told = [predict(warm([*values[:cut]]), cut, 6000)]
    for future in (values[cut:], [1e6] * 500, [0.0] * 500):
        state = warm(values[:cut])
        assess.observe(state, series(list(future), cut), POLICY)
        told.append(predict(state, cut, 6000))
    assert all(path == told[0] for path in told)


def test_after_a_restart_everything_goes_on_as_before() -> None:
    values = demand(4 * DAY_MIN)
    state = warm(values[:5000])
    text = json.dumps(checkpoint.to_plain(state), allow_nan=False)
    for copy in (checkpoint.from_plain(json.loads(text)), pickle.loads(pickle.dumps(state))):
        later = assess.observe(copy, series(values[5000:], 5000), POLICY)
        assert same(later, warm(values))
        assert predict(later, 4 * DAY_MIN, 6000) == predict(warm(values), 4 * DAY_MIN, 6000)


def test_a_state_saved_with_other_models_races_anew_and_keeps_its_history() -> None:
    values = demand(3 * DAY_MIN)
    state = warm(values[:-60])
    other = replace(state, race=races.start(2, 0.9), champion=Champion(models=(1, 1, 1, 1), scored=9999))
    later = assess.observe(other, series(values[-60:], 3 * DAY_MIN - 60), POLICY)
    path = predict(later, 3 * DAY_MIN)
    assert path.standing.reason is Reason.HISTORY_TOO_SHORT
    assert later.known_minutes == warm(values).known_minutes


@pytest.mark.parametrize("change", [{"format": 99}, {"state": {"record": "Unheard"}}])
def test_a_checkpoint_it_does_not_know_is_refused_with_a_cure(change: dict[str, object]) -> None:
    plain = {**checkpoint.to_plain(warm([1.0])), **change}
    with pytest.raises(WrongUse, match="delete the checkpoint"):
        checkpoint.from_plain(plain)


def test_the_state_does_not_grow_for_ever() -> None:
    policy = Policy(forecast=ForecastPolicy(max_history_days=3, score_window_s=3 * 86_400))
    sizes = []
    state = assess.start()
    for day in range(6, 10):
        values = demand(day * DAY_MIN)
        state = assess.observe(state, series(values), policy)
        sizes.append(len(pickle.dumps(state)))
    assert max(sizes) <= 1.02 * min(sizes)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.none() | st.floats(0, 1e9) | st.just(0.0), min_size=1, max_size=200),
    horizon_s=st.integers(60, 6000),
)
def test_bounds_are_ordered_and_never_negative_whatever_came(values: Values, horizon_s: int) -> None:
    path = assess.predict(warm(values), REF, at(len(values)), horizon_s, Unit.REQUESTS_PER_S, POLICY)
    if isinstance(path, Missing):
        assert all(v is None for v in values[-POLICY.missing_data.hold_max_s // 60 :])
        return
    lower, expected, upper = np.array(path.lower), np.array(path.expected), np.array(path.upper)
    assert (lower >= 0).all()
    assert (lower <= expected).all()
    assert (expected <= upper).all()
    assert np.isfinite(upper).all()


@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_a_service_that_sleeps_is_forecast_without_nonsense(zeros: float) -> None:
    values: Values = [100.0 if 480 <= i % DAY_MIN < 1080 else zeros for i in range(5 * DAY_MIN + 460)]
    path = predict(warm(values), len(values), 6000)
    assert max(path.upper) <= 250.0
    assert path.upper[40] >= 100.0  # 08:20: the service woke at 08:00 on every day before


def test_local_time_moves_the_season_with_the_clocks() -> None:
    # Berlin's clocks went forward on 29 March 2026, 01:00 UTC: a surge at 09:00 local comes at 07:00 UTC after it.
    start = datetime.fromisoformat("2026-03-22T00:00:00+00:00")
    change = datetime.fromisoformat("2026-03-29T01:00:00+00:00")
    minutes = (7 * 24 + 6) * 60 + 30
    hours = [start + timedelta(minutes=i) for i in range(minutes)]
    values: Values = [200.0 if (t + timedelta(hours=2 if t >= change else 1)).hour == 9 else 100.0 for t in hours]
    seen = Series(name="rps", start=start, step_s=60, values=values, unit=Unit.REQUESTS_PER_S)
    as_of = start + timedelta(minutes=minutes)
    upper = {}
    for zone in ("UTC", "Europe/Berlin"):
        policy = Policy(forecast=ForecastPolicy(time_zone=zone))
        state = assess.warm_up(assess.start(), seen, policy)
        path = assess.predict(state, REF, as_of, 6000, Unit.REQUESTS_PER_S, policy)
        assert isinstance(path, DemandPath)
        upper[zone] = max(path.upper[32:70])  # 07:02 to 07:40 UTC
    assert upper["Europe/Berlin"] >= 195.0
    assert upper["UTC"] < 150.0
