"""Leadtime's world beside the others, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from leadtime.scorecard.compare import compare, first_raise
from leadtime.scorecard.measures import score

KEY = "serving/chat"


def column(steps, **at):
    values = np.zeros(steps)
    for name, value in at.items():
        values[int(name[1:])] = value
    return values


@pytest.fixture
def compared(world):
    """compare() of the given worlds (name → run), each scored whole."""

    def build(learned=None, **runs):
        scores = {name: score(run, KEY) for name, run in runs.items()}
        return compare(runs, scores, KEY, learned_lead_p90_s=learned)

    return build


def lost(workload, world, requests, *, name, pods=1.0):
    columns = workload(arrived=np.full(40, 100.0), unserved=column(40, s3=requests), pod_seconds=np.full(40, 15 * pods))
    return world(columns, name=name)


# HPA lost 50, the oracle 10: of the 40 that can be had, leadtime (20 lost) had 30
@pytest.mark.parametrize(("ours", "closed"), [(20, 0.75), (10, 1.0), (0, 1.25), (50, 0.0), (70, -0.5)])
def test_oracle_gap_closed(workload, world, compared, ours, closed):
    runs = {name: lost(workload, world, n, name=name) for name, n in (("hpa", 50), ("leadtime", ours), ("oracle", 10))}
    assert compared(**runs).oracle_gap_closed == pytest.approx(closed)


@pytest.mark.parametrize("oracle", [50, 60])
def test_the_gap_is_null_where_the_hpa_is_not_above_the_oracle(workload, world, compared, oracle):
    runs = {name: lost(workload, world, n, name=name) for name, n in (("hpa", 50), ("leadtime", 0), ("oracle", oracle))}
    found = compared(**runs)
    assert found.oracle_gap_closed is None
    assert found.reasons["oracle_gap_closed"] == "the HPA alone left no more requests unserved than the oracle"


def test_cost_ratios(workload, world, compared):
    runs = {
        name: lost(workload, world, 0, name=name, pods=n) for name, n in (("hpa", 8), ("leadtime", 10), ("oracle", 5))
    }
    found = compared(**runs)
    assert found.pod_hours_ratio_to_oracle == pytest.approx(2.0)
    assert found.pod_hours_ratio_to_hpa == pytest.approx(1.25)
    assert found.reasons["gpu_node_hours_ratio_to_oracle"] == "the workload runs on no GPU pool"


def test_a_missing_world_is_named(workload, world, compared):
    found = compared(hpa=lost(workload, world, 1, name="hpa"), leadtime=lost(workload, world, 1, name="leadtime"))
    assert found.reasons["oracle_gap_closed"] == "there is no oracle world in this run"
    assert found.reasons["pod_hours_ratio_to_oracle"] == "there is no oracle world in this run"


@pytest.fixture
def raising(workload, world, event):
    """leadtime's world: 10 pods of 1/s ready; demand 8/s, from step 30 on 12/s; ready 14 from step 20 on."""

    def build(*, floor_step=None, buffer_after_s=None, demand=None, ready=None):
        given = {"demand_rps": [8.0] * 30 + [12.0] * 10, "ready": [10] * 20 + [14] * 20}
        if demand is not None:
            given["demand_rps"] = demand
        if ready is not None:
            given["ready"] = ready
        if floor_step is not None:
            given["floor_added"] = column(40, **{f"s{floor_step}": 4})
        events = () if buffer_after_s is None else (event(buffer_after_s, "buffer_set", count=3),)
        return world(workload(**given), events=events, name="leadtime")

    return build


def test_early_warning_runs_from_the_first_floor_to_the_crossing(raising, compared):
    # the floor is raised in step 4 (60 s); demand exceeds 10 ready pods in step 30 (450 s)
    assert compared(leadtime=raising(floor_step=4)).early_warning_s == 390.0


def test_a_buffer_set_earlier_is_the_first_raise(raising, compared):
    assert compared(leadtime=raising(floor_step=8, buffer_after_s=37)).early_warning_s == 450.0 - 37


def test_a_buffer_given_back_is_no_raise(raising, event, world):
    run = raising()
    emptied = replace(run, events=(event(30, "buffer_set", count=0),))
    assert first_raise(emptied, KEY) is None


def test_a_raise_after_the_crossing_warned_of_nothing(raising, compared):
    assert compared(leadtime=raising(floor_step=35, ready=[10] * 40)).early_warning_s == 0.0


def test_what_is_ready_at_the_raise_counts_not_what_it_brings(raising, compared):
    # 11 ready at the raise: 12/s exceeds them; had the 14 of later been counted, nothing would
    assert compared(leadtime=raising(floor_step=25, ready=[11] * 25 + [14] * 15)).early_warning_s == 75.0


def test_demand_that_is_not_known_does_not_exceed_anything(raising, compared):
    demand = [8.0] * 30 + [np.nan] * 5 + [12.0] * 5
    assert compared(leadtime=raising(floor_step=4, demand=demand)).early_warning_s == 35 * 15 - 60.0


def test_no_raise_and_no_crossing_are_told_apart(raising, compared):
    never = compared(leadtime=raising()).reasons["early_warning_s"]
    assert never == "leadtime never raised a floor or set a buffer"
    quiet = compared(leadtime=raising(floor_step=4, demand=[8.0] * 40)).reasons["early_warning_s"]
    assert quiet == "demand never exceeded the capacity that was ready at the first raise"


def test_ready_ahead_is_from_the_last_of_that_capacity_to_the_crossing(raising, compared):
    # 4 pods asked in step 4; 14 are ready at the end of step 20 (315 s); the crossing is at 450 s
    assert compared(leadtime=raising(floor_step=4)).ready_ahead_s == 135.0


def test_capacity_that_comes_after_the_crossing_is_negative(raising, compared):
    assert compared(leadtime=raising(floor_step=4, ready=[10] * 35 + [14] * 5)).ready_ahead_s == 450.0 - 36 * 15


def test_capacity_that_never_came_is_null(raising, compared):
    found = compared(leadtime=raising(floor_step=4, ready=[10] * 39 + [13]))
    assert found.reasons["ready_ahead_s"] == "the capacity of the first raise was never all ready at once"


def test_first_request_ahead_is_the_hpas_minus_ours(workload, world, event, compared):
    hpa = world(workload(), events=(event(400, "node_requested", workload=None), event(90, "pod_bound")))
    ours = world(workload(), events=(event(200, "node_requested"), event(100, "node_requested")), name="leadtime")
    assert compared(hpa=hpa, leadtime=ours).first_request_ahead_s == 300.0


def test_requests_on_another_pool_are_not_ours(workload, world, event, compared):
    hpa = world(workload(), events=(event(400, "node_requested", workload=None, pool="cpu"),))
    ours = world(workload(), events=(event(100, "node_requested"),), name="leadtime")
    found = compared(hpa=hpa, leadtime=ours)
    assert found.reasons["first_request_ahead_s"] == "no node was ever requested in the hpa world"


def test_the_learned_lead_is_handed_through_or_missed_aloud(workload, world, compared):
    runs = {"leadtime": world(workload(), name="leadtime")}
    assert compared(learned=3240.0, **runs).learned_lead_p90_s == 3240.0
    assert "learned_lead_p90_s" in compared(**runs).reasons
