"""One tick of many workloads: every cheap model's state update and path, beside AutoETS on the last 60 minutes.

    python benchmarks/bench_demand_models.py [--workloads 1000] [--days 28] [--rounds 3] [--json]

The job: each workload's newest minute arrives; every memory takes it, every model gives a path of 100 minutes. All
models of the backtest's field that need no trees or networks are asked, fitted or not (constants cost nothing), on a
history of four weeks. The rival (statsforecast's AutoETS, model ZZZ) is fitted on the last 60 minutes of the same
workloads and asked for the same 100 minutes: that is its tick. Seconds are of CPU on one core, the best round; memory
is what the process grew by while the states of all workloads were built, each with arrays of its own.

Wanted (issue 5): a tick of 1,000 workloads in 2 s on two cores, 400 MB at most.
"""

import argparse
import json
import os
import pickle
import resource
import time
import warnings
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

from leadtime.forecast.arima import Arima
from leadtime.forecast.days import DayRules
from leadtime.forecast.entrants import entrants
from leadtime.forecast.holt_winters import HoltWinters
from leadtime.forecast.model import Band, DemandModel
from leadtime.forecast.seasonal_naive import SeasonalNaive
from leadtime.forecast.theta import Theta
from leadtime.forecast.usual_change import UsualChange
from leadtime.policy.schema import ForecastPolicy
from leadtime.testing.forecast_battery import START_S, demand

DAY_MIN = 1440
STEPS = 100
PROTOTYPES = 4

States = dict[str, Any]


def field() -> tuple[DemandModel, ...]:
    """Every cheap model, simplest first."""
    return (
        *entrants(ForecastPolicy()), SeasonalNaive(), Theta(), Arima(ar=(0.6, -0.2), ma=(-0.8,)), HoltWinters(),
        UsualChange(rules=DayRules()),
    )  # fmt: skip


def keepers(models: Sequence[DemandModel]) -> tuple[DemandModel, ...]:
    """One model a memory."""
    first: dict[str, DemandModel] = {}
    for model in models:
        first.setdefault(model.memory, model)
    return tuple(first.values())


def built(models: Sequence[DemandModel], workloads: int, days: int) -> list[States]:
    """States of ``workloads`` after ``days``: a few are fed, the others are copies with memory of their own."""
    fed = []
    for seed in range(min(PROTOTYPES, workloads)):
        states: States = {}
        values = demand(days * DAY_MIN, seed=seed)
        for model in keepers(models):
            state = model.start()
            for i, value in enumerate(values):
                state = model.update(state, START_S + 60 * i, value)
            states[model.memory] = state
        fed.append(pickle.dumps(states))
    return [pickle.loads(fed[i % len(fed)]) for i in range(workloads)]


def tick(models: Sequence[DemandModel], states: list[States], at_s: int) -> dict[str, float]:
    """CPU seconds by model, and of all updates; the new states stay in ``states``."""
    took = {"updates": 0.0, **{model.name: 0.0 for model in models}}
    keeping = keepers(models)
    begun = time.process_time()
    for i, held in enumerate(states):
        states[i] = {m.memory: m.update(held[m.memory], at_s, 100.0 + i % 7) for m in keeping}
    took["updates"] = time.process_time() - begun
    for model in models:  # model by model, so that each has its own time
        begun = time.process_time()
        for held in states:
            if not isinstance(model.predict(held[model.memory], STEPS), Band):
                raise SystemExit(f"{model.name} refused a history of days")
        took[model.name] = time.process_time() - begun
    return took


def auto_ets(states: list[States]) -> float:
    """CPU seconds of the rival for all workloads; NaN without the extra."""
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        return float("nan")
    windows = []
    for held in states:
        values = np.array([np.nan if v is None else v for v in held["recent"].minutes])
        at, known = np.arange(len(values)), ~np.isnan(values)
        windows.append(np.interp(at, at[known], values[known]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        AutoETS(season_length=1, model="ZZZ").forecast(y=windows[0], h=STEPS)  # the first one loads
        begun = time.process_time()
        for window in windows:
            AutoETS(season_length=1, model="ZZZ").forecast(y=window, h=STEPS)
        return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=1000)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    models = field()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    states = built(models, asked.workloads, asked.days)
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    first = asked.days * DAY_MIN
    rounds = [tick(models, states, START_S + 60 * (first + i)) for i in range(asked.rounds)]
    best = min(rounds, key=lambda took: sum(took.values()))
    ours, rival = sum(best.values()), auto_ets(states)
    found = {
        "workloads": asked.workloads, "models": len(models), "steps": STEPS, "tick_cpu_s": round(ours, 3),
        "states_mb": round(grown_mb, 1), "auto_ets_60_cpu_s": round(rival, 3),
        "auto_ets_over_tick": round(rival / ours, 2),
        "by_part_cpu_s": {name: round(s, 4) for name, s in best.items()},
    }  # fmt: skip
    if asked.json:
        print(json.dumps(found))
        return
    for name, s in best.items():
        print(f"{name:>16}: {1e6 * s / asked.workloads:8.1f} µs a workload")
    print(f"a tick of {asked.workloads:,} workloads, {len(models)} models: {ours:.2f} s CPU on one core")
    print(f"AutoETS on 60 points for the same workloads: {rival:.2f} s CPU; that is {rival / ours:.1f} times the tick")
    print(f"memory of all states: {grown_mb:.0f} MB ({1024 * grown_mb / asked.workloads:.0f} kB a workload)")


if __name__ == "__main__":
    main()
