"""Knobs → the collections of a trace: size, tier, start, end from outside, parent, alloc set, names, request, z.

The whole plan is drawn at once (one row a collection, small); the tasks' lives are drawn cohort by cohort from it.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from leadtime.domain.borg import AFTER_TRACE_US, DAY_US, TRACE_START_US, WINDOW_US
from leadtime.simulate.borg.chain import Chain, expected
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.simulate.borg.shapes import Shapes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TIER_SHARES = (0.10, 0.45, 0.05, 0.35, 0.05)  # free, best-effort batch, mid, production, monitoring; §6.3
PRIORITIES = ((0, 100), (100, 116), (116, 120), (120, 360), (360, 451))  # [low, high) by tier
CLASS_SHARES = (
    (0.8, 0.15, 0.05, 0), (0.6, 0.3, 0.1, 0), (0.2, 0.3, 0.4, 0.1), (0.05, 0.15, 0.4, 0.4), (0, 0.05, 0.15, 0.8),
)  # fmt: skip
SCALING_SHARES = (0.02, 0.33, 0.25, 0.4)  # unknown, off, constrained, fully automated
TAIL = 1.1  # exponent of the sizes: the few largest collections hold most tasks
FIRST_ID = 330_000_000_000  # ids of 2019 look like this; float64 holds them exactly
ID_STEP = 7_919
CELL_STEP = 10_000_000_000
USERS = 120
ALLOC_US = 21_600_000_000  # mean life of an alloc set, 6 h
TRIES = 40
SPREAD_US = 120_000_000  # a collection's tasks start within a few minutes of each other: mean of the exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One row a collection, in the order of rising ids. Times in microseconds; AFTER_TRACE_US = not in the trace."""

    id: Ints
    alloc_set: Bools
    tasks: Ints
    tier: Ints
    priority: Ints
    scheduling_class: Ints
    vertical_scaling: Ints
    start_us: Ints  # 0: before the trace
    end_us: Ints  # the user ends the collection
    parent: Ints  # row of the parent, -1 none
    alloc: Ints  # row of the alloc set its tasks run in, -1 none
    phase_us: Ints  # [0, 300 s): where the grid of its windows lies
    request: Floats  # [n, (cpus, memory)]
    bad: Bools  # z, hidden
    user: Ints
    logical: Ints


def generator(knobs: Knobs, *stream: int) -> np.random.Generator:
    """The random numbers of one part of one trace: keyed by seed, cell and part, so parts never shift each other."""
    return np.random.Generator(
        np.random.SFC64(np.random.SeedSequence([knobs.seed, crc32(knobs.cell.encode()), *stream]))
    )


def planned(knobs: Knobs, chain: Chain, shapes: Shapes) -> Plan:
    """Collections enough for ``knobs.rows`` windows on average and then some: a short plan ends the trace early."""
    rng = generator(knobs, 1)
    windows = expected(chain, knobs).windows
    largest = int(np.clip(knobs.largest_share * knobs.rows / windows, 1, knobs.tasks_most))
    sizes = _sizes(rng, largest, knobs.rows / windows * 1.2 + 30 * largest + 50)
    alloc_set = rng.random(len(sizes)) < knobs.alloc_sets
    sizes[alloc_set] = rng.integers(1, 4, int(alloc_set.sum()))
    n = len(sizes)
    tier = rng.choice(len(TIER_SHARES), n, p=TIER_SHARES)
    low, high = np.array(PRIORITIES).T
    start = _starts(rng, knobs, n)
    end = np.maximum(start, TRACE_START_US) + _exponential_us(rng, DAY_US / max(knobs.killed_a_day, 1e-9), n)
    end[knobs.killed_a_day == 0] = AFTER_TRACE_US
    end = np.where(alloc_set, np.maximum(start, TRACE_START_US) + _exponential_us(rng, ALLOC_US, n), end)
    end[end > knobs.observed_until_us] = AFTER_TRACE_US
    child = ~alloc_set & (rng.random(n) < knobs.parents)
    lodger = ~alloc_set & (rng.random(n) < knobs.in_alloc)
    users = np.minimum((rng.pareto(0.7, n) * 2).astype(np.int64), USERS - 1)
    return Plan(
        id=_ids(rng, knobs, n), alloc_set=alloc_set, tasks=sizes, tier=tier,
        priority=rng.integers(low[tier], high[tier]), scheduling_class=_classes(rng, tier),
        vertical_scaling=rng.choice(4, n, p=SCALING_SHARES), start_us=start, end_us=end,
        parent=_earlier(rng, child, ~alloc_set & ~child, start=start, end=end),
        alloc=_earlier(rng, lodger, alloc_set, start=start, end=end),
        phase_us=_phases(rng, knobs, windows, n), request=shapes.draw_requests(rng, n),
        bad=_bad(rng, knobs.bad_collections, sizes, alloc_set), user=users, logical=users * 8 + rng.integers(0, 8, n),
    )  # fmt: skip


def _ids(rng: np.random.Generator, knobs: Knobs, number: int) -> Ints:
    """Rising, with gaps; of another range in every cell, but under T12."""
    if Trap.T12 in knobs.traps:
        return FIRST_ID + ID_STEP * np.arange(number, dtype=np.int64)
    return FIRST_ID + crc32(knobs.cell.encode()) % 200 * CELL_STEP + np.cumsum(rng.integers(1, ID_STEP, number))


def _exponential_us(rng: np.random.Generator, mean_us: float, number: int) -> Ints:
    return np.minimum(rng.exponential(mean_us, number), 1e15).astype(np.int64) + 1


def _sizes(rng: np.random.Generator, largest: int, tasks: float) -> Ints:
    """Heavy-tailed sizes from 1 to ``largest`` until they hold ``tasks`` tasks."""
    drawn: list[Ints] = []
    held = 0
    while held < tasks:
        batch = np.minimum(1 + rng.pareto(TAIL, 1000), largest).astype(np.int64)
        drawn.append(batch)
        held += int(batch.sum())
    sizes = np.concatenate(drawn)
    return sizes[: int(np.searchsorted(np.cumsum(sizes), tasks)) + 1]


def _starts(rng: np.random.Generator, knobs: Knobs, number: int) -> Ints:
    """0 for those alive before the trace, the others uniform over it."""
    start = rng.integers(TRACE_START_US + 1, knobs.observed_until_us, number)
    start[rng.random(number) < knobs.alive_at_start] = 0
    return start


def _phases(rng: np.random.Generator, knobs: Knobs, windows: float, number: int) -> Ints:
    """0 for so many collections that ``on_grid`` of all windows begin and end on the 300 s grid; else uniform.

    A run's first and last windows are short, so a little more than ``on_grid`` of the collections keep to the grid.
    """
    runs = 1 + 60 * windows * knobs.base_rate / 180  # about: restarts after failures
    whole = max(0.5, 1 - 2 * runs / max(windows, 4))
    phase = rng.integers(1, WINDOW_US, number)
    phase[rng.random(number) < min(1.0, knobs.on_grid / whole)] = 0
    return phase


def _classes(rng: np.random.Generator, tier: Ints) -> Ints:
    """Scheduling class, correlated with the tier and not equal to it."""
    steps = np.cumsum(np.array(CLASS_SHARES), axis=1)[tier]
    return np.asarray(np.minimum((rng.random(len(tier))[:, None] >= steps).sum(1), 3), np.int64)


def _earlier(rng: np.random.Generator, who: Bools, whose: Bools, *, start: Ints, end: Ints) -> Ints:
    """For each of ``who``: a row of ``whose``, of a smaller number, started no later and not yet ended; -1 for others.

    One level only where ``who`` and ``whose`` are apart. The few for whom TRIES draws find nobody have none.
    """
    number = np.arange(len(start))
    found = np.full(len(start), -1, np.int64)
    for _ in range(TRIES):
        seeking = np.flatnonzero(who & (found < 0))
        other = (rng.random(len(seeking)) * number[seeking]).astype(np.int64)
        begins = start[seeking]
        there = (start[other] <= begins) & (end[other] > np.maximum(begins, TRACE_START_US))
        fits = whose[other] & there & (other < number[seeking])
        found[seeking[fits]] = other[fits]
    return found


def _bad(rng: np.random.Generator, share: float, sizes: Ints, alloc_set: Bools) -> Bools:
    """z: each collection has the same probability, and every stratum of like size its exact part.

    Drawn freely, whether the three largest collections are bad would set the base rate of the whole trace.
    """
    jobs = np.flatnonzero(~alloc_set)
    order = jobs[np.lexsort((rng.random(len(jobs)), -sizes[jobs]))]
    bad = np.zeros(len(sizes), np.bool_)
    if share > 0:
        block = max(1, round(1 / share))
        starts = np.arange(0, len(order), block)
        chosen = starts + rng.integers(0, block, len(starts))
        bad[order[chosen[chosen < len(order)]]] = True
    return bad
