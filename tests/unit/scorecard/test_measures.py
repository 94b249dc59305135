"""Each field of the score card, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.scorecard.measures import score

KEY = "serving/chat"


def column(steps, **at):
    """A column of zeros with values at single steps: column(40, s3=5) is 5 at step 3."""
    values = np.zeros(steps)
    for name, value in at.items():
        values[int(name[1:])] = value
    return values


def test_unserved_ratio_is_unserved_over_arrived(workload, world):
    # 40 steps of 10 requests = 400; 6 + 2 of them unserved: 8 / 400 = 0.02
    scored = score(world(workload(arrived=np.full(40, 10.0), unserved=column(40, s3=6, s30=2))), KEY)
    assert (scored.arrived_requests, scored.unserved_requests) == (400.0, 8.0)
    assert scored.unserved_ratio == pytest.approx(0.02)


def test_a_run_without_arrivals_has_no_ratio_and_says_why(workload, world):
    scored = score(world(workload()), KEY)
    assert scored.unserved_ratio is None
    assert scored.reasons["unserved_ratio"] == "no request arrived in the scored span"


def test_the_peak_is_the_worst_of_all_300_s_windows(workload, world):
    # 300 s are 20 steps of 30 requests = 600. 20 go unserved at step 5, 30 at step 24, 25 at step 39:
    # [5, 25) holds the first two, 50 of 600; [20, 40) the last two, 55 of 600; no window holds all three
    unserved = column(40, s5=20, s24=30, s39=25)
    scored = score(world(workload(arrived=np.full(40, 30.0), unserved=unserved)), KEY)
    assert scored.unserved_ratio_peak == pytest.approx(55 / 600)


def test_the_peak_window_is_half_open(workload, world):
    # steps 0 and 20 are exactly 300 s apart: no window [t, t + 300) holds both
    scored = score(world(workload(arrived=np.full(40, 30.0), unserved=column(40, s0=30, s20=30))), KEY)
    assert scored.unserved_ratio_peak == pytest.approx(30 / 600)


def test_windows_with_less_than_one_pods_arrivals_are_left_out(workload, world):
    # one pod serves 1/s: 300 in 300 s. The first 20 steps bring 10 in all (all lost), the last 20 bring 400 (4 lost).
    arrived = np.concatenate((np.full(20, 0.5), np.full(20, 20.0)))
    unserved = np.concatenate((np.full(20, 0.5), np.full(20, 0.2)))
    scored = score(world(workload(arrived=arrived, unserved=unserved)), KEY)
    # kept are windows with ≥ 300: those with ≥ 15 of the busy steps. The worst has 15 busy (300 + 2.5 quiet):
    # lost 3 + 2.5 of 302.5
    assert scored.unserved_ratio_peak == pytest.approx(5.5 / 302.5)


def test_a_window_with_exactly_one_pods_arrivals_counts(workload, world):
    scored = score(world(workload(steps=20, arrived=np.full(20, 15.0), unserved=column(20, s0=3))), KEY)
    assert scored.unserved_ratio_peak == pytest.approx(3 / 300)


def test_a_run_shorter_than_a_window_has_no_peak(workload, world):
    assert score(world(workload(steps=19, arrived=np.full(19, 99.0))), KEY).unserved_ratio_peak is None


def test_shortfall_counts_utc_minutes_above_a_thousandth(workload, world):
    # 1,000 requests a step, 4,000 a minute: a thousandth is 4. Minute 0 loses exactly 4 (not more), minute 2 loses 5,
    # minute 3 loses 3 + 3 in two steps.
    unserved = column(40, s0=4, s8=5, s12=3, s15=3)
    assert score(world(workload(arrived=np.full(40, 1000.0), unserved=unserved)), KEY).shortfall_minutes == 2


def test_shortfall_follows_the_clock_and_not_the_runs_start(workload, world):
    # The run begins at 00:00:30. Steps 1 and 2 lie 15 s apart, but in two UTC minutes: 00:00:45 and 00:01:00.
    run = world(workload(start_s=1_772_409_630, arrived=np.full(40, 10.0), unserved=column(40, s1=1, s2=1)))
    assert score(run, KEY).shortfall_minutes == 2


def test_late_and_unserved_are_shares_of_the_same_arrivals(workload, world):
    scored = score(world(workload(arrived=np.full(40, 10.0), late=column(40, s1=4), unserved=column(40, s2=4))), KEY)
    assert scored.late_ratio == scored.unserved_ratio == pytest.approx(0.01)


def test_latency_p95_weighs_each_step_by_its_served_requests(workload, world):
    # 940 requests took 1 s, 20 took 2 s, 40 took 9 s: 95 % of 1,000 = 950 are done by 2 s
    arrived = column(40, s0=940, s1=20, s2=40)
    latency = np.where(arrived > 0, 0.0, np.nan)
    latency[[0, 1, 2]] = 1.0, 2.0, 9.0
    assert score(world(workload(arrived=arrived, latency_s=latency)), KEY).latency_p95_s == 2.0


def test_latency_ignores_requests_that_were_never_served(workload, world):
    # of step 2's 40, 30 expired: 970 served, 95 % = 921.5 → still 1 s
    arrived = column(40, s0=940, s1=20, s2=40)
    latency = np.full(40, np.nan)
    latency[[0, 1, 2]] = 1.0, 2.0, 9.0
    run = world(workload(arrived=arrived, unserved=column(40, s2=30), latency_s=latency))
    assert score(run, KEY).latency_p95_s == 1.0


def test_hours_and_minutes_are_sums_of_seconds(workload, world, pool):
    # 40 steps = 10 min. 6 pods bound throughout: 6 · 600 / 3600 = 1 pod-hour; 3 nodes: 0.5 node-hours;
    # 2 pods pending for 5 steps of 15 s: 150 s = 2.5 pod-minutes
    pending = np.zeros(40)
    pending[:5] = 30.0
    columns = workload(pod_seconds=np.full(40, 90.0), pending_pod_seconds=pending)
    scored = score(world(columns, pools=(pool(np.full(40, 45.0)),)), KEY)
    assert (scored.pod_hours, scored.gpu_node_hours, scored.pending_pod_minutes) == (1.0, 0.5, 2.5)


def test_workloads_that_share_a_pool_split_its_hours_by_bound_gpus(workload, world, pool):
    # 4 nodes for 10 min = 2400 node-seconds. chat: 2 pods of 1 GPU, embed: 3 pods of 2 GPUs → 2/8 and 6/8,
    # except in the first half, where chat alone has pods: 1200 + 1200 · 0.25 = 1500 s
    late = np.concatenate((np.zeros(20), np.full(20, 45.0)))
    chat = workload(pod_seconds=np.full(40, 30.0))
    embed = workload(workload="serving/embed", gpus_per_pod=2, pod_seconds=late)
    run = world(chat, embed, pools=(pool(np.full(40, 60.0)),))
    assert score(run, KEY).gpu_node_hours == pytest.approx(1500 / 3600)
    assert score(run, "serving/embed").gpu_node_hours == pytest.approx(900 / 3600)


def test_an_empty_shared_pool_is_split_evenly(workload, world, pool):
    run = world(workload(), workload(workload="serving/embed"), pools=(pool(np.full(40, 60.0)),))
    assert score(run, KEY).gpu_node_hours == score(run, "serving/embed").gpu_node_hours == pytest.approx(1200 / 3600)


def test_a_workload_on_another_pool_pays_nothing_for_this_one(workload, world, pool):
    cpu = workload(workload="serving/web", pool="cpu", pod_seconds=np.full(40, 15.0))
    pools = (pool(np.full(40, 15.0)), pool(np.full(40, 15.0), name="cpu", gpus_per_node=0))
    run = world(workload(), cpu, pools=pools)
    assert score(run, KEY).gpu_node_hours == pytest.approx(600 / 3600)
    assert score(run, "serving/web").reasons["gpu_node_hours"] == "the workload runs on no GPU pool"


def test_kills_and_churn_are_counted(workload, world):
    # 3 deletions while demand stayed in 10 min = 18 an hour
    columns = workload(
        deleted_while_demand_stayed=column(40, s1=2, s9=1), busy_killed=column(40, s1=1), warm_killed=column(40, s1=2)
    )
    scored = score(world(columns), KEY)
    assert (scored.churn_pods_per_hour, scored.busy_pods_killed, scored.warm_pods_killed) == (pytest.approx(18.0), 1, 2)


def test_steps_without_a_demand_value_are_scored_nowhere(workload, world, pool):
    # the first 10 of 40 steps have no demand value: nothing in them counts
    hole = np.concatenate((np.full(10, np.nan), np.ones(30)))
    bad = np.concatenate((np.ones(10), np.zeros(30)))
    columns = workload(
        demand_rps=hole, arrived=bad + 10, unserved=bad, late=bad, pod_seconds=np.full(40, 60.0),
        pending_pod_seconds=bad, deleted_while_demand_stayed=bad, busy_killed=bad, warm_killed=bad,
    )  # fmt: skip
    scored = score(world(columns, pools=(pool(np.full(40, 60.0)),)), KEY)
    assert (scored.arrived_requests, scored.unserved_requests, scored.late_ratio) == (300.0, 0.0, 0.0)
    assert (scored.shortfall_minutes, scored.pending_pod_minutes, scored.churn_pods_per_hour) == (0, 0.0, 0.0)
    assert (scored.busy_pods_killed, scored.warm_pods_killed) == (0, 0)
    assert scored.pod_hours == scored.gpu_node_hours == 0.5  # 30 steps of 60 s
    assert (scored.scored_hours, scored.scored_from_s) == (0.125, columns.start_s + 150)


def test_a_hole_in_the_middle_is_counted_as_unscored(workload, world):
    hole = np.ones(40)
    hole[8:16] = np.nan
    assert score(world(workload(demand_rps=hole)), KEY).unscored_minutes == 2.0


def test_warm_up_is_not_scored(workload, world):
    run = world(workload(arrived=np.full(40, 10.0), unserved=column(40, s0=9)))
    scored = score(run, KEY, scored_from_s=1_772_409_660)
    assert (scored.unserved_requests, scored.arrived_requests) == (0.0, 360.0)


def test_only_leadtimes_world_has_decisions_and_the_others_say_so(workload, world):
    scored = score(world(workload()), KEY)
    assert scored.decisions is None
    assert scored.reasons["decisions"] == "leadtime decides nothing in this world"


def test_steps_that_do_not_tile_a_minute_are_refused(workload, world):
    with pytest.raises(ValueError, match="must divide 60"):
        score(world(workload(step_s=25)), KEY)


requests = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=20, max_size=80)


@given(requests)
def test_no_measure_of_service_leaves_its_range(workload, world, drawn):
    arrived = np.array([max(pair) for pair in drawn], dtype=float)
    unserved = np.array([min(pair) for pair in drawn], dtype=float)
    scored = score(world(workload(steps=len(drawn), arrived=arrived, unserved=unserved)), KEY)
    for ratio in (scored.unserved_ratio, scored.unserved_ratio_peak):
        assert ratio is None or 0 <= ratio <= 1
    assert 0 <= scored.shortfall_minutes <= -(-len(drawn) // 4)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=40, max_size=40))
def test_the_worst_window_is_at_least_the_whole_where_windows_tile_it(workload, world, drawn):
    # with a tiny pod every window counts, and some tile of the span has at least the span's own ratio
    arrived = np.array([max(pair) + 1 for pair in drawn], dtype=float)
    unserved = np.array([min(pair) for pair in drawn], dtype=float)
    columns = workload(steps=len(drawn), arrived=arrived, unserved=unserved, capacity_per_pod_rps=1e-9)
    scored = score(world(columns), KEY)
    assert scored.unserved_ratio_peak >= scored.unserved_ratio - 1e-12


@given(st.lists(st.booleans(), min_size=40, max_size=40))
def test_what_happens_in_unscored_steps_changes_nothing(workload, world, known):
    demand = np.where(known, 1.0, np.nan)
    bad = np.where(known, 0.0, 7.0)
    quiet = score(world(workload(demand_rps=demand, arrived=np.full(40, 9.0))), KEY)
    loud = score(
        world(
            workload(
                demand_rps=demand, arrived=np.full(40, 9.0) + bad, unserved=bad, late=bad, pod_seconds=bad,
                pending_pod_seconds=bad, deleted_while_demand_stayed=bad, busy_killed=bad, warm_killed=bad,
            )
        ),
        KEY,
    )  # fmt: skip
    assert loud == quiet
