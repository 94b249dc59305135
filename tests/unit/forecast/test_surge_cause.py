"""What looks like a surge and is none: each cause with a series made by hand, and real ones where the data has them."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.forecast import surge_cause
from leadtime.forecast.surge_cause import ASurge, Cause, Facts, NotASurge

QUIET = [100.0] * 60


def cause(minutes, **facts):
    found = surge_cause.explain(minutes, Facts(**facts))
    return found.cause if isinstance(found, NotASurge) else None


def test_demand_that_doubles_is_a_surge_with_its_ratio():
    found = surge_cause.explain([*QUIET, *[200.0] * 5])
    assert isinstance(found, ASurge)
    assert found.rise_ratio == pytest.approx(2.0)
    assert "200" in found.evidence


@pytest.mark.parametrize("down_min", [1, 3, 15, 50])
def test_a_restart_comes_back_to_what_stood_before(down_min):
    # near zero, then back within five minutes; the base of five that ended ten minutes earlier was down, or just after
    down = [*QUIET, *[2.0] * down_min]
    back = [*down, *[100.0] * 11]
    found = surge_cause.explain(back)
    assert isinstance(found, NotASurge)
    assert found.cause is Cause.RESTART
    assert "stood at 100" in found.evidence


def test_a_service_that_comes_back_to_twice_its_level_is_a_surge():
    # 15 minutes down lack 1,500; after 20 minutes at 220 2,400 more than usual have come: that is no backlog
    assert cause([*QUIET, *[2.0] * 15, *[220.0] * 20]) is None


def test_a_service_that_sleeps_at_night_and_wakes_is_not_taken_for_a_restart():
    assert cause([*[0.0] * 110, *[100.0] * 6]) is None


def test_minutes_that_arrive_together_after_a_gap_are_no_surge():
    assert cause([*QUIET, None, None, None, 380.0, 100.0]) is Cause.SCRAPE_GAP


def test_more_than_the_gap_can_hold_is_not_explained_by_it():
    assert cause([*QUIET, None, None, None, 900.0, 100.0]) is None


def test_demand_that_stays_high_after_a_gap_is_a_surge():
    assert cause([*QUIET, None, None, None, 200.0, 200.0, 210.0, 200.0, 200.0]) is None


def test_a_counter_reset_explains_its_own_minute_only():
    spike = [*QUIET, 5000.0, 100.0]
    assert cause(spike, resets=(1,)) is Cause.COUNTER_RESET
    assert cause(spike) is None  # nobody said that a counter was reset
    assert cause([*QUIET, 5000.0, 200.0, 200.0, 200.0, 200.0], resets=(4,)) is None  # the others stand high too
    assert cause(spike, resets=(30,)) is None


def rolled(load_per_pod, pods):
    return [p * x for p, x in zip(pods, load_per_pod, strict=True)]


def test_pods_that_are_counted_twice_in_a_rollout_are_no_surge():
    pods = [10.0] * 60 + [12.0, 15.0, 18.0, 20.0, 20.0]
    minutes = rolled([10.0] * 65, pods)
    found = surge_cause.explain(minutes, Facts(reporting_pods=pods, rollout_in_progress=True, changes=("chat v42",)))
    assert isinstance(found, NotASurge)
    assert found.cause is Cause.ROLLOUT
    assert "chat v42" in found.evidence
    assert "rollout is in progress" in found.evidence
    assert cause(minutes, reporting_pods=pods) is Cause.ROLLOUT  # load per pod alone tells it
    assert cause(minutes, reporting_pods=pods, rollout_in_progress=False) is None  # known to be none
    assert cause(minutes) is None  # pods unknown: neither explained nor excluded


def test_pods_that_follow_the_demand_are_no_rollout():
    # demand doubles first, the autoscaler's pods come four minutes later: for a while each pod has twice its load
    pods = [10.0] * 60 + [10.0, 10.0, 10.0, 15.0, 20.0]
    minutes = [100.0] * 60 + [200.0] * 5
    assert cause(minutes, reporting_pods=pods) is None


def test_unknown_pod_counts_explain_nothing():
    assert cause([*QUIET, *[200.0] * 5], reporting_pods=[None] * 65) is None
    assert cause([*QUIET, *[200.0] * 5], reporting_pods=[10.0] * 3) is None


def test_a_backlog_replayed_after_an_outage_is_no_surge_until_more_came_than_was_missed():
    # 20 minutes down lack 2,000; 300 a minute is 200 more than usual, so it is a backlog for ten minutes
    outage = [*QUIET, *[0.0] * 20]
    assert cause([*outage, *[300.0] * 8]) is Cause.REPLAYED_BACKLOG
    assert cause([*outage, *[300.0] * 14]) is None


@pytest.mark.parametrize("minutes", [[], [1.0], [None] * 60, [100.0] * 5, [*QUIET, None]])
def test_too_little_to_say_is_a_surge_not_an_excuse(minutes):
    assert cause(minutes) is None


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=130), st.lists(st.none() | st.floats(0, 100), max_size=130))
def test_any_series_gets_an_answer(minutes, pods):
    found = surge_cause.explain(minutes, Facts(reporting_pods=pods, resets=(0, 3)))
    assert found.evidence
    assert surge_cause.explain(minutes, Facts(reporting_pods=pods, resets=(0, 3))) == found


def column(data_dir, name):
    with (data_dir / name).open(newline="") as file:
        return np.array([float(row["value"]) for row in csv.DictReader(file)])


@pytest.mark.data
@pytest.mark.parametrize("name", ["ingress-01", "ingress-03", "ingress-05"])
def test_real_ingress_that_comes_back_after_an_hour_next_to_zero_is_a_restart(data_dir, name):
    values = column(data_dir, f"cloud-monitoring/{name}.csv")
    at = 8587  # 2018-04-30T23:07Z: an hour next to zero ended twelve minutes ago
    assert cause(values[at - 119 : at + 1].tolist()) is Cause.RESTART


@pytest.mark.data
def test_real_queries_that_start_with_the_morning_are_a_surge(data_dir):
    values = column(data_dir, "cloud-monitoring/mongo-01.csv")
    assert cause(values[423 - 119 : 424].tolist()) is None
