"""Nothing in leadtime's path reads what lies after as_of: another future, the same ticks until it begins."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from leadtime.domain.tick import Tick
from leadtime.ledger import wire
from leadtime.simulate import worlds
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.demo import demo
from leadtime.simulate.incident import Form
from leadtime.simulate.worlds import Prepared
from leadtime.testing.fakes import ListSink

pytestmark = pytest.mark.slow

DAY_S = 1_772_409_600
END_S = DAY_S + 8 * 3600

Under = Callable[[Prepared, DemandTrace], Prepared]


def other_future(trace: DemandTrace, from_s: int) -> DemandTrace:
    """The same until ``from_s``, then three times as much, upside down, with holes."""
    first = (from_s - trace.start_s) // trace.step_s
    later = trace.rps[first:]
    swapped = 3 * (later.max() + later.min() - later)
    swapped[np.arange(len(swapped)) % 97 == 96] = np.nan
    return replace(trace, rps=np.concatenate([trace.rps[:first], swapped]))


def ticks_until(prepared: Prepared, until_s: int) -> list[Tick]:
    """leadtime's ticks in [scored start, until_s]."""
    sink = ListSink()
    replay = replace(prepared.replay, end_s=until_s + prepared.replay.scenario.step_s)
    worlds.run_leadtime(replace(prepared, replay=replay), sink, lambda _what, _share: None)
    return sink.ticks


def encoded(ticks: Sequence[Tick], until_s: int) -> list[str]:
    """Those up to and including ``until_s``, as the ledger writes them."""
    return [wire.encode_tick(tick) for tick in ticks if tick.as_of.timestamp() <= until_s]


@pytest.fixture(scope="module")
def ticks(prepared: Prepared) -> list[Tick]:
    return ticks_until(prepared, END_S)


@pytest.mark.parametrize(
    "from_s",
    [
        pytest.param(DAY_S + 75, id="in the first minutes"),
        pytest.param(DAY_S + 4 * 3600, id="before the first act"),
        pytest.param(DAY_S + 5 * 3600 + 1755, id="while nodes are on their way, at a tick"),
        pytest.param(DAY_S + 6 * 3600 + 630, id="in the middle of the rise, between ticks"),
    ],
)
def test_with_another_future_every_tick_before_it_is_the_same(
    prepared: Prepared, under_demand: Under, scored_trace: DemandTrace, ticks: list[Tick], from_s: int
) -> None:
    others = ticks_until(under_demand(prepared, other_future(scored_trace, from_s)), from_s + 600)
    assert encoded(others, from_s) == encoded(ticks, from_s)
    assert encoded(others, from_s + 600) != encoded(ticks, from_s + 600), "nobody noticed that the future was another"


def test_what_was_learned_from_the_days_before_knows_nothing_of_the_scored_day(
    prepared: Prepared, scored_trace: DemandTrace, ticks: list[Tick]
) -> None:
    replay = demo(Form.RECURRING, seed=0, vary=False, policy=prepared.replay.policy).replay
    (key,) = replay.demand
    first_s = worlds.first_tick_s(replay)
    swapped = replace(replay, demand={key: other_future(scored_trace, first_s)})
    others = ticks_until(worlds.prepare(swapped, lambda _what, _share: None), first_s)
    assert encoded(others, first_s) == encoded(ticks, first_s)
    assert len(others) == 1
