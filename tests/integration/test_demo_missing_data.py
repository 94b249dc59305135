"""Holes in the demand series inside the surge: held for half an hour at most, then lapsed; never lowered, never scored.

The users go on while the metric is gone; the HPA, which reads the same metric, must not scale down either.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from leadtime.domain.decision import Action, ReleaseFloor, SetBuffer, SetFloor
from leadtime.domain.reasons import Reason
from leadtime.domain.series import Missing
from leadtime.domain.snapshot import WorkloadState
from leadtime.domain.tick import Tick
from leadtime.scorecard.measures import score
from leadtime.scorecard.run import WorldRun
from leadtime.simulate import worlds
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.worlds import Prepared
from leadtime.testing.fakes import ListSink

pytestmark = pytest.mark.slow

KEY = "serving/chat"
DAY_S = 1_772_409_600
BEGIN_S = DAY_S + 6 * 3600 + 600  # half-way up the rise
END_S = DAY_S + 11 * 3600
HOLD_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """leadtime's and the HPA's world with no demand value in [BEGIN_S, BEGIN_S + length_s)."""

    length_s: int
    ticks: list[Tick]
    ours: WorldRun
    hpa: WorldRun

    @property
    def end_s(self) -> int:
        """First instant with a value again."""
        return BEGIN_S + self.length_s

    def within(self, from_s: int, until_s: int) -> list[Tick]:
        """Ticks in [from_s, until_s)."""
        return [tick for tick in self.ticks if from_s <= tick.as_of.timestamp() < until_s]


def with_hole(trace: DemandTrace, length_s: int) -> DemandTrace:
    rps = trace.rps.copy()
    first = (BEGIN_S - trace.start_s) // trace.step_s
    rps[first : first + length_s // trace.step_s] = np.nan
    return replace(trace, rps=rps)


@pytest.fixture(
    scope="module",
    params=[pytest.param(600, id="10 min"), pytest.param(2700, id="45 min"), pytest.param(3 * 3600, id="3 h")],
)
def hole(
    request: pytest.FixtureRequest,
    prepared: Prepared,
    scored_trace: DemandTrace,
    under_demand: Callable[[Prepared, DemandTrace], Prepared],
) -> Hole:
    holed = under_demand(prepared, with_hole(scored_trace, request.param))
    holed = replace(holed, replay=replace(holed.replay, end_s=END_S))
    sink = ListSink()
    ours = worlds.run_leadtime(holed, sink, lambda _what, _share: None).run
    return Hole(length_s=request.param, ticks=sink.ticks, ours=ours, hpa=worlds.run_hpa(holed))


def lowers(action: Action | None, state: WorkloadState) -> bool:
    """True when ``action`` asks for less than what stands."""
    floor = state.owner_min_replicas if state.floor is None else state.floor.replicas
    room = 0 if state.buffer is None else state.buffer.pods
    match action:
        case SetFloor(replicas=replicas):
            return replicas < floor
        case ReleaseFloor():
            return state.floor is not None
        case SetBuffer(pods=pods):
            return pods < room
    return False


def standing_floor(tick: Tick) -> int:
    """Our floor; 0 when none stands."""
    (state,) = tick.snapshot.workloads
    return 0 if state.floor is None else state.floor.replicas


def test_a_floor_stands_when_the_data_goes_missing(hole: Hole) -> None:
    assert standing_floor(hole.within(BEGIN_S, BEGIN_S + 60)[0]) > 480


def test_no_decision_asks_for_less_while_the_newest_minutes_are_missing(hole: Hole) -> None:
    blind = [tick for tick in hole.within(BEGIN_S + 75, hole.end_s) if isinstance(tick.assessments[0].demand, Missing)]
    assert len(blind) >= hole.length_s // 60 - 5
    lowered = [
        (tick.as_of, decision.action)
        for tick in hole.within(BEGIN_S + 75, hole.end_s)
        for decision in tick.decisions
        if lowers(decision.action, tick.snapshot.workloads[0])
    ]
    assert not lowered


def test_the_floor_is_held_for_half_an_hour_at_most_and_for_all_of_it(hole: Hole) -> None:
    held = hole.within(BEGIN_S, min(hole.end_s, BEGIN_S + HOLD_S))
    floors = [standing_floor(tick) for tick in held]
    assert all(after >= before for before, after in pairwise(floors))
    expiries = [tick.snapshot.workloads[0].floor for tick in hole.within(BEGIN_S + 120, hole.end_s)]
    ends = [floor.expires_at.timestamp() for floor in expiries if floor is not None]
    # The last known minute ended when the hole began: the hold runs from there.
    assert max(ends) <= BEGIN_S + HOLD_S + 60


def test_what_ran_out_is_recorded_as_lapsed_and_not_as_lowered(hole: Hole) -> None:
    lapsed = [
        tick.as_of.timestamp()
        for tick in hole.ticks
        if any(decision.why.reason is Reason.LAPSED for decision in tick.decisions)
    ]
    if hole.length_s <= HOLD_S:
        assert not lapsed
        return
    assert len(lapsed) == 1
    assert BEGIN_S + HOLD_S - 60 <= lapsed[0] <= BEGIN_S + HOLD_S + 120
    assert all(standing_floor(tick) == 0 for tick in hole.within(int(lapsed[0]), hole.end_s))


@pytest.mark.parametrize("world", ["ours", "hpa"])
def test_without_its_metric_no_hpa_scales_down(hole: Hole, world: str) -> None:
    columns = getattr(hole, world).workloads[KEY]
    first = (BEGIN_S - columns.start_s) // columns.step_s + 1  # the sync at the hole's begin still sees a value
    dark = columns.wanted[first : first + hole.length_s // columns.step_s]
    assert (np.diff(dark) >= 0).all()
    assert dark[0] > 480


@pytest.mark.parametrize("world", ["ours", "hpa"])
def test_steps_without_a_value_are_not_scored(hole: Hole, world: str) -> None:
    run: WorldRun = getattr(hole, world)
    scored, columns = score(run, KEY), run.workloads[KEY]
    known = ~np.isnan(columns.demand_rps)
    assert scored.unscored_minutes == hole.length_s / 60
    assert scored.scored_hours == pytest.approx(11 - hole.length_s / 3600)
    assert scored.arrived_requests == pytest.approx(float(columns.arrived[known].sum()))
    assert scored.unserved_requests == pytest.approx(float(columns.unserved[known].sum()))
    assert columns.arrived[~known].min() > 0  # the users went on all the while


def test_when_the_data_is_back_leadtime_goes_on(hole: Hole) -> None:
    after = hole.within(hole.end_s + 180, hole.end_s + 240)
    assert not isinstance(after[0].assessments[0].demand, Missing)
    assert standing_floor(hole.ticks[-1]) == 0  # hours after the surge everything is given back


def test_leadtime_is_not_worse_than_the_hpa_that_lost_the_same_metric(hole: Hole) -> None:
    assert score(hole.ours, KEY).unserved_requests <= score(hole.hpa, KEY).unserved_requests
