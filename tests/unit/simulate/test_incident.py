"""What is drawn for a day of the incident, and the demand it becomes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.simulate import incident
from leadtime.simulate.incident import DAY_S, ONSET_S, PEAK_RATIO, SCORED_DAY_S, DaySurge, Form, IncidentDay

FORMS = list(Form)
RECURRING = Form.RECURRING
SEEDS = st.integers(0, 10_000)


def demand_of(day: IncidentDay, seed: int = 0) -> np.ndarray:
    """Rates as shares of N·c; one row a day, fifteen-second steps."""
    trace = incident.incident_demand(day, seed=seed, min_replicas=480, capacity_per_pod_rps=5.0)
    assert (trace.start_s, trace.step_s, trace.end_s) == (SCORED_DAY_S - 7 * DAY_S, 15, SCORED_DAY_S + DAY_S)
    return trace.rps.reshape(8, -1) / 2400.0


def minute(row: np.ndarray, hour: int, minutes: float) -> float:
    """Mean of the minute around an instant."""
    at = int((hour * 3600 + minutes * 60) // 15)
    return float(row[at - 2 : at + 2].mean())


@pytest.mark.parametrize("form", FORMS)
@given(seed=SEEDS)
@settings(max_examples=20)
def test_pinned_the_scored_day_is_the_calibrated_one_whatever_the_seed(form: Form, seed: int) -> None:
    day = incident.draw_day(form, seed=seed, vary=False)
    rise = 60 if form is Form.SUDDEN else 1200
    assert day.scored == DaySurge(onset_s=6 * 3600, peak_ratio=1.30, rise_s=rise)
    assert day.variation == "pinned"


@pytest.mark.parametrize(
    ("form", "at_minute", "share"),
    [
        (RECURRING, -60, 0.60), (RECURRING, 0, 0.60), (RECURRING, 10, 0.95), (RECURRING, 20, 1.30),
        (RECURRING, 39, 1.30), (RECURRING, 42.5, 0.95), (RECURRING, 46, 0.60), (RECURRING, 600, 0.60),
        (Form.RAMP, 5, 0.775), (Form.SUDDEN, 0.5, 0.95), (Form.SUDDEN, 2, 1.30),
    ],
)  # fmt: skip
def test_pinned_demand_follows_the_calibration(form: Form, at_minute: float, share: float) -> None:
    """0.60 of N·c, from 06:00 within 20 min (60 s) to 1.30, held to 06:40, gone by 06:45. Noise is 1 %."""
    row = demand_of(incident.draw_day(form, seed=3, vary=False), seed=3)[7]
    assert minute(row, 6, at_minute) == pytest.approx(share, abs=0.05)


def test_noise_is_one_percent_and_lasts() -> None:
    quiet = IncidentDay(history=(None,) * 7, scored=None, variation="skipped")
    noise = demand_of(quiet, seed=5).ravel() / 0.60 - 1.0
    assert noise.std() == pytest.approx(0.01, abs=0.001)
    assert np.corrcoef(noise[:-1], noise[1:])[0, 1] == pytest.approx(0.97, abs=0.01)


@given(seed=SEEDS)
@settings(max_examples=100)
def test_the_pinned_days_before_lie_within_ten_minutes_and_ten_percent(seed: int) -> None:
    day = incident.draw_day(RECURRING, seed=seed, vary=False)
    assert len(day.history) == 7
    for surge in day.history:
        assert surge is not None
        assert abs(surge.onset_s - ONSET_S) <= 600
        assert 0.9 <= surge.peak_ratio / PEAK_RATIO <= 1.1


@pytest.mark.parametrize("form", [Form.RAMP, Form.SUDDEN])
@pytest.mark.parametrize("vary", [False, True])
def test_what_happens_for_the_first_time_has_no_days_before(form: Form, vary: bool) -> None:
    day = incident.draw_day(form, seed=1, vary=vary)
    assert day.history == (None,) * 7
    assert day.scored is not None


@given(seed=SEEDS, form=st.sampled_from(FORMS))
@settings(max_examples=200)
def test_varied_onset_and_height_stay_within_a_quarter_of_an_hour_and_a_fifth(seed: int, form: Form) -> None:
    day = incident.draw_day(form, seed=seed, vary=True)
    decoys = 0
    for surge in (*day.history, day.scored):
        if surge is None:
            continue
        assert 0.8 <= surge.peak_ratio / PEAK_RATIO <= 1.2
        if abs(surge.onset_s - ONSET_S) > 900:
            decoys += 1
            assert 10 * 3600 <= surge.onset_s < 20 * 3600
    assert decoys == (1 if day.variation == "decoy" else 0)
    assert (day.scored is None) is (day.variation == "skipped")


def test_a_skipped_day_is_one_in_ten_and_a_decoy_one_in_five() -> None:
    kinds = Counter(incident.draw_day(RECURRING, seed=seed, vary=True).variation for seed in range(3000))
    assert set(kinds) == {"ordinary", "skipped", "decoy"}
    # Three standard deviations of a binomial of 3,000: 1.6 and 2.2 points.
    assert kinds["skipped"] / 3000 == pytest.approx(0.10, abs=0.017)
    assert kinds["decoy"] / 3000 == pytest.approx(0.20, abs=0.022)


def test_heights_and_onsets_fill_their_range() -> None:
    drawn = [incident.draw_day(RECURRING, seed=seed, vary=True).scored for seed in range(400)]
    onsets = [surge.onset_s - ONSET_S for surge in drawn if surge is not None]
    heights = [surge.peak_ratio / PEAK_RATIO for surge in drawn if surge is not None]
    assert min(onsets) < -800
    assert max(onsets) > 800
    assert min(heights) < 0.82
    assert max(heights) > 1.18


def test_a_skipped_day_has_no_surge_at_all() -> None:
    seed = next(s for s in range(100) if incident.draw_day(RECURRING, seed=s, vary=True).variation == "skipped")
    rows = demand_of(incident.draw_day(RECURRING, seed=seed, vary=True), seed=seed)
    assert rows[7].max() < 0.65
    assert all(row.max() > 1.0 for row in rows[:7])


@given(seed=SEEDS)
@settings(max_examples=10)
def test_equal_seeds_draw_equal_days_and_equal_demand(seed: int) -> None:
    one, two = (incident.draw_day(RECURRING, seed=seed, vary=True) for _ in range(2))
    assert one == two
    assert one != incident.draw_day(RECURRING, seed=seed + 1, vary=True)
    np.testing.assert_array_equal(demand_of(one, seed), demand_of(two, seed))
