"""How long one tick takes for 1, 100 and 1,000 workloads, beside a named rival in the same run.

Rival: one sync of the HPA arithmetic (mechanics.hpa) per workload and 15 s, which is what Kubernetes itself computes
in the same minute. Prints a table; asserts nothing. Run: ``python benchmarks/bench_tick.py [workloads …]``.
"""

import statistics
import sys
import time
from datetime import timedelta

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


def one_size(workloads: int) -> None:
    """Warm up ``workloads`` workloads on three days of minutes, then time ticks through the morning's ramp."""
    built = cluster().pool("gpu", nodes=65 * workloads, max_nodes=250 * workloads)
    load = Load(base=1440.0, days=HISTORY_DAYS, surge_at=360, ramp_min=20, peak=3120.0, ends_at=400)
    series = load.series("chat")
    for i in range(workloads):
        built = built.workload(f"serving/chat-{i:04d}", queue=f"team-{i % 20:02d}", ready=480, minimum=480)
    snapshot = built.snapshot(DEFAULT_AT)
    source = FakeSource(snapshot, {ref(f"serving/chat-{i:04d}"): series for i in range(workloads)})
    ports = Ports(source=source, actuator=RecordingActuator())
    now = FIRST_DAY + timedelta(days=HISTORY_DAYS, hours=4)
    began = time.perf_counter()
    state = learn(now, source, Policy(), LoopState())
    warm_s = time.perf_counter() - began
    spent: list[float] = []
    for _ in range(TICKS.get(workloads, 3)):
        now += timedelta(seconds=60)
        began = time.perf_counter()
        state = tick(now, ports, Policy(), state, now).state
        spent.append((time.perf_counter() - began) * 1000)
    began = time.perf_counter()
    shadow = HpaShadow(replicas=480)
    for i in range(200):
        shadow = follow(shadow, snapshot.workloads[0], 1440.0 + i, end_s=60.0 * i, span_s=60.0, syncs=4)
    rival_ms = (time.perf_counter() - began) * 1000 / 200
    median = statistics.median(spent)
    print(
        f"{workloads:>5} workloads: tick {median:9.2f} ms median, {max(spent):9.2f} ms worst, "
        f"{median / workloads:6.3f} ms a workload; the HPA's four syncs {rival_ms:6.3f} ms a workload "
        f"({median / workloads / rival_ms:4.1f} x); warm-up {warm_s / workloads:6.2f} s a workload"
    )


if __name__ == "__main__":
    for size in [int(text) for text in sys.argv[1:]] or [1, 100]:
        one_size(size)
