"""A cohort of task slots → their runs, windows and what was seen of them, boundary by boundary of the 300 s grid.

Hidden states are drawn here and the two filters (optimum.py) walk along, seeing only what a reader of the trace sees.
All tasks of a collection share one grid, so at a boundary every sibling's window has just ended: what is known of the
collection is complete there, and the score exact.
"""

from dataclasses import dataclass

import numpy as np

from leadtime.domain.borg import AFTER_TRACE_US, TRACE_START_US, WINDOW_US, EventType, Tier
from leadtime.simulate.borg import optimum
from leadtime.simulate.borg.chain import EVICT_FACTOR, WINDOWS_A_DAY, Chain, start_share
from leadtime.simulate.borg.knobs import Knobs, Trap
from leadtime.simulate.borg.machines import Machines
from leadtime.simulate.borg.plan import Bools, Floats, Ints
from leadtime.simulate.borg.runs import Runs

FLAG_BELIEF = 0.3  # T15: the toy controller warns above this belief
FINISHED = 0.6  # share of FINISH among ends that are neither failure nor eviction; the others are KILL
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """One row a task, sorted by (collection, instance_index). ``collection`` counts within the cohort."""

    collection: Ints
    instance: Ints
    phase_us: Ints
    tier: Ints
    bad: Bools
    start_us: Ints  # first SCHEDULE; 0 before the trace
    stop_us: Ints  # its user or its parent ends it, and nothing starts again
    loops: Ints  # runs of a crash loop before the first lasting run


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """Boundary rows (windows at whose end a run was alive), evidence [step, collection] about z, and the runs."""

    slot: Ints
    step: Ints
    run: Ints
    x: Floats
    belief: Floats  # [2, n]
    evidence: Floats
    runs: Runs


def boundary_us(phase_us: Ints, step: Ints | int) -> Ints:
    """The step-th boundary of a grid."""
    return TRACE_START_US + phase_us + WINDOW_US * np.asarray(step, np.int64)


def second_half(knobs: Knobs, step: Ints) -> Bools:
    """Whether a boundary lies in the half of the trace in which a drift has happened."""
    return np.asarray(2 * step > knobs.days * WINDOWS_A_DAY, np.bool_)


def step_after(phase_us: Ints, at_us: Ints) -> Ints:
    """Number of the first boundary after an instant (instants before the trace count as its start)."""
    return (np.maximum(at_us, TRACE_START_US) - TRACE_START_US - phase_us) // WINDOW_US + 1


class Lives:
    """Steps a cohort through the trace. ``chains`` are those of the first and the second half."""

    def __init__(
        self, knobs: Knobs, chains: tuple[Chain, Chain], slots: Slots, machines: Machines, rng: np.random.Generator
    ) -> None:
        self.knobs, self.chains, self.slots, self.machines, self.rng = knobs, chains, slots, machines, rng
        self.until_us = knobs.observed_until_us
        self.steps = knobs.days * WINDOWS_A_DAY + 1
        n = len(slots.collection)
        self.runs = Runs()
        self.alive = np.zeros(n, np.bool_)
        self.degrading = np.zeros(n, np.bool_)
        self.belief = np.zeros((2, n))
        self.run = np.zeros(n, np.int64)
        self.number = np.zeros(n, np.int64)
        self.evidence = np.zeros((self.steps, int(slots.collection.max(initial=-1)) + 1))
        self.waiting: list[list[tuple[Ints, Ints, Ints]]] = [[] for _ in range(self.steps + 1)]
        self.rows: list[tuple[Ints, Ints, Ints, Floats, Floats]] = []
        old, new = (
            np.array([start_share(chains[0], z, knobs, alive_before=before) for z in (0, 1)])
            for before in (True, False)
        )
        self.start_shares = np.stack([new, old])

    def lived(self) -> Lived:
        """Run all steps."""
        self._first_starts()
        for step in range(self.steps):
            self._advance(step)
            while self.waiting[step]:  # a run that ends before its first boundary may start again before it
                batch, self.waiting[step] = self.waiting[step], []
                slot, submit_us, start_us = (np.concatenate(column) for column in zip(*batch, strict=True))
                self._begin(step, slot, submit_us, start_us)
        self._after_trace()
        slots, steps, runs, signals, beliefs = zip(*self.rows, strict=True) if self.rows else ([],) * 5
        none = np.zeros(0, np.int64)
        return Lived(
            slot=np.concatenate([none, *slots]), step=np.concatenate([none, *steps]),
            run=np.concatenate([none, *runs]), x=np.concatenate([np.zeros(0), *signals]),
            belief=np.concatenate([np.zeros((2, 0)), *beliefs], axis=1),
            evidence=self.evidence, runs=self.runs,
        )  # fmt: skip

    # --- beginnings ---------------------------------------------------------------------------------------------

    def _first_starts(self) -> None:
        """Crash loops first; then the first run that lasts."""
        slots = self.slots
        start = slots.start_us.copy()
        submit = np.where(start == 0, 0, np.maximum(start - self._delays(len(start), 5.0), TRACE_START_US))
        looping = np.flatnonzero((slots.loops > 0) & (start > 0))
        if len(looping):
            submit[looping], start[looping] = self._crash_loops(looping, start[looping], submit[looping])
        self._wait(np.arange(len(start)), submit, start)

    def _crash_loops(self, slot: Ints, start: Ints, submit: Ints) -> tuple[Ints, Ints]:
        """Runs that fail before their first boundary, so no window of theirs ends while they run."""
        start, submit = start.copy(), submit.copy()
        for loop in range(int(self.slots.loops[slot].max())):
            edge = boundary_us(self.slots.phase_us[slot], step_after(self.slots.phase_us[slot], start))
            start = np.where(edge - start < 10 * SECOND_US, edge + SECOND_US, start)
            edge = boundary_us(self.slots.phase_us[slot], step_after(self.slots.phase_us[slot], start))
            end = start + 1 + (self.rng.uniform(0.1, 0.95, len(slot)) * (edge - start)).astype(np.int64)
            on = np.flatnonzero(
                (loop < self.slots.loops[slot]) & (end < np.minimum(self.slots.stop_us[slot], self.until_us))
            )
            rows = self._record_begin(slot[on], submit[on], start[on])
            removed = self.runs["removed_us"][rows] <= end[on]
            end[on] = np.where(removed, self.runs["removed_us"][rows], end[on])
            kind = np.where(removed, int(EventType.EVICT), int(EventType.FAIL))
            self.runs.end(rows, end_us=end[on], end_type=kind, window_end_us=end[on], last_from_us=start[on])
            submit[on] = end[on]
            start[on] = end[on] + self._delays(len(on), self.knobs.resubmit_delay_s)
        return submit, start

    def _wait(self, slot: Ints, submit_us: Ints, start_us: Ints) -> None:
        """Keep starts until their first boundary comes; those that come too late never happen."""
        ok = start_us < np.minimum(self.slots.stop_us[slot], self.until_us)
        slot, submit_us, start_us = slot[ok], submit_us[ok], start_us[ok]
        step = np.clip(step_after(self.slots.phase_us[slot], start_us), 0, self.steps)
        for one in np.unique(step).tolist():
            part = step == one
            self.waiting[one].append((slot[part], submit_us[part], start_us[part]))

    def _record_begin(self, slot: Ints, submit_us: Ints, start_us: Ints) -> Ints:
        """Runs into the book: machine, number, change of request."""
        machine, removed = self.machines.place(self.rng, np.maximum(start_us, TRACE_START_US))
        self.number[slot] += 1
        rows = self.runs.begin(
            slot=slot, number=self.number[slot], submit_us=submit_us, start_us=start_us, machine=machine,
            removed_us=removed,
        )  # fmt: skip
        updated = rows[self.rng.random(len(rows)) < self.knobs.updated]
        after = np.maximum(self.runs["start_us"][updated], TRACE_START_US) + self._delays(len(updated), 7200.0)
        self.runs.update(updated, after, self.rng.uniform(0.7, 1.5, len(updated)))
        return rows

    def _begin(self, step: int, slot: Ints, submit_us: Ints, start_us: Ints) -> None:
        """Runs whose first boundary is this one; one that is stopped from outside before it never gets there."""
        rows = self._record_begin(slot, submit_us, start_us)
        self.run[slot] = rows
        at = boundary_us(self.slots.phase_us[slot], step)
        outside_us, outside_type = self._outside(slot, rows)
        gone = (outside_us <= at) | (at > self.until_us)
        ended = gone & (outside_us <= self.until_us)
        if ended.any():
            self._end(slot[ended], outside_us[ended], outside_type[ended], start_us[ended])
        slot, start_us = slot[~gone], start_us[~gone]
        shares = self.start_shares[(start_us == 0).astype(np.intp)].T  # [2, n]
        self.alive[slot] = True
        self.degrading[slot] = (
            self.rng.random(len(slot)) < shares[self.slots.bad[slot].astype(np.intp), np.arange(len(slot))]
        )
        self._see(step, slot, shares, 1.0 - shares)

    # --- one window ---------------------------------------------------------------------------------------------

    def _advance(self, step: int) -> None:
        """From the boundary before to this one: who fails, who ends otherwise, who goes on."""
        slot = np.flatnonzero(self.alive)
        if not len(slot):
            return
        chain = self.chains[int(2 * step > self.steps - 1)]
        before = boundary_us(self.slots.phase_us[slot], step - 1)
        fails, ends, degrading = self._moves(chain, slot)
        chain_us = np.where(fails | ends, before + self._ends_after(len(slot)), AFTER_TRACE_US)
        outside_us, outside_type = self._outside(slot, self.run[slot])
        end_us = np.minimum(chain_us, outside_us)
        ended = (end_us <= before + WINDOW_US) & (end_us <= self.until_us)
        kind = np.where(outside_us < chain_us, outside_type, np.where(fails, int(EventType.FAIL), -1))
        if ended.any():
            self._ended(
                step, chain, slot[ended], end_us=end_us[ended], kind=kind[ended], before_us=before[ended],
                outside=outside_us[ended] < chain_us[ended],
            )  # fmt: skip
        beyond = ~ended & (before + WINDOW_US > self.until_us)
        self.alive[slot[ended | beyond]] = False
        on = ~ended & ~beyond
        slot = slot[on]
        self.degrading[slot] = degrading[on]
        self._see(step, slot, *optimum.predicted(chain, self.belief[:, slot]))

    def _moves(self, chain: Chain, slot: Ints) -> tuple[Bools, Bools, Bools]:
        """(fails, ends otherwise, is degrading if alive) of the hidden chain, one uniform number a run."""
        u = self.rng.random(len(slot))
        now = self.degrading[slot]
        fail = np.where(now, chain.fails, chain.fails_healthy)
        change = np.where(now, chain.heals, np.array(chain.degrades)[self.slots.bad[slot].astype(np.intp)])
        fails = u < fail
        ends = ~fails & (u < fail + chain.ends)
        changes = (u >= fail + chain.ends) & (u < fail + chain.ends + change)
        degrading = now ^ changes
        if self.knobs.prevented > 0:
            saved = fails & (self.belief[0, slot] > FLAG_BELIEF) & (self.rng.random(len(slot)) < self.knobs.prevented)
            fails, degrading = fails & ~saved, degrading & ~saved
        return fails, ends, degrading

    def _ends_after(self, number: int) -> Ints:
        """Microseconds after the boundary, uniform in (0, 300 s]; T4 puts most on the edges."""
        after = self.rng.integers(1, WINDOW_US + 1, number)
        if Trap.T4 in self.knobs.traps:
            after = np.where(
                self.rng.random(number) < 0.35, 1, np.where(self.rng.random(number) < 0.5, WINDOW_US, after)
            )
        return after

    def _see(self, step: int, slot: Ints, degrading: Floats, healthy: Floats) -> None:
        """The window that ends here: draw its signal, move the beliefs, add what it says of z, keep the row."""
        if not len(slot):
            return
        mu = self.knobs.mu * (self.knobs.drift_mu if 2 * step > self.steps - 1 else 1.0)
        x = self.rng.standard_normal(len(slot)) + mu * self.degrading[slot]
        belief, says = optimum.seen(degrading, healthy, optimum.signal_odds(mu, x))
        self.belief[:, slot] = belief
        self._note(step, slot, says)
        self.rows.append((slot, np.full(len(slot), step), self.run[slot], x, belief))

    def _note(self, step: int, slot: Ints, says: Floats) -> None:
        self.evidence[step] += np.bincount(self.slots.collection[slot], says, minlength=self.evidence.shape[1])

    # --- ends ---------------------------------------------------------------------------------------------------

    def _outside(self, slot: Ints, run: Ints) -> tuple[Ints, Ints]:
        """When and how a run is ended from outside: its user or parent (KILL), its machine (EVICT within a second)."""
        removed = self.runs["removed_us"][run]
        stop = self.slots.stop_us[slot]
        gone = removed < AFTER_TRACE_US
        removed = np.where(gone, removed + run * 7919 % SECOND_US, removed)
        return np.minimum(removed, stop), np.where(removed < stop, int(EventType.EVICT), int(EventType.KILL))

    def _ended(
        self, step: int, chain: Chain, slot: Ints, *, end_us: Ints, kind: Ints, before_us: Ints, outside: Bools
    ) -> None:
        """Ends within a window: name them, note what they say of z, start again whoever does."""
        belief = self.belief[:, slot]
        kind = np.where(kind < 0, self._other_end(slot), kind)
        lost = ~outside & (self.rng.random(len(slot)) < self.knobs.lost)
        part = (end_us - before_us) / WINDOW_US
        says = np.where(kind == int(EventType.FAIL), optimum.failure_says(chain, belief), 0.0)
        says = np.where(lost, optimum.lost_says(chain, belief), says)
        says = np.where(outside, optimum.outside_end_says(chain, belief, part), says)
        self._note(step, slot, says)
        self._end(slot, end_us, np.where(lost, int(EventType.LOST), kind), before_us)

    def _other_end(self, slot: Ints) -> Ints:
        """FINISH, KILL, or EVICT: ten times as often in the two lowest tiers."""
        low = self.slots.tier[slot] <= int(Tier.BEST_EFFORT)
        evict = np.minimum(1.0, self.knobs.evicted * np.where(low, EVICT_FACTOR, 1.0) / self.knobs.other_ends)
        u = self.rng.random(len(slot))
        finish = u < evict + (1 - evict) * FINISHED
        return np.where(u < evict, int(EventType.EVICT), np.where(finish, int(EventType.FINISH), int(EventType.KILL)))

    def _end(self, slot: Ints, end_us: Ints, kind: Ints, last_from_us: Ints) -> None:
        """Into the book; the last window may run on past the end; failed and evicted tasks may start again."""
        n = len(slot)
        u = self.rng.random(n)
        past = np.where(u < self.knobs.overrun_long, self.rng.uniform(60, 300, n), self.rng.uniform(5, 60, n))
        past = np.where(u < self.knobs.overrun + self.knobs.overrun_long, past * 1e6, 0).astype(np.int64)
        window_end = np.maximum(end_us, np.minimum(end_us + past, self.until_us))
        rows = self.run[slot]
        self.runs.end(rows, end_us=end_us, end_type=kind, window_end_us=window_end, last_from_us=last_from_us)
        share = np.where(kind == int(EventType.FAIL), self.knobs.resubmitted, 0.0)
        share = np.where(kind == int(EventType.EVICT), self.knobs.resubmitted_evicted, share)
        again = self.rng.random(n) < share
        slot, end_us, window_end = slot[again], end_us[again], window_end[again]
        start = np.maximum(end_us + self._delays(len(slot), self.knobs.resubmit_delay_s), window_end + 1)
        same = self.rng.random(len(slot)) < self.knobs.same_instant
        submit = np.where(
            same, end_us, end_us + 1 + ((start - end_us - 1) * self.rng.random(len(slot))).astype(np.int64)
        )
        self._wait(slot, submit, start)

    def _after_trace(self) -> None:
        """Some of the runs alive at the end have an end after the trace on record."""
        open_runs = np.flatnonzero(self.runs["end_type"] == 0)
        known = open_runs[self.rng.random(len(open_runs)) < self.knobs.ends_after_trace]
        self.runs.end(known, end_type=np.full(len(known), int(EventType.FINISH)))

    def _delays(self, number: int, mean_s: float) -> Ints:
        return (self.rng.exponential(mean_s * 1e6, number)).astype(np.int64) + 1
