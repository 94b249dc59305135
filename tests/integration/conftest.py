"""The incident played once for all tests of the demo: by the command, as a user has it, and as worlds in here."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_in_chromium import CHROMIUM_ARGS

from leadtime.cli.simulated_policy import simulated_policy
from leadtime.domain.time_window import rfc3339
from leadtime.ledger.reader import LedgerReader
from leadtime.policy.schema import Policy
from leadtime.scorecard.run import WorldRun
from leadtime.simulate import worlds
from leadtime.simulate.cluster import Demand
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.demo import demo
from leadtime.simulate.incident import Form
from leadtime.simulate.worlds import Prepared

COMMAND = "import sys; from leadtime.cli import entry; sys.exit(entry.run(sys.argv[1:]))"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def leadtime_command() -> Command:
    """``leadtime`` with these arguments, in a process of its own, under the given seed of Python's hashes."""

    def run(*arguments: str, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory, leadtime_command: Command) -> Path:
    """What ``leadtime demo --headless --out DIR`` writes: all three forms, pinned, seed 0."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    done = leadtime_command("demo", "--headless", "--out", str(folder), hash_seed=1)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def demo_reports(demo_folder: Path) -> dict[str, dict[str, Any]]:
    """report.json of each form."""
    return {form: json.loads((demo_folder / form / "report.json").read_text()) for form in Form}


@pytest.fixture(scope="session")
def ticks_of() -> Callable[[Path], list[dict[str, Any]]]:
    """All ticks of a ledger, as plain dicts."""

    def read(ledger: Path) -> list[dict[str, Any]]:
        with LedgerReader(ledger) as reader:
            return list(reader.ticks())

    return read


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The policy of the demo: defaults, the whole ladder open."""
    return simulated_policy(None)


@pytest.fixture(scope="session")
def prepared(policy: Policy) -> Prepared:
    """The pinned recurring incident at 00:00 of its scored day. Fork its cluster, never advance it."""
    replay = demo(Form.RECURRING, seed=0, vary=False, policy=policy).replay
    return worlds.prepare(replay, lambda _what, _share: None)


@pytest.fixture(scope="session")
def scored_trace(prepared: Prepared) -> DemandTrace:
    """The demand of the pinned recurring incident, all eight days."""
    (trace,) = prepared.replay.demand.values()
    return trace


@pytest.fixture(scope="session")
def under_demand() -> Callable[[Prepared, DemandTrace], Prepared]:
    """The same prepared state, but from its instant on other demand comes. What lies before must be the same."""

    def build(prepared: Prepared, trace: DemandTrace) -> Prepared:
        ((key, before),) = prepared.replay.demand.items()
        seen = (prepared.cluster.now_s - before.start_s) // before.step_s
        assert np.array_equal(trace.rps[:seen], before.rps[:seen], equal_nan=True)
        cluster = prepared.cluster.fork()
        demand = Demand(trace, cluster.scenario.step_s)
        cluster.demand = {key: demand}
        cluster.works[key].metric_rps, cluster.works[key].arrivals_rps = demand.metric_rps, demand.arrivals_rps
        return replace(prepared, cluster=cluster, replay=replace(prepared.replay, demand={key: trace}))

    return build


@pytest.fixture(scope="session")
def assert_same_world() -> Callable[[WorldRun, WorldRun], None]:
    """Every column of every workload and pool, and every event, but not the world's name."""

    def check(one: WorldRun, other: WorldRun) -> None:
        for ours, theirs in ((one.workloads, other.workloads), (one.pools, other.pools)):
            assert ours.keys() == theirs.keys()
            for key, mine in ours.items():
                for name in type(mine).__dataclass_fields__:
                    _assert_same_column(f"{key}.{name}", getattr(mine, name), getattr(theirs[key], name))
        assert one.events == other.events

    return check


def _assert_same_column(name: str, one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        differs = np.flatnonzero(~((one == other) | ((one != one) & (other != other))))  # noqa: PLR0124 -- NaN
        assert one.shape == other.shape, name
        assert not len(differs), f"{name} differs first at step {differs[0]}: {one[differs[0]]} and {other[differs[0]]}"
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), name
        for key, column in one.items():
            _assert_same_column(f"{name}.{key}", column, other[key])
    else:
        assert one == other, name


@pytest.fixture(scope="session")
def recurring_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight days in five-minute buckets: 200 requests/s, from noon on up to 500 within 20 min, held for 40 min."""
    path = tmp_path_factory.mktemp("series") / "peaks.csv"
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    lines = ["at,rps"]
    for i in range(8 * 288):
        after_noon_min = 5 * (i % 288) - 720
        level = np.interp(after_noon_min, [0, 20, 60, 70], [200.0, 500.0, 500.0, 200.0])
        rps = level * (1 + 0.01 * math.sin(i))
        lines.append(f"{rfc3339(begin + timedelta(minutes=5 * i))},{rps:.3f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def replay_again(
    recurring_csv: Path, tmp_path_factory: pytest.TempPathFactory, leadtime_command: Command
) -> Callable[..., Path]:
    """``leadtime replay`` of the synthetic series, a week of warm-up and a day scored, 100 pods at the peak."""

    def run(*more: str) -> Path:
        folder = tmp_path_factory.mktemp("replay") / "out"
        done = leadtime_command(
            "replay", "--demand", str(recurring_csv), "--time-column", "at", "--value-column", "rps",
            "--capacity-per-pod", "5", "--scenario", "gpu-40min", "--out", str(folder), *more,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return folder

    return run


@pytest.fixture(scope="session")
def replay_folder(replay_again: Callable[..., Path]) -> Path:
    """What the replay of the synthetic series wrote, seed 0."""
    return replay_again()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """Chromium without a window, one for each file of tests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        yield opened
        opened.close()
