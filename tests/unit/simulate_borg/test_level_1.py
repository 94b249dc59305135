"""Level 1 alone against a table measured with another program: 150 windows, every run from the start, no restarts."""

from dataclasses import dataclass

import numpy as np
import pytest

from leadtime.domain.borg import EventType
from leadtime.simulate.borg.chain import Chain
from leadtime.simulate.borg.cohort import Slots
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.lives import Lived, Lives
from leadtime.simulate.borg.machines import machines
from leadtime.simulate.borg.optimum import future
from leadtime.simulate.borg.shapes import shapes
from leadtime.simulate.borg.tally import Measured, Tally

WINDOWS = 150
TASKS = 12_000


def lived(degrades: float, fails: float, mu: float) -> tuple[Knobs, Chain, Lived]:
    """One task a collection, started together, followed over a day."""
    knobs = Knobs(
        mu=mu, days=1, bad_collections=0.0, removals_a_day=0.0, killed_a_day=0.0, resubmitted=0.0, lost=0.0,
        resubmitted_evicted=0.0, ends_after_trace=0.0,
    )  # fmt: skip
    chain = Chain(degrades=(degrades, degrades), fails_healthy=2e-4, fails=fails, heals=0.02, ends=0.012)
    zero = np.zeros(TASKS, np.int64)
    slots = Slots(
        collection=np.arange(TASKS), instance=zero, phase_us=zero, tier=zero, bad=np.zeros(TASKS, np.bool_),
        start_us=zero + 600_000_001, stop_us=zero + 2**62, loops=zero,
    )  # fmt: skip
    rng = np.random.default_rng(11)
    return knobs, chain, Lives(knobs, (chain, chain), slots, machines(knobs, shapes("c", None)), rng).lived()


def measured(degrades: float, fails: float, mu: float) -> dict[int, Measured]:
    knobs, chain, life = lived(degrades, fails, mu)
    rows = np.flatnonzero(life.step <= WINDOWS)
    score = future((chain, chain), knobs).scores(
        half=np.zeros(len(rows), np.intp), parent=np.zeros(len(rows), np.intp), belief=life.belief[:, rows],
        bad=np.zeros(len(rows)), parent_gone_us=np.full(len(rows), -1.0),
    )  # fmt: skip
    end = life.runs["end_us"][life.run[rows]]
    failed = life.runs["end_type"][life.run[rows]] == int(EventType.FAIL)
    at = 600_000_000 + 300_000_000 * life.step[rows]
    found = {}
    for place, minutes in ((1, 15), (4, 60)):
        tally = Tally()
        y = failed & (end <= at + minutes * 60_000_000)
        tally.add(score[:, place], y, life.slot[rows] % 200, life.x[rows])
        found[minutes] = tally.measured(np.random.default_rng(1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A row of the table: settings, then base rate and average precisions."""

    degrades: float
    fails: float
    mu: float
    base_15: float
    ap_15: float
    memoryless_15: float
    ap_60: float


TABLE = (
    Known(degrades=0.0015, fails=0.15, mu=1.0, base_15=0.0043, ap_15=0.075, memoryless_15=0.012, ap_60=0.099),
    Known(degrades=0.0015, fails=0.15, mu=2.0, base_15=0.0043, ap_15=0.193, memoryless_15=0.066, ap_60=0.231),
    Known(degrades=0.004, fails=0.25, mu=1.5, base_15=0.0110, ap_15=0.193, memoryless_15=0.068, ap_60=0.174),
    Known(degrades=0.004, fails=0.25, mu=3.0, base_15=0.0110, ap_15=0.366, memoryless_15=0.294, ap_60=0.286),
)


@pytest.mark.slow
@pytest.mark.parametrize("known", TABLE, ids=lambda known: f"q{known.degrades}-mu{known.mu}")
def test_the_best_score_reaches_what_was_measured_elsewhere(known: Known) -> None:
    found = measured(known.degrades, known.fails, known.mu)
    quarter, hour = found[15], found[60]
    assert quarter.base_rate == pytest.approx(known.base_15, rel=0.08)
    assert abs(quarter.average_precision - known.ap_15) < 4 * quarter.average_precision_se + 0.001
    assert abs(quarter.memoryless_average_precision - known.memoryless_15) < 4 * quarter.average_precision_se + 0.001
    assert abs(hour.average_precision - known.ap_60) < 4 * hour.average_precision_se + 0.001
    assert quarter.mean_score == pytest.approx(quarter.base_rate, rel=0.06)


def test_without_signal_the_best_score_is_no_better_than_the_base_rate() -> None:
    quarter = measured(0.004, 0.25, 0.0)[15]
    assert quarter.average_precision < 1.15 * quarter.base_rate


def test_two_windows_of_a_run_never_overlap_and_a_run_has_no_window_after_its_end() -> None:
    _, _, life = lived(0.004, 0.25, 1.0)
    at = 600_000_000 + 300_000_000 * life.step
    assert (at < life.runs["end_us"][life.run]).all()
    keys = life.slot * 1000 + life.step
    assert len(np.unique(keys)) == len(keys)
