"""Worlds of one replay: forked from one state, in step, differing only by what is decided in them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leadtime.cli.simulated_policy import simulated_policy
from leadtime.simulate import worlds
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.scenario import Scenario
from leadtime.simulate.worlds import Played, Prepared, Replay
from leadtime.testing.fakes import ListSink

MIDNIGHT_S = 1_772_409_600
HOUR_S = 3600
KEY = "serving/chat"

Build = Callable[..., Scenario]


def quiet(_what: str, _share: float) -> None:
    """Nobody watches."""


def wave(hours: int, *, start_s: int = MIDNIGHT_S) -> DemandTrace:
    """Every six hours a rise from 21 to 140 requests/s for an hour, in steps of 15 s."""
    at_s = start_s + np.arange(hours * 240) * 15
    return DemandTrace(start_s=start_s, rps=np.where(at_s // HOUR_S % 6 == 3, 140.0, 21.0))


def replay_of(scenario: Scenario, trace: DemandTrace, *, warm_up_s: int, **more: Any) -> Replay:
    return Replay(
        scenario=scenario, demand={work.key: trace for work in scenario.workloads}, seed=1,
        policy=simulated_policy(None), scored_from_s=trace.start_s + warm_up_s, end_s=trace.end_s, **more,
    )  # fmt: skip


def columns(played: Played, world: str, name: str) -> np.ndarray:
    return np.asarray(getattr(played.runs[world].workloads[KEY], name))


@pytest.fixture
def scenario(small_scenario: Build) -> Scenario:
    return small_scenario()


@pytest.fixture
def prepared(scenario: Scenario) -> Prepared:
    return worlds.prepare(replay_of(scenario, wave(32), warm_up_s=26 * HOUR_S), quiet)


def test_all_worlds_are_there_in_the_order_they_are_shown_and_in_step(scenario: Scenario) -> None:
    sink = ListSink()
    _, played = worlds.play(replay_of(scenario, wave(32), warm_up_s=26 * HOUR_S), sink, quiet)
    assert list(played.runs) == ["hpa", "hpa_equal_cost", "cron", "cron_ahead", "leadtime", "oracle"]
    for world, run in played.runs.items():
        mine = run.workloads[KEY]
        assert run.world == world
        assert (mine.start_s, mine.step_s, len(mine.ready)) == (MIDNIGHT_S + 26 * HOUR_S, 15, 6 * 240)
        np.testing.assert_array_equal(mine.demand_rps, played.runs["hpa"].workloads[KEY].demand_rps)
        np.testing.assert_array_equal(mine.arrived, played.runs["hpa"].workloads[KEY].arrived)
    assert len(sink.ticks) == 6 * 60
    assert played.final_state.ticks == len(sink.ticks)


def test_worlds_share_the_start_and_leave_it_as_it_was(prepared: Prepared) -> None:
    def fresh() -> list[list[int]]:
        return [run.workloads[KEY].ready.tolist() for run in (worlds.run_hpa(prepared), worlds.run_hpa(prepared))]

    before = fresh()
    worlds.run_leadtime(prepared, ListSink(), quiet)
    worlds.run_cron(prepared, worlds.run_hpa(prepared), 10.0)
    assert before[0] == before[1]
    assert fresh() == before
    assert prepared.cluster.now_s == prepared.replay.scored_from_s


def test_ticks_come_when_the_newest_minute_is_visible(prepared: Prepared) -> None:
    sink = ListSink()
    worlds.run_leadtime(prepared, sink, quiet, until_s=prepared.replay.scored_from_s + 300)
    assert [int(tick.as_of.timestamp()) - prepared.replay.scored_from_s for tick in sink.ticks] == [
        15, 75, 135, 195, 255,
    ]  # fmt: skip
    assert worlds.first_tick_s(prepared.replay) == prepared.replay.scored_from_s + 15


def test_a_run_that_ends_early_is_the_beginning_of_the_whole_one(prepared: Prepared) -> None:
    whole, part = ListSink(), ListSink()
    until_s = prepared.replay.scored_from_s + 2 * HOUR_S
    everything = worlds.run_leadtime(prepared, whole, quiet).run.workloads[KEY]
    beginning = worlds.run_leadtime(prepared, part, quiet, until_s=until_s).run.workloads[KEY]
    assert part.ticks == whole.ticks[:120]
    np.testing.assert_array_equal(beginning.ready, everything.ready[:480])


def test_killed_from_the_start_leadtimes_world_is_the_hpas(prepared: Prepared) -> None:
    killed = replace(prepared, replay=replace(prepared.replay, kill_at_s=prepared.replay.scored_from_s))
    ours = worlds.run_leadtime(killed, ListSink(), quiet).run
    hpa = worlds.run_hpa(prepared)
    for name in ("wanted", "ready", "pending", "pod_seconds", "unserved", "floor"):
        np.testing.assert_array_equal(getattr(ours.workloads[KEY], name), getattr(hpa.workloads[KEY], name))
    np.testing.assert_array_equal(ours.pools["gpu"].node_seconds, hpa.pools["gpu"].node_seconds)
    assert ours.events == hpa.events


def test_a_lower_target_costs_more_and_no_lower_target_is_the_hpas_own_world(prepared: Prepared) -> None:
    hpa = worlds.run_hpa(prepared)
    assert worlds.pod_hours(worlds.run_hpa(prepared, "hpa_equal_cost", 0.40)) > worlds.pod_hours(hpa)
    same = worlds.run_equal_cost(prepared, hpa, worlds.pod_hours(hpa))
    assert same.run == replace(hpa, world="hpa_equal_cost")
    assert same.within_tolerance


def test_the_equal_cost_world_costs_the_same_within_one_percent(prepared: Prepared) -> None:
    hpa = worlds.run_hpa(prepared)
    aim = 1.2 * worlds.pod_hours(hpa)
    found = worlds.run_equal_cost(prepared, hpa, aim)
    assert found.within_tolerance is (abs(worlds.pod_hours(found.run) / aim - 1) <= 0.01)
    assert found.cost_ratio == pytest.approx(worlds.pod_hours(found.run) / aim)
    assert found.setting < 0.70


def test_the_clocks_floors_change_on_the_clock_wherever_the_scored_span_begins(scenario: Scenario) -> None:
    trace = wave(34, start_s=MIDNIGHT_S + 420)
    replay = replay_of(scenario, trace, warm_up_s=26 * HOUR_S)
    made = worlds.prepare(replay, quiet)
    hpa = worlds.run_hpa(made)
    found = worlds.run_cron(made, hpa, 1.5 * worlds.pod_hours(hpa))
    assert found is not None
    floor = found.run.workloads[KEY].floor
    moved_s = replay.scored_from_s + 15 * (np.flatnonzero(np.diff(floor)) + 1)
    assert len(moved_s)
    assert set(moved_s % 900) <= {0}


def test_without_a_day_before_there_is_no_clock(scenario: Scenario) -> None:
    made = worlds.prepare(replay_of(scenario, wave(8), warm_up_s=2 * HOUR_S), quiet)
    assert worlds.run_cron(made, worlds.run_hpa(made), 10.0) is None


def test_warm_pods_stand_in_every_world_from_the_scored_start_on(scenario: Scenario) -> None:
    replay = replay_of(scenario, wave(32), warm_up_s=26 * HOUR_S, warm_pods=6)
    _, played = worlds.play(replay, ListSink(), quiet)
    for world in played.runs:
        assert columns(played, world, "ready")[0] >= 10, world
        assert columns(played, world, "ready").min() >= 10, world


def test_several_workloads_have_no_oracle_and_the_report_is_told_why(small_scenario: Build) -> None:
    body = small_scenario().model_dump()
    body["workloads"] = [body["workloads"][0], body["workloads"][0] | {"name": "other"}]
    scenario = Scenario.model_validate(body)
    _, played = worlds.play(replay_of(scenario, wave(4), warm_up_s=2 * HOUR_S), ListSink(), quiet)
    assert "oracle" not in played.runs
    assert played.oracle_pod_hours_at_full_utilisation is None
    assert "one workload" in played.absent["oracle"]
    assert "no whole day before" in played.absent["cron"]
    assert set(played.runs["leadtime"].workloads) == {"serving/chat", "serving/other"}


def test_pod_hours_are_those_of_the_scored_steps(prepared: Prepared) -> None:
    hpa = worlds.run_hpa(prepared)
    mine = hpa.workloads[KEY]
    holed = mine.demand_rps.copy()
    holed[100:140] = np.nan
    without = replace(hpa, workloads={KEY: replace(mine, demand_rps=holed)})
    dropped = float(mine.pod_seconds[100:140].sum()) / 3600
    assert worlds.pod_hours(hpa) - worlds.pod_hours(without) == pytest.approx(dropped)
