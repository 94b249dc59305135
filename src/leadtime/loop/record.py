"""The shadow log → a record in which the HPA and every plan are pods that find a place, so that they can be compared.

Wanted pods are not served pods: each needs a place on a node, which arrives one node lead after it was first wanted or
ordered, in whole nodes. The HPA and the steady headrooms order places only by wanting pods; a path plan orders them by
its buffer. Without this, a headroom would look as quick as a plan that orders nodes.
"""

import math

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from leadtime.domain.lead_time import LeadTime
from leadtime.domain.snapshot import WorkloadState
from leadtime.forecast.worth import ShadowRecord
from leadtime.loop.memory import ShadowLog
from leadtime.policy.schema import Policy
from leadtime.propose.plan import HEADROOM_PLANS, HEADROOM_RATIOS, PATH_PLANS, headrooms

# A node goes only when it is empty, and a falling load empties few: its pods are taken from all nodes alike. Measured
# on the simulator's HPA world: with 10 min the HPA alone looks three times worse than it is, with 4 h about right.
LINGER_S = 14_400
DAY_S = 86_400

Column = npt.NDArray[np.float64]


def comparable(
    log: ShadowLog,
    workload: WorkloadState,
    lead: LeadTime,
    policy: Policy,
    *,
    paths_may_act: bool,
    pods_per_node: int = 1,
) -> ShadowRecord:
    """Placed pods of the HPA alone and of every plan, over the rows in which the path plans could have acted.

    If those are less than a day (or ``paths_may_act`` is False), only the steady headrooms are in the race.
    """
    step_s = policy.loop.tick_s
    rows = log.rows().astype(np.float64)
    paths = len(PATH_PLANS)
    known = ~np.isnan(rows[:, 2])
    if known.any():
        first = int(np.argmax(known))
        paths_may_act = paths_may_act and (len(rows) - first) * step_s >= DAY_S
        rows = rows[first:] if paths_may_act else rows
    else:
        paths_may_act = False
    hpa = rows[:, 1]
    node_steps, linger = math.ceil(lead.node_p50_s / step_s), LINGER_S // step_s
    lowest = max(float(workload.owner_min_replicas), float(hpa.min()))

    def place(wanted: Column, ordered: Column) -> Column:
        whole = np.ceil(np.maximum(ordered, lowest) / pods_per_node) * pods_per_node
        return placed(wanted, whole, node_steps, linger)

    held = highest_of_last(hpa, policy.scaling.floor_hold_s // step_s)
    plans: dict[str, Column] = {}
    for name, ratio in zip(HEADROOM_PLANS, HEADROOM_RATIOS, strict=True):
        wanted = headrooms(held, workload.owner_min_replicas, workload.max_replicas, ratio)
        plans[name] = place(np.maximum(hpa, wanted), wanted)
    for i, name in enumerate(PATH_PLANS if paths_may_act else ()):
        wanted = np.fmax(hpa, rows[:, 2 + i])
        plans[name] = place(wanted, np.fmax(wanted, rows[:, 2 + paths + i]))
    return ShadowRecord(demand=rows[:, 0], hpa_wanted=place(hpa, hpa), plans=plans, step_s=step_s)


def placed(wanted: Column, ordered: Column, node_steps: int, linger_steps: int) -> Column:
    """Pods of ``wanted`` that have a place when places come ``node_steps`` after ``ordered`` asked for them.

    At step t there is a place for what was ordered, or needed within the linger, in every step of [t − node_steps, t].
    """
    needed = highest_of_last(ordered, linger_steps)
    before = np.concatenate((np.full(node_steps, needed[0] if needed.size else 0.0), needed))
    places = sliding_window_view(before, node_steps + 1).min(axis=1)
    found: Column = np.minimum(wanted, places)
    return found


def highest_of_last(values: Column, steps: int) -> Column:
    """The highest of each value and the ``steps`` before it."""
    before = np.concatenate((np.full(steps, values[0] if values.size else 0.0), values))
    highest: Column = sliding_window_view(before, steps + 1).max(axis=1)
    return highest
