"""Demand columns: what is refused, how gaps go on, how minutes are made."""

import math

import numpy as np
import pytest

from leadtime.simulate.demand_trace import DemandTrace, arrivals_rps, at_step, minute_means

NAN = math.nan


@pytest.mark.parametrize(
    ("rps", "step_s"),
    [([], 15), ([1.0, -1.0], 15), ([1.0, math.inf], 15), ([1.0], 0), ([[1.0], [2.0]], 15)],
)
def test_impossible_columns_are_refused(rps: list[float], step_s: int) -> None:
    with pytest.raises(ValueError, match="building a DemandTrace"):
        DemandTrace(start_s=0, step_s=step_s, rps=np.asarray(rps, dtype=np.float64))


def test_a_column_of_gaps_only_is_allowed_and_brings_nobody() -> None:
    trace = DemandTrace(start_s=0, rps=np.asarray([NAN, NAN]))
    assert trace.end_s == 30
    assert list(arrivals_rps(trace.rps)) == [0.0, 0.0]


def test_arrivals_go_on_at_the_last_known_rate_and_begin_with_the_first_known_one() -> None:
    assert list(arrivals_rps(np.asarray([NAN, 3.0, NAN, NAN, 5.0]))) == [3.0, 3.0, 3.0, 3.0, 5.0]


def test_coarse_buckets_are_held_constant() -> None:
    trace = DemandTrace(start_s=0, step_s=60, rps=np.asarray([1.0, NAN]))
    np.testing.assert_array_equal(at_step(trace, 30), [1.0, 1.0, NAN, NAN])
    with pytest.raises(ValueError, match="its step is 60 s"):
        at_step(trace, 25)


def test_minutes_begin_at_whole_minutes_and_a_gap_spoils_its_minute_only() -> None:
    rps = np.asarray([9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, NAN, 5.0, 5.0, 6.0])
    assert minute_means(rps, 90, 15) == (120, [2.5, None])
    with pytest.raises(ValueError, match="multiples"):
        minute_means(rps, 90, 25)
