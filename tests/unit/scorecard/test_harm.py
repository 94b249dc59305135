"""Which decisions did harm, by hand. 480 steps of 15 s are two hours; an hour is 240 steps."""

import numpy as np
import pytest

from leadtime.scorecard.digest import DecisionDigest, TickDigest, WorkloadDigest
from leadtime.scorecard.harm import HarmKind, find_harm

T0 = 1_772_409_600
STEPS = 480


def decided(minute, *, action="SetFloor", scope="workload:serving/chat"):
    decision = DecisionDigest(
        scope=scope, reason="ForecastAboveReady", sentence="", action=action, asks="floor 9", pods=9, agent="scaling",
        lost=(),
    )  # fmt: skip
    state = WorkloadDigest(workload="serving/chat", pool="h100", queue="q", forecast=None, warned=False)
    return TickDigest(as_of_s=T0 + 60 * minute, workloads=(state,), decisions=(decision,))


def at(step, value):
    values = np.zeros(STEPS)
    values[step] = value
    return values


@pytest.fixture
def found(workload):
    """find_harm for decisions at the given minutes; 100 requests a step arrive, the HPA runs 10 pods."""

    def build(*ticks, ours=None, hpa=None):
        quiet = {"arrived": np.full(STEPS, 100.0), "pod_seconds": np.full(STEPS, 150.0)}
        return find_harm(ticks, workload(STEPS, **(quiet | (ours or {}))), workload(STEPS, **(quiet | (hpa or {}))))

    return build


def test_the_same_as_the_hpa_is_no_harm(found):
    assert found(decided(5)) == ()


def test_requests_lost_beyond_the_hpas_within_the_hour_are_harm(found):
    # 24,000 requests arrive in the hour; a thousandth is 24
    harm = found(decided(5), ours={"unserved": at(100, 25.0)})
    assert [one.kinds for one in harm] == [(HarmKind.UNSERVED,)]
    assert harm[0].extra_unserved_requests == 25.0
    assert found(decided(5), ours={"unserved": at(100, 24.0)}) == ()


def test_the_hour_is_half_open(found):
    # decided at minute 5 = step 20: the hour holds steps 20 … 259
    assert found(decided(5), ours={"unserved": at(259, 99.0)})
    assert found(decided(5), ours={"unserved": at(260, 99.0)}) == ()
    assert found(decided(5), ours={"unserved": at(19, 99.0)}) == ()


def test_what_the_hpa_would_have_lost_too_is_not_charged(found):
    assert found(decided(5), ours={"unserved": at(100, 99.0)}, hpa={"unserved": at(110, 99.0)}) == ()


def test_pods_pending_beyond_the_hpas_are_harm(found):
    # more than 5 pod-minutes = 300 pod-seconds
    assert found(decided(5), ours={"pending_pod_seconds": at(100, 301.0)})[0].kinds == (HarmKind.PENDING,)
    assert found(decided(5), ours={"pending_pod_seconds": at(100, 300.0)}) == ()


def test_pod_hours_that_bought_nothing_are_harm(found):
    # the HPA: 10 pod-hours an hour; more than 5 % = 0.5 above
    dear = {"pod_seconds": np.full(STEPS, 165.0)}  # 11 pods
    assert found(decided(5), ours=dear)[0].kinds == (HarmKind.PAID_FOR_NOTHING,)
    assert found(decided(5), ours=dear)[0].extra_pod_hours == pytest.approx(1.0)
    assert found(decided(5), ours={"pod_seconds": np.full(STEPS, 157.5)}) == ()


def test_pod_hours_that_saved_requests_are_the_price_and_no_harm(found):
    dear = {"pod_seconds": np.full(STEPS, 165.0)}
    assert found(decided(5), ours=dear, hpa={"unserved": at(100, 99.0)}) == ()
    # capacity stands before its demand: what it saves within two hours (steps 20 … 499) still pays
    assert found(decided(5), ours=dear, hpa={"unserved": at(479, 99.0)}) == ()
    assert found(decided(5), ours=dear, hpa={"unserved": at(19, 99.0)})[0].kinds == (HarmKind.PAID_FOR_NOTHING,)


def test_decisions_close_together_with_the_same_harm_are_one_episode(found):
    lost = {"unserved": at(100, 99.0)}
    together = found(decided(5), decided(6), decided(16), decided(27), ours=lost)
    # 11 minutes lie between the last two: another episode; all still hold step 100? minute 27 is step 108: no
    assert [(one.first_at_s - T0, one.last_at_s - T0, one.decisions) for one in together] == [(300, 960, 3)]


def test_deciding_nothing_and_other_scopes_are_not_charged(found):
    lost = {"unserved": at(100, 99.0)}
    assert found(decided(5, action=None), decided(5, scope="pool:h100"), ours=lost) == ()


def test_the_workloads_buffer_is_its_own_scope_and_its_own_episode(found):
    lost = {"unserved": at(100, 99.0)}
    buffer = "pool:h100/serving/chat"
    both = found(decided(5), decided(5, scope=buffer, action="SetBuffer"), decided(6), ours=lost)
    assert [(one.scope, one.decisions) for one in both] == [("workload:serving/chat", 2), (buffer, 1)]


def test_worlds_with_different_steps_are_refused(workload):
    with pytest.raises(ValueError, match="do not have the same steps"):
        find_harm([], workload(STEPS), workload(STEPS - 1))
