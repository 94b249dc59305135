"""The four instants people ask for first."""

from leadtime.scorecard.timeline import timeline

KEY = "serving/chat"
START_S = 1_772_409_600


def test_the_instants_are_the_first_events_of_their_kind(workload, world, event):
    events = (
        event(5, "pod_bound"),  # before the threshold: no help for it
        event(60, "threshold_crossed"), event(75, "pod_bound"), event(90, "pod_bound"), event(120, "threshold_crossed"),
        event(500, "node_ready", workload=None), event(510, "node_ready", workload=None),
    )  # fmt: skip
    found = timeline(world(workload(), events=events), KEY)
    assert found.threshold_crossed_at_s == START_S + 60
    assert found.first_pod_placed_at_s == START_S + 75
    assert found.first_new_node_ready_at_s == START_S + 500


def test_a_raise_before_the_threshold_is_what_pods_follow(workload, world, event):
    events = (event(30, "buffer_set"), event(45, "pod_bound"), event(60, "threshold_crossed"), event(75, "pod_bound"))
    assert timeline(world(workload(), events=events), KEY).first_pod_placed_at_s == START_S + 45


def test_pending_is_read_15_min_after_the_surge_began(workload, world):
    # 80 steps. The surge begins 60 s in; 960 s in, steps 0 … 63 have ended: step 63 counts
    pending = list(range(80))
    run = world(workload(steps=80, pending=pending))
    assert timeline(run, KEY, surge_start_s=START_S + 60).pending_at_15min == 63


def test_a_run_that_ends_earlier_has_no_such_number(workload, world):
    found = timeline(world(workload(steps=40)), KEY, surge_start_s=START_S)
    assert found.pending_at_15min is None
    assert found.reasons["pending_at_15min"] == "the run ends earlier than 15 min after the surge began"


def test_what_never_happened_is_null_with_a_reason(workload, world):
    found = timeline(world(workload()), KEY)
    assert found.reasons == {
        "threshold_crossed_at": "the HPA never asked for more replicas than stood",
        "first_pod_placed_at": "nothing asked for more pods",
        "first_new_node_ready_at": "no new node became ready",
        "pending_at_15min": "this run has no single surge start",
    }


def test_warm_up_is_passed_over(workload, world, event):
    events = (event(10, "threshold_crossed"), event(300, "threshold_crossed"))
    found = timeline(world(workload(), events=events), KEY, scored_from_s=START_S + 60)
    assert found.threshold_crossed_at_s == START_S + 300


def test_events_of_another_workload_or_pool_are_not_ours(workload, world, event):
    events = (
        event(10, "threshold_crossed", workload="serving/embed"),
        event(20, "node_ready", workload=None, pool="cpu"),
    )
    found = timeline(world(workload(), events=events), KEY)
    assert (found.threshold_crossed_at_s, found.first_new_node_ready_at_s) == (None, None)
