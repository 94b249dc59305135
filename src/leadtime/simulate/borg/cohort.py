"""A stretch of the plan → its slots, lives and usage windows: what one shard is made of, hidden states included.

Everything drawn for a cohort comes from its own stream of random numbers: cohorts do not depend on each other.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.domain.borg import AFTER_TRACE_US, TRACE_START_US, EventType
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.lives import SECOND_US, Lived, Lives, Slots, boundary_us, second_half
from leadtime.simulate.borg.optimum import KILL_LATEST_US, bad_share
from leadtime.simulate.borg.plan import SPREAD_US, Bools, Floats, Ints, Plan, generator
from leadtime.simulate.borg.world import World

LOOPS_LEAST, LOOPS_MOST = 2, 29  # runs of a crash loop before the one that lasts
SLOT_KEY = 2**43  # above every time of a trace of 31 days
SHORTEST_US = SECOND_US  # no usage is reported for less


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """One row a usage window, sorted by (slot, end). ``step`` is -1 for a run's last window, which ends after the run.

    ``x`` is the signal: ratio = 0.5 + 0.1 x; a last window carries none. ``score`` [n, 5] is the Bayes score where a
    run was alive at the window's end, else NaN.
    """

    slot: Ints
    run: Ints
    step: Ints
    start_us: Ints
    end_us: Ints
    x: Floats
    score: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Collections ``first`` … ``last`` - 1 of the plan, lived. ``zero_request`` by slot."""

    number: int
    first: int
    last: int
    slots: Slots
    lived: Lived
    windows: Windows
    zero_request: Bools

    def collection(self, slot: Ints) -> Ints:
        """Row of the plan."""
        return self.first + self.slots.collection[slot]


def slots_of(knobs: Knobs, plan: Plan, rows: Ints, rng: np.random.Generator) -> Slots:
    """The tasks of the collections ``rows`` (a range; alloc sets have none here)."""
    counts = np.where(plan.alloc_set[rows], 0, plan.tasks[rows])
    collection = np.repeat(np.arange(len(rows)), counts)
    of = rows[collection]
    n = len(of)
    instance = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    start = plan.start_us[of]
    start = np.where(start == 0, 0, start + rng.exponential(SPREAD_US, n).astype(np.int64))
    parent_end = _parent_end(plan, of)
    killed = np.where(
        parent_end < AFTER_TRACE_US, parent_end + rng.integers(SECOND_US, KILL_LATEST_US + 1, n), AFTER_TRACE_US
    )
    loops = np.where(rng.random(n) < knobs.crash_loops, rng.integers(LOOPS_LEAST, LOOPS_MOST + 1, n), 0)
    return Slots(
        collection=collection, instance=instance, phase_us=plan.phase_us[of], tier=plan.tier[of], bad=plan.bad[of],
        start_us=start, stop_us=np.minimum(plan.end_us[of], killed), loops=loops,
    )  # fmt: skip


def _parent_end(plan: Plan, rows: Ints) -> Ints:
    """When the parents end; AFTER_TRACE_US without one."""
    parent = plan.parent[rows]
    return np.where(parent >= 0, plan.end_us[np.maximum(parent, 0)], AFTER_TRACE_US)


def live(world: World, number: int, *, first: int, last: int) -> Cohort:
    """Draw the lives of collections ``first`` … ``last`` - 1, and score every window."""
    knobs = world.knobs
    rng = generator(knobs, 10, number)
    slots = slots_of(knobs, world.plan, np.arange(first, last), rng)
    lived = Lives(knobs, world.chains, slots, world.machines, rng).lived()
    score = _scores(world, slots, lived, first)
    return Cohort(
        number=number, first=first, last=last, slots=slots, lived=lived,
        windows=_windows(slots, lived, score, rng), zero_request=rng.random(len(slots.tier)) < knobs.zero_request,
    )  # fmt: skip


def _scores(world: World, slots: Slots, lived: Lived, first: int) -> Floats:
    collection = slots.collection[lived.slot]
    bad = bad_share(world.knobs, lived.evidence, lived.step, collection)
    at = boundary_us(slots.phase_us[lived.slot], lived.step)
    return world.future.scores(
        half=second_half(world.knobs, lived.step).astype(np.intp),
        parent=(world.plan.parent[first + collection] >= 0).astype(np.intp), belief=lived.belief, bad=bad,
        parent_gone_us=np.maximum(at.astype(np.float64) - _parent_end(world.plan, first + collection), -1.0),
    )  # fmt: skip


def _windows(slots: Slots, lived: Lived, score: Floats, rng: np.random.Generator) -> Windows:
    """Whole windows up to each boundary, and the last one of every run that ended within the trace."""
    runs = lived.runs
    phase = slots.phase_us[lived.slot]
    start = np.maximum(boundary_us(phase, lived.step - 1), np.maximum(runs["start_us"][lived.run], TRACE_START_US))
    ended = np.flatnonzero((runs["end_us"] < AFTER_TRACE_US) & (runs["end_type"] > int(EventType.SCHEDULE)))
    last_start = np.maximum(np.maximum(runs["last_from_us"], runs["start_us"])[ended], TRACE_START_US)
    last_end = runs["window_end_us"][ended]
    long_enough = last_end - last_start >= SHORTEST_US
    ended, last_start, last_end = ended[long_enough], last_start[long_enough], last_end[long_enough]
    slot = np.concatenate([lived.slot, runs["slot"][ended]])
    end = np.concatenate([boundary_us(phase, lived.step), last_end])
    order = np.argsort(slot * SLOT_KEY + end)  # no two windows of a slot end together
    none = np.full((len(ended), score.shape[1]), np.nan)
    return Windows(
        slot=slot[order],
        run=np.concatenate([lived.run, ended])[order],
        step=np.concatenate([lived.step, np.full(len(ended), -1)])[order],
        start_us=np.concatenate([start, last_start])[order],
        end_us=end[order],
        x=np.concatenate([lived.x, rng.standard_normal(len(ended))])[order],
        score=np.concatenate([score, none])[order],
    )


def cut(cohort: Cohort, rows: int) -> Cohort:
    """The first collections that together have at least ``rows`` windows; the whole cohort where it has fewer."""
    held = np.bincount(cohort.slots.collection[cohort.windows.slot], minlength=cohort.last - cohort.first)
    kept = int(np.searchsorted(np.cumsum(held), rows)) + 1
    if kept >= cohort.last - cohort.first:
        return cohort
    slots = int(np.searchsorted(cohort.slots.collection, kept))
    upto = int(np.searchsorted(cohort.windows.slot, slots))
    w = cohort.windows
    return Cohort(
        number=cohort.number, first=cohort.first, last=cohort.first + kept,
        slots=Slots(**{name: getattr(cohort.slots, name)[:slots] for name in Slots.__slots__}), lived=cohort.lived,
        windows=Windows(**{name: getattr(w, name)[:upto] for name in Windows.__slots__}),
        zero_request=cohort.zero_request[:slots],
    )  # fmt: skip
