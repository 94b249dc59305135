"""The detector beside the model: noise, gaps, small demand, ends; and how far a rise is carried on."""

import numpy as np
import pytest

from leadtime.domain.refs import WorkloadRef
from leadtime.forecast import surge as surges
from leadtime.forecast.surge import Reference, SurgeState
from leadtime.policy.schema import SurgePolicy

REF = WorkloadRef(namespace="serving", name="chat")
POLICY = SurgePolicy(settle_minutes=0)


def watched(values: list[float | None], *, upper: float = 103.0, least: float = 0.0) -> list[SurgeState]:
    """States after each minute; a flat forecast of 100 is issued every ten minutes."""
    state, states = SurgeState(), []
    for minute, value in enumerate(values):
        if minute % 10 == 0:
            path = Reference(at_min=minute, expected=(100.0,) * 40, upper=(upper,) * 40)
            state = surges.refer(state, path)
        state = surges.watch(state, minute, value, least, POLICY)
        states.append(state)
    return states


def noise(minutes: int, deviation: float, seed: int = 1) -> list[float | None]:
    return (100.0 * (1.0 + deviation * np.random.default_rng(seed).standard_normal(minutes))).tolist()


def alarms(values: list[float | None], **more: float) -> list[int]:
    return [i for i, s in enumerate(watched(values, **more)) if s.running is not None]


@pytest.mark.parametrize("deviation", [0.01, 0.05, 0.2])
def test_noise_alone_raises_no_alarm(deviation: float) -> None:
    assert not alarms(noise(3000, deviation), upper=100.0 * (1 + 1.65 * deviation))


def test_one_spike_is_a_scrape_artefact() -> None:
    values = noise(300, 0.01)
    values[200] = 400.0
    assert not alarms(values)


def test_two_minutes_in_a_row_are_a_surge_with_its_beginning() -> None:
    values = noise(300, 0.01)
    values[200:] = [150.0] * 100
    states = watched(values)
    assert states[200].running is None
    running = states[201].running
    assert running is not None
    assert (running.began_s, running.detected_s) == (200 * 60, 202 * 60)


def test_a_surge_ends_after_ten_quiet_minutes() -> None:
    values = noise(300, 0.01)
    values[200:220] = [150.0] * 20
    found = alarms(values)
    assert found[0] == 201
    assert found[-1] == 219 + POLICY.clear_ticks - 1


@pytest.mark.parametrize("gap", [1, 5, 30, 120])
def test_the_return_from_a_gap_is_no_surge(gap: int) -> None:
    values = noise(400, 0.01)
    values[200 : 200 + gap] = [None] * gap
    values[200 + gap] = 250.0  # what piled up while nobody looked comes in one bucket
    assert not alarms(values)


def test_a_surge_that_began_in_a_gap_is_still_found() -> None:
    values = noise(400, 0.01)
    values[200:230] = [None] * 30
    values[230:] = [150.0] * 170
    assert alarms(values)[0] == 232


def test_what_the_upper_bound_expected_is_no_surge() -> None:
    values = noise(300, 0.01)
    values[200:] = [150.0] * 100
    assert not alarms(values, upper=149.0)


def test_small_demand_is_never_a_surge() -> None:
    values = noise(300, 0.01)
    values[200:] = [150.0] * 100
    assert not alarms(values, least=151.0)


def test_nothing_is_known_before_the_first_forecast() -> None:
    state = SurgeState()
    for minute in range(20):
        state = surges.watch(state, minute, 100.0 if minute < 10 else 900.0, 0.0, POLICY)
        assert surges.current(state, REF, POLICY, 600.0) is None


def ramp(per_min: float) -> list[float | None]:
    values: list[float | None] = noise(200, 0.002)
    return values + [100.0 + per_min * (i + 0.5) for i in range(20)]


def test_a_rise_is_carried_on_one_pod_lead() -> None:
    state = watched(ramp(5.0))[-1]
    surge = surges.current(state, REF, POLICY, 600.0)
    assert surge is not None
    assert surge.rise_per_min == pytest.approx(5.0)
    assert surge.extrapolated == pytest.approx(surge.actual + 50.0)


def test_a_rise_is_carried_on_a_quarter_of_an_hour_at_most() -> None:
    state = watched(ramp(5.0))[-1]
    surge = surges.current(state, REF, POLICY, 3600.0)
    assert surge is not None
    assert surge.extrapolated == pytest.approx(surge.actual + 75.0)


def test_a_carried_on_rise_at_most_doubles_demand() -> None:
    surge = surges.current(watched(ramp(80.0))[208], REF, POLICY, 900.0)
    assert surge is not None
    assert surge.extrapolated == pytest.approx(2.0 * surge.actual)


@pytest.mark.parametrize(
    ("newest", "rise"),
    [
        ((100.0, 100.0, 100.0, 100.0, 200.0, 200.0), 0.0),  # a jump that is over
        ((100.0, 110.0, 120.0, 130.0, 140.0, 150.0), 10.0),  # a ramp
        ((150.0, 140.0, 130.0, 120.0, 110.0, 100.0), 0.0),  # a fall
        ((100.0, 110.0), 0.0),  # too little
    ],
)
def test_the_rise_by_hand(newest: tuple[float, ...], rise: float) -> None:
    assert surges.rise_per_min(newest) == pytest.approx(rise)


@pytest.mark.parametrize(("quiet", "seen"), [(250, False), (350, True)])
def test_nothing_is_a_surge_before_the_noise_of_the_series_is_known(quiet: int, seen: bool) -> None:
    state = SurgeState()
    for minute, value in enumerate([100.0] * quiet + [150.0] * 5):
        if minute % 10 == 0:
            state = surges.refer(state, Reference(at_min=minute, expected=(100.0,) * 40, upper=(103.0,) * 40))
        state = surges.watch(state, minute, value, 0.0, SurgePolicy())
    assert (state.running is not None) is seen
