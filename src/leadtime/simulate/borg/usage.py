"""Windows of a cohort, and of its alloc instances → the canonical instance_usage frame.

The signal is in the CPU ratio only: usage = ratio x the request that holds at the window's end. Every other column is
a function of the same ratio, or noise without signal.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from leadtime.domain.borg import DEDICATED_MACHINE, NO_MACHINE, TRACE_START_US, WINDOW_US
from leadtime.simulate.borg.cohort import Cohort
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.simulate.borg.lives import SECOND_US
from leadtime.simulate.borg.machines import Machines
from leadtime.simulate.borg.plan import Bools, Floats, Ints, Plan, generator

Floats32 = npt.NDArray[np.float32]

ZERO_REQUEST_USES = 0.01  # what a task without a request takes as one hundred per cent
CPU_LOW = np.array([0.6, 0.7, 0.8, 0.88, 0.95, 1, 1, 1, 1, 1, 1], np.float32)  # of the average, at 0, 10, … 100 %
CPU_HIGH = np.array([0, 0, 0, 0, 0, 0.05, 0.15, 0.28, 0.42, 0.6, 1], np.float32)  # of maximum - average
TAIL_HIGH = np.array([0.62, 0.65, 0.68, 0.71, 0.75, 0.79, 0.83, 0.88, 0.94], np.float32)  # 91 … 99 %
CPI_BY_PLATFORM = np.array([1.1, 1.3, 0.9, 1.6, 1.2, 1.8, 1.0], np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a usage row is made from. ``machine`` is a row of the machines; requests are those at the window's end."""

    start_us: Ints
    end_us: Ints
    collection_id: Ints
    instance: Ints
    machine: Ints
    alloc_id: Ints
    alloc_instance: Ints
    kind: Ints
    cpu: Floats
    memory: Floats
    ratio: Floats


def usage_frame(knobs: Knobs, plan: Plan, machines: Machines, cohort: Cohort) -> pl.DataFrame:
    """Rows of the cohort's tasks and alloc instances by the time their window begins; by task under T7."""
    rng = generator(knobs, 11, cohort.number)
    parts = (_task_rows(plan, cohort), _alloc_rows(knobs, plan, machines, cohort, rng))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__slots__}
    if Trap.T7 not in knobs.traps:
        order = np.argsort(columns["start_us"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    return _frame(knobs, machines, rng, Rows(**columns))


def _task_rows(plan: Plan, cohort: Cohort) -> Rows:
    w, runs = cohort.windows, cohort.lived.runs
    of = cohort.collection(w.slot)
    factor = np.where(runs["update_us"][w.run] <= w.end_us, runs.update_factor[w.run], 1.0)
    zero = cohort.zero_request[w.slot]
    instance, alloc = cohort.slots.instance[w.slot], plan.alloc[of]
    inside, row = alloc >= 0, np.maximum(alloc, 0)
    return Rows(
        start_us=w.start_us, end_us=w.end_us, collection_id=plan.id[of], instance=instance,
        machine=runs["machine"][w.run], alloc_id=np.where(inside, plan.id[row], 0),
        alloc_instance=np.where(inside, instance % plan.tasks[row], -1), kind=np.zeros(len(of), np.int64),
        cpu=np.where(zero, ZERO_REQUEST_USES, plan.request[of, 0] * factor),
        memory=np.where(zero, ZERO_REQUEST_USES, plan.request[of, 1] * factor), ratio=0.5 + 0.1 * w.x,
    )  # fmt: skip


def alloc_instances(plan: Plan, cohort: Cohort) -> tuple[Ints, Ints]:
    """(row of the plan, instance_index) of the alloc instances of a cohort."""
    rows = cohort.first + np.flatnonzero(plan.alloc_set[cohort.first : cohort.last])
    of = np.repeat(rows, plan.tasks[rows])
    counts = plan.tasks[rows]
    return of, np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)


def alloc_machine(machines: Machines, plan: Plan, of: Ints, instance: Ints) -> Ints:
    """Row of a machine that is never away."""
    return np.asarray(machines.steady[(plan.id[of] + instance) % len(machines.steady)])


def _alloc_rows(knobs: Knobs, plan: Plan, machines: Machines, cohort: Cohort, rng: np.random.Generator) -> Rows:
    """Alloc instances live from their set's start to its end, on the global grid."""
    of, instance = alloc_instances(plan, cohort)
    first = (np.maximum(plan.start_us[of], TRACE_START_US) - TRACE_START_US) // WINDOW_US
    until = np.minimum(plan.end_us[of], knobs.observed_until_us)
    counts = (until - TRACE_START_US - 1) // WINDOW_US + 1 - first
    row = np.repeat(np.arange(len(of)), counts)
    step = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + first[row]
    start = np.maximum(TRACE_START_US + step * WINDOW_US, plan.start_us[of[row]])
    end = np.minimum(TRACE_START_US + (step + 1) * WINDOW_US, until[row])
    keep = end - start >= SECOND_US
    row, start, end = row[keep], start[keep], end[keep]
    of, instance = of[row], instance[row]
    n = len(of)
    return Rows(
        start_us=start, end_us=end, collection_id=plan.id[of], instance=instance,
        machine=alloc_machine(machines, plan, of, instance), alloc_id=np.zeros(n, np.int64),
        alloc_instance=np.full(n, -1), kind=np.ones(n, np.int64), cpu=plan.request[of, 0] * 4,
        memory=plan.request[of, 1] * 4, ratio=0.5 + 0.1 * rng.standard_normal(n),
    )  # fmt: skip


def _frame(knobs: Knobs, machines: Machines, rng: np.random.Generator, rows: Rows) -> pl.DataFrame:
    """The canonical columns from the few that matter."""
    n = len(rows.start_us)
    average = (rows.ratio * rows.cpu).astype(np.float32)
    noise = rng.standard_normal((4, n), dtype=np.float32)
    most = average * (1.1 + 0.2 * np.abs(noise[0]))
    used = rows.memory.astype(np.float32) * (0.6 + 0.1 * np.tanh(noise[1]))
    u = rng.random((4, n), dtype=np.float32)
    silent = ~machines.counters[rows.machine]
    cycles = CPI_BY_PLATFORM[machines.platform[rows.machine]] * (1.0 + 0.1 * np.tanh(noise[2]))
    vectors = u[1] >= knobs.no_vectors
    spread = most - average
    ids = _machine_ids(knobs, machines, rows.machine, u[0])
    return pl.DataFrame(
        {
            "start_time_us": rows.start_us,
            "end_time_us": rows.end_us,
            "collection_id": rows.collection_id,
            "instance_index": rows.instance.astype(np.int32),
            "machine_id": _missing(ids, ids == NO_MACHINE),
            "alloc_collection_id": rows.alloc_id,
            "alloc_instance_index": rows.alloc_instance.astype(np.int32),
            "collection_type": rows.kind.astype(np.int8),
            "avg_cpu": average,
            "avg_memory": used,
            "max_cpu": most,
            "max_memory": _missing(used * (1.02 + 0.1 * u[2]), u[2] < knobs.no_max_memory),
            "sample_cpu": average * (1.0 + 0.05 * noise[3]),
            "assigned_memory": rows.memory.astype(np.float32),
            "page_cache_memory": used * (0.02 + 0.05 * u[3]),
            "cycles_per_instruction": _missing(cycles, silent),
            "memory_accesses_per_instruction": _missing(cycles * (0.005 + 0.002 * u[3]), silent),
            "sample_rate": 1.0 - 0.015 * u[3] * u[2],
            "cpu_usage_distribution": _vectors(average[:, None] * CPU_LOW + spread[:, None] * CPU_HIGH, vectors),
            "tail_cpu_usage_distribution": _vectors(average[:, None] + spread[:, None] * TAIL_HIGH, vectors),
        }
    )


def _machine_ids(knobs: Knobs, machines: Machines, machine: Ints, u: Floats32) -> Ints:
    """Ids of machines; some are not told (0) and some are dedicated (-1)."""
    ids = np.where(u < knobs.no_machine_usage, NO_MACHINE, machines.id[machine])
    return np.where(
        (u >= knobs.no_machine_usage) & (u < knobs.no_machine_usage + knobs.dedicated_usage), DEDICATED_MACHINE, ids
    )


def _missing(values: npt.NDArray[np.generic], absent: Bools) -> pl.Series:
    """A column with nulls where ``absent``."""
    series = pl.Series(values)
    return series.set(pl.Series(absent), None)


def _vectors(values: Floats32, present: Bools) -> pl.Series:
    """[n, width] → lists; null where not ``present``."""
    lists = pl.Series(values).arr.to_list()
    frame = pl.DataFrame({"values": lists, "present": present})
    return frame.select(pl.when("present").then("values").otherwise(None)).to_series()
