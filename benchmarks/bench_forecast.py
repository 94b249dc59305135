"""How long the forecast takes: a week's warm-up, and one workload's part of a tick (observe, predict, surge).

Run: python benchmarks/bench_forecast.py. Seconds are of CPU, so that
neighbours on the machine do not count. The aims: 7 days in at most 0.5 s, a tick in at most 0.8 ms.
"""

import time
from collections.abc import Callable
from statistics import median

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Series, Unit
from leadtime.domain.time_window import from_epoch
from leadtime.forecast import assess
from leadtime.forecast.assess import ForecastState
from leadtime.policy.schema import Policy
from leadtime.testing.forecast_battery import START_S, demand

REF = WorkloadRef(namespace="bench", name="chat")
POLICY = Policy()
HORIZON_S = 3600
POD_LEAD_S = 660.0
DAY_MIN = 1440


def part(values: list[float | None], first: int, last: int) -> Series:
    start = from_epoch(START_S + 60 * first)
    return Series(name="rps", start=start, step_s=60, values=values[first:last], unit=Unit.REQUESTS_PER_S)


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def tick(state: ForecastState, values: list[float | None], minute: int) -> ForecastState:
    state = assess.observe(state, part(values, minute - 60, minute), POLICY)
    assess.predict(state, REF, from_epoch(START_S + 60 * minute), HORIZON_S, Unit.REQUESTS_PER_S, POLICY)
    assess.surge(state, REF, POLICY, POD_LEAD_S)
    return state


def main() -> None:
    for days in (7, 28):
        values = demand((days + 1) * DAY_MIN)
        history = part(values, 0, days * DAY_MIN)
        warm = min(seconds(lambda h=history: assess.warm_up(assess.start(), h, POLICY)) for _ in range(3))
        state = assess.warm_up(assess.start(), history, POLICY)
        took = []
        for minute in range(days * DAY_MIN + 1, (days + 1) * DAY_MIN):
            begun = time.process_time()
            state = tick(state, values, minute)
            took.append(time.process_time() - begun)
        mean_ms, middle_ms = 1e3 * sum(took) / len(took), 1e3 * median(took)
        print(f"{days:>3} days: warm-up {warm:.2f} s; a tick {mean_ms:.2f} ms (median {middle_ms:.2f})")


if __name__ == "__main__":
    main()
