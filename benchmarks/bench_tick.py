"""How much CPU time one tick takes for 1, 100 and 1,000 workloads, beside a named rival in the same run.

Rival: one sync of the HPA arithmetic (mechanics.hpa) per workload and 15 s, which is what Kubernetes itself computes
in the same minute. One workload learns from three days of minutes and the others begin with a copy of what it learned,
because states are values. Prints a table; asserts nothing. Run: ``python benchmarks/bench_tick.py [workloads …]``.
"""

import statistics
import sys
import time
from dataclasses import replace
from datetime import timedelta

from leadtime.domain.snapshot import WorkloadState
from leadtime.domain.tick import LoopState
from leadtime.loop.hpa_shadow import follow
from leadtime.loop.memory import HpaShadow
from leadtime.loop.tick import Ports, tick
from leadtime.loop.warm import learn
from leadtime.policy import Policy
from leadtime.testing.builders import DEFAULT_AT, cluster, ref
from leadtime.testing.fakes import FakeSource, RecordingActuator
from leadtime.testing.scenario_runner import FIRST_DAY, Load

HISTORY_DAYS = 3
TICKS = {1: 240, 100: 12, 1000: 3}


def learned_by_all(keys: list[str], learned: LoopState) -> LoopState:
    """``learned``, with what its one workload learned under every key."""
    (one,) = learned.forecast
    return replace(
        learned,
        forecast=dict.fromkeys(keys, learned.forecast[one]),
        scaling={**learned.scaling, **dict.fromkeys(keys, learned.scaling[one])},
    )


def one_size(workloads: int) -> None:
    """CPU time of ticks of ``workloads`` workloads through the hour before and into the morning's ramp."""
    keys = [f"serving/chat-{i:04d}" for i in range(workloads)]
    series = Load(base=1440.0, days=HISTORY_DAYS, surge_at=360, ramp_min=20, peak=3120.0, ends_at=400).series("chat")
    first = cluster().pool("gpu", nodes=65).workload(keys[0], ready=480, minimum=480).snapshot(DEFAULT_AT)
    now = FIRST_DAY + timedelta(days=HISTORY_DAYS, hours=5)
    began = time.process_time()
    learned = learn(now, FakeSource(first, {ref(keys[0]): series}), Policy(), LoopState())
    warm_s = time.process_time() - began
    built = cluster().pool("gpu", nodes=65 * workloads, max_nodes=250 * workloads)
    for i, key in enumerate(keys):
        built = built.workload(key, queue=f"team-{i % 20:02d}", ready=480, minimum=480)
    source = FakeSource(built.snapshot(DEFAULT_AT), {ref(key): series for key in keys})
    ports, state = Ports(source=source, actuator=RecordingActuator()), learned_by_all(keys, learned)
    spent: list[float] = []
    for _ in range(TICKS.get(workloads, 3)):
        now += timedelta(seconds=60)
        began = time.process_time()
        state = tick(now, ports, Policy(), state, now).state
        spent.append((time.process_time() - began) * 1000)
    median, rival_ms = statistics.median(spent), hpa_ms(first.workloads[0])
    print(
        f"{workloads:>5} workloads: tick {median:9.2f} ms median, {max(spent):9.2f} ms worst, "
        f"{median / workloads:6.3f} ms a workload; the HPA's four syncs {rival_ms:6.3f} ms a workload "
        f"({median / workloads / rival_ms:4.1f} x); warm-up on three days {warm_s:5.2f} s a workload"
    )


def hpa_ms(workload: WorkloadState) -> float:
    """The rival: milliseconds for four HPA syncs of one workload."""
    shadow = HpaShadow(replicas=480)
    began = time.process_time()
    for i in range(500):
        shadow = follow(shadow, workload, 1440.0 + i, end_s=60.0 * i, span_s=60.0, syncs=4)
    return (time.process_time() - began) * 1000 / 500


if __name__ == "__main__":
    for size in [int(text) for text in sys.argv[1:]] or [1, 100, 1000]:
        one_size(size)
