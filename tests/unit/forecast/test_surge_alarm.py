"""When an alarm is raised, by what, and when not: hand-made minutes, and 500 simulated hours for unseen seeds."""

from itertools import pairwise

import numpy as np
import pytest
from surge_worlds import SURGES, T0, shadow_weeks

from leadtime.forecast import surge_alarm
from leadtime.forecast.surge import Reference
from leadtime.forecast.surge_alarm import AlarmKind, AlarmState, Beside, Expected, rise_ahead
from leadtime.forecast.surge_cause import Cause
from leadtime.forecast.surge_detect import detect
from leadtime.policy.schema import SurgePolicy
from leadtime.scorecard import surge_episodes as judge

POLICY = SurgePolicy()


def quiet(minutes, deviation=0.01, seed=1):
    return 100.0 * (1.0 + deviation * np.random.default_rng(seed).standard_normal(minutes))


def alarms(values, **more):
    """(minute, kind) of every alarm; a minute is named by its index."""
    found = detect(np.asarray(values, dtype=float), T0, **more)
    return [((int(at) - T0) // 60 - 1, kind) for at, kind in zip(found.raised_s, found.kinds, strict=True)]


def joined(*parts):
    return np.concatenate([np.asarray(part, dtype=float) for part in parts])


def test_demand_that_doubles_is_alarmed_within_its_second_minute():
    assert alarms(joined(quiet(600), [200.0] * 60)) == [(601, AlarmKind.DEVIATION)]


def test_a_slow_rise_by_half_in_ten_minutes_is_alarmed_by_its_mean():
    # 15 % above the path of ten minutes ago each time, never half above it, until the mean has risen by half
    ramp = 100.0 * 1.045 ** np.arange(1, 21)
    found = alarms(joined(quiet(600), ramp, [ramp[-1]] * 60))
    assert [kind for _, kind in found] == [AlarmKind.RISE]
    assert 608 <= found[0][0] <= 613


def test_a_rise_by_a_third_is_no_alarm():
    assert alarms(joined(quiet(600), [133.0] * 60)) == []


@pytest.mark.parametrize("deviation", [0.01, 0.05, 0.12])
def test_noise_alone_raises_no_alarm(deviation):
    assert alarms(quiet(6000, deviation)) == []


def test_one_spike_is_a_scrape_artefact():
    values = quiet(900)
    values[700] = 900.0
    assert alarms(values) == []


def test_a_rise_to_below_the_usual_is_no_alarm():
    assert alarms(joined(quiet(1440), [30.0] * 60, [60.0] * 60)) == []


def test_an_alarm_that_stands_is_not_raised_again_and_a_second_surge_is():
    once = [200.0] * 40
    assert [at for at, _ in alarms(joined(quiet(600), once, quiet(200), once, quiet(60)))] == [601, 841]


def test_nothing_is_alarmed_in_the_first_hour():
    assert alarms(joined(quiet(50), [300.0] * 5)) == []
    assert [at for at, _ in alarms(joined(quiet(90), [300.0] * 5))] == [91]  # the mean alone, two minutes in


def test_the_return_from_a_gap_is_no_alarm_and_a_surge_after_it_is():
    values = quiet(900)
    values[700:720] = np.nan
    values[720] = 2100.0  # what piled up comes in one bucket
    assert alarms(values) == []
    values[721:] = 220.0
    assert 722 <= alarms(values)[0][0] <= 725


def test_a_restart_is_dismissed_with_its_reason():
    found = detect(joined(quiet(600), [1.0] * 30, quiet(100)), T0)
    assert len(found.raised_s) == 0
    assert {d.why.cause for d in found.dismissed} == {Cause.RESTART}


def test_pods_counted_twice_are_dismissed_and_unknown_pods_are_not():
    pods = joined([10.0] * 600, [12, 14, 16, 18, 20], [20.0] * 35)
    values = quiet(640) * pods / 10.0
    assert len(alarms(values)) == 1
    found = detect(values, T0, reporting_pods=pods)
    assert len(found.raised_s) == 0
    assert {d.why.cause for d in found.dismissed} == {Cause.ROLLOUT}
    assert len(alarms(values, reporting_pods=np.full(640, np.nan))) == 1


def test_fewer_ready_pods_under_a_rising_load_are_an_alarm():
    # demand rises by a fifth only, but a third of the wanted pods is not there
    values = joined(quiet(600), np.linspace(100, 122, 8), [122.0] * 40)
    ready = joined([1.0] * 602, [0.9, 0.8], [0.66] * 44)
    found = alarms(values, ready_ratio=ready)
    assert [kind for _, kind in found] == [AlarmKind.SATURATION]
    assert 604 <= found[0][0] <= 612
    assert alarms(values) == []
    assert alarms(values, ready_ratio=np.full(648, np.nan)) == []  # unknown is not saturated
    assert alarms(quiet(648), ready_ratio=ready) == []  # pods leave, and nobody asks for more


def issued(at, path):
    upper = tuple(1.1 * p for p in path)
    return Reference(at_min=T0 // 60 + at, expected=tuple(path), upper=upper)


def test_a_rise_the_path_expects_is_alarmed_before_it_comes_and_once():
    days = 3 * 1440
    coming = days + 22
    values = joined(quiet(coming), [200.0] * 60)
    paths = [issued(at, [100.0 if at + j < coming else 200.0 for j in range(40)]) for at in range(0, coming + 50, 10)]
    found = alarms(values, paths=paths)
    assert [kind for _, kind in found] == [AlarmKind.EXPECTED]
    assert found[0][0] == days - 1  # at the end of the minute before the path of ``days`` was issued
    assert alarms(values[1440:], paths=[p for p in paths if p.at_min >= T0 // 60 + 9999]) != found


@pytest.mark.parametrize(
    ("path", "now", "usual", "ratio"),
    [
        pytest.param([100.0] * 10 + [160.0] * 20, 100.0, 90.0, 1.6, id="a rise by 0.6 in ten minutes"),
        pytest.param([100.0] * 10 + [160.0] * 20, 100.0, 170.0, 0.0, id="to below the usual"),
        pytest.param([160.0] * 30, 100.0, 90.0, 1.0, id="a path that lies above the demand is biased"),
        pytest.param([100.0] * 30 + [160.0] * 10, 100.0, 90.0, 1.0, id="later than 30 min"),
        pytest.param(list(np.linspace(100, 160, 30)), 100.0, 90.0, 1.2, id="a slow rise is smaller in any ten minutes"),
        pytest.param([], 100.0, 90.0, 0.0, id="no path"),
        pytest.param([100.0] * 30, None, 90.0, 0.0, id="nothing stands"),
    ],
)
def test_the_rise_ahead_by_hand(path, now, usual, ratio):
    assert rise_ahead(path, now, usual) == pytest.approx(ratio, abs=0.03)


def test_no_alarm_knows_what_comes_after_it():
    values = shadow_weeks(3)[:6000]
    full = detect(values, T0)
    for cut in (1700, 3000, 4444):
        swapped = joined(values[:cut], values[cut:] * 7.0)
        part = detect(swapped, T0)
        end_s = T0 + 60 * cut
        assert part.raised_s[part.raised_s <= end_s].tolist() == full.raised_s[full.raised_s <= end_s].tolist()


def test_a_state_stays_bounded_and_its_input_unchanged():
    state = AlarmState()
    for minute, value in enumerate(quiet(3000)):
        before = (state, state.minutes)
        after = surge_alarm.watch(state, minute, value, Expected(), POLICY, beside=Beside(ready_ratio=1.0))
        assert (state, state.minutes) == before
        state = after
    assert len(state.minutes) == 120
    assert len(state.beside) == 20


def test_columns_of_another_length_are_refused():
    with pytest.raises(ValueError, match="ready_ratio has 3 minutes, the series 5"):
        detect(np.ones(5), T0, ready_ratio=np.ones(3))


FORMS = ({"swing": 0.25, "noise": 0.03}, {"swing": 0.0, "noise": 0.01}, {"swing": 0.35, "noise": 0.08})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1021))
def test_500_simulated_hours_ten_of_ten_and_at_most_one_false_alarm(seed):
    values = shadow_weeks(seed, **FORMS[seed % 3])
    found = judge.score(detect(values, T0).raised_s, judge.episodes_of(values, T0), span_s=60.0 * len(values))
    assert found.total == SURGES
    assert found.caught == SURGES
    assert len(found.false_alarms_s) <= 1
    assert found.lead_s is not None
    assert found.lead_s >= 0.0  # no forecast could know of them, and still no later than they qualify


def test_500_hours_are_what_they_say():
    values = shadow_weeks(7)
    assert len(values) == 30_000
    assert np.array_equal(values, shadow_weeks(7))
    assert not np.array_equal(values, shadow_weeks(8))
    onsets = [e.onset_s for e in judge.episodes_of(values, T0)]
    assert len(onsets) == SURGES
    assert min(b - a for a, b in pairwise(onsets)) > judge.SAME_EPISODE_S
