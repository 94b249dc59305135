"""The shadow log → a record in which the HPA and every plan are pods that find a place, so that they can be compared.

Wanted pods are not served pods: each needs a place on a node (loop/places.py), and nodes come one lead after they were
asked for. The HPA and the steady headrooms order places only by wanting pods; a path plan orders them by
its buffer. Without this, a headroom would look as quick as a plan that orders nodes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from leadtime.domain.lead_time import LeadTime
from leadtime.domain.snapshot import WorkloadState
from leadtime.forecast.worth import ShadowRecord
from leadtime.loop.memory import ShadowLog
from leadtime.loop.places import Placed, PoolShape, placed
from leadtime.policy.schema import Policy
from leadtime.propose.plan import HEADROOM_PLANS, HEADROOM_RATIOS, PATH_PLANS, ROOM_PLAN, headrooms

DAY_S = 86_400
ONE_POD = PoolShape()

Column = npt.NDArray[np.float64]
Place = Callable[[Column, Column], Placed]  # pods wanted, pods nodes are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """The record for forecast.worth; the same with room kept and no floor, and its node-hours over the HPA's own.

    ``room`` and the ratio are None without a path.
    """

    record: ShadowRecord
    room: ShadowRecord | None
    room_node_hours_ratio: float | None


def comparable(
    log: ShadowLog, workload: WorkloadState, lead: LeadTime, policy: Policy,
    *, paths_may_act: bool, shape: PoolShape = ONE_POD,
) -> Comparable:  # fmt: skip
    """Placed pods of the HPA alone and of every plan, over the rows in which the path plans could have acted.

    If those are less than a day (or ``paths_may_act`` is False), only the steady headrooms are in the race.
    """
    step_s = policy.loop.tick_s
    rows = log.rows().astype(np.float64)
    since_known = _since_known(rows[:, 2])
    paths_may_act = paths_may_act and len(since_known) * step_s >= DAY_S
    if paths_may_act:
        rows = rows[-len(since_known) :]

    def place(wanted: Column, ordered: Column) -> Placed:
        return placed(
            wanted,
            ordered,
            node_steps=math.ceil(lead.node_p50_s / step_s),
            shape=shape,
            fixed_nodes=math.ceil(workload.owner_min_replicas / shape.pods_per_node),
        )

    hpa = rows[:, 1]
    alone = place(hpa, hpa)
    plans = _headrooms(hpa, workload, policy, place) | (_paths(rows, place) if paths_may_act else {})
    record = ShadowRecord(demand=rows[:, 0], hpa_wanted=alone.bound, plans=plans, step_s=step_s)
    if not paths_may_act:
        return Comparable(record=record, room=None, room_node_hours_ratio=None)
    # Room alone is no rival of the floors: it costs nodes, which the race does not price. It is what is left without.
    room = place(hpa, np.fmax(hpa, rows[:, 2 + len(PATH_PLANS)]))
    kept = replace(record, plans={ROOM_PLAN: room.bound})
    return Comparable(record=record, room=kept, room_node_hours_ratio=room.node_steps / max(1, alone.node_steps))


def _headrooms(hpa: Column, workload: WorkloadState, policy: Policy, place: Place) -> dict[str, Column]:
    """Placed pods under each steady headroom, held as a floor would be."""
    held = highest_of_last(hpa, policy.scaling.floor_hold_s // policy.loop.tick_s)
    found: dict[str, Column] = {}
    for name, ratio in zip(HEADROOM_PLANS, HEADROOM_RATIOS, strict=True):
        wanted = headrooms(held, workload.owner_min_replicas, workload.max_replicas, ratio)
        found[name] = place(np.maximum(hpa, wanted), wanted).bound
    return found


def _paths(rows: Column, place: Place) -> dict[str, Column]:
    """Placed pods under each path plan: its floors, on the nodes its room ordered."""
    found: dict[str, Column] = {}
    for i, name in enumerate(PATH_PLANS):
        wanted = np.fmax(rows[:, 1], rows[:, 2 + i])
        found[name] = place(wanted, np.fmax(wanted, rows[:, 2 + len(PATH_PLANS) + i])).bound
    return found


def _since_known(floors: Column) -> Column:
    """``floors`` from the first known one on; empty when none is known."""
    known = ~np.isnan(floors)
    return floors[int(np.argmax(known)) :] if known.any() else floors[:0]


def highest_of_last(values: Column, steps: int) -> Column:
    """The highest of each value and the ``steps`` before it."""
    before = np.concatenate((np.full(steps, values[0] if values.size else 0.0), values))
    highest: Column = sliding_window_view(before, steps + 1).max(axis=1)
    return highest
