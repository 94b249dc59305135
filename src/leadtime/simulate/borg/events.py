"""Runs of a cohort → canonical instance_events and collection_events, with their copies, gaps and latecomers."""

from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, DEDICATED_MACHINE, TABLES, TRACE_START_US, EventType
from leadtime.simulate.borg.cohort import Cohort
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.simulate.borg.machines import Machines
from leadtime.simulate.borg.plan import Bools, Floats, Ints, Plan, generator
from leadtime.simulate.borg.usage import alloc_instances, alloc_machine

MISSING_TYPES = (1, 2, 3, 4, 5)
SECOND_US = 1_000_000
PENDING = (EventType.SUBMIT, EventType.QUEUE, EventType.ENABLE)  # nothing is placed yet


def instance_events(knobs: Knobs, plan: Plan, machines: Machines, cohort: Cohort) -> pl.DataFrame:
    """Every event of the cohort's tasks and alloc instances, without copies, in no particular order."""
    rng = generator(knobs, 12, cohort.number)
    runs = cohort.lived.runs
    run = np.flatnonzero(runs["slot"] < len(cohort.slots.tier))
    start, submit = runs["start_us"][run], runs["submit_us"][run]
    enable = submit + ((start - submit) * rng.random(len(run))).astype(np.int64)
    queued = run[(rng.random(len(run)) < knobs.queued) & (start > 0)]
    updated = run[runs["update_us"][run] < np.minimum(runs["end_us"][run], knobs.observed_until_us)]
    ended = run[runs["end_type"][run] != 0]
    pieces = [
        (run, submit, EventType.SUBMIT),
        (queued, runs["submit_us"][queued], EventType.QUEUE),
        (run[start > 0], enable[start > 0], EventType.ENABLE),
        (run, start, EventType.SCHEDULE),
        (updated, runs["update_us"][updated], EventType.UPDATE_RUNNING),
        (ended, runs["end_us"][ended], runs["end_type"][ended]),
    ]
    row = np.concatenate([piece[0] for piece in pieces])
    time = np.concatenate([piece[1] for piece in pieces])
    kind = np.concatenate([np.broadcast_to(np.asarray(piece[2], np.int64), len(piece[0])) for piece in pieces])
    slot = runs["slot"][row]
    of = cohort.collection(slot)
    factor = np.where(runs["update_us"][row] <= time, runs.update_factor[row], 1.0)
    request = plan.request[of] * np.where(cohort.zero_request[slot], 0.0, factor)[:, None]
    alloc = plan.alloc[of]
    tasks = _instance_frame(
        knobs, plan, machines, rng, time=time, kind=kind, of=of, instance=cohort.slots.instance[slot],
        machine=runs["machine"][row], alloc=alloc,
        alloc_instance=np.where(alloc >= 0, cohort.slots.instance[slot] % plan.tasks[np.maximum(alloc, 0)], -1),
        request=request,
    )  # fmt: skip
    return pl.concat([tasks, _alloc_events(knobs, plan, machines, cohort, rng)])


def _alloc_events(
    knobs: Knobs, plan: Plan, machines: Machines, cohort: Cohort, rng: np.random.Generator
) -> pl.DataFrame:
    """SUBMIT and SCHEDULE of alloc instances, and KILL when their set ends."""
    of, instance = alloc_instances(plan, cohort)
    ended = plan.end_us[of] < AFTER_TRACE_US
    which = np.concatenate([np.arange(len(of)), np.arange(len(of)), np.flatnonzero(ended)])
    kind = np.repeat(
        [int(EventType.SUBMIT), int(EventType.SCHEDULE), int(EventType.KILL)], [len(of), len(of), ended.sum()]
    )
    of, instance = of[which], instance[which]
    none = np.full(len(of), -1)
    return _instance_frame(
        knobs, plan, machines, rng, time=np.where(kind == int(EventType.KILL), plan.end_us[of], plan.start_us[of]),
        kind=kind, of=of, instance=instance, machine=alloc_machine(machines, plan, of, instance), alloc=none,
        alloc_instance=none, request=plan.request[of] * 4,
    )  # fmt: skip


def _instance_frame(
    knobs: Knobs, plan: Plan, machines: Machines, rng: np.random.Generator, *, time: Ints, kind: Ints, of: Ints,
    instance: Ints, machine: Ints, alloc: Ints, alloc_instance: Ints, request: Floats,
) -> pl.DataFrame:  # fmt: skip
    n = len(time)
    placed = ~np.isin(kind, [int(one) for one in PENDING])
    machine_id = machines.id[machine]
    if Trap.T11 in knobs.traps:
        machine_id = np.where(rng.random(n) < knobs.dedicated_usage, DEDICATED_MACHINE, machine_id)
    known = rng.random(n) >= knobs.null_request
    columns = {
        "time_us": time,
        "type": kind.astype(np.int8),
        **_of_collection(plan, of, alloc),
        "missing_type": _missing_types(rng, knobs, n),
        "instance_index": instance.astype(np.int32),
        "machine_id": machine_id,
        "alloc_instance_index": alloc_instance.astype(np.int32),
        "request_cpu": request[:, 0].astype(np.float32),
        "request_memory": request[:, 1].astype(np.float32),
    }
    frame = pl.DataFrame(columns).with_columns(placed=placed, known=known)
    return frame.with_columns(
        pl.when("placed").then("machine_id").alias("machine_id"),
        pl.when("known").then("request_cpu").alias("request_cpu"),
        pl.when("known").then("request_memory").alias("request_memory"),
    ).drop("placed", "known")


def _of_collection(plan: Plan, of: Ints, alloc: Ints) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """What both kinds of event say of their collection ``of`` (plan rows) and its alloc set (−1: none)."""
    return {
        "collection_id": plan.id[of],
        "scheduling_class": plan.scheduling_class[of].astype(np.int8),
        "collection_type": plan.alloc_set[of].astype(np.int8),
        "priority": plan.priority[of].astype(np.int32),
        "alloc_collection_id": np.where(alloc >= 0, plan.id[np.maximum(alloc, 0)], 0),
    }


def _missing_types(rng: np.random.Generator, knobs: Knobs, n: int) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    made_up = rng.random(n) < knobs.missing_type
    return np.where(made_up, rng.choice(MISSING_TYPES, n), 0).astype(np.int8)


def collection_events(knobs: Knobs, plan: Plan, cohort: Cohort) -> pl.DataFrame:
    """SUBMIT, ENABLE, SCHEDULE of every collection, and its end: by its user, or after the last of its tasks."""
    rng = generator(knobs, 13, cohort.number)
    rows = np.arange(cohort.first, cohort.last)
    start = plan.start_us[rows]
    end, kind_of_end = _collection_ends(knobs, plan, cohort, rows)
    late_start, ended = rows[start > 0], rows[end > 0]
    submit = np.where(start == 0, 0, np.maximum(start - 3 * SECOND_US, TRACE_START_US))
    pieces = [
        (rows, submit, EventType.SUBMIT),
        (late_start, submit[start > 0], EventType.ENABLE),
        (rows, start, EventType.SCHEDULE),
        (ended, end[end > 0], kind_of_end[end > 0]),
    ]
    of = np.concatenate([piece[0] for piece in pieces])
    kind = np.concatenate([np.broadcast_to(np.asarray(piece[2], np.int64), len(piece[0])) for piece in pieces])
    n = len(of)
    alloc, parent = plan.alloc[of], plan.parent[of]
    frame = pl.DataFrame(
        {
            "time_us": np.concatenate([piece[1] for piece in pieces]),
            "type": kind.astype(np.int8),
            **_of_collection(plan, of, alloc),
            "missing_type": _missing_types(rng, knobs, n),
            "user": [f"user-{number:03d}" for number in plan.user[of]],
            "collection_name": [f"job-{number:x}" for number in plan.id[of]],
            "collection_logical_name": [f"logical-{number:04d}" for number in plan.logical[of]],
            "parent_collection_id": np.where(parent >= 0, plan.id[np.maximum(parent, 0)], 0),
            "max_per_machine": np.zeros(n, np.int32),
            "max_per_switch": np.zeros(n, np.int32),
            "vertical_scaling": plan.vertical_scaling[of].astype(np.int8),
            "scheduler": (plan.tier[of] == 1).astype(np.int8),
        }
    )
    return frame.select([column.name for column in TABLES["collection_events"]])


def _collection_ends(knobs: Knobs, plan: Plan, cohort: Cohort, rows: Ints) -> tuple[Ints, Ints]:
    """Time (0: none known) and kind of every collection's end."""
    runs = cohort.lived.runs
    mine = runs["slot"] < len(cohort.slots.tier)
    collection = cohort.slots.collection[runs["slot"][mine]]
    last = np.zeros(len(rows), np.int64)
    np.maximum.at(last, collection, np.maximum(runs["end_us"], runs["window_end_us"])[mine])
    done = (last > 0) & (last < knobs.observed_until_us - 30 * SECOND_US)
    end = np.where(done, last + SECOND_US, 0)
    kind = np.full(len(rows), int(EventType.FINISH))
    by_user = plan.end_us[rows] < AFTER_TRACE_US
    sooner = by_user & (~done | (plan.end_us[rows] <= end))
    end = np.where(sooner, plan.end_us[rows], end)
    kind = np.where(sooner, int(EventType.KILL), kind)
    return end, kind


def soiled(knobs: Knobs, frame: pl.DataFrame, stream: int, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(events of this shard, events of a later one): with exact copies, copies with another missing_type, shuffled."""
    rng = generator(knobs, stream, number)
    n = frame.height
    u = rng.random(n)
    exact = frame.filter(_mask(u < knobs.duplicated))
    otherwise = frame.filter(_mask((u >= knobs.duplicated) & (u < knobs.duplicated + knobs.duplicated_otherwise)))
    otherwise = otherwise.with_columns(((pl.col("missing_type") + 1) % 6).cast(pl.Int8).alias("missing_type"))
    whole = pl.concat([frame, exact, otherwise])
    whole = whole[rng.permutation(whole.height)]
    late = rng.random(whole.height) < knobs.late
    return whole.filter(_mask(~late)), whole.filter(_mask(late))


def _mask(values: Bools) -> pl.Series:
    return pl.Series(values)
