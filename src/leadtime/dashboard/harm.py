"""Decisions and what came after → the decisions that did harm, each with the measurement that says so.

Three harms are told, by rules fixed here so that nobody argues about a mark:

UnservedAfterLowering  capacity was lowered, and within 15 min more than 0.1 % of a minute's requests went unserved,
                       after 5 min without; the last lowering before that minute bears it
PendingAfterRaise      a floor was raised while nothing was pending, and five minutes later pods were pending: the
                       raise came before its nodes; the first raise of a run bears it
PaidForNothing         capacity was raised, and until an hour after the last raise of its run demand never needed more
                       than stood before; told only when that hour is on record
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadtime.dashboard.clock_text import clock, number, percent
from leadtime.dashboard.runs import DecisionRun, decision_runs
from leadtime.dashboard.views import DecisionView, Direction, Story, WorldMinutes

SHORTFALL_RATIO = 0.001  # as shortfall_minutes of the score card
LOWERING_WATCH_S, CLEAN_BEFORE_S = 900, 300
PENDING_AFTER_S, PENDING_LEAST_RATIO = 300, 0.01
NOTHING_CAME_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """One mark: the decision that bears it, and the sentence with the numbers."""

    at_s: int
    scope: str
    kind: str
    sentence: str


def harms(story: Story, until_s: int) -> tuple[Harm, ...]:
    """All harms of leadtime's decisions about this workload that show before ``until_s``."""
    world = story.worlds.get("leadtime")
    if world is None:
        return ()
    scope = f"workload:{story.workload}"
    runs = [run for run in decision_runs(story.ticks) if run.scope == scope and run.start_s < until_s]
    found = [*_unserved_after_lowering(runs, world, until_s)]
    for run in runs:
        if run.first.direction is Direction.RAISE:
            found += _pending_after_raise(run, world, until_s)
            found += _paid_for_nothing(run, story, world, until_s)
    return tuple(sorted(found, key=lambda h: (h.at_s, h.kind)))


def shortfall(world: WorldMinutes, i: int) -> float | None:
    """Share of minute i's requests that went unserved; None when it was not measured."""
    arrived, unserved = world.arrived[i], world.unserved[i]
    if arrived is None or unserved is None:
        return None
    return unserved / arrived if arrived > 0 else 0.0


def _unserved_after_lowering(runs: Sequence[DecisionRun], world: WorldMinutes, until_s: int) -> list[Harm]:
    lowering = sorted(
        (d for run in runs if run.first.direction is Direction.LOWER for d in run.decisions if d.action),
        key=lambda d: d.at_s,
    )
    found: list[Harm] = []
    clean_since = world.at_s[0] if world.at_s else 0
    for i, at_s in enumerate(world.at_s):
        ratio = shortfall(world, i)
        if at_s >= until_s:
            break
        if ratio is None or ratio <= SHORTFALL_RATIO:
            continue
        if at_s - clean_since >= CLEAN_BEFORE_S:
            blamed = _last_before(lowering, at_s)
            if blamed is not None:
                minutes = round((at_s - blamed.at_s) / 60)
                sentence = (
                    f"lowered at {clock(blamed.at_s)}; {minutes} min later, at {clock(at_s)}, "
                    f"{percent(ratio)} of requests went unserved"
                )
                found.append(
                    Harm(at_s=blamed.at_s, scope=blamed.scope, kind="UnservedAfterLowering", sentence=sentence)
                )
        clean_since = at_s + 60
    return found


def _last_before(lowering: Sequence[DecisionView], at_s: int) -> DecisionView | None:
    near = [d for d in lowering if at_s - LOWERING_WATCH_S <= d.at_s <= at_s]
    return near[-1] if near else None


def _pending_after_raise(run: DecisionRun, world: WorldMinutes, until_s: int) -> list[Harm]:
    for decision in run.decisions:
        if decision.action is None or decision.action.kind != "floor" or decision.at_s + PENDING_AFTER_S >= until_s:
            continue
        before, after = world.index_at(decision.at_s), world.index_at(decision.at_s + PENDING_AFTER_S)
        if before is None or after is None:
            continue
        stood, waits, wanted = world.pending[before], world.pending[after], world.wanted[after]
        if stood == 0 and waits and wanted and waits >= max(1.0, PENDING_LEAST_RATIO * wanted):
            sentence = (
                f"floor raised at {clock(decision.at_s)} with nothing pending; "
                f"five minutes later {number(waits)} pods were pending"
            )
            return [Harm(at_s=decision.at_s, scope=decision.scope, kind="PendingAfterRaise", sentence=sentence)]
    return []


def _paid_for_nothing(run: DecisionRun, story: Story, world: WorldMinutes, until_s: int) -> list[Harm]:
    watch_until_s = run.decisions[-1].at_s + NOTHING_CAME_S
    tick = next((t for t in story.ticks if t.at_s == run.start_s), None)
    view = tick.workloads.get(story.workload) if tick else None
    last = run.decisions[-1].action
    if not view or not view.pods_at_target or last is None or last.after is None or watch_until_s > until_s:
        return []
    if not world.at_s or world.at_s[-1] < watch_until_s - 60:
        return []
    indices = [i for i, at_s in enumerate(world.at_s) if run.start_s <= at_s < watch_until_s]
    demands = [value for i in indices if (value := world.demand[i]) is not None]
    if len(demands) < len(indices):
        return []  # a gap might hide the very demand that was prepared for
    needed = math.ceil(max(demands) / view.pods_at_target)
    if needed > view.wanted:
        return []
    sentence = (
        f"{run.words}; demand until {clock(watch_until_s)} never needed more than {number(needed)} pods, "
        f"{number(view.wanted)} stood already"
    )
    return [Harm(at_s=run.start_s, scope=run.scope, kind="PaidForNothing", sentence=sentence)]
